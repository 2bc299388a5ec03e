"""Names of checkpoints and problem files."""

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
    with pytest.raises(UserError, match="both called 'b'"):
        named_paths("models", ["a/b", "c/b"])
    with pytest.raises(UserError, match="at least one"):
        named_paths("models", [])
