"""The committed record of the registered study follows from its committed tables, by the code of today."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compositionality.evaluate.claims.run import decide_claims
from compositionality.evaluate.registration import read_registration, registration_path
from compositionality.study.plan import plan
from compositionality.study.registered import registered_request, restore

RECORD = Path(__file__).parents[2] / "results/records/composition-3/study/record.json"


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what is in nested lists and objects, by its path."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in items:
            yield from leaves(each, f"{name}/{key}")
    else:
        yield name, value


def test_p24_values_intervals_p_values_and_decisions_follow_from_the_committed_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record rounds to five digits."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    registration = read_registration(registration_path("composition-3"))
    request = registered_request("composition-3", registration, {})
    restore(request)
    step = next(step for step in plan(request) if step.name == "claims")
    output = tmp_path / "claims.json"
    decide_claims(replace(step.settings, output=output, claims=registration.claims, registration=""))
    now, record = (json.loads(path.read_text(encoding="utf-8")) for path in (output, RECORD))
    for kind in ("claims", "controls"):
        found, recorded = dict(leaves(now[kind])), dict(leaves(record[kind]))
        assert {name.split("/")[-1] for name in recorded.keys() - found} == {"registration_status"}
        figures = {name: value for name, value in recorded.items() if isinstance(value, float)}
        assert {name: found[name] for name in figures} == pytest.approx(figures, rel=2e-4, abs=1e-9)
        same = recorded.keys() & found.keys() - figures
        assert {name: found[name] for name in same} == {name: recorded[name] for name in same}
