"""Names of checkpoints and problem files."""

from pathlib import Path

import pytest

from compositionality.errors import UserError
from compositionality.evaluate.naming import named_paths


def test_names_are_given_or_taken_from_the_path() -> None:
    assert named_paths("models", ["base:a/b", "rl-2=c/d", "run/final", "plain/folder"]) == {
        "base": "a/b",
        "rl-2": "c/d",
        "run": "run/final",
        "folder": "plain/folder",
    }
    assert named_paths("problems", ["level1to8/test.parquet", "x.parquet"]) == {
        "level1to8-test": "level1to8/test.parquet",
        "x": "x.parquet",
    }


def test_two_of_one_name_or_none_at_all_are_refused() -> None:
    with pytest.raises(UserError, match="have the same name 'b'"):
        named_paths("models", ["a/b", "c/b"])
    with pytest.raises(UserError, match="at least one"):
        named_paths("models", [])


@pytest.mark.parametrize(
    "entry", ["..:model", ".hidden:model", "../x:model", "a/b:model", "..", "/", "a b:model", ":model"]
)
def test_a_name_that_leads_out_of_the_results_is_refused(entry: str) -> None:
    with pytest.raises(UserError, match=r"models: name .* letters, digits"):
        named_paths("models", [entry])


def test_names_taken_from_a_path_are_plain(tmp_path: Path) -> None:
    folder = tmp_path / "donn\u00e9es (1)"
    assert list(named_paths("problems", [f"{folder}/test.parquet"])) == ["donn\u00e9es--1--test"]
    (tmp_path / "a" / "b:c").mkdir(parents=True)
    assert named_paths("models", [f"{tmp_path}/a/b:c"]) == {"b-c": f"{tmp_path}/a/b:c"}
