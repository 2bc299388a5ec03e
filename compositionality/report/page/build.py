"""The report as one artefact: index.html, figures/, tables/. It follows its inputs; ``check`` refuses a stale one."""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from compositionality.data import artefact
from compositionality.data.artefact import Recipe
from compositionality.errors import UserError
from compositionality.evaluate.summary import HELDOUT
from compositionality.evaluate.table import RESULTS
from compositionality.evaluate.tables import csv_text
from compositionality.report.dashboard import send_result, used_by
from compositionality.report.draw import with_level
from compositionality.report.page import content
from compositionality.report.page.claims import claims_section
from compositionality.report.page.figure import WORDS, PageFigure, kept_words, styles_of
from compositionality.report.page.figures import missing_parts, page_figures
from compositionality.report.page.inputs import (
    AUDIT,
    FINDING,
    MAIN,
    PAPERS,
    QUESTIONS,
    TIMES,
    Inputs,
    ReportSettings,
    find_inputs,
)
from compositionality.report.page.problems import explorer, run_points, samples, validation, worked_problem
from compositionality.report.theme import arm_styles, group_title, rendered, renderer_versions, study_styles, unique
from compositionality.study.runner import versions

STEP = "report"
PAGE = "index.html"
FOLDER = Path(__file__).parent
SOURCES = FOLDER.parent
KINDS = (".py", ".yaml", ".j2", ".css", ".js")
"""Suffixes of the report's source files."""
Subject = content.HeadlineComparison | None
ReportFile = tuple[bytes, Sequence[str]]
"""A file of the report, and the names of the inputs that it was made from."""


def report(settings: ReportSettings) -> Path:
    """Write the report, or with ``check`` refuse one that is stale or altered; the path of the page.

    UserError if the study was not evaluated, or an input is altered or older than what it was made from.
    """
    inputs = find_inputs(settings)
    recipe = Recipe(STEP, _identity(settings), inputs.files)
    output = settings.output
    page = output / PAGE
    if settings.check:
        check(output, recipe)
        print(f"{page}: made from exactly these {len(inputs.files)} inputs")
        return page

    def write(folder: Path) -> dict[str, Any]:
        inputs.read()
        files = files_of(inputs, settings.figures)
        for name, (written, _) in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(written)
        return {"made_from": {name: list(names) for name, (_, names) in files.items()}}

    artefact.make(output, recipe, write, force=settings.force, follows=True)
    send_result(output, asdict(settings), used_by(inputs))
    print(page)
    return page


def check_inputs(settings: ReportSettings) -> None:
    """Refuse in a dry run what somebody else made at the output; read the inputs, if the study has been evaluated."""
    artefact.check_maker(settings.output, STEP, force=settings.force)
    folders = [settings.study / seed for seed in settings.seeds] or settings.study.glob("seed*")
    tables = [table for seed in folders if (table := seed / settings.section / RESULTS).exists() or settings.seeds]
    if tables and artefact.is_to_be_checked(*tables, dry=True):
        find_inputs(settings).read()


def check(output: Path, recipe: Recipe) -> None:
    """UserError that names the first altered file, or the first stale one and the input that changed."""
    manifest = artefact.verify(output)
    if manifest.step != STEP:
        raise UserError(f"{output}: was made by step {manifest.step!r}, not {STEP!r}")
    _, settings, inputs = recipe.identity()
    again = "run examples/report.py again"
    for name in sorted(manifest.inputs.keys() | inputs.keys()):
        if manifest.inputs.get(name) != inputs.get(name):
            change = (
                "is gone" if name not in inputs else "is new" if name not in manifest.inputs else "has changed since"
            )
            stale = sorted(file for file, sources in manifest.facts["made_from"].items() if name in sources) or [PAGE]
            place = recipe.inputs.get(name, name)
            raise UserError(f"{output / stale[0]}: stale, {place} {change} ({len(stale)} files in all); {again}")
    if manifest.settings != json.loads(settings):
        raise UserError(
            f"{output / PAGE}: stale, made by another version of the report's code ({manifest.code}); {again}"
        )


