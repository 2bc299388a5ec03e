"""Tables of results, for a terminal (rich) and as markdown."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from compositionality.console import new_console, new_table
from compositionality.data.artefact import write_text
from compositionality.errors import UserError
from compositionality.evaluate.accuracy.rows import ALL, FUNCTION, LEVEL, Row
from compositionality.evaluate.claims.decide import Verdict
from compositionality.evaluate.counts import REASONS
from compositionality.stats.random_effects import PROBLEMS
from compositionality.types import FAILURES, Failure

WIDTH = 100
TITLES = {"trained": "trained functions", "heldout": "held-out functions", "countdown": "Countdown"}
Summary = Mapping[str, Any]


def print_summary(summary: Summary, console: Console) -> None:
    """Print accuracy by level of every arm, one table a kind of functions."""
    for rows in by_functions(summary["accuracy"]):
        console.print(f"\n{heading(rows, summary)}", highlight=False)
        for models in _seeds_blocks(summary["models"]):
            console.print(_seeds_grid(rows, models))


def by_functions(rows: Sequence[Summary]) -> list[list[Summary]]:
    """Rows about the same kind of functions, however many problem files they come from."""
    kinds = dict.fromkeys(row["functions"] for row in rows)
    return [[row for row in rows if row["functions"] == kind] for kind in kinds]


def heading(rows: Sequence[Summary], summary: Summary) -> str:
    """What a table of accuracies shows: functions, seeds, problems, answers to each, and the kind of interval."""
    first = rows[0]
    what = TITLES.get(first["functions"], first["functions"])
    answers = summary["sampling"]["n_samples"]
    each = f", {answers} answers to each" if answers > 1 else ""
    seeds = "mean of " + plural(first["n_seeds"], "seed") if first["n_seeds"] > 1 else "one seed"
    kinds = next((row["interval"] for row in rows if row["interval"]), PROBLEMS)
    return f"{what}: % correct, {seeds} [95 % interval over {kinds}], n = {sizes(rows)}{each}"


def sizes(rows: Sequence[Summary]) -> str:
    """How many problems a level: ``500``, or ``10 to 128``."""
    counts = [row["n_problems"] for row in rows]
    return " to ".join(str(count) for count in dict.fromkeys((min(counts), max(counts))))


def plural(n: int, noun: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def share_cell(row: Mapping[str, Any] | None) -> str:
    """``64 [58–70]``, or ``4.3 [2–9]`` for less than 10 %; – for what was not measured."""
    if row is None or row["accuracy"] is None:
        return "–"
    value, low, high = (100 * row[key] for key in ("accuracy", "low", "high"))
    return f"{value:.{0 if value >= 9.95 else 1}f} [{low:.0f}–{high:.0f}]"


def levels_of(rows: Sequence[Summary]) -> dict[tuple[int, str], dict[str, Summary]]:
    """Rows by level and model, levels in order."""
    found: dict[tuple[int, str], dict[str, Summary]] = {}
    for row in sorted(rows, key=lambda row: (row["level"], row["data_source"])):
        found.setdefault((row["level"], row["data_source"]), {})[row["model"]] = row
    return found


def level_name(level: int, data_source: str) -> str:
    """``L3``, or the data source's name where it holds no level."""
    return f"L{level}" if level else data_source


def _seeds_grid(rows: Sequence[Summary], models: Sequence[str]) -> Table:
    table = new_table()
    table.add_column("", overflow="fold")
    for model in models:
        table.add_column(model, justify="right", overflow="fold")
    for level, cells in levels_of(rows).items():
        table.add_row(level_name(*level), *(share_cell(cells.get(model)) for model in models))
    return table


