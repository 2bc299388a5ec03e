"""Ablations: the same study from base models that differ in one thing each (their text, their size)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, exclusive, manifest_path, verify, write_derived
from compositionality.data.json_files import NUMBER, check_shape
from compositionality.errors import UserError
from compositionality.evaluate.frames import rich_table
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.results import read_results
from compositionality.evaluate.summary import columns, share
from compositionality.evaluate.tables import share_cell
from compositionality.ranges import REQUIRED, NonNegativeInt

STEP = "summarise_ablation"
CHAINS = ("mix.prior_chain", "mix.visible_chain")
SIZES = ("steps", "packing.rows", "packing.length", "mix.prior_functions")
"""Settings of a base model that the table tells."""
Row = dict[str, Any]


@dataclass
class AblationSettings:
    """Settings of ``summarise_ablation``: the same variants, in one order, for base models and for results.parquet."""

    bases: list[str] = REQUIRED  # VARIANT:PATH of base models, of one seed each
    inputs: list[str] = REQUIRED  # VARIANT/SEED:PATH of results.parquet
    output: Path = REQUIRED  # JSON
    models: list[str] = field(default_factory=lambda: ["stage1", "rl-level2"])  # in this order
    level: NonNegativeInt = 3  # the one that is compared


def summarise_ablation(settings: AblationSettings) -> Path:
    """Write ``output`` (JSON) and print the table."""
    bases, inputs = check(settings)
    rows = [
        {"variant": name, **_made_of(Path(base)), **_accuracy(inputs[name], settings)} for name, base in bases.items()
    ]
    content = {"level": settings.level, "rows": rows}
    text = json.dumps(content, indent=1) + "\n"
    with exclusive(settings.output):
        write_derived(settings.output, Recipe(STEP, content), lambda path: path.write_text(text, encoding="utf-8"))
    frame = pd.DataFrame(
        {
            "M tokens": [f"{row['tokens'] / 1e6:.1f}" for row in rows],
            "chains %": [f"{100 * row['chains']:.0f}" for row in rows],
            "functions": [str(row["prior_functions"]) for row in rows],
            "parameters": [f"{row['parameters']:,}" for row in rows],
        },
        [row["variant"] for row in rows],
    )
    for place, one in enumerate(rows[0]["accuracy"]):
        frame[f"{one['group']}: {one['model']}"] = [share_cell(row["accuracy"][place]) for row in rows]
    new_console().print(rich_table(frame))
    print(settings.output)
    return settings.output


def check(settings: AblationSettings) -> tuple[dict[str, str], Mapping[str, list[str]]]:
    """Return a base, and results.parquet as SEED:PATH, by variant. UserError unless the variants are the same."""
    bases, inputs = named_paths("bases", settings.bases), dict[str, list[str]]()
    for entry in settings.inputs:
        name, slash, path = entry.partition("/")
        if not slash or ":" not in path.partition("/")[0]:
            raise UserError(f"inputs: {entry}: is not VARIANT/SEED:PATH")
        inputs.setdefault(name, []).append(path)
    if list(bases) != list(inputs):
        raise UserError(f"bases are {', '.join(bases)}, inputs {', '.join(inputs)}; give the same names in one order")
    return bases, inputs


def _made_of(base: Path) -> Row:
    """Return what a base model was made of. UserError if it was not made by ``pretrain_tiny``."""
    made, fix = verify(base), "run examples/pretrain_tiny.py again"
    if made.step != "pretrain_tiny":
        raise UserError(f"{base}: made by {made.step}, not by examples/pretrain_tiny.py; give a base model")
    shape = {**dict.fromkeys(SIZES, int), **dict.fromkeys(CHAINS, NUMBER)}
    check_shape(made.settings, shape, f"{manifest_path(base)}: settings", fix)
    check_shape(made.facts, {"parameters": int}, f"{manifest_path(base)}: facts", fix)
    steps, rows, length, functions = (made.settings[key] for key in SIZES)
    return {
        "tokens": steps * rows * length,
        "chains": sum(made.settings[key] for key in CHAINS),
        "prior_functions": functions,
        "parameters": made.facts["parameters"],
    }


def _accuracy(inputs: Sequence[str], settings: AblationSettings) -> Row:
    """Return the seeds, and one row of accuracy for each group that has the level, and model."""
    results = read_results(inputs, settings.models)
    sets = [problems for problems in results.sets if problems.level == settings.level]
    if not sets:
        raise UserError(f"{inputs[0]}: has no level {settings.level}; evaluate it")
    rows = [
        {"group": problems.group, "model": model, "n_problems": results.size(problems),
         **columns(share(results, model, problems), "accuracy")}
        for problems in sets
        for model in settings.models
    ]  # fmt: skip
    return {"seeds": [one.name for one in results.replicates], "accuracy": rows}