def files_of(inputs: Inputs, ending: str) -> dict[str, ReportFile]:
    """Return every file of the report by its path."""
    subject, own = content.comparison(inputs), inputs.starting(f"{inputs.own}/")
    figures = content.main_first(inputs, subject, page_figures(inputs))
    files: dict[str, ReportFile] = {}
    if subject:
        files[FINDING] = (
            content.finding_text(inputs, subject, figures[0]).encode(),
            sorted({*own, *figures[0].inputs}),
        )
    for figure in figures:
        drawn = rendered(figure.spec, ending, inputs.stamp(figure.inputs))
        files[f"figures/{figure.name}.{ending}"] = (drawn, figure.inputs)
    reports = inputs.summary["training"].items()
    trained = [{"seed": seed, "arm": arm, **report} for seed, arms in reports for arm, report in arms.items()]
    tables = {figure.name: (figure.rows, figure.inputs) for figure in figures} | {
        "training_runs": (trained, own),
        "data": (content.audit_rows(inputs), [AUDIT]),
        "settings": (content.settings_rows(inputs), [*own, *inputs.starting("runs/")]),
        "stages": (content.stages(inputs), [TIMES]),
    }
    unfolding = [(table, figure.inputs) for figure in figures for table in figure.details if "name" in table]
    tables |= {table["name"]: (table["frame"], sources) for table, sources in unfolding}
    texts = {name: text for name, (rows, _) in tables.items() if (text := csv_text(rows)).strip()}
    files[PAGE] = render(inputs, subject, figures, ending, texts).encode(), [*inputs.files]
    return files | {f"tables/{name}.csv": (text.encode(), tables[name][1]) for name, text in texts.items()}


def render(
    inputs: Inputs, subject: Subject, figures: Sequence[PageFigure], ending: str, tables: Mapping[str, str]
) -> str:
    """Return the template filled in. Every text from a file is escaped; the page requests nothing from outside."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script, vega = (FOLDER / "page.js").read_text(), vega_bundle()
    explored, specs = explorer(inputs, figures), {figure.name: figure.spec for figure in figures}
    if explored:  # the page draws them of the replicate that is chosen
        spec = specs[dots := explored["figure"]]
        specs[dots] = {**spec, "datasets": {name: [] for name in spec["datasets"]}}
    points = run_points(inputs)
    parts = dict[str, Any](runs=validation(inputs), samples=samples(inputs), audit=content.audit_table(inputs))
    problem = worked_problem(inputs, subject) if subject else {}
    groups = unique([*parts["samples"], *inputs.summary["accuracy"]], "group")
    models = {name: style.title for name, style in styles_of(inputs, inputs.summary["models"]).items()}
    return environment.get_template("page.html.j2").render(
        title=f"Compositionality: {inputs.settings.study.resolve().name}",
        paper=PAPERS[inputs.settings.section],
        question=QUESTIONS[inputs.settings.section],
        style=Markup((FOLDER / "page.css").read_text()),
        script=Markup(script),
        script_hashes=[base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, vega)],
        vega=packed(vega),
        specs=packed(json.dumps(specs)),
        tables=tables,
        tables_packed=packed(json.dumps(tables)),
        explored=explored,
        explorer=packed(json.dumps({**explored, "runs": parts["runs"], "scaling": points})),
        points=points,
        **parts,
        finding=content.finding(inputs, subject, figures[0] if figures else None),
        main=figures[0].name if subject else "",
        problem_first=inputs.settings.section not in MAIN and problem.get("answers"),
        problem=problem,
        figures=figures,
        stamps={figure.name: inputs.stamp(figure.inputs) for figure in figures},
        ending=ending,
        setup=WORDS["headline"]["setup"] if subject and subject.group == HELDOUT else "",
        sampled=kept_words(inputs),
        has_answers=bool(inputs.starting("rollouts/")),
        missing=missing_parts(inputs, [*specs, *(name for name, part in parts.items() if part)]),
        study_line=content.study_line(inputs),
        has_chains=bool(with_level(inputs.summary, "handed_on")),
        facts=content.facts(inputs),
        training=content.training_table(inputs),
        **claims_section(inputs),
        titles={"model": models, "group": {group: group_title(group) for group in groups}},
        versions=versions(),
        stamp=inputs.stamp([*inputs.files]),
        n_inputs=len(inputs.files),
    )


@cache
def vega_bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed (with the interpreter that a page without eval needs) as one script."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


def packed(text: str) -> str:
    """Return a text as the page unpacks it: gzip in base64, less than half of the library's size."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _identity(settings: ReportSettings) -> dict[str, Any]:
    """Return what decides the report besides its inputs: the arms' looks, its code, the packages that draw."""
    sources = [path for path in SOURCES.rglob("*") if path.suffix in KINDS]
    code = {str(path.relative_to(SOURCES)): artefact.file_hash(path) for path in sources}
    styles = arm_styles([*study_styles(), *settings.arms], settings.arms)
    arms = {name: asdict(style) for name, style in styles.items()}
    looks = {"arms": arms, "section": settings.section, "figures": settings.figures, "models": settings.models}
    return {"report": artefact.config_hash(code), **renderer_versions(), **looks}
