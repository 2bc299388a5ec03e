"""The report as one artefact: index.html, figures/, tables/. It follows its inputs; ``check`` refuses a stale one."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.data.artefact import (
    Manifest,
    Recipe,
    config_hash,
    exclusive,
    file_hash,
    is_done,
    new_artefact,
    read_manifest,
    verify,
)
from compositionality.errors import UserError
from compositionality.report.page import claims, facts, figures, render
from compositionality.report.page.drawing import Drawn
from compositionality.report.page.inputs import CLAIMS, Inputs, find_inputs
from compositionality.report.page.runs import budget_rows, training_rows
from compositionality.report.page.samples import samples
from compositionality.report.page.settings import ReportSettings
from compositionality.report.page.tables import csv_of, tables_of

STEP = "report"
PAGE = "index.html"
SOURCES = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Product:
    """A file of the report and the inputs it was made from."""

    content: bytes
    inputs: tuple[str, ...]


def report(settings: ReportSettings) -> Path:
    """Write the report, or with ``check`` refuse one that is stale or altered. The path of the page."""
    inputs = find_inputs(settings)
    recipe = Recipe(STEP, _identity(), inputs.files)
    output = settings.output
    page = output / PAGE
    if settings.check:
        check(output, recipe)
        print(f"{page}: made from exactly these {len(inputs.files)} inputs")
        return page
    with exclusive(output):
        old = read_manifest(output) if output.is_dir() else None
        if not is_done(
            output, recipe, force=settings.force or (old is not None and old.step == STEP and _changed(old, recipe))
        ):
            _write(output, recipe, products(inputs))
    print(page)
    return page


def check(output: Path, recipe: Recipe) -> None:
    """UserError that names the first file that is altered, or stale and the input that made it so."""
    manifest = verify(output)
    if manifest.step != STEP:
        raise UserError(f"{output}: was made by step {manifest.step!r}, not {STEP!r}")
    _, settings, inputs = recipe.identity()
    again = "run examples/report.py again"
    for name in sorted(manifest.inputs.keys() | inputs.keys()):
        if manifest.inputs.get(name) != inputs.get(name):
            what = (
                "has changed since"
                if name in manifest.inputs and name in inputs
                else "is new"
                if name in inputs
                else "is gone"
            )
            stale = sorted(file for file, sources in manifest.facts["made_from"].items() if name in sources) or [PAGE]
            place = recipe.inputs.get(name, name)
            raise UserError(f"{output / stale[0]}: stale, {place} {what} ({len(stale)} files in all); {again}")
    if manifest.settings != json.loads(settings):
        raise UserError(
            f"{output / PAGE}: stale, made by another version of the report's code ({manifest.code}); {again}"
        )


def products(inputs: Inputs) -> dict[str, Product]:
    """Every file of the report by its path."""
    drawn = list(figures.draw_figures(inputs))
    found = {name: Product(*table) for name, table in _tables(inputs)}
    for figure in drawn:
        if isinstance(figure, Drawn):
            found |= {
                f"figures/{figure.name}.{end}": Product(data, figure.inputs) for end, data in figure.files.items()
            }
    everything = tuple(inputs.files)
    return {PAGE: Product(render.page(inputs, drawn, samples(inputs)).encode(), everything), **found}


def _tables(inputs: Inputs) -> Iterable[tuple[str, tuple[bytes, tuple[str, ...]]]]:
    metrics = tuple(inputs.starting("runs/"))
    made: dict[str, tuple[bytes, tuple[str, ...]]] = tables_of(inputs)
    if CLAIMS in inputs:
        made["claims"] = (csv_of(claims.table(claims.claims_of(inputs)["claims"])), (CLAIMS,))
    for name, rows, sources in (
        ("training", training_rows(inputs), metrics),
        ("budget", budget_rows(inputs), (*metrics, *inputs.starting("rft/"))),
        ("problems", facts.problem_rows(inputs), tuple(inputs.starting("data/"))),
    ):
        if rows:
            made[name] = (csv_of(rows), sources)
    return ((f"tables/{name}.csv", table) for name, table in made.items())


def _write(output: Path, recipe: Recipe, files: Mapping[str, Product]) -> None:
    made_from = {name: list(product.inputs) for name, product in files.items()}
    with new_artefact(output, recipe, {"made_from": made_from}) as partial:
        for name, product in files.items():
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(product.content)


def _identity() -> dict[str, Any]:
    """What besides its inputs decides the report: the code that writes it, and matplotlib."""
    from matplotlib import __version__

    code = {
        str(path.relative_to(SOURCES)): file_hash(path) for path in SOURCES.rglob("*") if path.suffix in render.KINDS
    }
    return {"report": config_hash(code), "matplotlib": __version__}


def _changed(old: Manifest, recipe: Recipe) -> bool:
    """Nothing is lost by writing a report again."""
    step, settings, inputs = recipe.identity()
    return (old.step, old.settings, old.inputs) != (step, json.loads(settings), inputs)
