"""The page's claims: of this study and of others, with their decisions, intervals and marks on one scale."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compositionality.evaluate.claims.model import Origin
from compositionality.evaluate.claims.tables import by_origin, holm_words, seeds_words, standing_words
from compositionality.evaluate.tables import decimals
from compositionality.report.page.figures import stamp
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


def claims_section(inputs: Inputs) -> dict[str, Any]:
    """What the template shows of claims; nothing of this study where its claims have not been decided."""
    files = claims_files(inputs)
    contents = {name: inputs.json(name) for name in files}
    mine: dict[str, Any] = contents.pop(CLAIMS, {"claims": [], "controls": [], "notes": []})
    others = [claim for found in contents.values() for claim in found["claims"]]
    scale = scale_of([*mine["claims"], *mine["controls"], *others])
    own = [claim for claim in mine["claims"] if claim["origin"] == Origin.OWN]
    return {
        "claims": claim_rows([claim for claim in mine["claims"] if claim not in own], scale),
        "own_claims": claim_rows(own, scale),
        "controls": claim_rows(mine["controls"], scale),
        "other_claims": [
            {"study": _study(inputs, name), "seeds": found["n_seeds"], "rows": claim_rows(found["claims"], scale)}
            for name, found in contents.items()
        ],
        "scale": f"{100 * scale:.0f}",
        "tallies": tallies(mine["claims"]),
        "n_seeds": inputs.n_seeds,
        "notes": mine["notes"],
        "claims_stamp": stamp(inputs, tuple(files)) if files else "",
    }


def claims_files(inputs: Inputs) -> list[str]:
    """Names of this study's claims.json, if it is there, and of the other studies'."""
    return [name for name in (CLAIMS, *inputs.starting(OTHERS)) if name in inputs]


def _study(inputs: Inputs, name: str) -> str:
    return inputs.title if name == CLAIMS else name.split("/")[1]


def scale_of(claims: Sequence[Row]) -> float:
    """The largest share among all intervals and thresholds, rounded up to ten points: the end of the common scale."""
    shares = [one for claim in claims for one in claim["comparisons"] if not decimals(one)]
    ends = [abs(one[key] or 0) for one in shares for key in ("low", "high", "threshold")]
    return max(1, math.ceil(10 * max(ends, default=0))) / 10


def claim_rows(claims: Sequence[Row], scale: float) -> list[dict[str, Any]]:
    """Claims with badges, and comparisons with the positions of their marks on the common scale."""
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
    """Sign, class and word of a decision."""
    sign, kind = DECISIONS.get(decision, ("·", "undecided"))
    return {"sign": sign, "kind": kind, "word": decision}


def tallies(claims: Sequence[Row]) -> list[tuple[str, list[dict[str, Any]]]]:
    """How many claims have which decision: of the paper, variants of them, the study's own."""
    return [(title, tally(rows)) for title, rows in by_origin(claims).items()]


def tally(claims: Sequence[Row]) -> list[dict[str, Any]]:
    """How many claims have each decision, in the order of ``DECISIONS``."""
    counts = Counter(claim["decision"] for claim in claims)
    known = [word for word in DECISIONS if counts[word]]
    return [{**badge(word), "n": counts[word]} for word in [*known, *(counts.keys() - DECISIONS.keys())]]


def claims_table(inputs: Inputs) -> Iterator[dict[str, Any]]:
    """One row a comparison of a claim (controls are none), for the CSV; those of other studies below."""
    columns = (
        "metric",
        "comparison",
        "group",
        "level",
        "model",
        "base",
        "difference",
        "low",
        "high",
        "interval",
        "values",
    )
    for name in claims_files(inputs):
        for claim in inputs.json(name)["claims"]:
            for one in claim["comparisons"]:
                yield {
                    "study": _study(inputs, name),
                    "claim": claim["claim"], "origin": claim["origin"], "claim_decision": claim["decision"],
                    "claim_decision_these_seeds": claim.get("decision_these_seeds"), "reason": claim["reason"],
                    "needs": claim["needs"], "p": claim["p"], "p_holm": claim["p_holm"],
                    "after_holm": claim["decision_holm"], "decision": one["decision"],
                    **{column: one.get(column) for column in columns}, "text": claim["text"],
                    "standing": standing_words(claim).strip(" ()"),
                    "paper": claim["paper"],
                }  # fmt: skip


def points(share: float, digits: int = 1) -> str:
    """A difference in points, with its sign."""
    return f"{100 * share:+.{digits}f}".replace("-", "−")


def _comparison(one: Row, scale: float) -> dict[str, Any]:
    """A comparison: figures in points; positions of interval, value and threshold from 0 (−scale) to 100 (+scale).

    Values of queries, which are no shares, have a scale of their own.
    """
    if one.get("difference") is None:
        return {**one, "badge": badge(one["decision"]), "known": False, "missing": one.get("missing")}
    keys = {"low": "low", "value": "difference", "high": "high", "threshold": "threshold"}
    shares = {name: one[key] or 0.0 for name, key in keys.items()}
    scale = 1.2 * max(map(abs, shares.values())) or 1.0 if decimals(one) else scale
    marks = {name: round(50 + 50 * max(-1.0, min(1.0, share / scale)), 2) for name, share in shares.items()}
    numbers = {name: points(share, decimals(one) or 1) for name, share in shares.items()}
    found = {"badge": badge(one["decision"]), "marks": marks, "points": numbers, "by_seed": seeds_words(one)}
    return {**one, **found, "known": True}
