"""Problems that a model solves in some samples and not in others, from its rollouts."""

from pathlib import Path
from typing import Any

import pytest
from rollout_folders import answer, problem, problem_file, rollout_folder

from compositionality.data.artefact import read_manifest
from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.rft.filter import FilterProblemsSettings, filter_problems

CORRECT = (0, 1, 2, 3, 4)
"""Of four completions of each problem."""


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    return problem_file(tmp_path / "problems.parquet", [problem(index) for index in range(len(CORRECT))])


def settings(tmp_path: Path, problems: Path, **changes: Any) -> FilterProblemsSettings:
    rows = [
        answer(number, place, f"{place}", "correct" if place < correct else "wrong")
        for number, correct in enumerate(CORRECT)
        for place in range(4)
    ]
    folder = rollout_folder(tmp_path / "rollouts", problems, rows, rows_per_shard=3)
    return FilterProblemsSettings(folder, problems, tmp_path / "kept.parquet", **changes)


def test_kept_are_problems_with_right_and_wrong_completions(tmp_path: Path, problems: Path) -> None:
    output = filter_problems(settings(tmp_path, problems))
    kept, before = read_table(output), read_table(problems)
    assert kept.to_pylist() == before.select(kept.column_names).slice(1, 3).to_pylist()
    manifest = read_manifest(output)
    assert manifest
    assert manifest.facts == {"asked": 5, "never": 1, "always": 1}


def test_limits_are_not_kept_themselves(tmp_path: Path, problems: Path) -> None:
    output = filter_problems(settings(tmp_path, problems, min_correct_ratio=0.25, max_correct_ratio=0.75))
    assert read_table(output)["prompt"].to_pylist() == read_table(problems)["prompt"].to_pylist()[2:3]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"min_correct_ratio": 0.75}, r"of no problem more than 0.75 and less than 1 .* sample more, or loosen"),
        ({"min_correct_ratio": 0.5, "max_correct_ratio": 0.5}, "the first must be below the second"),
        ({"max_correct_ratio": 1.5}, "max_correct_ratio=1.5"),
        ({"output": Path("kept.csv")}, "must end in .parquet"),
    ],
)
def test_what_is_refused_leaves_nothing(tmp_path: Path, problems: Path, changes: dict[str, Any], said: str) -> None:
    given = settings(tmp_path, problems)
    for key, value in changes.items():
        setattr(given, key, value)
    with pytest.raises(UserError, match=said):
        filter_problems(given)
    assert not given.output.exists()


def test_completions_of_another_file_are_refused(tmp_path: Path, problems: Path) -> None:
    given = settings(tmp_path, problems)
    given.problems = problem_file(tmp_path / "others.parquet", [problem(9)])
    with pytest.raises(UserError, match="are of another problem file than"):
        filter_problems(given)
