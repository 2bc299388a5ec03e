"""The tables of claims, on the screen and as markdown."""

from collections.abc import Iterator, Sequence

import pandas as pd
from rich.console import Console
from rich.markup import escape

from compositionality.console import new_table
from compositionality.evaluate.claims.model import Origin
from compositionality.evaluate.frames import Row, markdown_lines
from compositionality.evaluate.tables import WIDTH, by_seed, decimals, plural
from compositionality.types import PROBLEMS, Decision

MARKS = {
    Decision.SUPPORTED: "✓",
    Decision.CONTRADICTED: "✗",
    Decision.UNDECIDED: "?",
    Decision.NOT_TESTABLE: "∅",
    Decision.NOT_RUN: "·",
}
LEGEND = "✓ supported, ✗ contradicted, ? undecided, ∅ not testable"
COLOURS = {
    Decision.SUPPORTED: "green",
    Decision.CONTRADICTED: "red",
    Decision.UNDECIDED: "yellow",
    Decision.NOT_TESTABLE: "dim",
    Decision.NOT_RUN: "dim",
}


def print_claims(content: Row, console: Console) -> None:
    """Every claim and control that was run with its comparisons, the names of the others, and the notes."""
    columns = _interval_columns(content)
    table = new_table(width=min(WIDTH, console.width))
    table.add_column("", ratio=1)
    table.add_column("", justify="right", no_wrap=True)
    for title, *_ in columns:
        table.add_column(title, justify="right", width=18)
    for claim in (row for row in _claims(content) if row["decision"] != Decision.NOT_RUN):
        decisions = (f"[{COLOURS[Decision(claim[key])]}]{claim[key]}[/]" for *_, key in columns)
        table.add_row(
            f"[bold]{claim['claim']}[/]{escape(standing_words(claim))} {escape(claim['text'])}", "", *decisions
        )
        for one in claim["comparisons"]:
            table.add_row(*(escape(cell) for cell in _comparison_cells(one, columns, indent="  ")))
        holm = [f"after Holm: {words}"] if (words := holm_words(claim)) else []
        for line in (*remarks(claim), *holm):
            table.add_row(f"  [yellow]{escape(line)}[/]", "", *("" for _ in columns))
        table.add_section()
    console.print(f"\n{claims_counted(content)}\n{claims_heading(content)}", highlight=False)
    console.print(table)
    others = [row["claim"] for row in _claims(content) if row["decision"] == Decision.NOT_RUN]
    if others:
        console.print(f"Not run: {', '.join(others)}.", highlight=False)
    for note in content["notes"]:
        console.print(note, highlight=False)


def claims_markdown(content: Row) -> str:
    """The claims by decision; folded below them the whole table, with the paper's figures."""
    columns = _interval_columns(content)
    heads = ["measured", *(title for title, *_ in columns), "after Holm"]
    cells = [row for claim in _claims(content) for row in _claim_cells(claim, columns)]
    frame = pd.DataFrame([rest for _, *rest in cells], [first for first, *_ in cells], heads)
    title = claims_heading(content)
    table = ["", f"{title[0].upper()}{title[1:]}:", "", *markdown_lines(frame, "claim"), "", *content["notes"], ""]
    return "\n".join(["", claims_counted(content), *_by_decision(content, columns), *table, "</details>", ""])


def by_origin(claims: Sequence[Row]) -> dict[str, list[Row]]:
    """The claims of the paper, the variants of them and those of the study's own, under a title with their number."""
    titles = {
        Origin.PAPER: ("claim", "of the paper"),
        Origin.VARIANT: ("variant", "of them"),
        Origin.OWN: ("claim", "of this study's own"),
    }
    rows = {origin: [row for row in claims if row["origin"] == origin] for origin in Origin}
    return {f"{plural(len(rows[key]), noun)} {of}": rows[key] for key, (noun, of) in titles.items() if rows[key]}


def claims_counted(content: Row) -> str:
    """How many claims of each origin have which decision: by other seeds and problems where there are several seeds."""
    *_, key = _interval_columns(content)[0]
    parts = [f"{title}: {_counted(rows, key)}" for title, rows in by_origin(content["claims"]).items()]
    return f"{'; '.join(parts) or 'No claims'}."


def _counted(rows: Sequence[Row], key: str) -> str:
    numbers = {decision: sum(row[key] == decision for row in rows) for decision in Decision}
    return ", ".join(f"{n} {decision}" for decision, n in numbers.items() if n)


def standing_words(claim: Row) -> str:
    """`` (primary)``, `` (post hoc)`` …; nothing where no registration was made."""
    return f" ({claim['standing']})" if claim.get("standing") else ""


