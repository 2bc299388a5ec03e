"""The page's claims as a forest plot: decisions, comparisons as sentences, intervals and marks on one scale."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from compositionality.evaluate.claims.model import EITHER_SIDE, Origin, Rule
from compositionality.evaluate.claims.run import (
    RegistrationStatus,
    by_origin,
    decision_words,
    holm_words,
    seeds_words,
    status_words,
)
from compositionality.evaluate.table import is_paired
from compositionality.evaluate.tables import decimals
from compositionality.evaluate.types import CORRECT, Metric
from compositionality.report.page.figure import interval_words, styles_of
from compositionality.report.page.inputs import CLAIMS, Inputs
from compositionality.report.page.sentences import OVER, claim_sentence, named, sentence
from compositionality.report.theme import Styles

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
REGISTERED = (RegistrationStatus.PRIMARY, RegistrationStatus.SECONDARY)
PROBLEMS = ("problems_low", "problems_high")
"""Keys of the interval over problems, for these seeds alone."""
LISTED = 3
"""Most primary claims that the first screen lists; of more it tells how many were decided how."""


def claims_section(inputs: Inputs) -> dict[str, Any]:
    """Return what the template shows of claims, primary ones after Holm's correction; no rows where none is decided."""
    content = inputs.json(CLAIMS) if CLAIMS in inputs else {"claims": [], "controls": [], "notes": []}
    claims, controls = content["claims"], content["controls"]
    compared = [row for claim in [*controls, *claims] for row in claim["comparisons"]]
    names = [name for row in compared for name in (row["model"], row["base"], *pair_over(row)) if name]
    styles = styles_of(inputs, names)
    shares = [row for row in compared if not decimals(row)]
    ends = [abs(row[key] or 0) for row in shares for key in ("low", "high", "threshold")]
    scale = max(1, math.ceil(10 * max(ends, default=0))) / 10  # common to all: the largest, rounded up to ten points
    primary = [
        {
            "badge": badge(said(claim, claim["decision_holm"])),
            **{key: claim.get(key) for key in ("claim", "reason")},
            "text": claim_sentence(claim, styles).rstrip(".") if claim["origin"] == Origin.OWN else claim["text"],
            "figures": figures_of(claim, scale, styles),
        }
        for claim in claims
        if claim["primary"]
    ]
    return {
        "claims": claim_rows((claim for claim in claims if claim["origin"] != Origin.OWN), scale, styles),
        "own_claims": claim_rows((claim for claim in claims if claim["origin"] == Origin.OWN), scale, styles),
        "controls": claim_rows(controls, scale, styles),
        "ticks": [f"{100 * share * scale:+.0f}".replace("-", "−") if share else "0" for share in (-1, -0.5, 0, 0.5, 1)],
        "tallies": [(title, tally(map(said, rows))) for title, rows in by_origin(claims).items()],
        "primary": primary if len(primary) <= LISTED else [],
        "primary_tally": tally(claim["badge"]["word"] for claim in primary),
        "n_seeds": inputs.evaluated.n_seeds if inputs.summary["models"] else 0,
        "notes": content["notes"],
        "claims_stamp": inputs.stamp([CLAIMS]) if claims else "",
    }


def first_claim(inputs: Inputs) -> dict[str, str]:
    """Return sentence and lead of the first claim whose comparisons have figures; {} where none was decided."""
    for claim in inputs.json(CLAIMS)["claims"] if CLAIMS in inputs else ():
        rows = [row for row in claim["comparisons"] if row.get("difference") is not None]
        if not rows:
            continue
        runs = rows[0].get("metric") == Metric.SCALING
        scale, unit = (0.01, "") if runs else (1, " points")
        ends = [[points(scale * row[key], 2 if runs else 1) for key in ("difference", "low", "high")] for row in rows]
        figures = ", ".join(f"{value}{unit} [{low}, {high}]" for value, low, high in ends)
        rule = f"{Rule.AHEAD}; as good: {Rule.WITHIN}" if rows[0]["rule"] == Rule.AHEAD else rows[0]["rule"]
        limit = f"{rule} {100 * scale * rows[0]['threshold']:.3g}{unit}"
        decision = said(claim, claim["decision_holm"])
        over = "runs" if runs else interval_words(rows[0]["interval"])
        reason = f"Not testable: {claim['reason']}. " if claim["reason"] else ""
        lead = f"{reason}Claimed: {limit}; 95\u00a0% interval over {over}."
        return {"sentence": f"{claim['text']}: {decision}, {figures}.", "lead": lead}
    return {}


