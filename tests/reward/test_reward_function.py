"""Reward functions of users: what they get and give, and every way in which they go wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_rows import OWN

from compositionality.config.cli import parse
from compositionality.errors import UserError
from compositionality.reward.function import FunctionSettings
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.reward.shapes import reward
from compositionality.reward.verl_reward import score_dict
from compositionality.reward.worker import verdict_of
from compositionality.train.grpo_settings import GrpoSettings, make_recipe
from compositionality.types import LENGTH, Reason

TRUTH, INFO = {"answer": "abc"}, {"least": 0.01}


def judged(name: str, *responses: str, truth: Any = TRUTH, info: Any = INFO, finish: str = "stop") -> Any:
    with JudgePool(1, max_error_rate=1.0, function=f"{OWN}:{name}") as pool:
        return pool.judge([JudgeInput("nobody's", text, truth, finish, info) for text in responses])


def test_partial_scores_are_paid_in_full() -> None:
    verdicts = judged("compute_score", "abc", "x=ab", "x=abc")
    assert [(reward(one, "score"), one.reason.value) for one in verdicts] == [
        (0.01, "wrong"),
        (0.02, "wrong"),
        (1.01, "correct"),
    ]
    assert [reward(one, "binary") for one in verdicts] == [0, 0, 1]
    assert [one.score for one in judged("later", "four", "")] == [4, 0]


def test_a_dictionary_gives_metrics_too() -> None:
    (verdict,) = judged("as_dict", "a=b=abc")
    assert (verdict.score, verdict.metrics, verdict.answer) == (1.01, {"signs": 2.0}, "abc")
    numbers = score_dict(verdict, "score")
    assert (numbers["score"], numbers["acc"], numbers["signs"], numbers["wrong"]) == (1.01, 1, 2, 0)


def test_it_gets_what_verl_gives_and_responses_that_were_cut_off_too() -> None:
    truth = {"target": np.int64(3), "nums": np.array([1, 2])}
    (verdict,) = judged("seen", "hi", truth=truth, info={"split": "train"}, finish=LENGTH)
    assert (verdict.reason, eval(verdict.answer)) == (
        Reason.CORRECT,
        {
            "data_source": "nobody's",
            "solution_str": "hi",
            "ground_truth": {"target": 3, "nums": [1, 2]},
            "extra_info": {"split": "train"},
        },
    )


@pytest.mark.parametrize(
    ("returned", "score", "right"),
    [
        (0, 0, False), (1, 1, True), (True, 1, True), (0.5, 0.5, False), (-2.5, -2.5, False), (1.01, 1.01, True),
        (np.float32(0.5), 0.5, False), (np.array(1.0), 1, True), ({"score": 0.4}, 0.4, False),
        ({"score": 0.4, "acc": 1}, 0.4, True), ({"score": 2, "acc": False}, 2, False),
        ({"score": 2, "acc": np.bool_(False)}, 2, False), ({"score": 1, "acc": 0.5}, 1, False),
    ],
)  # fmt: skip
def test_right_is_acc_or_else_a_score_of_one(returned: Any, score: float, right: bool) -> None:
    verdict = verdict_of(returned)
    assert (verdict.score, verdict.reason is Reason.CORRECT) == (score, right)


@pytest.mark.parametrize(
    "returned",
    [
        "abc",
        "1",
        None,
        float("nan"),
        float("inf"),
        [1],
        (1, 2),
        {},
        {"acc": 1},
        {"score": "1"},
        {"score": 1, "acc": None},
    ],
)
def test_p05_what_is_no_score_is_an_error_that_says_so(returned: Any) -> None:
    with pytest.raises(ValueError, match=r"it returned .*; give a finite number") as error:
        verdict_of(returned)
    assert repr(returned)[:50] in str(error.value)


@pytest.mark.parametrize(
    ("name", "said"), [("text", "it returned 'abc'"), ("raises", "ZeroDivisionError: division by zero")]
)
def test_p05_failures_are_counted_and_stop_a_run(name: str, said: str) -> None:
    assert [(one.reason, said in one.error) for one in judged(name, "a", "b")] == [(Reason.ERROR, True)] * 2
    limit = (
        rf"^the judge failed on 1 of 1 responses, more than the 1.00% allowed \(the last: .*{said}.*\); fix the judge"
    )
    with JudgePool(1, function=f"{OWN}:{name}") as pool, pytest.raises(UserError, match=limit):
        pool.judge([JudgeInput("any", "a", TRUTH)])


BAD_FILES = {
    "syntax.py": ("def compute_score(:\n", "cannot be imported (SyntaxError: "),
    "missing.py": ("import no_such_package\n", "cannot be imported (ModuleNotFoundError: No module named"),
    "exits.py": ("import sys; sys.exit(3)\n", "cannot be imported (SystemExit: 3)"),
    "dies.py": ("import os; os._exit(7)\n", "a judging process does not start (exit code 7)"),
    "other.py": ("def reward(): ...\n", "other.py has no function compute_score; give FILE.py:NAME"),
    "value.py": ("compute_score = 1\n", "value.py has no function compute_score; give FILE.py:NAME"),
    "none.py": (None, "does not exist; correct the path"),
    "reward.txt": ("", "give FILE.py or FILE.py:NAME"),
    "other.py:1x": ("", "give FILE.py or FILE.py:NAME"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_p18_a_function_that_is_not_there_is_one_line(tmp_path: Path, name: str) -> None:
    content, said = BAD_FILES[name]
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError) as error:
        FunctionSettings(str(tmp_path / name)).check()
    assert said in str(error.value)


BASE = ["model.path=m", "data.train_files=[t]", "trainer.output=o"]


@pytest.mark.parametrize("engine", ["single", "verl"])
@pytest.mark.parametrize("prefix", ["reward.", "verl.reward.", "verl."])
def test_verls_own_keys_name_the_same_function(engine: str, prefix: str) -> None:
    named = f"{prefix}custom_reward_function"
    settings = parse(GrpoSettings, [*BASE, f"engine={engine}", f"{named}.path={OWN}", f"{named}.name=as_dict"])
    assert (settings.reward.function, settings.reward.shape, settings.verl) == (f"{OWN}:as_dict", "score", {})
    alone = parse(GrpoSettings, [*BASE, f"{named}.path={OWN}", "reward.shape=binary"])
    assert (alone.reward.function, alone.reward.shape) == (f"{OWN}:compute_score", "binary")
    bad = [f"{named}.reward_kwargs.x=1", f"reward.function={OWN}"]
    for more in ([f"{named}.path={OWN}", bad[0]], [f"{named}.path={OWN}", bad[1]], [f"{named}.name=as_dict"]):
        with pytest.raises(UserError, match=r"takes path and name; here: reward.function=FILE.py\[:NAME\]$"):
            parse(GrpoSettings, [*BASE, *more])


def test_p08_a_result_is_made_of_the_files_text_and_the_name(tmp_path: Path) -> None:
    for name in ("m", "t", "f.py", "g.py"):
        (tmp_path / name).write_text(name)

    def identity(*words: str) -> Any:
        files = [f"model.path={tmp_path / 'm'}", f"data.train_files=[{tmp_path / 't'}]", "trainer.output=o"]
        return make_recipe(parse(GrpoSettings, [*files, *words])).identity()

    kinds = [identity(), *(identity(f"reward.function={tmp_path / name}") for name in ("f.py", "g.py", "f.py:other"))]
    assert len(set(map(str, kinds))) == 4
    (tmp_path / "g.py").write_text("f.py")
    assert identity(f"reward.function={tmp_path / 'g.py'}") == kinds[1]
