"""The table of claims, on the screen and as markdown."""

from collections.abc import Sequence

import pandas as pd
from rich.console import Console

from compositionality.evaluate.claims.model import Origin
from compositionality.evaluate.tables import Row, by_seed, decimals, markdown_lines, plural, rich_table
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
KINDS = {
    "other seeds, other problems": ("low", "high", "decision"),
    "other problems, these seeds": ("problems_low", "problems_high", "decision_these_seeds"),
}
"""Kinds of interval that decisions rest on: keys of a comparison's low and high, key of the decision."""
ONE_SEED = {"other problems, this seed": KINDS["other problems, these seeds"]}


def print_claims(content: Row, console: Console) -> None:
    """Print every claim and control that was run with its comparisons, the names of the others, and the notes."""
    run = [row for row in _claims(content) if row["decision"] != Decision.NOT_RUN]
    others = [row["claim"] for row in _claims(content) if row["decision"] == Decision.NOT_RUN]
    lines = [f"\n{claims_counted(content)}\n{_heading(content)}", rich_table(_frame(content, run))]
    lines += [f"Not run: {', '.join(others)}."] if others else []
    for line in (*lines, *content["notes"]):
        console.print(line, highlight=False, markup=False)


def claims_markdown(content: Row) -> str:
    """Return the claims by decision; folded below them the whole table, with the paper's figures."""
    lines = ["", claims_counted(content)]
    for title, (*_, key) in _kinds(content).items():
        lines += ["", f"By the interval over {title}:", ""]
        for decision in Decision:
            names = [row["claim"] + standing_words(row) for row in _claims(content) if row[key] == decision]
            lines += [f"- **{decision}**: {', '.join(names)}"] if names else []
    heading = _heading(content)
    lines += ["", "<details><summary>Every claim with its comparisons, intervals and the paper's figures</summary>"]
    lines += ["", f"{heading[0].upper()}{heading[1:]}:", ""]
    lines += markdown_lines(_frame(content, _claims(content), markdown=True), "claim")
    return "\n".join([*lines, "", *content["notes"], "", "</details>", ""])


def by_origin(claims: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the claims of the paper, the variants of them and the study's own, under a title with their number."""
    rows = {origin: [row for row in claims if row["origin"] == origin] for origin in TITLES}
    return {f"{plural(len(rows[key]), noun)} {of}": rows[key] for key, (noun, of) in TITLES.items() if rows[key]}


def claims_counted(content: Row) -> str:
    """Say how many claims of each origin have which decision, by other seeds and problems where there are several."""
    *_, key = next(iter(_kinds(content).values()))
    parts = []
    for title, rows in by_origin(content["claims"]).items():
        numbers = {decision: sum(row[key] == decision for row in rows) for decision in Decision}
        parts.append(f"{title}: {', '.join(f'{n} {decision}' for decision, n in numbers.items() if n)}")
    return f"{'; '.join(parts) or 'No claims'}."


def standing_words(claim: Row) -> str:
    """`` (primary)``, `` (post hoc)`` …; nothing where no registration was made."""
    return f" ({claim['standing']})" if claim.get("standing") else ""


def holm_words(claim: Row) -> str:
    """``supported (p 0.02)``, p adjusted for the number of primary claims; empty for a claim that is not primary."""
    p = "" if claim["p_holm"] is None else f" (p {claim['p_holm']:.2g})"
    return f"{claim['decision_holm']}{p}" if claim["decision_holm"] else ""


def seeds_words(one: Row) -> str:
    """The values of several seeds in points, ``+23 +14 −2`` (of their splits ``+20/+26 …``); empty for one seed."""
    return by_seed(one, "+" if one["base"] else "").replace("-", "−")


def _claims(content: Row) -> list[Row]:
    return [*content["claims"], *content["controls"]]


def _kinds(content: Row) -> dict[str, tuple[str, str, str]]:
    return ONE_SEED if content["n_seeds"] == 1 else KINDS


def _heading(content: Row) -> str:
    """Say what the decisions rest on."""
    n = content["n_seeds"]
    whose = f"intervals of {plural(n, 'seed')}, of two kinds" if n > 1 else "interval of one seed, over problems only"
    legend = ", ".join(f"{mark} {decision}" for decision, mark in MARKS.items() if decision is not Decision.NOT_RUN)
    return f"claims, differences in points; decisions by the 95 % {whose} ({legend})"


def _frame(content: Row, claims: Sequence[Row], *, markdown: bool = False) -> pd.DataFrame:
    """Return a line for each claim, in markdown with the paper's figures, then one for each of its comparisons."""
    kinds = _kinds(content)
    lines: list[list[str]] = []
    for claim in claims:
        decisions = [f"**{claim[key]}**" if markdown else claim[key] for *_, key in kinds.values()]
        lines += [[""] * (2 + len(kinds))] if lines and not markdown else []
        lines.append([_title(claim, markdown=markdown), "", *decisions])
        for one in claim["comparisons"] if claim["decision"] != Decision.NOT_RUN else ():
            factors = " ".join(f"×{ratio:.1f}" if ratio is not None else "–" for ratio in one["ratios"] or ())
            values = factors or seeds_words(one)
            form = f"{'+' if one['base'] else ''}.{decimals(one) or 1}f"
            points = "–" if one["difference"] is None else format(100 * one["difference"], form)
            name = ("" if markdown else "  ") + one["comparison"] + (f": {values}" if values else "")
            cells = [_interval_cell(one, *keys) for keys in kinds.values()]
            lines.append([name, "" if one["by_seed"] else points, *cells])
    titles = [title if markdown else title.replace(", ", ",\n") for title in kinds]
    return pd.DataFrame([rest for _, *rest in lines], [first for first, *_ in lines], ["measured", *titles])


def _title(claim: Row, *, markdown: bool) -> str:
    """Return name and text; below them why it is not testable, what would decide it, and what Holm's procedure says."""
    paper = f"paper: {claim['paper']}" if claim["paper"] else "not in the paper"
    remarks = [paper + (f" ({claim['source']})" if claim["source"] else "")] if markdown else []
    remarks += [f"not testable: {claim['reason']}"] if claim["reason"] else []
    remarks += [f"needs {claim['needs']}"] if claim["needs"] else []
    remarks += [f"after Holm: {words}"] if (words := holm_words(claim)) else []
    standing = f"{standing_words(claim)} {claim['text']}"
    if markdown:
        return f"**{claim['claim']}**{standing}\n*{'; '.join(remarks)}*"
    return "\n  ".join([f"{claim['claim']}{standing}", *remarks])


def _interval_cell(one: Row, low: str, high: str, decision: str) -> str:
    """``[+38, +45] ✓``, or the seeds one by one, ``✓ ✓ ?``, where each of them is decided alone."""
    if one["by_seed"]:
        return " ".join(MARKS[Decision(each)] for each in one["by_seed"])
    if one["difference"] is None:
        return MARKS[Decision(one[decision])]
    form = f"{'+' if one['base'] else ''}.{decimals(one)}f"
    ends = [format(round(100 * one[key], decimals(one)) + 0.0, form) for key in (low, high)]  # + 0.0: no -0
    alone = " one seed" if low == "low" and one["interval"] == PROBLEMS else ""
    return f"[{', '.join(ends)}] {MARKS[Decision(one[decision])]}{alone}"
