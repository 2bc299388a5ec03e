"""What an effect hangs on: the same study with one thing changed in the base model's text or size, side by side."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from compositionality.console import new_console, new_table
from compositionality.data.artefact import Manifest, exclusive, verify, write_text
from compositionality.errors import UserError
from compositionality.evaluate.claims.decide import figures_of
from compositionality.evaluate.evaluations import FUNCTION_SETS, Study, read_study
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.tables import share_cell, table_line, write_between_marks

PLACE = "ablation"
HEADER = ("", "M tokens", "composed %", "functions", "parameters")
Row = dict[str, Any]


@dataclass
class AblationSettings:
    """Settings of ``summarise_ablation``: lists of NAME:PATH, the same names for base models and for accuracy.json."""

    bases: list[str] = MISSING
    inputs: list[str] = MISSING
    output: Path = MISSING
    models: list[str] = field(default_factory=lambda: ["stage1", "rl-level2"])
    level: int = 3
    markdown: str = ""


def summarise_ablation(settings: AblationSettings) -> Path:
    """Write ``output`` (JSON), with ``markdown`` the table to its place in that file; print the table."""
    bases, inputs = named_paths("bases", settings.bases), named_paths("inputs", settings.inputs)
    if list(bases) != list(inputs):
        raise UserError(f"bases are {', '.join(bases)}, inputs {', '.join(inputs)}; give the same names in one order")
    rows = [
        {"variant": name, **facts_of(Path(base)), "accuracy": list(_accuracy(inputs[name], settings))}
        for name, base in bases.items()
    ]
    with exclusive(settings.output):
        write_text(settings.output, json.dumps({"level": settings.level, "rows": rows}, indent=1) + "\n")
    if settings.markdown:
        lines = [table_line(cells) for cells in (_header(rows), ["---"] * len(_header(rows)), *map(_cells, rows))]
        write_between_marks(Path(settings.markdown), PLACE, "\n".join(["", *lines, ""]))
    _print(rows)
    print(settings.output)
    return settings.output


def facts_of(base: Path) -> Row:
    """What a base model was made of, from its manifest. UserError if it was not made by ``pretrain_tiny``."""
    made: Manifest = verify(base)
    kept = made.settings
    if made.step != "pretrain_tiny":
        raise UserError(f"{base}: made by {made.step}, not by examples/pretrain_tiny.py; give a base model")
    return {
        "tokens": kept["steps"] * kept["packing.rows"] * kept["packing.length"],
        "prior_chain": kept["mix.prior_chain"],
        "prior_functions": kept["mix.prior_functions"],
        "parameters": made.facts["parameters"],
        "seed": kept["seed"],
    }


def _accuracy(source: str, settings: AblationSettings) -> Iterator[Row]:
    study = read_study([f"one:{source}"], settings.models)
    for functions in FUNCTION_SETS:
        for model in settings.models:
            yield {"functions": functions, "model": model, **_share(study, model, functions, settings.level)}


def _share(study: Study, model: str, functions: str, level: int) -> Row:
    group = study.group(functions, level)
    if group is None:
        raise UserError(f"{study.seeds[0].folder}: has no level {level} on {functions} functions; evaluate it")
    return {**figures_of(study.share(model, group), "accuracy"), "n_problems": study.size(group)}


def _header(rows: Sequence[Row]) -> list[str]:
    return [*HEADER, *(f"{one['functions']}: {one['model']}" for one in rows[0]["accuracy"])]


def _cells(row: Row) -> list[str]:
    return [
        row["variant"],
        f"{row['tokens'] / 1e6:.1f}",
        f"{100 * row['prior_chain']:.0f}",
        str(row["prior_functions"]),
        f"{row['parameters']:,}",
        *map(share_cell, row["accuracy"]),
    ]


def _print(rows: Sequence[Row]) -> None:
    table = new_table()
    for number, name in enumerate(_header(rows)):
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*_cells(row))
    new_console().print(table)
