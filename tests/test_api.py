"""The functions for a notebook: what they return, and that bad input is a line."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from assets import save, tiny_model

import compositionality
from compositionality import gold_log_prob, judge, pass_at_k, problems, sample, train
from compositionality.errors import UserError
from compositionality.evaluate.gold import load
from compositionality.rollout.model_folder import check_model
from compositionality.rollout.prompts import prompt_tokens
from compositionality.tasks.registry import known_task
from compositionality.train.tiny.corpus import definition_names
from compositionality.types import Problem, Reason

OPTIONS = {"levels": [1, 2], "count": 6, "style": "compact", "max_length": 20}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("model"), *tiny_model(definition_names()))


def test_problems_are_rows_that_a_judge_takes() -> None:
    rows = problems("string", **OPTIONS)
    assert rows["level"].value_counts().to_dict() == {1: 3, 2: 3}
    assert rows.equals(problems("string", mode="clean", **OPTIONS))
    assert not rows.equals(problems("string", seed=2, **OPTIONS))
    problem = Problem(**rows.iloc[0])
    gold = known_task(problem.data_source).gold(problem)
    for asked in (problem, rows.assign(mine=1).iloc[0], rows.iloc[0].to_dict()):
        assert judge(asked, gold).score == 1.0
        assert judge(asked, "no idea").reason is not Reason.CORRECT
    assert judge(problem.ground_truth, gold, problem.data_source).score == 1.0
    assert judge(json.dumps({"target": 6, "numbers": [2, 3]}), "<answer>2 * 3</answer>", "countdown").score == 1.0


def test_samples_are_rows_by_prompt_and_depend_on_the_seed_alone(model: Path) -> None:
    prompts, threads = problems("string", **OPTIONS)["prompt"], torch.get_num_threads()
    answers = sample(model, prompts, n=2, max_tokens=8)
    assert [*zip(answers["prompt"], answers["sample"], strict=True)] == [(p, s) for p in range(6) for s in range(2)]
    assert set(answers["finish_reason"]) <= {"stop", "length"}
    assert answers["n_tokens"].max() <= 8
    assert answers.equals(sample(model, [[{"role": "user", "content": text}] for text in prompts], n=2, max_tokens=8))
    assert not answers.equals(sample(model, prompts, n=2, max_tokens=8, seed=1))
    assert torch.get_num_threads() == threads


def test_gold_log_prob_is_that_of_the_solution_and_its_eos(model: Path) -> None:
    rows = problems("string", **OPTIONS).set_index("prompt", drop=False)
    rows.iloc[1, rows.columns.get_loc("data_source")] = "table"  # which writes no solutions
    values = gold_log_prob(model, rows)
    assert values.index.equals(rows.index)
    assert np.isnan(values.iloc[1])
    problem, folder = Problem(**rows.iloc[0]), check_model(model)
    prompt = prompt_tokens(folder.tokenizer, [{"role": "user", "content": problem.prompt}])
    gold = known_task(problem.data_source).gold(problem)
    tokens = [*prompt, *folder.tokenizer(gold, add_special_tokens=False)["input_ids"], folder.tokenizer.eos_token_id]
    with torch.inference_mode():
        logits = load(model)(torch.tensor([tokens])).logits[0]
    log_probs = logits.log_softmax(-1)[:-1].gather(-1, torch.tensor(tokens)[1:, None])[len(prompt) - 1 :]
    assert values.iloc[0] == pytest.approx(float(log_probs.sum()), rel=1e-4)


def test_the_code_of_the_readme_runs(model: Path, tmp_path: Path) -> None:
    (tmp_path / "base").symlink_to(model)
    text = (Path(__file__).parents[1] / "bash" / "README.md").read_text()
    code = next(
        block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "from compositionality" in block
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:3] == ["pass@4", "gold_log_prob", "level"]


def test_training_takes_a_frame_and_is_the_command(model: Path, tmp_path: Path) -> None:
    """Run again it does nothing; with other rows it is refused, before it has changed the file of the first."""
    rows, short = problems("string", **OPTIONS), {"trainer": {"steps": 1}, "run__device": "cpu"}
    rows["response"] = [known_task(row["data_source"]).gold(Problem(**row[:7])) for _, row in rows.iterrows()]
    tuned = train("sft", model, rows, tmp_path / "sft", data__max_length=128, **short)
    assert tuned == tmp_path / "sft" / "final"
    changed = tuned.stat().st_mtime_ns
    assert train("sft", model, rows, tmp_path / "sft", data__max_length=128, **short).stat().st_mtime_ns == changed
    with pytest.raises(UserError, match="made from other inputs"):
        train("sft", model, rows[:4], tmp_path / "sft", data__max_length=128, **short)
    assert len(pd.read_parquet(tmp_path / "sft.parquet")) == 6
    step = {"data__prompts_per_step": 4, "data__max_prompt_tokens": 64, "rollout": {"n": 2, "max_tokens": 8}}
    final = train("grpo", tuned, rows, tmp_path / "rl", **step, **short)
    assert check_model(final)
    again = train("grpo", tuned, tmp_path / "rl.parquet", tmp_path / "rl", **step, **short)  # the same problems
    assert again == final
    assert {"level", "reward_model"} <= {*pd.read_parquet(tmp_path / "rl.parquet")}


def test_the_package_has_its_functions_and_no_others_and_is_not_hidden_by_a_room() -> None:
    assert {*compositionality.__all__} <= {*dir(compositionality)}
    for name in compositionality.__all__:
        assert getattr(compositionality, name).__doc__
    assert not hasattr(compositionality, "problem")
    from compositionality.train import run_folder

    assert callable(compositionality.train)
    assert compositionality.train.run_folder is run_folder


def test_pass_at_k_is_a_number() -> None:
    assert pass_at_k(10, 3, 4) == pytest.approx(1 - math.comb(7, 4) / math.comb(10, 4))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: problems("strings"), "unknown task 'strings'"),
        (lambda: problems("string", level=[1]), "level: no such setting; did you mean levels"),
        (lambda: judge("{}", "text"), "unknown data_source ''"),
        (lambda: sample("none", ["text"]), "none: no such model folder"),
        (lambda: sample("none", ["text"], temperature=-1), "temperature=-1: must be at least 0"),
        (lambda: train("ppo", "none", "rows.parquet", "out"), "method 'ppo': unknown; give grpo or sft"),
        (lambda: train("sft", "none", "rows.parquet", "out", optim__rate=1), "optim.rate: no such setting"),
        (lambda: pass_at_k(4, 5, 1), "c=5: must lie between 0 and the number of samples, 4"),
        (lambda: pass_at_k(4, 1, 5), "k=5: must lie between 1 and the number of samples, 4"),
    ],
)
def test_p18_bad_input_is_a_line(call: Callable[[], object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        call()
