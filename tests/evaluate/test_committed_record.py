"""The committed record of composition-2: its intervals, p-values and decisions follow from its replicates.

Values are in the record by seed and split, rounded to four digits; the intervals over problems are taken from it.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compositionality.evaluate.claims.decide import Outcome, apply_holm, decide_by_interval, p_of
from compositionality.evaluate.claims.model import Comparison, Rule
from compositionality.evaluate.types import Decision
from compositionality.stats.estimate import NESTED, Estimate, Interval, over_splits

RECORD = json.loads(
    (Path(__file__).parents[2] / "results/records/composition-2/record.json").read_text(encoding="utf-8")
)
CLAIMS = [*RECORD["claims"], *RECORD["controls"]]
COMPARISONS = [one for claim in CLAIMS for one in claim["comparisons"] if one["splits"]]
SHARES = [*RECORD["accuracy"], *RECORD["composed"]]


def estimate_of(row: dict[str, Any]) -> Estimate:
    """From the values of the replicates; its interval holds the recorded one over problems."""
    low = -row["times"] if row.get("base") else 0.0
    replicates = [[Estimate(value, 500, Interval(value, value), df=499) for value in seed] for seed in row["splits"]]
    estimate = over_splits(replicates, low)
    problems = Interval(row["problems_low"], row["problems_high"])
    both = Interval(min(estimate.low, problems.low), max(estimate.high, problems.high))
    return replace(estimate, over_problems=problems, over_seeds=both)


@pytest.mark.parametrize(("name", "rows"), [("share", SHARES), ("difference", COMPARISONS)])
def test_intervals_over_seeds_follow_from_the_replicates(name: str, rows: list[dict[str, Any]]) -> None:
    assert len(rows) > 60
    for row in rows:
        estimate = estimate_of(row)
        recorded = next(row[key] for key in ("difference", "composed", "accuracy") if key in row)
        figures = (estimate.value, estimate.low, estimate.high, *estimate.by_seed)
        assert figures == pytest.approx((recorded, row["low"], row["high"], *row["values"]), abs=1.2e-4)
        assert estimate.source == row["interval"] == NESTED


def comparison_of(row: dict[str, Any]) -> Comparison:
    return Comparison(
        row["group"], row["level"], row["model"], row["base"] or "", Rule(row["rule"]), row["threshold"], row["times"]
    )


def decided(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Comparison]]:
    for row in rows:  # composition-2 has rules that each seed, or both intervals, decide
        if row["decision"] != Decision.NOT_TESTABLE and row["rule"] in (Rule.ABOVE, Rule.AT_MOST, Rule.WITHIN):
            yield row, comparison_of(row)


def test_decisions_follow_from_the_intervals() -> None:
    rows = list(decided(COMPARISONS))
    assert len(rows) > 30
    for row, comparison in rows:
        assert decide_by_interval(comparison, estimate_of(row).interval) == row["decision"]


def test_p_values_and_the_decisions_of_holm_follow() -> None:
    primary = [claim for claim in RECORD["claims"] if claim["primary"]]
    rows: list[dict[str, Any]] = []
    for claim in primary:
        compared = ((row, Decision(row["decision"])) for row in claim["comparisons"])
        outcomes = [
            Outcome(comparison_of(row), None if decision is Decision.NOT_TESTABLE else estimate_of(row), decision)
            for row, decision in compared
        ]
        decision = Decision(claim["decision"])
        p = p_of(decision, outcomes)
        rows.append({"decision": decision, "p": p and 2 * p})  # its p-values are two-sided
    apply_holm(rows)
    assert sum(row["p"] is not None for row in rows) >= 4
    for row, claim in zip(rows, primary, strict=True):
        assert row["decision_holm"] == claim["decision_holm"]
        for key in ("p", "p_holm"):
            assert (row[key] is None) == (claim[key] is None)
            assert (row[key] or 0) == pytest.approx(claim[key] or 0, abs=1e-4, rel=2e-3)
