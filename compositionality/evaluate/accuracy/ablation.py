"""Ablations: the same study from base models that differ in one thing each (their text, their size)."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import MISSING

from compositionality.console import new_console
from compositionality.data.artefact import Manifest, Recipe, exclusive, manifest_path, verify, write_derived
from compositionality.data.json_files import NUMBER, check_shape
from compositionality.errors import UserError
from compositionality.evaluate.evaluations import Evaluations, ProblemSet, read_evaluations
from compositionality.evaluate.frames import markdown_lines, rich_table, write_between_marks
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.tables import share_cell
from compositionality.ranges import NonNegativeInt
from compositionality.stats.intervals import columns_by_seed

STEP, PLACE = "summarise_ablation", "ablation"
Row = dict[str, Any]


@dataclass
class AblationSettings:
    """Settings of ``summarise_ablation``: lists of NAME:PATH, the same names for base models and for accuracy.json."""

    bases: list[str] = MISSING  # NAME:PATH of base models
    inputs: list[str] = MISSING  # NAME:PATH of accuracy.json, the same names
    output: Path = MISSING  # JSON
    models: list[str] = field(default_factory=lambda: ["stage1", "rl-level2"])  # in this order
    level: NonNegativeInt = 3  # the one that is compared
    markdown: str = ""  # file with a place for the table


def summarise_ablation(settings: AblationSettings) -> Path:
    """Write ``output`` (JSON), with ``markdown`` the table to its place in that file; print the table."""
    bases, inputs = check(settings)
    rows = [
        {"variant": name, **facts_of(Path(base)), "accuracy": list(_accuracy(inputs[name], settings))}
        for name, base in bases.items()
    ]
    content = {"level": settings.level, "rows": rows}
    text = json.dumps(content, indent=1) + "\n"
    with exclusive(settings.output):
        write_derived(settings.output, Recipe(STEP, content), lambda path: path.write_text(text))
    frame = _table(rows)
    if settings.markdown:
        lines = ["", *markdown_lines(frame), ""]
        write_between_marks(Path(settings.markdown), PLACE, "\n".join(lines))
    new_console().print(rich_table(frame))
    print(settings.output)
    return settings.output


def check(settings: AblationSettings) -> tuple[dict[str, str], dict[str, str]]:
    """Bases and inputs by name. UserError unless the names are the same."""
    bases, inputs = named_paths("bases", settings.bases), named_paths("inputs", settings.inputs)
    if list(bases) != list(inputs):
        raise UserError(f"bases are {', '.join(bases)}, inputs {', '.join(inputs)}; give the same names in one order")
    return bases, inputs


def facts_of(base: Path) -> Row:
    """What a base model was made of, from its manifest. UserError if it was not made by ``pretrain_tiny``."""
    made: Manifest = verify(base)
    kept = made.settings
    if made.step != "pretrain_tiny":
        raise UserError(f"{base}: made by {made.step}, not by examples/pretrain_tiny.py; give a base model")
    sizes = dict.fromkeys(("steps", "packing.rows", "packing.length", "mix.prior_functions", "seed"), int)
    fix = "run examples/pretrain_tiny.py again"
    check_shape(kept, {**sizes, "mix.prior_chain": NUMBER}, f"{manifest_path(base)}: settings", fix)
    check_shape(made.facts, {"parameters": int}, f"{manifest_path(base)}: facts", fix)
    return {
        "tokens": kept["steps"] * kept["packing.rows"] * kept["packing.length"],
        "prior_chain": kept["mix.prior_chain"],
        "prior_functions": kept["mix.prior_functions"],
        "parameters": made.facts["parameters"],
        "seed": kept["seed"],
    }


def _accuracy(source: str, settings: AblationSettings) -> Iterator[Row]:
    """One row per group that has the level, and model."""
    study = read_evaluations([f"one:{source}"], settings.models)
    sets = [one for one in study.sets if one.level == settings.level]
    if not sets:
        raise UserError(f"{study.seeds[0].folder}: has no level {settings.level}; evaluate it")
    for problems in sets:
        for model in settings.models:
            yield {"group": problems.group, "model": model, **_share(study, model, problems)}


def _share(study: Evaluations, model: str, problems: ProblemSet) -> Row:
    return {**columns_by_seed(study.share(model, problems), "accuracy"), "n_problems": study.size(problems)}


def _table(rows: Sequence[Row]) -> pd.DataFrame:
    """One line per variant."""
    cells = pd.DataFrame(
        {
            "M tokens": [f"{row['tokens'] / 1e6:.1f}" for row in rows],
            "composed %": [f"{100 * row['prior_chain']:.0f}" for row in rows],
            "functions": [str(row["prior_functions"]) for row in rows],
            "parameters": [f"{row['parameters']:,}" for row in rows],
        },
        [row["variant"] for row in rows],
    )
    for place, one in enumerate(rows[0]["accuracy"]):
        cells[f"{one['group']}: {one['model']}"] = [share_cell(row["accuracy"][place]) for row in rows]
    return cells
