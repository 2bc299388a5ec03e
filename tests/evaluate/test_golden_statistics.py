"""The statistics of synthetic studies are those that were frozen before the estimator was rewritten."""

import json
import math
from typing import Any

import pytest
from golden_statistics import GOLDEN, statistics


@pytest.fixture(scope="module")
def now() -> dict[str, Any]:
    return statistics()


FROZEN = json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("study", FROZEN)
def test_statistics_are_the_frozen_ones(now: dict[str, Any], study: str) -> None:
    frozen, found = flat(FROZEN[study]), flat(now[study])
    assert found.keys() == frozen.keys()
    assert {name: (value, frozen[name]) for name, value in found.items() if not same(value, frozen[name])} == {}


def same(value: Any, frozen: Any) -> bool:
    both_floats = isinstance(value, float) and isinstance(frozen, float)
    return math.isclose(value, frozen, rel_tol=1e-9, abs_tol=1e-12) if both_floats else value == frozen


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """Leaves by path."""
    if not isinstance(value, dict | list):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {path: leaf for key, each in items for path, leaf in flat(each, f"{name}/{key}").items()}