def _seeds_blocks(models: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many arms side by side as fit: a column is as wide as its name, and no narrower than ``100 [98–100]``."""
    block: list[str] = []
    for model in models:
        if block and 4 + sum(max(12, len(name)) + 1 for name in [*block, model]) > WIDTH:
            yield block
            block = []
        block.append(model)
    yield block


def marks(place: str) -> tuple[str, str]:
    """The lines before and after what a summary makes; a file with several such places has names for them."""
    what = f"tables of {place}" if place else "tables"
    return f"<!-- {what}: made by a script -->", f"<!-- end of {what} -->"


def write_markdown(path: Path, summary: Summary, place: str = "") -> None:
    """Write the tables to ``path``; in a file that is there, only between the marks of ``place``."""
    write_between_marks(path, place, markdown(summary))


def write_between_marks(path: Path, place: str, text: str) -> None:
    """Make ``path``, or replace what stands between the two marks in it. UserError if it has none of that name."""
    first, last = marks(place)
    text = f"{first}\n{text}{last}\n"
    if path.is_file():
        old = path.read_text()
        before, begin, rest = old.partition(first)
        _, end, after = rest.partition(last)
        if not begin or not end:
            raise UserError(f"{path}: has no place for the tables; put the lines {first} and {last} in it")
        text = before + text.rstrip("\n") + after
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def markdown(summary: Summary) -> str:
    """A table of accuracies for every kind of functions."""
    return "\n".join(_seeds_lines(summary))


def _seeds_lines(summary: Summary) -> Iterator[str]:
    models = summary["models"]
    for rows in by_functions(summary["accuracy"]):
        title = heading(rows, summary)
        yield from (
            "",
            f"{title[0].upper()}{title[1:]}:",
            "",
            table_line(["level", *models]),
            table_line(["---"] * (len(models) + 1)),
        )
        for (level, source), cells in levels_of(rows).items():
            yield table_line([level_name(level, source), *(share_cell(cells.get(model)) for model in models)])
    yield ""
    yield ""


def table_line(cells: list[str]) -> str:
    """One row of a table."""
    return f"| {' | '.join(cells)} |"


COLUMNS_AT_ONCE = 3
DIFFERENCES_AT_ONCE = 2
WIDEST_NAME = 18
_TASK_NAME = re.compile(r"^(codeio-forward-incomplete|string|reasoning-gym-countdown|countdown)-")


def print_results(rows: Sequence[Row], console: Console | None = None, *, by_function: bool = False) -> None:
    """Print, for every problem file: accuracy by level (by function), differences to the first checkpoint, verdicts."""
    console = console or new_console()
    models = list(dict.fromkeys(row["model"] for row in rows))
    for problems in dict.fromkeys(row["problems"] for row in rows):
        mine = [row for row in rows if row["problems"] == problems]
        _print_file(console, problems, models, mine, by_function=by_function)


def _print_file(
    console: Console, problems: str, models: Sequence[str], rows: Sequence[Row], *, by_function: bool
) -> None:
    first = rows[0]
    console.print(
        f"\n{problems}: accuracy in % with 95 % intervals"
        f" ({first['n_samples']} per problem, temperature {first['temperature']:g}, seed {first['seed']})",
        highlight=False,
    )
    for block in _accuracy_blocks(models, COLUMNS_AT_ONCE):
        console.print(_accuracy_grid(rows, block, (LEVEL, ALL), "accuracy", "low", "high"))
    if len(models) > 1:
        console.print(f"difference to {models[0]}, paired by problem, in points", highlight=False)
        for block in _accuracy_blocks(models[1:], DIFFERENCES_AT_ONCE):
            console.print(_accuracy_grid(rows, block, (LEVEL, ALL), "difference", "difference_low", "difference_high"))
    if by_function and any(row["kind"] == FUNCTION for row in rows):
        for block in _accuracy_blocks(models, COLUMNS_AT_ONCE):
            console.print(_accuracy_grid(rows, block, (FUNCTION,), "accuracy", "low", "high"))
    console.print(_verdicts([row for row in rows if row["kind"] == ALL]))


def _accuracy_grid(
    rows: Iterable[Row], models: Sequence[str], kinds: Sequence[str], value: str, low: str, high: str
) -> Table:
    """Groups down, checkpoints across."""
    cells = {(row["kind"], row["group"], row["model"]): row for row in rows}
    table = new_table()
    table.add_column(kinds[0], overflow="fold")
    table.add_column("n", justify="right")
    for model in models:
        table.add_column(fill(model, WIDEST_NAME), justify="right", overflow="fold")
    signed = value == "difference"
    for kind in kinds:
        for group in dict.fromkeys(group for key, group, _ in cells if key == kind):
            shown = [cells[kind, group, model] for model in models]
            texts = [_accuracy_cell(row[value], row[low], row[high], signed=signed) for row in shown]
            table.add_row(_TASK_NAME.sub("", group), str(shown[0]["n_problems"]), *texts)
    return table


def _accuracy_blocks(models: Sequence[str], at_once: int) -> list[Sequence[str]]:
    return [models[start : start + at_once] for start in range(0, len(models), at_once)]


def _accuracy_cell(value: float | None, low: float | None, high: float | None, *, signed: bool) -> str:
    """``64.1 [58.2–69.6]``, or with signs ``+3.0 [-1.2, +7.2]``."""
    if value is None or low is None or high is None:
        return "–"
    if signed:
        return f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
    return f"{100 * value:.1f} [{100 * low:.1f}–{100 * high:.1f}]"


def _verdicts(rows: Sequence[Row]) -> Table:
    """Mean length and the share of each verdict, one row per checkpoint."""
    seen = [reason for reason in REASONS if any(row[f"share_{reason}"] for row in rows)]
    table = new_table()
    table.add_column("checkpoint", overflow="fold")
    table.add_column("tokens", justify="right")
    for reason in seen:
        table.add_column(f"{reason.replace('_', ' ')} %", justify="right")
    for row in rows:
        shares = (f"{100 * row[f'share_{reason}']:.1f}" for reason in seen)
        table.add_row(row["model"], f"{row['mean_tokens']:.1f}", *shares)
    return table


MARKS = {Verdict.SUPPORTED: "✓", Verdict.CONTRADICTED: "✗", Verdict.UNDECIDED: "?", Verdict.NOT_RUN: "·"}
LEGEND = "✓ supported, ✗ contradicted, ? undecided"
COLOURS = {
    Verdict.SUPPORTED: "green",
    Verdict.CONTRADICTED: "red",
    Verdict.UNDECIDED: "yellow",
    Verdict.NOT_RUN: "dim",
}


def print_claims(content: Summary, console: Console) -> None:
    """Print every claim and control that was run with its comparisons, the names of the others, and the notes."""
    columns = _interval_columns(content)
    table = new_table(width=min(WIDTH, console.width))
    table.add_column("", ratio=1)
    table.add_column("", justify="right", no_wrap=True)
    for title, *_ in columns:
        table.add_column(title, justify="right", width=18)
    for claim in (row for row in _claims(content) if row["verdict"] != Verdict.NOT_RUN):
        verdicts = (f"[{COLOURS[Verdict(claim[key])]}]{claim[key]}[/]" for *_, key in columns)
        table.add_row(f"[bold]{claim['claim']}[/] {escape(claim['text'])}", "", *verdicts)
        for one in claim["comparisons"]:
            table.add_row(f"  {_words(one)}", _points(one), *(escape(_claim_cell(one, *keys)) for _, *keys in columns))
        if claim["needs"]:
            table.add_row(f"  [yellow]needs {claim['needs']}[/]", "", *("" for _ in columns))
        table.add_section()
    console.print(f"\n{claims_heading(content)}", highlight=False)
    console.print(table)
    others = [row["claim"] for row in _claims(content) if row["verdict"] == Verdict.NOT_RUN]
    if others:
        console.print(f"Not run: {', '.join(others)}.", highlight=False)
    for note in content["notes"]:
        console.print(note, highlight=False)


def claims_markdown(content: Summary) -> str:
    """The verdicts in a line each; folded below them the same table, with the paper's figures."""
    return "\n".join([*_summary(content), *_claims_lines(content), "</details>", ""])


def claims_heading(content: Summary) -> str:
    """What the verdicts on the claims rest on."""
    n = content["n_seeds"]
    whose = f"intervals of {plural(n, 'seed')}, of two kinds" if n > 1 else "interval of one seed, over problems only"
    return f"the paper's claims, differences in points; verdicts by the 95 % {whose} ({LEGEND})"


def _interval_columns(content: Summary) -> list[tuple[str, str, str, str]]:
    """Kinds of interval that verdicts come from: title, keys of a comparison's low and high, key of the verdict."""
    narrow = ("other problems, these seeds", "problems_low", "problems_high", "verdict_these_seeds")
    if content["n_seeds"] == 1:
        return [("other problems, this seed", *narrow[1:])]
    return [("other seeds, other problems", "low", "high", "verdict"), narrow]


def _claims(content: Summary) -> list[Summary]:
    return [*content["claims"], *content["controls"]]


def _words(comparison: Summary) -> str:
    """The comparison in words, with each seed's factor where a factor is asked for."""
    factors = [f"×{ratio:.1f}" if ratio is not None else "–" for ratio in comparison["ratios"] or ()]
    return " ".join([comparison["comparison"] + (":" if factors else ""), *factors])


def _points(comparison: Summary) -> str:
    """``+41.5``, or ``41.5`` for a share; – for what was not run; nothing where factors are asked for."""
    if comparison["by_seed"]:
        return ""
    if comparison["difference"] is None:
        return "–"
    return f"{100 * comparison['difference']:{'+' if comparison['base'] else ''}.1f}"


def _claim_cell(comparison: Summary, low: str, high: str, verdict: str) -> str:
    """``[+38, +45] ✓``, or the seeds one by one, ``✓ ✓ ?``, where each of them is judged alone."""
    if comparison["by_seed"]:
        return " ".join(MARKS[Verdict(one)] for one in comparison["by_seed"])
    if comparison["difference"] is None:
        return MARKS[Verdict(comparison[verdict])]
    sign = "+" if comparison["base"] else ""
    interval = f"[{round(100 * comparison[low]):{sign}d}, {round(100 * comparison[high]):{sign}d}]"
    alone = " one seed" if low == "low" and comparison["interval"] == PROBLEMS else ""
    return f"{interval} {MARKS[Verdict(comparison[verdict])]}{alone}"


def _summary(content: Summary) -> Iterator[str]:
    """Which claims have which verdict."""
    for title, *_, key in _interval_columns(content):
        yield from ("", f"By the interval over {title}:", "")
        for verdict in Verdict:
            if names := [row["claim"] for row in _claims(content) if row[key] == verdict]:
                yield f"- **{verdict}**: {', '.join(names)}"
    yield from ("", "<details><summary>Every claim with its comparisons, intervals and the paper's figures</summary>")


def _claims_lines(content: Summary) -> Iterator[str]:
    columns = _interval_columns(content)
    title = claims_heading(content)
    names = ["claim", "measured", *(title for title, *_ in columns)]
    yield from ("", f"{title[0].upper()}{title[1:]}:", "", table_line(names), table_line(["---"] * len(names)))
    for claim in _claims(content):
        paper = f"paper: {claim['paper']}" + (f" ({claim['source']})" if claim["source"] else "")
        needs = f"; needs {claim['needs']}" if claim["needs"] else ""
        verdicts = (f"**{claim[key]}**" for *_, key in columns)
        yield table_line([f"**{claim['claim']}** {claim['text']}<br>*{paper}{needs}*", "", *verdicts])
        for one in claim["comparisons"] if claim["verdict"] != Verdict.NOT_RUN else ():
            yield table_line([_words(one), _points(one), *(_claim_cell(one, *keys) for _, *keys in columns)])
    yield from ("", *content["notes"], "")


def print_curves(content: Row, ks: Sequence[int], console: Console | None = None) -> None:
    """Print a table for every checkpoint, and one for every pair, on every problem file."""
    console = console or new_console()
    setting = f"{content['n_samples']} samples of each problem, temperature {content['temperature']:g}"
    for row in content["missing"]:
        console.print(
            f"{row['model']} on {row['problems']}: {row['samples']} samples have no verdict, as the verifier failed; "
            f"curves end at the fewest judged samples of a problem",
            highlight=False,
        )
    for title, rows in _curve_groups(content["curves"], "{model} on {problems}: pass@k in %").items():
        console.print(f"\n{title}, 95 % intervals ({setting})", highlight=False, markup=False)
        console.print(_curves_grid(rows, ks, "pass_at_k"))
    for title, rows in _curve_groups(
        content["differences"], "{model} − {base} on {problems}: pass@k in points"
    ).items():
        console.print(f"\n{title}, paired by problem, 95 % intervals", highlight=False, markup=False)
        console.print(_curves_grid(rows, ks, "difference"))


def _curve_groups(rows: Sequence[Row], title: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(title.format(**row), []).append(row)
    return groups


def _curves_grid(rows: Sequence[Row], ks: Sequence[int], value: str) -> Table:
    signed = value == "difference"
    table = new_table("level")
    table.add_column("n", justify="right")
    largest = len(rows[0]["k"])
    shown = [k for k in ks if k <= largest]
    for k in shown:
        table.add_column(f"k={k}", justify="right")
    if signed:
        table.add_column("crosses at k", justify="right")
    for row in rows:
        cells = [_curve_cell(row[value][k - 1], row["low"][k - 1], row["high"][k - 1], signed=signed) for k in shown]
        crossing = [crossing_text(row["crossover"], largest)] if signed else []
        table.add_row(str(row["level"] or "all"), str(row["n_problems"]), *cells, *crossing)
    return table


def crossing_text(crossed: Row | None, largest: int) -> str:
    """``12`` with its interval below, ``> 128`` for an end beyond the largest k; – if the curves do not cross."""
    if crossed is None:
        return "–"
    ends = (str(crossed[end]) if crossed[end] is not None else f"> {largest}" for end in ("low", "high"))
    return f"{crossed['k']}\n{' … '.join(ends)}"


def _curve_cell(value: float, low: float, high: float, *, signed: bool) -> str:
    if signed:
        return f"{100 * value:+.1f}\n{100 * low:+.0f} {100 * high:+.0f}"
    return f"{100 * value:.1f}\n{100 * low:.0f}–{100 * high:.0f}"


def print_failures(summary: Mapping[str, Any], level: int) -> None:
    """Print a table for every problem file that has this level, and the agreement with the judge."""
    console = new_console()
    for problems in dict.fromkeys(row["problems"] for row in summary["shares"] if row["level"] == level):
        rows = [row for row in summary["shares"] if (row["problems"], row["level"]) == (problems, level)]
        console.print(f"\n{problems}, level {level}: % of responses [95 % interval], {rows[0]['n_problems']} problems")
        console.print(_failure_table(rows, summary))
        slips = [row for row in summary["faults"] if (row["class"], row["fault"]) == (Failure.ATOMIC, "miscopied")]
        console.print(
            _failure_line("right functions in the right order, whatever the strings", summary["composed"], rows[0])
        )
        console.print(_failure_line("atomic error by miscopying the string of the step before", slips, rows[0]))
    judge = summary["judge"]
    if judge:
        kappa = "undefined" if judge["kappa"] is None else "{kappa:.2f} [{low:.2f}, {high:.2f}]".format(**judge)
        agreed = "–" if judge["agreement"] is None else f"{100 * judge['agreement']:.1f} %"
        console.print(
            f"\njudge {judge['model']}: {judge['n']} responses, agreement {agreed}, Cohen's kappa {kappa}, "
            f"{judge['malformed']} malformed answers left out"
        )


def _failure_table(rows: list[dict[str, Any]], summary: Mapping[str, Any]) -> Table:
    cells = {(row["class"], row["model"]): row for row in rows}
    models = [model for model in summary["models"] if (FAILURES[0], model) in cells]
    table = new_table()
    table.add_column("class")
    for model in models:
        table.add_column(model, justify="right", overflow="fold")
    for kind in FAILURES:
        table.add_row(kind.replace("_", " "), *(_failure_cell(cells[kind, model]) for model in models))
    return table


def _failure_cell(row: Mapping[str, Any]) -> str:
    return f"{100 * row['share']:.1f} [{100 * row['low']:.0f}–{100 * row['high']:.0f}]"


def _failure_line(what: str, rows: Sequence[Mapping[str, Any]], of: Mapping[str, Any]) -> str:
    """Shares of all responses at the same level of the same file."""
    mine = [row for row in rows if (row["problems"], row["level"]) == (of["problems"], of["level"])]
    told = ", ".join(f"{row['model']} {100 * row['share']:.1f}" for row in mine)
    return f"% {what}: {told or 'none'}"
