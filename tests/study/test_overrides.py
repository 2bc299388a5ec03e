"""Overrides of a script of several steps: which step each reaches, what is refused before anything starts."""

import re
from pathlib import Path

import pytest

from compositionality.config.profile import SCHEMAS
from compositionality.errors import UserError
from compositionality.study.overrides import ScriptStep, left_out

ROOT = Path(__file__).parents[2]
OWN = "profile=tiny/single"


def steps(*overrides: str) -> list[ScriptStep]:
    """Problems of two tasks, a training and an evaluation, each given the overrides."""
    return [
        ScriptStep(name, (OWN, *own, *overrides))
        for name, own in (
            ("create_problems", ("task=string", "output=a.parquet")),
            ("create_problems", ("task=countdown", "output=b.parquet")),
            ("train_grpo", ("model.path=m", "data.train_files=[a.parquet]", "trainer.output=c")),
            ("evaluate", ("models=[m:c]", "problems=[a.parquet]", "output=d")),
        )
    ]


def test_a_key_is_left_out_where_it_is_not_known() -> None:
    assert left_out(["trainer.steps=4"], steps("trainer.steps=4"), "x.sh").split() == [
        "create_problems/task=countdown:trainer.steps",
        "create_problems/task=string:trainer.steps",
        "evaluate:trainer.steps",
    ]
    assert left_out(["show_definitions=true"], steps("show_definitions=true"), "x.sh").split() == [
        "create_problems/task=countdown:show_definitions",
        "evaluate:show_definitions",
        "train_grpo:show_definitions",
    ]


def test_flags_and_keys_below_a_mapping() -> None:
    words = ["--force", "--cfg", "+verl.trainer.x=1", "optim={lr: 1}"]
    assert left_out(words, steps(*words), "x.sh").split() == [
        f"{step}:{key}"
        for step in ("create_problems/task=countdown", "create_problems/task=string", "evaluate")
        for key in ("+verl.trainer.x", "optim")
    ]


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("trainer.stepz=4", "trainer.stepz=4: no step of x.sh has this setting; did you mean trainer.steps"),
        ("--fore", "--fore: no step of x.sh has this setting; did you mean force"),
        ("profile=paper", "profile=paper: .* give PROFILE=NAME before the command"),
        ("trainer.steps=-4", r"trainer.steps=-4: must be at least .*examples/train_grpo.py"),
        ("trainer.steps=four", r"trainer.steps=four.*examples/train_grpo.py"),
        ("output=x", "output=x: .* places of their own; give DATA_DIR"),
    ],
)
def test_what_fits_no_step_is_refused(word: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        left_out([word], steps(word), "x.sh")


def test_what_does_not_reach_the_step_that_knows_it_is_refused() -> None:
    with pytest.raises(UserError, match=r"no step of x.sh has this setting"):
        left_out(["trainer.steps=4"], steps(), "x.sh")


def test_the_keys_of_every_step_of_the_scripts_are_known() -> None:
    lines = [line for path in ROOT.glob("bash/section*/*.sh") for line in path.read_text().splitlines()]
    ran = {name for line in lines for name in re.findall(r"^[^#]*\brun ([a-z_]+) ", line)}
    assert ran - SCHEMAS.keys() == {"create_problems"}
