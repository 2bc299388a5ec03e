"""The page's text: facts of the study, the data, settings; and its tables as CSV."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compositionality.data.artefact import read_manifest
from compositionality.errors import UserError
from compositionality.evaluate.passk.curves import factor_text
from compositionality.evaluate.table import RESULTS
from compositionality.evaluate.tables import Reports, plural, training_frame, warnings
from compositionality.report.figures import sizes
from compositionality.report.page.claims import claims_files, claims_table, points
from compositionality.report.page.inputs import (
    AUDIT,
    COUNTDOWN,
    FAILURES,
    INFLUENCE,
    MACHINE,
    PASS_AT_K,
    RANKS,
    SEEDS,
    TIMES,
    Inputs,
)
from compositionality.report.page.results import FigureRows, metric_files
from compositionality.report.record import without_places
from compositionality.report.theme import group_title, unique

Row = Mapping[str, Any]
Table = tuple[Sequence[Row], tuple[str, ...]]
"""Rows, and the names of the inputs that they were made from."""
AUDIT_TITLES = {
    "rows": "problems",
    "overlap_problems": "also in training: problems",
    "overlap_compositions": "also in training: compositions",
}
"""Titles of the audit's figures; the others are shown under their own names."""


def facts(inputs: Inputs) -> list[tuple[str, str]]:
    """What was run, on what, how long: a title and a line each."""
    summary = inputs.json(SEEDS)
    sampling = summary["sampling"]
    seeds = inputs.n_seeds
    splits = f", {len(summary['seeds'])} function splits" if len(summary["seeds"]) > seeds else ""
    rows = [
        ("Study", f"{len(summary['models'])} models, {plural(seeds, 'seed')}{splits}: {', '.join(summary['models'])}"),
        ("Problems", "; ".join(_problem_lines(summary["accuracy"]))),
        ("Completions", f"{sampling['n_samples']} to each problem at temperature {sampling['temperature']:g}"),
    ]
    if sampled := inputs.seeds_with(PASS_AT_K):
        made = inputs.settings[f"{PASS_AT_K}/{sampled[0]}/{RESULTS}"]
        each = f"{made['sampling']['n_samples']:,} to each problem of {', '.join(made['models'])}"
        rows.append(("For pass@k", f"{each}; {inputs.counted(len(sampled))}"))
    times = [
        f"{_duration(seconds)}{where}"
        for name, where in zip(TIMES, ("", " for Countdown"), strict=True)
        if (seconds := total_seconds(inputs, name))
    ]
    if not times and (seconds := sum(row["seconds"] for row in stages(inputs, TIMES[0]) if row["depth"] == "3")):
        times = [f"{_duration(seconds)} if one job ran at a time"]
    return [*rows, ("Machine", _machine(inputs)), ("Time", ", ".join(times) or "not recorded")]


def _problem_lines(rows: Sequence[Row]) -> Iterator[str]:
    """``held-out functions: levels 1 to 6, 500 a level``."""
    for group in unique(rows, "group"):
        mine = [row for row in rows if row["group"] == group]
        levels = unique(mine, "level")
        yield f"{group_title(group)}: levels {min(levels)} to {max(levels)}, {sizes(mine)} a level"


