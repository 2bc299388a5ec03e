"""The table of claims, on the screen and in the page of a record; words that the page of a study shares."""

import io
from collections.abc import Sequence

import pandas as pd
from rich.console import Console

from compositionality.evaluate.claims.model import Origin, Rule
from compositionality.evaluate.tables import WIDTH, Row, by_seed, decimals, plural, rich_table
from compositionality.types import PROBLEMS, Decision

MARKS = {
    Decision.SUPPORTED: "✓",
    Decision.CONTRADICTED: "✗",
    Decision.UNDECIDED: "?",
    Decision.NOT_TESTABLE: "∅",
    Decision.NOT_RUN: "·",
}
TITLES = {
    Origin.PAPER: ("claim", "of the paper"),
    Origin.VARIANT: ("variant", "of them"),
    Origin.OWN: ("claim", "of this study's own"),
}
SEEDS = "over seeds\nand problems"
KINDS = {
    SEEDS: ("low", "high", "decision"),
    "over problems": ("problems_low", "problems_high", "decision_these_seeds"),
}
"""Kinds of interval that decisions rest on: keys of a comparison's low and high, key of the decision."""


def print_claims(content: Row, console: Console) -> None:
    """Print how many claims have which decision, their names, those that were run with their comparisons, the notes."""
    claims, n = [*content["claims"], *content["controls"]], content["n_seeds"]
    kinds = {title: keys for title, keys in KINDS.items() if n > 1 or title != SEEDS}
    (*_, key), *_ = kinds.values()
    lines = ["", claims_counted(content, key)]
    for decision in Decision:
        names = [claim["claim"] + status_words(claim) for claim in claims if claim[key] == decision]
        lines += [f"{decision.capitalize()}: {', '.join(names)}."] if names else []
    legend = ", ".join(f"{mark} {decision}" for decision, mark in MARKS.items() if decision is not Decision.NOT_RUN)
    rest_on = f"95 % intervals of {plural(n, 'seed')}" if n > 1 else "95 % interval of one seed, over problems only"
    lines += [f"\nDifferences in points; decisions by the {rest_on} ({legend}):"]
    for line in (*lines, rich_table(_frame(claims, kinds)), *content["notes"]):
        console.print(line)


def claims_text(content: Row) -> str:
    """Return what ``print_claims`` prints, for a file."""
    text = io.StringIO()
    print_claims(content, Console(file=text, width=WIDTH, markup=False, highlight=False))
    return "\n".join(line.rstrip() for line in text.getvalue().strip("\n").splitlines())


def by_origin(claims: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the claims of the paper, the variants of them and the study's own, under a title with their number."""
    rows = {origin: [row for row in claims if row["origin"] == origin] for origin in TITLES}
    return {f"{plural(len(rows[key]), noun)} {of}": rows[key] for key, (noun, of) in TITLES.items() if rows[key]}


def claims_counted(content: Row, key: str) -> str:
    """Say how many claims of each origin have which decision, under ``key``."""
    counted = []
    for title, rows in by_origin(content["claims"]).items():
        numbers = {decision: sum(row[key] == decision for row in rows) for decision in Decision}
        counted.append(f"{title}: {', '.join(f'{n} {decision}' for decision, n in numbers.items() if n)}")
    return f"{'; '.join(counted) or 'No claims'}."


def status_words(claim: Row) -> str:
    """Return `` (primary)``, `` (post hoc)`` …; nothing where no registration was made."""
    return f" ({claim['registration_status']})" if claim.get("registration_status") else ""


def holm_words(claim: Row) -> str:
    """Return ``supported (one-sided p 0.02)``, adjusted for the number of primary claims; of another claim nothing."""
    sides = "one" if {row["rule"] for row in claim["comparisons"]} <= {Rule.ABOVE, Rule.AT_MOST} else "two"
    p = "" if claim["p_holm"] is None else f" ({sides}-sided p {claim['p_holm']:.2g})"
    return f"{claim['decision_holm']}{p}" if claim["decision_holm"] else ""


def seeds_words(comparison: Row) -> str:
    """Return the values of seeds in points, ``+23 +14 −2`` (of their splits ``+20/+26 …``); of one seed nothing."""
    return by_seed(comparison, "+" if comparison["base"] else "").replace("-", "−")


def _frame(claims: Sequence[Row], kinds: dict[str, tuple[str, str, str]]) -> pd.DataFrame:
    """Return a line for each claim that was run, then one for each of its comparisons."""
    lines: list[list[str]] = []
    for claim in (claim for claim in claims if claim["decision"] != Decision.NOT_RUN):
        remarks = {
            "paper": claim["paper"] + (f" ({claim['source']})" if claim["source"] else ""),
            "not testable": claim["reason"],
            "needs": claim["needs"],
            "after Holm": holm_words(claim),
        }
        text = [f"{claim['claim']}{status_words(claim)} {claim['text']}"]
        text += [f"  {key}: {words}" for key, words in remarks.items() if words]
        lines += [[""] * (2 + len(kinds))] if lines else []
        lines.append(["\n".join(text), "", *(claim[key] for *_, key in kinds.values())])
        for comparison in claim["comparisons"]:
            values = seeds_words(comparison)
            name = f"  {comparison['comparison']}" + (f": {values}" if values else "")
            form = f"{'+' if comparison['base'] else ''}.{decimals(comparison) or 1}f"
            points = "–" if comparison["difference"] is None else format(100 * comparison["difference"], form)
            lines.append([name, points, *(_interval(comparison, *keys) for keys in kinds.values())])
    return pd.DataFrame([rest for _, *rest in lines], [first for first, *_ in lines], ["measured", *kinds])


def _interval(comparison: Row, low: str, high: str, decision: str) -> str:
    """Return ``[+38, +45] ✓``."""
    mark, digits = MARKS[Decision(comparison[decision])], decimals(comparison)
    if comparison["difference"] is None:
        return mark
    form = f"{'+' if comparison['base'] else ''}.{digits}f"
    ends = [format(round(100 * comparison[key], digits) + 0.0, form) for key in (low, high)]  # + 0.0: no -0
    alone = " one seed" if low == "low" and comparison["interval"] == PROBLEMS else ""
    return f"[{', '.join(ends)}] {mark}{alone}"
