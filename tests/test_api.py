"""The functions for a notebook: what they return, and that bad input is a line."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from assets import save, tiny_model
from bash_runs import warm_python

import compositionality
from compositionality import gold_log_prob, judge, pass_at_k, problems, sample, train
from compositionality.data.create_problems import create_problems, settings_for
from compositionality.errors import UserError
from compositionality.evaluate.gold import load
from compositionality.rollout.model_folder import check_model
from compositionality.rollout.prompts import prompt_tokens
from compositionality.tasks.registry import known_task
from compositionality.train.tiny.corpus import definition_names
from compositionality.types import Problem, Reason

TURN = {"role": "user", "content": "a"}
NO_PROMPTS = (
    *(None, math.nan, 3, b"a", "\ud800", TURN, {"role": "user"}),
    *([], [{"role": "user"}], [TURN | {"content": None}], [TURN, "a"]),
)
ROW = Problem("string", 1, "g", "p", "x", 0, {})
FILED = {"data_source": "string", "level": 1, "group": "g", "prompt": [TURN]}
FILED |= {"extra_info": {}, "reward_model": {"ground_truth": "x"}}
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


def test_rows_of_a_problem_file_are_problems_too(model: Path, tmp_path: Path) -> None:
    settings = settings_for("string", output=str(tmp_path / "p.parquet"), **OPTIONS)
    rows, table = pd.read_parquet(create_problems(settings)), problems("string", **OPTIONS)
    problem = Problem(**table.iloc[0])
    assert judge(rows.iloc[0], known_task(problem.data_source).gold(problem)).score == 1.0
    assert gold_log_prob(model, rows).equals(gold_log_prob(model, table))


def test_samples_are_rows_by_prompt_and_depend_on_the_seed_alone(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts, threads, chosen = problems("string", **OPTIONS)["prompt"], torch.get_num_threads(), list[int]()
    monkeypatch.setattr(
        torch, "set_num_threads", lambda number, real=torch.set_num_threads: (chosen.append(number), real(number))
    )
    answers = sample(model, prompts, n=2, max_tokens=8)
    assert [*zip(answers["prompt"], answers["sample"], strict=True)] == [(p, s) for p in range(6) for s in range(2)]
    assert set(answers["finish_reason"]) <= {"stop", "length"}
    assert answers["n_tokens"].max() <= 8
    assert answers.equals(sample(model, [[{"role": "user", "content": text}] for text in prompts], n=2, max_tokens=8))
    assert not answers.equals(sample(model, prompts, n=2, max_tokens=8, seed=1))
    assert chosen == [1, threads] * 3, "a small model computes with one thread"
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


def test_p18_a_gold_solution_needs_a_truth(model: Path) -> None:
    with pytest.raises(UserError, match="problem: its ground_truth is nan, not a text"):
        gold_log_prob(model, problems("string", **OPTIONS).assign(ground_truth=math.nan))


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings start in processes that have imported their packages already."""
    monkeypatch.setattr(sys, "executable", warm_python())


@pytest.mark.usefixtures("warm")
def test_the_code_of_the_readme_runs(model: Path, tmp_path: Path) -> None:
    (tmp_path / "base").symlink_to(model)
    text = (Path(__file__).parents[1] / "README.md").read_text()
    code = next(
        block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "from compositionality" in block
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:3] == ["pass@4", "gold_log_prob", "level"]


@pytest.mark.usefixtures("warm")
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
    for name, own in (("mine", tmp_path / "mine.parquet"), ("sft/final", tmp_path / "sft/final.parquet")):
        rows.to_parquet(own)
        with pytest.raises(UserError, match="is there, and not as rows of an earlier call; give another output"):
            train("sft", model, rows[:2], tmp_path / name, force=True, **short)
        assert len(pd.read_parquet(own)) == 6
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


