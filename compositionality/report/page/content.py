"""The page's text: facts of the study, its data, settings; and its tables as CSV."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from compositionality.data.artefact import read_manifest
from compositionality.data.json_files import read_text
from compositionality.errors import UserError
from compositionality.evaluate.seeds import summary_of
from compositionality.evaluate.summary import differences
from compositionality.evaluate.table import RESULTS
from compositionality.evaluate.tables import plural, training_frame, warnings
from compositionality.report.figures import sizes
from compositionality.report.page.claims import claims_files, claims_table
from compositionality.report.page.inputs import (
    AGAIN,
    AUDIT,
    COUNTDOWN,
    FAILURES,
    INFLUENCE,
    MACHINE,
    PASS_AT_K,
    TIMES,
    Inputs,
)
from compositionality.report.page.results import FigureRows
from compositionality.report.record import without_places
from compositionality.report.theme import group_title, unique
from compositionality.types import COMPOSED, CORRECT

Row = Mapping[str, Any]
AUDIT_TITLES = {
    "rows": "problems",
    "overlap_problems": "also in training: problems",
    "overlap_compositions": "also in training: compositions",
}
"""Titles of the audit's figures; the others are shown under their own names."""


def facts(inputs: Inputs) -> list[tuple[str, str]]:
    """Return what was run, on what, how long: a title and a line each."""
    summary, seeds = inputs.summary, inputs.evaluated.n_seeds
    splits = f", {len(summary['seeds'])} function splits" if len(summary["seeds"]) > seeds else ""
    rows = [
        ("Study", f"{len(summary['models'])} models, {plural(seeds, 'seed')}{splits}: {', '.join(summary['models'])}"),
        ("Problems", "; ".join(_problem_lines(summary["accuracy"]))),
        ("Completions", sampled(summary["sampling"])),
    ]
    if replicates := inputs.folders(PASS_AT_K):
        made = inputs.made_with[f"{PASS_AT_K}/{next(iter(replicates))}/{RESULTS}"]
        each = f"{sampled(made['sampling'])}, of {', '.join(made['models'])}"
        rows.append(("For pass@k", f"{each}; {inputs.counted(len(replicates))}"))
    times = []
    for name, where in zip(TIMES, ("", " for Countdown"), strict=True):
        if seconds := sum(row["seconds"] for row in stages(inputs, name) if row["stage"].endswith("/run_seed")):
            times.append(f"{_duration(seconds)}{where}")
    if not times and (seconds := sum(row["seconds"] for row in stages(inputs, TIMES[0]) if row["depth"] == "3")):
        times = [f"{_duration(seconds)} if one job ran at a time"]
    return [*rows, ("Machine", _machine(inputs)), ("Time", ", ".join(times) or "not recorded")]


def sampled(sampling: Row) -> str:
    """Return ``16 to each problem at temperature 1``."""
    return f"{sampling['n_samples']:,} to each problem at temperature {sampling['temperature']:g}"


def _problem_lines(rows: Sequence[Row]) -> Iterator[str]:
    """``held-out functions: levels 1 to 6, 500 a level``."""
    for group, of_group in pd.DataFrame(rows).groupby("group", sort=False):
        ends = of_group["level"].min(), of_group["level"].max()
        yield f"{group_title(str(group))}: levels {ends[0]} to {ends[1]}, {sizes(of_group)} a level"