def _machine(inputs: Inputs) -> str:
    if MACHINE not in inputs:
        return "not recorded"
    found = inputs.json(MACHINE)
    gpus = f", {len(found['gpus'])} × {found['gpus'][0]}" if found["gpus"] else ", no GPU"
    return (
        f"{found['cpu']}, {plural(found['cores'], 'core')}, {found['memory_gib']:g} GiB{gpus}, Python {found['python']}"
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def total_seconds(inputs: Inputs, name: str) -> int:
    """Seconds of all seeds, each from its first stage to its table."""
    return sum(row["seconds"] for row in stages(inputs, name) if row["stage"].endswith("/run_seed"))


def stages(inputs: Inputs, name: str) -> list[dict[str, Any]]:
    """Seed, depth, stage, seconds of what took a second; of several runs of a stage the longest."""
    longest: dict[tuple[str, ...], int] = {}
    if name in inputs:
        for number, line in enumerate(csv.reader(inputs.lines(name), delimiter="\t"), 1):
            if len(line) == 5:
                key = (line[1], line[2], line[3].removesuffix(" --force"))
                if not line[4].isdecimal():
                    raise UserError(
                        f"{inputs.files[name]}: line {number}: {line[4]!r} is not a number of seconds; delete that line"
                    )
                longest[key] = max(longest.get(key, 0), int(line[4]))
    names = ("seed", "depth", "stage", "seconds")
    return [dict(zip(names, (*key, value), strict=True)) for key, value in longest.items() if value]


def problem_files(inputs: Inputs) -> Sequence[Row]:
    """Every problem file: how many problems by level, settings by which it was made, its hash."""
    rows = []
    for name in inputs.starting("data/"):
        manifest = read_manifest(inputs.files[name])
        if manifest is None or "by_level" not in manifest.facts:
            continue
        levels = manifest.facts["by_level"]
        settings = {key: value for key, value in manifest.settings.items() if value not in (None, "")}
        made_with = ("mode", "split", "seed", "functions", "style")
        rows.append(
            {
                "file": name.removeprefix("data/"),
                "problems": sum(levels.values()),
                "levels": ", ".join(f"{level}: {count:,}" for level, count in levels.items()),
                "made_with": ", ".join(f"{key} {settings[key]}" for key in made_with if key in settings),
                "hash": next(iter(manifest.files.values()))[:12],
            }
        )
    return rows


def training_of(inputs: Inputs) -> Reports:
    """What the training of every arm did, by seed."""
    found: Reports = inputs.json(SEEDS)["training"]
    return found


def training_table(inputs: Inputs) -> dict[str, Any]:
    """Counts of every arm as titles and rows of text, and warnings; empty without any."""
    reports = training_of(inputs)
    if not any(reports.values()):
        return {}
    frame = training_frame(reports)
    return {
        "titles": ["arm", *frame.columns],
        "rows": [list(row) for row in frame.itertuples()],
        "warnings": list(warnings(reports)),
    }


def audit(inputs: Inputs) -> dict[str, Any]:
    """The audit of the test files as titles and rows of text; empty where it has not been run."""
    if AUDIT not in inputs:
        return {}
    rows = [{"file": file.removesuffix(".parquet"), **row} for file, rows in inputs.json(AUDIT).items() for row in rows]
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if _has_text_or_numbers(rows, name)]
    names.sort(key=lambda name: name not in ("file", "level"))
    cells = {name: _audit_cells([row.get(name) for row in rows]) for name in names}
    return {
        "titles": [AUDIT_TITLES.get(name, name.replace("_", " ")) for name in names],
        "rows": list(zip(*cells.values(), strict=True)),
    }


def _has_text_or_numbers(rows: Sequence[Row], name: str) -> bool:
    return all(isinstance(row.get(name), str | int | float | None) for row in rows)


def _audit_cells(values: Sequence[Any]) -> list[str]:
    """A column as text: counts as they are, shares (all between 0 and 1) in per cent, – for what is not known."""
    numbers = [value for value in values if isinstance(value, float)]
    form = "{:.1%}" if numbers and all(0 <= value <= 1 for value in numbers) else "{:g}"
    return [
        "–"
        if value is None
        else form.format(value)
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else value
        for value in values
    ]


def configs(inputs: Inputs) -> list[tuple[str, dict[str, Any]]]:
    """Settings by name: of sampling, and of every training run of the first seed."""
    found = [("sampling of the tables", dict(inputs.json(SEEDS)["sampling"]))]
    prefix = f"runs/{inputs.seeds[0]}/"
    for name in inputs.starting(prefix):
        if name.endswith(".json"):
            found.append((name.removeprefix(prefix).split("/")[0], inputs.json(name).get("settings", {})))
    return [(name, without_places(settings)) for name, settings in found]


def crossovers(inputs: Inputs, differences: Sequence[Row]) -> list[dict[str, Any]]:
    """Differences of pass@k at k = 1 and at the largest k, and in how many seeds the sign changes, at which k."""
    rows = []
    for row in differences:
        ends = [_with_interval(row["difference"][i], row["low"][i], row["high"][i]) for i in (0, -1)]
        crossed = [f"{one['k']:g}" for one in row["crossovers"] if one]
        every = inputs.counted(len(row["crossovers"]))
        changes = f"{len(crossed)} of {every}: k = {', '.join(crossed)}" if crossed else "in none"
        met = "; ".join(f"k = {one['k']}: {factor_text(one)}" for one in row["reranking"][:4]).replace("\n", ", ")
        rows.append({**row, "met": met, "first": ends[0], "last": ends[1], "largest": row["k"][-1], "changes": changes})
    return rows