def pair_over(row: Row) -> tuple[str, ...]:
    """Return the pair of models whose difference a comparison subtracts; empty for most."""
    pair = OVER.search(row["comparison"])
    return pair.groups() if pair else ()


def figures_of(claim: Row, scale: float, styles: Styles) -> list[str]:
    """Return the estimate of each comparison with its interval; against which model, where that is not always one."""
    several = len({row["base"] for row in claim["comparisons"]}) > 1
    shown = [comparison_row(row, scale, styles) for row in claim["comparisons"]]
    return [
        f"{row['points']['value']}{row['points']['unit']} [{row['points']['low']}, {row['points']['high']}]"
        + (f" against {named(styles, row['base'])}" if several and row["base"] else "")
        for row in shown
        if row["known"]
    ]


def claim_rows(claims: Iterable[Row], scale: float, styles: Styles) -> list[dict[str, Any]]:
    """Return claims with badges, and comparisons with the positions of their marks on the common scale."""
    return [
        {
            **claim,
            "status": status_words(claim),
            "registered": claim.get("registration_status") in REGISTERED,
            "holm": holm_words(claim),
            "badge": badge(said(claim)),
            "badge_these_seeds": badge(decision_words(claim, claim.get("decision_these_seeds") or "not run", PROBLEMS)),
            "comparisons": [comparison_row(row, scale, styles) for row in claim["comparisons"]],
        }
        for claim in claims
    ]


def comparison_row(row: Row, scale: float, styles: Styles) -> dict[str, Any]:
    """Return figures in points; positions of interval, value, thresholds and seeds from 0 (−scale) to 100 (+scale).

    Values of queries, which are no shares, have a scale of their own.
    """
    is_measured = row.get("difference") is not None
    shown = {**row, "badge": badge(said(row)), "known": is_measured, "sentence": sentence(row, styles)}
    if not is_measured:
        return {**shown, "missing": row.get("missing")}
    keys = {"low": "low", "value": "difference", "high": "high", "threshold": "threshold"}
    shares = {name: row[key] or 0.0 for name, key in keys.items()}
    scale = 1.2 * max(map(abs, shares.values())) or 1.0 if decimals(row) else scale

    def place(share: float) -> float:
        return round(50 + 50 * max(-1.0, min(1.0, share / scale)), 2)

    ends = [shares["threshold"], *([-shares["threshold"]] if row["rule"] in EITHER_SIDE else [])]
    seeds = [place(value) for value in row["values"] or () if value is not None]
    marks = {name: place(share) for name, share in shares.items()} | {"thresholds": map(place, ends), "seeds": seeds}
    numbers, by_seed = {name: points(share, decimals(row) or 1) for name, share in shares.items()}, seeds_words(row)
    numbers["unit"] = "" if decimals(row) or row.get("metric") == Metric.SCALING else " points"
    if is_paired(row.get("measure", CORRECT)):  # a share of problems, no difference
        numbers, by_seed = {name: f"{100 * share:.1f}" for name, share in shares.items()}, by_seed.replace("+", "")
        numbers |= {"value": f"{numbers['value']}\u00a0%", "unit": ""}
    return {**shown, "marks": marks, "points": numbers, "by_seed": by_seed}


def said(row: Row, corrected: str | None = None) -> str:
    """Return the words of the decision on a claim or a comparison; of a claim also those after Holm's correction."""
    return decision_words(row, corrected or row["decision"])


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
