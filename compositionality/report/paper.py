"""The paper's stated figures, from paper.yaml, as rows of the tables."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from compositionality.yaml_files import read_yaml_mapping

Row = Mapping[str, Any]
PAPER: dict[str, Any] = read_yaml_mapping(Path(__file__).with_name("paper.yaml"))
FAILURES_TEST = "heldout"
"""The test of which failure modes are stated."""


def matching_test(rows: Iterable[Row]) -> str | None:
    """Return the group whose test in the paper these rows (group, data_source) repeat; None for other tasks."""
    groups = {row["group"]: row["data_source"] for row in rows}
    tests = PAPER["tests"].items()
    return next((name for name, test in tests if re.match(test["data_source"], groups.get(name, ""))), None)


def stated_accuracy(test: str) -> list[dict[str, Any]]:
    """Return rows of model, level, value (a share) and bound (1: an upper bound)."""
    arms = PAPER["tests"][test]["accuracy"].items()
    return [{"model": arm, "level": level, **_stated(said)} for arm, levels in arms for level, said in levels.items()]


def stated_failures() -> list[dict[str, Any]]:
    """Return rows of model, class, share and bound (1: a lower bound)."""
    rows = [
        {"model": arm, "class": name, **_stated(said)}
        for arm, classes in PAPER["failures"].items()
        for name, said in classes.items()
    ]
    return [{"share": row.pop("value"), **row} for row in rows]


def _stated(said: float | str) -> dict[str, float]:
    return {"value": float(str(said).strip("<> ")) / 100, "bound": int(isinstance(said, str))}
