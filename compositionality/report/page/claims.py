"""The page's claims: of this study and of others, with their decisions, intervals and marks on one scale."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compositionality.evaluate.claims.model import Origin
from compositionality.evaluate.claims.tables import by_origin, holm_words, seeds_words, standing_words
from compositionality.evaluate.tables import decimals
from compositionality.report.page.inputs import CLAIMS, OTHERS, Inputs

Row = Mapping[str, Any]
DECISIONS = {
    "supported": ("✓", "supported"),
    "contradicted": ("✗", "contradicted"),
    "undecided": ("?", "undecided"),
    "not testable": ("∅", "not-testable"),
    "not run": ("–", "not-run"),
}
"""Decision → its sign and its class in the style sheet."""
OF_CLAIM = {
    "claim": "claim", "origin": "origin", "claim_decision": "decision", "reason": "reason", "needs": "needs", "p": "p",
    "claim_decision_these_seeds": "decision_these_seeds", "p_holm": "p_holm", "after_holm": "decision_holm",
    "text": "text", "paper": "paper",
}  # fmt: skip
"""Column of the CSV → key of a claim."""
OF_COMPARISON = (
    *("metric", "comparison", "group", "level", "model", "base", "difference", "low", "high", "interval", "values"),
    "decision",
)


def claims_section(inputs: Inputs) -> dict[str, Any]:
    """Return what the template shows of claims; nothing of this study where its claims have not been decided."""
    contents = {name: inputs.json(name) for name in claims_files(inputs)}
    study: Row = contents.get(CLAIMS, {"claims": [], "controls": [], "notes": []})
    others = {name.split("/")[1]: content for name, content in contents.items() if name != CLAIMS}
    scale = scale_of(
        [*study["controls"], *(claim for content in (study, *others.values()) for claim in content["claims"])]
    )
    own = [claim["origin"] == Origin.OWN for claim in study["claims"]]
    rows = claim_rows(study["claims"], scale)
    return {
        "claims": [row for row, is_own in zip(rows, own, strict=True) if not is_own],
        "own_claims": [row for row, is_own in zip(rows, own, strict=True) if is_own],
        "controls": claim_rows(study["controls"], scale),
        "other_claims": [
            {"study": name, "seeds": content["n_seeds"], "rows": claim_rows(content["claims"], scale)}
            for name, content in others.items()
        ],
        "scale": f"{100 * scale:.0f}",
        "tallies": [
            (title, tally(claim["decision"] for claim in rows)) for title, rows in by_origin(study["claims"]).items()
        ],
        "n_seeds": inputs.evaluated.n_seeds,
        "notes": study["notes"],
        "claims_stamp": inputs.stamp([*contents]) if contents else "",
    }


def claims_files(inputs: Inputs) -> list[str]:
    """Return names of this study's claims.json, if it is there, and of the other studies'."""
    return [name for name in (CLAIMS, *inputs.starting(OTHERS)) if name in inputs]


def scale_of(claims: Sequence[Row]) -> float:
    """Return the end of the common scale: the largest share of intervals and thresholds, rounded up to ten points."""
    shares = [one for claim in claims for one in claim["comparisons"] if not decimals(one)]
    ends = [abs(one[key] or 0) for one in shares for key in ("low", "high", "threshold")]
    return max(1, math.ceil(10 * max(ends, default=0))) / 10


def claim_rows(claims: Sequence[Row], scale: float) -> list[dict[str, Any]]:
    """Return claims with badges, and comparisons with the positions of their marks on the common scale."""
    return [
        {
            **claim,
            "standing": standing_words(claim),
            "holm": holm_words(claim),
            "badge": badge(claim["decision"]),
            "badge_these_seeds": badge(claim.get("decision_these_seeds") or "not run"),
            "comparisons": [_comparison(one, scale) for one in claim["comparisons"]],
        }
        for claim in claims
    ]


def badge(decision: str) -> dict[str, str]:
    """Return sign, class and word of a decision."""
    sign, kind = DECISIONS.get(decision, ("·", "undecided"))
    return {"sign": sign, "kind": kind, "word": decision}


def tally(decisions: Iterable[str]) -> list[dict[str, Any]]:
    """Return how often each decision was taken, in the order of ``DECISIONS``."""
    counts = Counter(decisions)
    words = [*(word for word in DECISIONS if word in counts), *(counts.keys() - DECISIONS.keys())]
    return [{**badge(word), "n": counts[word]} for word in words]


def claims_table(inputs: Inputs) -> Iterator[dict[str, Any]]:
    """Yield a row for each comparison of a claim, not of controls; those of other studies below."""
    for name in claims_files(inputs):
        study = inputs.title if name == CLAIMS else name.split("/")[1]
        for claim in inputs.json(name)["claims"]:
            about = {column: claim.get(key) for column, key in OF_CLAIM.items()}
            for one in claim["comparisons"]:
                figures = {column: one.get(column) for column in OF_COMPARISON}
                yield {"study": study, **about, "standing": standing_words(claim).strip(" ()"), **figures}


def points(share: float, digits: int = 1) -> str:
    """Return a difference in points, with its sign."""
    return f"{100 * share:+.{digits}f}".replace("-", "−")


def _comparison(one: Row, scale: float) -> dict[str, Any]:
    """Return figures in points; positions of interval, value and threshold from 0 (−scale) to 100 (+scale).

    Values of queries, which are no shares, have a scale of their own.
    """
    row = {**one, "badge": badge(one["decision"]), "known": one.get("difference") is not None}
    if not row["known"]:
        return {**row, "missing": one.get("missing")}
    keys = {"low": "low", "value": "difference", "high": "high", "threshold": "threshold"}
    shares = {name: one[key] or 0.0 for name, key in keys.items()}
    scale = 1.2 * max(map(abs, shares.values())) or 1.0 if decimals(one) else scale
    marks = {name: round(50 + 50 * max(-1.0, min(1.0, share / scale)), 2) for name, share in shares.items()}
    numbers = {name: points(share, decimals(one) or 1) for name, share in shares.items()}
    return {**row, "marks": marks, "points": numbers, "by_seed": seeds_words(one)}
