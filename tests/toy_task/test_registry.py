"""Third parties register tasks by entry points; what cannot be is one line."""

from pathlib import Path

import pytest
from toy_registry import register

from compositionality.data.create_problems import create_problems, problem_settings, settings_for
from compositionality.errors import UserError
from compositionality.tasks.registry import BUILT_IN, all_tasks, find_task, task_of


def test_a_package_registers_a_task(site: Path, tmp_path: Path) -> None:
    register(site)
    assert list(all_tasks()) == [*BUILT_IN, "digit_sorting"]
    assert task_of("digits-level3") is find_task("digit_sorting")
    made = create_problems(settings_for("digit_sorting", output=str(tmp_path / "d.parquet"), levels=[3], count=9))
    assert made.is_file()


@pytest.mark.parametrize(
    ("name", "place", "said"),
    [
        ("string", "digit_sorting:TASK", "task 'string' is registered twice"),
        ("mine", "no_such_module:TASK", "task 'mine': no_such_module:TASK cannot be loaded"),
        ("mine", "digit_sorting:NONE", "task 'mine': digit_sorting:NONE cannot be loaded"),
        ("mine", "digit_sorting:TASK", "task 'mine': digit_sorting:TASK is no Task of that name"),
        ("mine", "digit_sorting:SPLITS", "task 'mine': digit_sorting:SPLITS is no Task of that name"),
    ],
)
def test_p18_what_cannot_be_registered_is_one_line(site: Path, name: str, place: str, said: str) -> None:
    register(site, name, place)
    with pytest.raises(UserError, match=said) as caught:
        all_tasks()
    assert "\n" not in str(caught.value)


def test_p18_two_tasks_for_one_data_source(site: Path) -> None:
    register(site)
    (site / "other_digits.py").write_text(
        "import digit_sorting as d\n\n\nclass Other(d.DigitSorting):\n    name = 'other'\n\n\nTASK = Other()\n"
    )
    register(site, "other", "other_digits:TASK")
    with pytest.raises(UserError, match="'digits-level1' is claimed by the tasks digit_sorting and other"):
        task_of("digits-level1")


def test_p18_an_unknown_data_source_lists_the_known_ones_and_says_how_to_register() -> None:
    with pytest.raises(UserError, match=r"unknown data_source 'nobody'; known: .*countdown.*entry point of the group"):
        task_of("nobody")
    with pytest.raises(UserError, match="unknown task 'chess'; known: string, countdown"):
        find_task("chess")


def test_reasoning_gyms_countdown_is_ours() -> None:
    assert task_of("reasoning_gym/countdown").name == "countdown"
    assert task_of("reasoning_gym/leg_counting").name == "reasoning_gym"


def test_settings_are_the_tasks() -> None:
    assert {"stage", "output"} <= set(problem_settings(["task=string", "mode=paper"]).__dataclass_fields__)
    assert "numbers" in problem_settings(["task=countdown"]).__dataclass_fields__
    with pytest.raises(UserError, match="give task=NAME, one of string, countdown"):
        problem_settings(["output=x"])
    with pytest.raises(UserError, match="mode=hard: choose clean or paper"):
        problem_settings(["task=string", "mode=hard"])
