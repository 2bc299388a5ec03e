"""The string task in lm-eval, by its command: the accuracy is that of our own evaluation; blank lines end no answer."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from adapter_rows import PROBLEMS, RIGHT, ROOT, WRONG, chat_server, own_accuracy, smoke_model, write_problems

pytest.importorskip("lm_eval")

TASK = ROOT / "examples/adapters/lm_eval_task"
FILE = "data/composition/seed0/string_task/test_heldout.parquet"


def lm_eval(folder: Path, problems: Path, *words: str) -> tuple[float, list[str]]:
    """The accuracy, and the responses in the order of the problems, of ``lm_eval`` on the example's task."""
    task = folder / "task"
    task.mkdir()
    for file in TASK.glob("*.*"):
        (task / file.name).write_text(file.read_text().replace(FILE, str(problems)))
    command = [sys.executable, "-m", "lm_eval", "--tasks", "compositionality", "--include_path", str(task), *words]
    command += ["--apply_chat_template", "--output_path", str(folder / "out"), "--log_samples"]
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf"), "OPENAI_API_KEY": "none"}
    done = subprocess.run(command, env={**os.environ, **offline}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (results,) = (folder / "out").rglob("results_*.json")
    (samples,) = (folder / "out").rglob("samples_*.jsonl")
    rows = sorted(map(json.loads, samples.read_text().splitlines()), key=lambda row: row["doc_id"])
    accuracy = json.loads(results.read_text())["results"]["compositionality"]["acc,none"]
    return accuracy, [row["resps"][0][0] for row in rows]


def test_greedy_accuracy_is_that_of_our_evaluation(tmp_path: Path) -> None:
    problems = tmp_path / "problems.parquet"
    model = smoke_model(problems, 96)
    words = ["--model", "hf", "--model_args", f"pretrained={model},dtype=float32", "--device", "cpu"]
    accuracy, responses = lm_eval(tmp_path, problems, *words, "--batch_size", "8", "--gen_kwargs", "max_gen_toks=96")
    assert accuracy == pytest.approx(own_accuracy(model, problems, 96))
    assert 0 < accuracy < 1
    assert all(responses)


def test_an_answer_goes_on_after_a_blank_line(tmp_path: Path) -> None:
    problems = write_problems(tmp_path / "problems.parquet")
    said = {
        problem.prompt: f"Let me see.\n\n{text}"
        for problem, text in zip(PROBLEMS, [RIGHT[0], WRONG[1], RIGHT[2]], strict=True)
    }
    with chat_server(said) as url:
        model = f"model=m,base_url={url}/chat/completions,tokenized_requests=False,num_concurrent=1"
        found = lm_eval(tmp_path, problems, "--model", "local-chat-completions", "--model_args", model)
    assert found == (pytest.approx(2 / 3), list(said.values()))