def _machine(inputs: Inputs) -> str:
    if MACHINE not in inputs:
        return "not recorded"
    found = inputs.json(MACHINE)
    gpus = f", {len(found['gpus'])} × {found['gpus'][0]}" if found["gpus"] else ", no GPU"
    cores = plural(found["cores"], "core")
    return f"{found['cpu']}, {cores}, {found['memory_gib']:g} GiB{gpus}, Python {found['python']}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def stages(inputs: Inputs, name: str) -> list[dict[str, Any]]:
    """Return seed, depth, stage, seconds of what took a second; of several runs of a stage the longest."""
    longest: dict[tuple[str, ...], int] = {}
    lines = read_text(inputs.files[name], AGAIN).splitlines() if name in inputs else []
    for number, line in enumerate(csv.reader(lines, delimiter="\t"), 1):
        if len(line) == 5:
            key = (line[1], line[2], line[3].removesuffix(" --force"))
            if not line[4].isdecimal():
                where = f"{inputs.files[name]}: line {number}"
                raise UserError(f"{where}: {line[4]!r} is not a number of seconds; delete that line")
            longest[key] = max(longest.get(key, 0), int(line[4]))
    names = ("seed", "depth", "stage", "seconds")
    return [dict(zip(names, (*key, seconds), strict=True)) for key, seconds in longest.items() if seconds]


def problem_files(inputs: Inputs) -> list[dict[str, Any]]:
    """Return the problem files of the first replicate: how many problems, made with which settings."""
    rows = []
    for name in inputs.starting("data/"):
        manifest = read_manifest(inputs.files[name])
        if manifest is None or "by_level" not in manifest.facts:
            continue
        levels, settings = manifest.facts["by_level"], manifest.settings
        made_with = (
            key for key in ("mode", "split", "seed", "functions", "style") if settings.get(key) not in (None, "")
        )
        rows.append(
            {
                "file": name.removeprefix("data/"),
                "problems": sum(levels.values()),
                "levels": ", ".join(f"{level}: {count:,}" for level, count in levels.items()),
                "made_with": ", ".join(f"{key} {settings[key]}" for key in made_with),
                "hash": next(iter(manifest.files.values()))[:12],
            }
        )
    return rows


def training_table(inputs: Inputs) -> dict[str, Any]:
    """Return counts of the training of every arm as titles and rows of text, and warnings; empty without any."""
    reports = inputs.summary["training"]
    if not any(reports.values()):
        return {}
    return {**as_text(training_frame(reports), "arm"), "warnings": list(warnings(reports))}


def as_text(frame: pd.DataFrame, *index: str) -> dict[str, Any]:
    """Return titles and rows of a table; ``index``: titles of its index."""
    rows = [[*(key if isinstance(key, tuple) else [key]), *cells] for key, *cells in frame.itertuples()]
    return {"titles": [*index, *frame.columns], "rows": rows}


def audit_rows(inputs: Inputs) -> list[dict[str, Any]]:
    """Return the audit of the test files, a row for each file and level; empty where it has not been run."""
    files: dict[str, list[Row]] = inputs.json(AUDIT) if AUDIT in inputs else {}
    if bad := [file for file, rows in files.items() if not isinstance(rows, list)]:
        raise UserError(f"{inputs.files[AUDIT]}: {bad[0]}: is no list of levels; {AGAIN}")
    return [{"file": file, **row} for file, rows in files.items() for row in rows]


def audit(inputs: Inputs) -> dict[str, Any]:
    """Return the audit as titles and rows of text: counts, shares (all between 0 and 1) in per cent, – for unknown."""
    rows = audit_rows(inputs)
    if not rows:
        return {}
    frame = pd.DataFrame(rows, dtype=object)
    frame["file"] = frame["file"].str.removesuffix(".parquet")
    plain = [name for name in frame if frame[name].map(lambda cell: isinstance(cell, str | int | float | None)).all()]
    plain.sort(key=lambda name: name not in ("file", "level"))
    titles = {name: AUDIT_TITLES.get(name, name.replace("_", " ")) for name in plain}
    return {"titles": [titles[name] for name in plain], "rows": frame[plain].apply(_audit_cells).to_numpy().tolist()}


def _audit_cells(column: "pd.Series[Any]") -> "pd.Series[str]":
    numbers = [cell for cell in column if isinstance(cell, float) and cell == cell]
    form = "{:.1%}" if numbers and all(0 <= cell <= 1 for cell in numbers) else "{:g}"

    def text(cell: Any) -> str:
        if pd.isna(cell):
            return "–"
        return form.format(cell) if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)

    return column.map(text)


