"""The page's claims, with their decisions, intervals and marks on one scale."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from compositionality.evaluate.claims.model import Origin
from compositionality.evaluate.claims.tables import by_origin, holm_words, seeds_words, status_words
from compositionality.evaluate.tables import decimals
from compositionality.report.page.inputs import CLAIMS, Inputs

Row = Mapping[str, Any]
DECISIONS = {
    "supported": ("✓", "supported"),
    "contradicted": ("✗", "contradicted"),
    "as good": ("=", "not-testable"),
    "undecided": ("?", "undecided"),
    "not testable": ("∅", "not-testable"),
    "not run": ("–", "not-run"),
}
"""Decision → its sign and its class in the style sheet."""


def claims_section(inputs: Inputs) -> dict[str, Any]:
    """Return what the template shows of claims, ``primary`` after Holm's correction; no rows where none is decided."""
    content = inputs.json(CLAIMS) if CLAIMS in inputs else {"claims": [], "controls": [], "notes": []}
    claims, controls = content["claims"], content["controls"]
    shares = [row for claim in [*controls, *claims] for row in claim["comparisons"] if not decimals(row)]
    ends = [abs(row[key] or 0) for row in shares for key in ("low", "high", "threshold")]
    scale = max(1, math.ceil(10 * max(ends, default=0))) / 10  # common to all: the largest, rounded up to ten points
    primary = (said(claim, claim["decision_holm"]) for claim in claims if claim["primary"])
    return {
        "claims": claim_rows((claim for claim in claims if claim["origin"] != Origin.OWN), scale),
        "own_claims": claim_rows((claim for claim in claims if claim["origin"] == Origin.OWN), scale),
        "controls": claim_rows(controls, scale),
        "scale": f"{100 * scale:.0f}",
        "tallies": [(title, tally(map(said, rows))) for title, rows in by_origin(claims).items()],
        "primary": tally(primary),
        "n_seeds": inputs.evaluated.n_seeds,
        "notes": content["notes"],
        "claims_stamp": inputs.stamp([CLAIMS]) if claims else "",
    }


def claim_rows(claims: Iterable[Row], scale: float) -> list[dict[str, Any]]:
    """Return claims with badges, and comparisons with the positions of their marks on the common scale."""
    return [
        {
            **claim,
            "status": status_words(claim),
            "holm": holm_words(claim),
            "badge": badge(said(claim)),
            "badge_these_seeds": badge(claim.get("decision_these_seeds") or "not run"),
            "comparisons": [comparison_row(row, scale) for row in claim["comparisons"]],
        }
        for claim in claims
    ]


def comparison_row(row: Row, scale: float) -> dict[str, Any]:
    """Return figures in points; positions of interval, value and threshold from 0 (−scale) to 100 (+scale).

    Values of queries, which are no shares, have a scale of their own.
    """
    shown = {**row, "badge": badge(said(row)), "known": row.get("difference") is not None}
    if not shown["known"]:
        return {**shown, "missing": row.get("missing")}
    keys = {"low": "low", "value": "difference", "high": "high", "threshold": "threshold"}
    shares = {name: row[key] or 0.0 for name, key in keys.items()}
    scale = 1.2 * max(map(abs, shares.values())) or 1.0 if decimals(row) else scale
    marks = {name: round(50 + 50 * max(-1.0, min(1.0, share / scale)), 2) for name, share in shares.items()}
    numbers = {name: points(share, decimals(row) or 1) for name, share in shares.items()}
    return {**shown, "marks": marks, "points": numbers, "by_seed": seeds_words(row)}


def said(row: Row, corrected: str | None = None) -> str:
    """Return the decision on a claim or a comparison, or *as good* where this is how it failed to be ahead."""
    decision: str = corrected or row["decision"]
    as_good = {one.get("verdict") for one in row.get("comparisons", [row])} == {"as good"}
    return "as good" if as_good and decision == "contradicted" else decision


def badge(decision: str) -> dict[str, str]:
    """Return sign, class and word of a decision."""
    sign, kind = DECISIONS.get(decision, ("·", "undecided"))
    return {"sign": sign, "kind": kind, "word": decision}


def tally(decisions: Iterable[str]) -> list[dict[str, Any]]:
    """Return how often each decision was taken, in the order of ``DECISIONS``."""
    counts = Counter(decisions)
    words = [*(word for word in DECISIONS if word in counts), *(counts.keys() - DECISIONS.keys())]
    return [{**badge(word), "n": counts[word]} for word in words]


def points(share: float, digits: int = 1) -> str:
    """Return a difference in points, with its sign."""
    return f"{100 * share:+.{digits}f}".replace("-", "−")