def remarks(claim: Row) -> list[str]:
    """What stands below a claim: why it is not testable, what would decide it."""
    found = [claim["reason"] and f"not testable: {claim['reason']}", claim["needs"] and f"needs {claim['needs']}"]
    return [*filter(None, found)]


def holm_words(claim: Row) -> str:
    """``supported (p 0.02)``, p adjusted for the number of primary claims; empty for a claim that is not primary."""
    p = "" if claim["p_holm"] is None else f" (p {claim['p_holm']:.2g})"
    return f"{claim['decision_holm']}{p}" if claim["decision_holm"] else ""


def seeds_words(one: Row) -> str:
    """The values of several seeds in points, ``+23 +14 −2`` (of their splits ``+20/+26 …``); empty for one seed."""
    return by_seed(one, "+" if one["base"] else "").replace("-", "−")


def claims_heading(content: Row) -> str:
    """The intervals that the decisions rest on."""
    n = content["n_seeds"]
    whose = f"intervals of {plural(n, 'seed')}, of two kinds" if n > 1 else "interval of one seed, over problems only"
    return f"claims, differences in points; decisions by the 95 % {whose} ({LEGEND})"


def _interval_columns(content: Row) -> list[tuple[str, str, str, str]]:
    """Kinds of interval that decisions rest on: title, keys of a comparison's low and high, key of the decision."""
    these = ("other problems, these seeds", "problems_low", "problems_high", "decision_these_seeds")
    if content["n_seeds"] == 1:
        return [("other problems, this seed", *these[1:])]
    return [("other seeds, other problems", "low", "high", "decision"), these]


def _claims(content: Row) -> list[Row]:
    return [*content["claims"], *content["controls"]]


def _by_decision(content: Row, columns: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
    for title, *_, key in columns:
        yield from ("", f"By the interval over {title}:", "")
        for decision in Decision:
            if names := [row["claim"] + standing_words(row) for row in _claims(content) if row[key] == decision]:
                yield f"- **{decision}**: {', '.join(names)}"
    yield from ("", "<details><summary>Every claim with its comparisons, intervals and the paper's figures</summary>")


def _claim_cells(claim: Row, columns: Sequence[tuple[str, str, str, str]]) -> Iterator[list[str]]:
    """The claim with the paper's figure, then a line per comparison."""
    paper = f"paper: {claim['paper']}" if claim["paper"] else "not in the paper"
    paper += f" ({claim['source']})" if claim["source"] else ""
    decisions = (f"**{claim[key]}**" for *_, key in columns)
    name = f"**{claim['claim']}**{standing_words(claim)}"
    yield [f"{name} {claim['text']}<br>*{'; '.join([paper, *remarks(claim)])}*", "", *decisions, holm_words(claim)]
    for one in claim["comparisons"] if claim["decision"] != Decision.NOT_RUN else ():
        yield [*_comparison_cells(one, columns), ""]


def _comparison_cells(one: Row, columns: Sequence[tuple[str, str, str, str]], indent: str = "") -> list[str]:
    """The comparison with the values (or the factors) of the seeds, its figure, a cell per kind of interval."""
    factors = [f"×{ratio:.1f}" if ratio is not None else "–" for ratio in one["ratios"] or ()]
    by_seed = " ".join(factors) or seeds_words(one)
    words = f"{one['comparison']}: {by_seed}" if by_seed else one["comparison"]
    form = f"{'+' if one['base'] else ''}.{decimals(one) or 1}f"
    points = "–" if one["difference"] is None else format(100 * one["difference"], form)
    return [indent + words, "" if one["by_seed"] else points, *(_interval_cell(one, *keys) for _, *keys in columns)]


def _interval_cell(one: Row, low: str, high: str, decision: str) -> str:
    """``[+38, +45] ✓``, or the seeds one by one, ``✓ ✓ ?``, where each of them is decided alone."""
    if one["by_seed"]:
        return " ".join(MARKS[Decision(each)] for each in one["by_seed"])
    if one["difference"] is None:
        return MARKS[Decision(one[decision])]
    form = f"{'+' if one['base'] else ''}.{decimals(one)}f"
    ends = [format(round(100 * one[key], decimals(one)) + 0.0, form) for key in (low, high)]  # + 0.0: no -0
    interval = f"[{', '.join(ends)}]"
    alone = " one seed" if low == "low" and one["interval"] == PROBLEMS else ""
    return f"{interval} {MARKS[Decision(one[decision])]}{alone}"
