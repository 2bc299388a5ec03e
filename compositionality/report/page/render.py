"""The page: the template filled in. Every word from a file is escaped; nothing outside the page is asked for."""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from compositionality.data.artefact import code_version
from compositionality.evaluate.tables import TITLES
from compositionality.report.page import claims, facts, figures
from compositionality.report.page.drawing import Drawn, inline
from compositionality.report.page.inputs import CLAIMS, PASS_AT_K, SEEDS, TIMES, Inputs
from compositionality.report.record import versions

FOLDER = Path(__file__).parent
KINDS = (".py", ".j2", ".css", ".js")
"""Endings of the report's source files."""
TABLES = {"functions": "failures_by_function"}
"""The table behind a figure, where it is not called as the figure is."""


def page(inputs: Inputs, drawn: Sequence[Drawn | figures.Missing], samples: Sequence[dict[str, Any]]) -> str:
    """The HTML text."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (FOLDER / "page.js").read_text()
    everything = tuple(inputs.files)
    claims_known, table = CLAIMS in inputs, claims.claims_of(inputs)
    scale = claims.scale_of([*table["claims"], *table["controls"]])
    return environment.get_template("page.html.j2").render(
        title=f"Compositionality: {inputs.files[SEEDS].resolve().parents[1].name}",
        style=Markup((FOLDER / "page.css").read_text()),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        headline=facts.headline(inputs),
        stages=[row for name in TIMES for row in facts.stages(inputs, name)],
        claims=claims.shown(table["claims"], scale),
        controls=claims.shown(table["controls"], scale),
        scale=f"{100 * scale:.0f}",
        tally=claims.tally(table["claims"]),
        n_seeds=len(inputs.seeds),
        notes=table["notes"],
        claims_stamp=figures.stamp(inputs, (CLAIMS,)) if claims_known else "",
        figures=[_shown(inputs, figure) for figure in drawn],
        crossovers=figures.crossovers(inputs.json(PASS_AT_K)) if PASS_AT_K in inputs else [],
        samples=list(samples),
        function_titles=TITLES,
        problems=facts.problem_rows(inputs),
        audit=facts.audit_rows(inputs),
        configs=facts.configs(inputs),
        versions=versions(),
        stamp=figures.stamp(inputs, everything),
        code=code_version(),
        n_inputs=len(everything),
    )


def _shown(inputs: Inputs, figure: Drawn | figures.Missing) -> dict[str, Any]:
    if isinstance(figure, figures.Missing):
        return {"name": figure.name, "title": figure.title, "command": figure.command, "svg": None}
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "svg": Markup(inline(figure.files["svg"], figure.name, recolour=figure.ours)),
        "ours": figure.ours,
        "files": [f"figures/{figure.name}.{ending}" for ending in figure.files],
        "table": f"tables/{TABLES.get(figure.name, figure.name)}.csv",
        "stamp": figures.stamp(inputs, figure.inputs),
    }
