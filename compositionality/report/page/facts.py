"""What was run, on what, how long; the data; the settings: rows for the page, in words where words are needed."""

import csv
from collections.abc import Iterator
from typing import Any

from compositionality.data.artefact import read_manifest
from compositionality.evaluate.tables import TITLES, plural
from compositionality.report.page.inputs import AUDIT, MACHINE, PASS_AT_K, SEEDS, TIMES, Inputs
from compositionality.report.record import without_places

AUDIT_COLUMNS = (
    ("rows", "problems", "{:,}"),
    ("duplicates", "duplicates", "{:,}"),
    ("input_matters", "input matters", "{:.1%}"),
    ("with_no_op", "with a step that does nothing", "{:.1%}"),
    ("real_depth", "as deep as its level", "{:.1%}"),
    ("length_median", "median length of the answer", "{:g}"),
    ("overlap_problems", "also in training: problems", "{:,}"),
    ("overlap_compositions", "also in training: compositions", "{:,}"),
    ("wrong_gold", "wrong gold answers", "{:,}"),
)
"""Key of the audit, its title, its format: those that a file of problems has."""
Row = dict[str, Any]


def headline(inputs: Inputs) -> list[tuple[str, str]]:
    """What was run, on what, how long: titles with a line each."""
    summary = inputs.json(SEEDS)
    n_seeds = len(summary["seeds"])
    rows = [
        ("Study", f"{len(summary['models'])} models, {plural(n_seeds, 'seed')}: {', '.join(summary['models'])}"),
        ("Problems", "; ".join(_problem_lines(summary))),
        (
            "Answers",
            f"{summary['sampling']['n_samples']} to each problem at temperature {summary['sampling']['temperature']:g}",
        ),
    ]
    if PASS_AT_K in inputs:
        curves = inputs.json(PASS_AT_K)
        models = ", ".join(curves["models"])
        rows.append(("Samples for pass@k", f"{curves['n_samples']:,} to each problem, of {models}"))
    rows.append(("Machine", _machine(inputs)))
    told = [
        f"{_minutes(seconds)}{where}"
        for name, where in zip(TIMES, ("", " for Countdown"), strict=True)
        if (seconds := total_seconds(inputs, name))
    ]
    rows.append(("Time", ", ".join(told) or "not recorded"))
    return rows


def _problem_lines(summary: Row) -> Iterator[str]:
    """``held-out functions: levels 1 to 6, 500 a level``."""
    for functions in dict.fromkeys(row["functions"] for row in summary["accuracy"]):
        mine = [row for row in summary["accuracy"] if row["functions"] == functions]
        levels, sizes = ({row[key] for row in mine} for key in ("level", "n_problems"))
        size = f"{min(sizes):,}" if len(sizes) == 1 else f"{min(sizes):,} to {max(sizes):,}"
        yield f"{TITLES.get(functions, functions)}: levels {min(levels)} to {max(levels)}, {size} a level"


def _machine(inputs: Inputs) -> str:
    if MACHINE not in inputs:
        return "not recorded"
    found = inputs.json(MACHINE)
    gpus = f", {len(found['gpus'])} × {found['gpus'][0]}" if found["gpus"] else ", no GPU"
    return (
        f"{found['cpu']}, {plural(found['cores'], 'core')}, {found['memory_gib']:g} GiB{gpus}, Python {found['python']}"
    )


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def total_seconds(inputs: Inputs, name: str) -> int:
    """Seconds of all seeds, each from its first stage to its table."""
    return sum(row["seconds"] for row in stages(inputs, name) if row["stage"].endswith("/run_seed"))


def stages(inputs: Inputs, name: str) -> list[Row]:
    """Seed, stage, seconds of what took a second. Run again, what is there takes none: so the longest."""
    longest: dict[tuple[str, str], int] = {}
    if name in inputs:
        for line in csv.reader(inputs.files[name].read_text().splitlines(), delimiter="\t"):
            if len(line) == 5:
                key = (line[1], line[3].removesuffix(" --force"))
                longest[key] = max(longest.get(key, 0), int(line[4]))
    return [{"seed": seed, "stage": stage, "seconds": value} for (seed, stage), value in longest.items() if value]


def problem_rows(inputs: Inputs) -> list[Row]:
    """Every problem file: rows by level, how it was drawn, its hash."""
    rows = []
    for name in inputs.starting("data/"):
        manifest = read_manifest(inputs.files[name])
        if manifest is None or "by_level" not in manifest.facts:
            continue
        levels, settings = manifest.facts["by_level"], manifest.settings
        drawn = ("mode", "split", "seed", "functions", "style")
        rows.append(
            {
                "file": name.removeprefix("data/"),
                "problems": sum(levels.values()),
                "levels": ", ".join(f"{level}: {count:,}" for level, count in levels.items()),
                "drawn": ", ".join(f"{key} {settings[key]}" for key in drawn if settings.get(key) not in (None, "")),
                "hash": next(iter(manifest.files.values()))[:12],
            }
        )
    return rows


def audit_rows(inputs: Inputs) -> dict[str, Any]:
    """The audit of the test files as titles and rows of words; empty where it has not been run."""
    if AUDIT not in inputs:
        return {}
    found = [(file, level) for file, levels in inputs.json(AUDIT).items() for level in levels]
    columns = [column for column in AUDIT_COLUMNS if all(column[0] in level for _, level in found)]
    rows = [
        [file.removesuffix(".parquet"), level["level"], *(form.format(level[key]) for key, _, form in columns)]
        for file, level in found
    ]
    return {"titles": ["file", "level", *(title for _, title, _ in columns)], "rows": rows}


def configs(inputs: Inputs) -> list[tuple[str, dict[str, Any]]]:
    """Settings by name: of sampling, and of every training run of the first seed."""
    found = [("sampling of the tables", dict(inputs.json(SEEDS)["sampling"]))]
    prefix = f"runs/{inputs.seeds[0]}/"
    for name in inputs.starting(prefix):
        if name.endswith(".json"):
            found.append((name.removeprefix(prefix).split("/")[0], inputs.json(name).get("settings", {})))
    return [(name, without_places(settings)) for name, settings in found]
