"""The claims with their verdicts, on a screen of 100 columns and as markdown."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from compositionality.console import new_table
from compositionality.evaluate.markdown import table_line
from compositionality.evaluate.seeds_table import WIDTH, plural
from compositionality.evaluate.verdicts import Verdict
from compositionality.stats.random_effects import PROBLEMS

MARKS = {Verdict.SUPPORTED: "✓", Verdict.CONTRADICTED: "✗", Verdict.UNDECIDED: "?", Verdict.NOT_RUN: "·"}
LEGEND = "✓ supported, ✗ contradicted, ? undecided"
COLOURS = {
    Verdict.SUPPORTED: "green",
    Verdict.CONTRADICTED: "red",
    Verdict.UNDECIDED: "yellow",
    Verdict.NOT_RUN: "dim",
}
Row = Mapping[str, Any]


def print_claims(content: Row, console: Console) -> None:
    """Print every claim and control that was run with its comparisons, the names of the others, and the notes."""
    columns = _columns(content)
    table = new_table(width=min(WIDTH, console.width))
    table.add_column("", ratio=1)
    table.add_column("", justify="right", no_wrap=True)
    for title, *_ in columns:
        table.add_column(title, justify="right", width=18)
    for claim in (row for row in _rows(content) if row["verdict"] != Verdict.NOT_RUN):
        verdicts = (f"[{COLOURS[Verdict(claim[key])]}]{claim[key]}[/]" for *_, key in columns)
        table.add_row(f"[bold]{claim['claim']}[/] {escape(claim['text'])}", "", *verdicts)
        for one in claim["comparisons"]:
            table.add_row(f"  {_words(one)}", _points(one), *(escape(_cell(one, *keys)) for _, *keys in columns))
        if claim["needs"]:
            table.add_row(f"  [yellow]needs {claim['needs']}[/]", "", *("" for _ in columns))
        table.add_section()
    console.print(f"\n{heading(content)}", highlight=False)
    console.print(table)
    others = [row["claim"] for row in _rows(content) if row["verdict"] == Verdict.NOT_RUN]
    if others:
        console.print(f"Not run: {', '.join(others)}.", highlight=False)
    for note in content["notes"]:
        console.print(note, highlight=False)


def claims_markdown(content: Row) -> str:
    """The verdicts in a line each; folded below them the same table, with the paper's figures."""
    return "\n".join([*_summary(content), *_lines(content), "</details>", ""])


def heading(content: Row) -> str:
    """What the verdicts on the claims rest on."""
    n = content["n_seeds"]
    whose = f"intervals of {plural(n, 'seed')}, of two kinds" if n > 1 else "interval of one seed, over problems only"
    return f"the paper's claims, differences in points; verdicts by the 95 % {whose} ({LEGEND})"


def _columns(content: Row) -> list[tuple[str, str, str, str]]:
    """Kinds of interval that verdicts come from: title, keys of a comparison's low and high, key of the verdict."""
    narrow = ("other problems, these seeds", "problems_low", "problems_high", "verdict_these_seeds")
    if content["n_seeds"] == 1:
        return [("other problems, this seed", *narrow[1:])]
    return [("other seeds, other problems", "low", "high", "verdict"), narrow]


def _rows(content: Row) -> list[Row]:
    return [*content["claims"], *content["controls"]]


def _words(comparison: Row) -> str:
    """The comparison in words, with each seed's factor where a factor is asked for."""
    factors = [f"×{ratio:.1f}" if ratio is not None else "–" for ratio in comparison["ratios"] or ()]
    return " ".join([comparison["comparison"] + (":" if factors else ""), *factors])


def _points(comparison: Row) -> str:
    """``+41.5``, or ``41.5`` for a share; – for what was not run; nothing where factors are asked for."""
    if comparison["by_seed"]:
        return ""
    if comparison["difference"] is None:
        return "–"
    return f"{100 * comparison['difference']:{'+' if comparison['base'] else ''}.1f}"


def _cell(comparison: Row, low: str, high: str, verdict: str) -> str:
    """``[+38, +45] ✓``, or the seeds one by one, ``✓ ✓ ?``, where each of them is judged alone."""
    if comparison["by_seed"]:
        return " ".join(MARKS[Verdict(one)] for one in comparison["by_seed"])
    if comparison["difference"] is None:
        return MARKS[Verdict(comparison[verdict])]
    sign = "+" if comparison["base"] else ""
    interval = f"[{round(100 * comparison[low]):{sign}d}, {round(100 * comparison[high]):{sign}d}]"
    alone = " one seed" if low == "low" and comparison["interval"] == PROBLEMS else ""
    return f"{interval} {MARKS[Verdict(comparison[verdict])]}{alone}"


def _summary(content: Row) -> Iterator[str]:
    """Which claims have which verdict."""
    for title, *_, key in _columns(content):
        yield from ("", f"By the interval over {title}:", "")
        for verdict in Verdict:
            if names := [row["claim"] for row in _rows(content) if row[key] == verdict]:
                yield f"- **{verdict}**: {', '.join(names)}"
    yield from ("", "<details><summary>Every claim with its comparisons, intervals and the paper's figures</summary>")


def _lines(content: Row) -> Iterator[str]:
    columns = _columns(content)
    title = heading(content)
    names = ["claim", "measured", *(title for title, *_ in columns)]
    yield from ("", f"{title[0].upper()}{title[1:]}:", "", table_line(names), table_line(["---"] * len(names)))
    for claim in _rows(content):
        paper = f"paper: {claim['paper']}" + (f" ({claim['source']})" if claim["source"] else "")
        needs = f"; needs {claim['needs']}" if claim["needs"] else ""
        verdicts = (f"**{claim[key]}**" for *_, key in columns)
        yield table_line([f"**{claim['claim']}** {claim['text']}<br>*{paper}{needs}*", "", *verdicts])
        for one in claim["comparisons"] if claim["verdict"] != Verdict.NOT_RUN else ():
            yield table_line([_words(one), _points(one), *(_cell(one, *keys) for _, *keys in columns)])
    yield from ("", *content["notes"], "")
