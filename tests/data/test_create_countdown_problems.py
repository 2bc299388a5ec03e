"""Countdown problem files: both modes, leaks refused, bad settings in one line."""

import json
import sys
from pathlib import Path

import pytest

from compositionality.config.cli import parse
from compositionality.data.artefact import file_hash, read_manifest
from compositionality.data.create_problems import create_problems, problem_settings, settings_for
from compositionality.data.problems import read_problems
from compositionality.errors import UserError


def make(path: Path, **changes: object) -> Path:
    return create_problems(settings_for("countdown", output=str(path), **changes))  # type: ignore[arg-type]


def test_clean_file_has_every_level_evenly_and_no_duplicates(tmp_path: Path) -> None:
    path = make(tmp_path / "c.parquet", levels=[2, 3], count=600, style="compact", seed=3)
    rows = read_problems(path).to_pylist()
    assert [row["data_source"] for row in rows].count("countdown-clean-level2") == 300
    truths = [json.loads(row["reward_model"]["ground_truth"]) for row in rows]
    assert len({(truth["target"], *sorted(truth["numbers"])) for truth in truths}) == 600
    assert {truth["style"] for truth in truths} == {"compact"}
    assert rows[0]["extra_info"].keys() >= {"seed", "solutions", "operations", "fewest_numbers", "expression", "trace"}
    manifest = read_manifest(path)
    assert manifest is not None
    assert manifest.facts == {"rows": 600, "by_level": {"2": 300, "3": 300}}


def test_paper_file(tmp_path: Path) -> None:
    pytest.importorskip("reasoning_gym")
    rows = read_problems(make(tmp_path / "t.parquet", mode="paper", levels=[3, 4], count=20)).to_pylist()
    assert [row["data_source"] for row in rows[::10]] == [f"reasoning-gym-countdown-depth{n}" for n in (3, 4)]
    assert rows[0]["extra_info"].keys() == {"index", "split", "expression"}
    assert json.loads(rows[0]["reward_model"]["ground_truth"]) == {"target": 99, "numbers": [95, 14, 18]}


def test_paper_mode_without_the_library_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(UserError, match=r"^mode=paper: .* reasoning_gym is not installed; run: bash bash/setup"):
        make(tmp_path / "t.parquet", mode="paper", levels=[2], count=10)


def test_p07_same_settings_same_bytes_and_nothing_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = make(tmp_path / "a.parquet", count=50), make(tmp_path / "b.parquet", count=50)
    assert file_hash(one) == file_hash(two)
    make(tmp_path / "a.parquet", count=50, workers=2)
    assert "already there" in capsys.readouterr().out
    with pytest.raises(UserError, match="seed"):
        make(tmp_path / "a.parquet", count=50, seed=2)


def test_p02_a_leak_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    train = make(tmp_path / "train.parquet", levels=[2, 3], count=200)
    make(tmp_path / "test.parquet", split="test", levels=[2, 3], count=200, avoid=[str(train)])
    with pytest.raises(UserError, match=r"leak.parquet: row 0 has the same problem"):
        make(tmp_path / "leak.parquet", levels=[2, 3], count=50, style="compact", avoid=[str(train)])
    assert not (tmp_path / "leak.parquet").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "both"},
        {"count": 0},
        {"levels": [1]},
        {"levels": [7]},
        {"levels": []},
        {"levels": [2, 3], "count": 3},
        {"mode": "paper", "levels": [9]},
        {"numbers": [0, 5]},
        {"numbers": [5]},
        {"target": [9, 5]},
        {"numbers": [1, 3], "target": [500, 999]},
        {"numbers": [1, 10**6], "levels": [6]},
        {"operators": "-"},
        {"style": "json"},
        {"style": "compact", "whole": False},
        {"use": "some"},
        {"split": "dev"},
        {"levels": [2], "numbers": [1, 20], "target": [1, 99], "count": 500},
    ],
)
def test_bad_settings_are_one_line(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(UserError) as caught:
        make(tmp_path / "x.parquet", **changes)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("*.parquet"))


def test_settings_come_from_the_command_line() -> None:
    settings = parse(
        problem_settings(["task=countdown"]),
        ["task=countdown", "output=x", "levels=[3,4]", "operators='+-'", "minimal=true"],
    )
    assert (settings.levels, settings.operators, settings.minimal) == ([3, 4], "+-", True)