@pytest.mark.parametrize("n", [10, 10.0, np.int64(10), np.float32(10)])
def test_pass_at_k_is_a_number(n: float) -> None:
    """Also of sums of scores."""
    assert pass_at_k(n, 3.0, 4) == pytest.approx(1 - math.comb(7, 4) / math.comb(10, 4))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: problems("strings"), "unknown task 'strings'"),
        (lambda: problems("string", level=[1]), "level: no such setting; did you mean levels"),
        (lambda: judge("{}", "text"), "unknown data_source ''"),
        (lambda: sample("none", ["text"]), "none: no such model folder"),
        (lambda: sample("none", ["text"], temperature=-1), "temperature=-1: must be at least 0"),
        (lambda: train("ppo", "none", "rows.parquet", "out"), "method 'ppo': unknown; give grpo or sft"),
        *(
            (lambda prompt=prompt: sample("none", [prompt]), "prompts: number 0: .*: give a text or a chat")
            for prompt in NO_PROMPTS
        ),
        *(
            (lambda prompts=prompts: sample("none", prompts), "prompts: give a list of texts or chats")
            for prompts in ("text", pd.DataFrame({"prompt": ["a"]}), None, 3)
        ),
        *(
            (lambda key=key: sample("none", ["text"], **{key: "x"}), f"{key}: has no effect here; leave it out")
            for key in ("prompt_template", "limit", "n_samples", "force", "problems", "judge_workers")
        ),
        (lambda: problems("string", output="x"), "output: has no effect here"),
        *(
            (lambda problem=problem: judge(problem, "text"), told)
            for problem, told in (
                (None, "problem: NoneType given"),
                (pd.DataFrame({"prompt": ["a"]}), "problem: DataFrame given"),
                ({"ground_truth": "x"}, "problem: has no data_source; give a row of problems"),
                ({"reward_model": {}, "data_source": "string"}, "problem: has no level; give a row"),
                (asdict(ROW) | {"data_source": math.nan}, "problem: its data_source is nan, not a text"),
                (FILED | {"reward_model": None}, "problem: its reward_model is None; give one with a ground_truth"),
                (FILED | {"reward_model": {}}, "problem: its reward_model is {}; give one with a ground_truth"),
                (FILED | {"prompt": None}, "prompt: None: give a text or a chat"),
                (FILED | {"prompt": "text"}, "prompt: 'text': give a chat"),
                (pd.Series([*asdict(ROW).values(), "q"], [*asdict(ROW), "prompt"]), "problem: has two columns prompt"),
            )
        ),
        *(
            (lambda source=source: judge("{}", "text", source), f"data_source={source}: is not a text")
            for source in (None, math.nan, 3)
        ),
        *(
            (lambda response=response: judge("{}", response, "countdown"), "response=.*: is not a text")
            for response in (None, math.nan, b"a")
        ),
        (lambda: judge(ROW, "text", "countdown"), "data_source=countdown: the problem has its own, string"),
        (lambda: gold_log_prob("none", [ROW]), "none: no such model folder"),
        (lambda: gold_log_prob(None, pd.DataFrame()), "None: no such model folder"),
        *(
            (lambda rows=rows: train("sft", "none", rows, "out"), "rows: .* is neither a frame nor the path of a file")
            for rows in (None, [{"prompt": "a"}], pd.Series(["a"]), iter(["a"]))
        ),
        (lambda: train("sft", "none", "rows.parquet", None), "output=None: give a folder"),
        (lambda: train("sft", "none", "rows.parquet", "out", force="false"), "force='false': give True or False"),
        (lambda: train("sft", "none", "rows.parquet", "out", dry_run=True), "dry_run: a check by the command"),
        *(
            (lambda given=given: pass_at_k(*given), r"[nck]=.*: give a whole number")
            for given in ((8, 3.5, 4), (8, 3, 2.5), ("8", 3, 4), (8, None, 4), (8, math.nan, 4), (math.inf, 3, 4))
        ),
        (lambda: pass_at_k(1e10, 5, 4), "n=10000000000: must be at most 10,000,000"),
        (lambda: pass_at_k(4, 5, 1), "c=5: must lie between 0 and the number of samples, 4"),
        (lambda: pass_at_k(4, 1, 5), "k=5: must lie between 1 and the number of samples, 4"),
    ],
)
def test_p18_bad_input_is_a_line(call: Callable[[], object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        call()


@pytest.mark.usefixtures("warm")
def test_p18_a_refused_training_keeps_no_rows(tmp_path: Path) -> None:
    """Of a call that has begun nothing, as by a misspelt key; what an earlier one wrote stays."""
    rows = pd.DataFrame({"prompt": ["a"], "response": ["b"]})
    with pytest.raises(UserError, match=r"optim.rate: no such setting"):
        train("sft", "none", rows, tmp_path / "out", optim__rate=1)
    assert not [path for path in tmp_path.iterdir() if not path.name.endswith(".lock")]
