"""The table of claims as the page shows it: verdict first, each comparison with its interval drawn to one scale."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compositionality.report.page.inputs import CLAIMS, Inputs

VERDICTS = {
    "supported": ("✓", "supported"),
    "contradicted": ("✗", "contradicted"),
    "undecided": ("?", "undecided"),
    "not run": ("–", "not-run"),
}
"""Verdict → its sign and its class in the style sheet."""
Row = Mapping[str, Any]


def claims_of(inputs: Inputs) -> dict[str, Any]:
    """claims.json; no claims where there is none."""
    found: dict[str, Any] = inputs.json(CLAIMS) if CLAIMS in inputs else {"claims": [], "controls": [], "notes": []}
    return found


def scale_of(claims: Sequence[Row]) -> float:
    """The largest figure of the tables, a share, rounded up to ten points: how far the drawings reach."""
    ends = [
        abs(one[key] or 0) for claim in claims for one in claim["comparisons"] for key in ("low", "high", "threshold")
    ]
    return max(1, math.ceil(10 * max(ends, default=0))) / 10


def shown(claims: Sequence[Row], scale: float) -> list[dict[str, Any]]:
    """Claims with badge, and comparisons with the place of their marks on the common scale."""
    return [
        {
            **claim,
            "badge": badge(claim["verdict"]),
            "badge_these_seeds": badge(claim.get("verdict_these_seeds") or "not run"),
            "comparisons": [_comparison(one, scale) for one in claim["comparisons"]],
        }
        for claim in claims
    ]


def badge(verdict: str) -> dict[str, str]:
    """Sign, class and word of a verdict."""
    sign, kind = VERDICTS.get(verdict, ("·", "undecided"))
    return {"sign": sign, "kind": kind, "word": verdict}


def tally(claims: Sequence[Row]) -> list[dict[str, Any]]:
    """How many claims have each verdict, in the order of ``VERDICTS``."""
    counts = Counter(claim["verdict"] for claim in claims)
    known = [word for word in VERDICTS if counts[word]]
    return [{**badge(word), "n": counts[word]} for word in [*known, *(counts.keys() - VERDICTS.keys())]]


def table(claims: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """One row a comparison, for the CSV."""
    columns = ("metric", "comparison", "functions", "level", "model", "base", "difference", "low", "high", "interval")
    for claim in claims:
        for one in claim["comparisons"]:
            yield {
                "claim": claim["claim"], "claim_verdict": claim["verdict"],
                "claim_verdict_these_seeds": claim.get("verdict_these_seeds"), "needs": claim.get("needs"),
                "verdict": one["verdict"], **{name: one.get(name) for name in columns}, "text": claim["text"],
                "paper": claim["paper"],
            }  # fmt: skip


def points(share: float) -> str:
    """A difference in points, with its sign."""
    return f"{100 * share:+.1f}".replace("-", "−")


def _comparison(one: Row, scale: float) -> dict[str, Any]:
    """A comparison: figures in points, and where interval, value and threshold lie from 0 (−scale) to 100 (+scale)."""
    if one.get("difference") is None:
        return {**one, "badge": badge(one["verdict"]), "known": False, "missing": one.get("missing")}
    low, value, high, threshold = (one[key] or 0.0 for key in ("low", "difference", "high", "threshold"))
    marks = {
        name: round(50 + 50 * max(-1.0, min(1.0, share / scale)), 2)
        for name, share in (("low", low), ("value", value), ("high", high), ("threshold", threshold))
    }
    numbers = {"value": points(value), "low": points(low), "high": points(high)}
    return {**one, "badge": badge(one["verdict"]), "known": True, "marks": marks, "points": numbers}
