"""The statistics of synthetic studies are those that were frozen when contradictions were corrected for their number.

Values and intervals are those of before; decisions, p-values and gates are of the rules in stats/README.md.
"""

import json
import math
import re
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
    decimals = 6 if study == "curves" else 12
    assert not {name for name, value in found.items() if not same(name, value, frozen[name], decimals)}


def same(name: str, value: Any, frozen: Any, decimals: int) -> bool:
    """Equal to 9 digits (curves: 6 decimals); p-values on the same side of 5 % and equal to 3 %, or both above 50 %."""
    if not isinstance(value, float) or not isinstance(frozen, float):
        return bool(value == frozen)
    if re.fullmatch(r"/claims/.*/[23]", name):
        alike = (value < 0.05) == (frozen < 0.05) and math.isclose(value, frozen, rel_tol=0.03)
        return alike or min(value, frozen) > 0.5
    return math.isclose(value, frozen, rel_tol=1e-9, abs_tol=10.0**-decimals)


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """Leaves by path."""
    if not isinstance(value, dict | list):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {path: leaf for key, each in items for path, leaf in flat(each, f"{name}/{key}").items()}