def configs(inputs: Inputs) -> list[tuple[str, dict[str, Any]]]:
    """Return settings by name: of sampling, and of every training run of the first replicate."""
    prefix = f"runs/{inputs.seeds[0]}/"
    names = [name for name in inputs.starting(prefix) if name.endswith(".json")]
    runs = [(name.split("/")[2], inputs.json(name)["settings"]) for name in names]
    found = [("sampling of the tables", dict(inputs.summary["sampling"])), *runs]
    return [(name, without_places(settings)) for name, settings in found]


def failure_table(rows: Sequence[Row]) -> dict[str, Any]:
    """Return shares of the classes with their intervals, a column for each model; without classes that never occur."""
    if not rows:
        return {"titles": [], "rows": []}
    frame = pd.DataFrame(rows)
    frame = frame[frame.groupby(["group", "level", "class"])["share"].transform("max") > 0]
    percent = 100 * frame[["share", "low", "high"]]
    frame["cell"] = [f"{share:.1f} [{low:.0f}–{high:.0f}]" for share, low, high in percent.itertuples(index=False)]
    frame["group"], frame["class"] = frame["group"].map(group_title), frame["class"].str.replace("_", " ")
    index = ["group", "level", "class"]
    wide = frame.pivot_table("cell", index, "model", "first", sort=False).reindex(columns=unique(rows, "model"))
    return as_text(wide.fillna("–"), *index)


def tables(inputs: Inputs, results: FigureRows) -> dict[str, tuple[Any, tuple[str, ...]]]:
    """Return every table of the page by name, with the names of its inputs; those without rows are left out."""
    own, claims = tuple(inputs.starting(f"{inputs.own}/")), tuple(claims_files(inputs))
    runs = tuple(inputs.starting("runs/"))
    of_passk, of_failures, of_influence, of_countdown = (
        tuple(inputs.starting(f"{kind}/")) for kind in (PASS_AT_K, FAILURES, INFLUENCE, COUNTDOWN)
    )
    countdown, ranks = inputs.results(COUNTDOWN), results.ranks or {"correlations": [], "rows": []}
    reports = inputs.summary["training"].items()
    curves = results.passk
    found = {
        "accuracy": (inputs.summary["accuracy"], own),
        "composed": (inputs.summary["composed"], own),
        "differences": (differences(inputs.evaluated, CORRECT), own),
        "composed_differences": (differences(inputs.evaluated, COMPOSED), own),
        "countdown": (summary_of(countdown)["accuracy"] if countdown else [], of_countdown),
        "countdown_differences": (differences(countdown, CORRECT) if countdown else [], of_countdown),
        "passk": (curves[curves["base"] == ""].rename(columns={"value": "pass_at_k"}), of_passk),
        "passk_differences": (curves[curves["base"] != ""].rename(columns={"value": "difference"}), of_passk),
        "failure_modes": (results.failure_shares, of_failures),
        "failures_by_function": (results.by_function, of_failures),
        "failures_by_pair": (results.by_pair, of_failures),
        "influence": (results.influence, of_influence),
        "influence_pairs": (results.influence_pairs, of_influence),
        "ranks": (ranks["correlations"], (*own, *of_influence)),
        "ranked": (ranks["rows"], (*own, *of_influence)),
        "data": (audit_rows(inputs), (AUDIT,)),
        "training_runs": (
            [{"seed": seed, "arm": arm, **one} for seed, arms in reports for arm, one in arms.items()],
            own,
        ),
        "claims": (list(claims_table(inputs)), claims),
        "training": (results.training, tuple(name for name, *_ in results.runs)),
        "budget": (results.budget, (*runs, *inputs.starting("rft/"))),
        "problems": (problem_files(inputs), tuple(inputs.starting("data/"))),
    }
    return {name: table for name, table in found.items() if len(table[0])}