def failure_table(rows: Sequence[Row]) -> dict[str, Any]:
    """Shares of the classes with their intervals, a column for each model; classes that never occur are left out."""
    models = unique(rows, "model")
    cells: dict[tuple[str, int, str], dict[str, Row]] = {}
    for row in rows:
        key = (group_title(row["group"]), row["level"], row["class"].replace("_", " "))
        if row["share"] is not None:
            cells.setdefault(key, {})[row["model"]] = row
    lines = [
        [*key, *(_share_text(found[model]) if model in found else "–" for model in models)]
        for key, found in cells.items()
        if any(row["share"] for row in found.values())
    ]
    return {"titles": ["group", "level", "class", *models], "rows": lines}


def _share_text(row: Row) -> str:
    return f"{100 * row['share']:.1f} [{100 * row['low']:.0f}–{100 * row['high']:.0f}]"


def _with_interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return "–"
    return f"{points(value)} [{points(low)}, {points(high)}]"


def tables(inputs: Inputs, results: FigureRows) -> dict[str, Table]:
    """Every table of the page by name; tables without rows are left out."""
    metrics = tuple(metric_files(inputs))
    found: dict[str, Table] = {}
    for name, source, key in (
        ("accuracy", SEEDS, "accuracy"),
        ("composed", SEEDS, "composed"),
        ("differences", SEEDS, "differences"),
        ("composed_differences", SEEDS, "composed_differences"),
        ("countdown", COUNTDOWN, "accuracy"),
        ("countdown_differences", COUNTDOWN, "differences"),
    ):
        found[name] = (inputs.json(source)[key] if source in inputs else [], (source,))
    of_passk, of_failures = (tuple(inputs.starting(f"{section}/")) for section in (PASS_AT_K, FAILURES))
    found["passk"] = (list(_by_k(results.curves, "pass_at_k")), of_passk)
    found["passk_differences"] = (list(_by_k(results.differences, "difference")), of_passk)
    found["failure_modes"] = (results.failure_shares, of_failures)
    found["failures_by_function"] = (results.by_function, of_failures)
    found["failures_by_pair"] = (results.by_pair, of_failures)
    for name, rows in (("influence", results.influence), ("influence_pairs", results.influence_pairs)):
        found[name] = (rows, tuple(inputs.starting(f"{INFLUENCE}/")))
    if RANKS in inputs:
        found["ranks"] = (inputs.json(RANKS)["correlations"], (RANKS,))
        found["ranked"] = (inputs.json(RANKS)["rows"], (RANKS,))
    if AUDIT in inputs:
        found["data"] = ([{"file": file, **row} for file, rows in inputs.json(AUDIT).items() for row in rows], (AUDIT,))
    reports = ((seed, arm, one) for seed, of in training_of(inputs).items() for arm, one in of.items())
    found["training_runs"] = ([{"seed": seed, "arm": arm, **one} for seed, arm, one in reports], (SEEDS,))
    found["claims"] = (list(claims_table(inputs)), tuple(claims_files(inputs)))
    found["training"] = (results.training, metrics)
    found["budget"] = (results.budget, (*inputs.starting("runs/"), *inputs.starting("rft/")))
    found["problems"] = (problem_files(inputs), tuple(inputs.starting("data/")))
    return {name: table for name, table in found.items() if table[0]}


def csv_of(rows: Sequence[Row]) -> bytes:
    """A CSV file with the columns of the rows, in their order; lists as JSON."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(row.get(name)) for name in names} for row in rows)
    return stream.getvalue().encode()


def _by_k(rows: Iterable[Row], value: str) -> Iterator[Row]:
    """One row a k from rows that hold lists over k."""
    for row in rows:
        for place, k in enumerate(row["k"]):
            lists = {name: row[name][place] for name in (value, "low", "high", "values")}
            yield {
                **{name: cell for name, cell in row.items() if name not in ("crossovers", "reranking")},
                "k": k,
                **lists,
            }


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value
