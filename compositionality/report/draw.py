"""``examples/draw_figure.py``: a figure of its own, of a study's accuracy, of its failure modes, or of scaling laws."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from compositionality.analysis.scaling import STEP as FIT_STEP
from compositionality.data.artefact import Recipe, check_maker, hidden_sibling, is_to_be_checked, make, verify
from compositionality.data.json_files import NUMBER, Shape, read_json_object
from compositionality.errors import UserError
from compositionality.evaluate.failures import class_shares, read_labels
from compositionality.evaluate.results import LABELS, Results, existing, read_results
from compositionality.evaluate.seeds import summary_of, table_files
from compositionality.evaluate.types import Metric
from compositionality.ranges import REQUIRED, OneOf
from compositionality.report.theme import Styles, arm_styles, rendered, renderer_versions, spec_of
from compositionality.validation import check_ranges, choices

if TYPE_CHECKING:
    import altair as alt

AGAIN = "run examples/fit_scaling.py again with --force"
STEP = "draw_figure"
FORMATS = (".png", ".svg", ".pdf")
SCALING = "scaling"
METRICS = {
    "accuracy": Metric.ACCURACY,
    "checkpoints": Metric.ACCURACY,
    "failure_modes": Metric.FAILURES,
    "functions": Metric.FAILURES,
}
"""Figures of evaluations, and what these must have measured."""
SCALING_SHAPE: Shape = {
    "resource": str,
    "sizes": list,
    "laws": {
        **{"law": str, "on_bound": list, "held_out_on_bound": list, "parameters": {"name": str, "value": NUMBER}},
        "curves": {"size": NUMBER, "resource": NUMBER, "loss": NUMBER, "predicted": NUMBER},
        "held_out": {"region": str, "error": NUMBER, "curves": list},
    },
}
Row = Mapping[str, Any]


@dataclass
class FigureSettings:
    """Settings of ``draw_figure``.

    ``arms``: title and colour of arms, ``arms={my-arm: {title: My arm, colour: "#0072B2"}}``.
    """

    inputs: list[str] = REQUIRED  # NAME:FOLDER of an evaluation, one for each seed; figure=scaling: a scaling.json
    output: Path = REQUIRED  # the figure: .png, .svg or .pdf; without an ending .png
    figure: Annotated[str, OneOf((*METRICS, SCALING))] = "accuracy"  # what to draw
    title: str = ""  # above the figure
    models: list[str] = field(default_factory=list)  # these only, in this order; empty: all
    arms: dict[str, dict[str, str]] = field(default_factory=dict)  # title and colour of arms that no study names
    fitted: str = ""  # law of the fit; empty: that with the least AIC and no parameter on a bound
    predicting: str = ""  # law of the predictions; empty: that with the least error on the most that was left out
    force: bool = False  # replace a result that was made from something else


def draw_figure(settings: FigureSettings) -> Path:
    """Write the figure with a manifest. UserError for results that are altered, or hold nothing for this figure."""
    check_ranges(settings)
    path = file_of(settings.output)
    if settings.figure == SCALING:
        from compositionality.report.scaling_figures import scaling

        content, fitted, predicting = chosen_laws(settings)
        sources, chart = {"fits": Path(settings.inputs[0])}, scaling(content, fitted, predicting)
        looks: dict[str, Any] = {"fitted": fitted["law"], "predicting": predicting["law"]}
    else:
        results = read_results(settings.inputs, settings.models, METRICS[settings.figure])
        if unknown := [name for name in settings.arms if name not in results.arms]:
            raise UserError(f"arms: {unknown[0]} is not drawn; there are {', '.join(results.arms)}")
        styles = arm_styles(results.arms, settings.arms)
        sources, chart = table_files(results), chart_of(settings, results, styles)
        looks = {"arms": {name: asdict(style) for name, style in styles.items()}}
    ending = path.suffix[1:]
    made = {"figure": settings.figure, "title": settings.title, **looks, "format": ending, **renderer_versions()}
    spec, recipe = spec_of(chart), Recipe(STEP, made, sources)
    make(path, recipe, lambda partial: partial.write_bytes(rendered(spec, ending)), force=settings.force, follows=True)
    print(path)
    return path


def file_of(output: Path) -> Path:
    """Return the file to draw: a .png if its name has no ending (of three or four letters). UserError for another."""
    if output.suffix not in FORMATS and re.fullmatch(r"\.[A-Za-z]{3,4}", output.suffix):
        raise UserError(f"output={output}: must end in {', '.join(FORMATS)}, or in nothing")
    hidden_sibling(output, "lock")  # refuses a path without a name
    return output if output.suffix in FORMATS else output.with_name(f"{output.name}.png")


def chart_of(settings: FigureSettings, results: Results, styles: Styles) -> "alt.TopLevelMixin":
    """Return the chart of evaluations. UserError if they hold no row for it."""
    from compositionality.report import figures, gold_figures

    where = settings.inputs[0]
    if settings.figure == "checkpoints":
        rows = gold_figures.checkpoint_rows(results)
        if rows.empty:
            raise UserError(f"{where}: needs gold_log_probs=true and models=[NAME:RUN/steps], the checkpoints of a run")
        return gold_figures.checkpoints(rows)
    if settings.figure == "failure_modes":
        return figures.failure_modes([row for row in class_shares(results) if row["share"] is not None], styles)
    if settings.figure == "functions":
        tables = [path for replicate in results.replicates for path in replicate.tables.values()]
        rows = gold_figures.function_rows([read_labels(path.with_name(LABELS)) for path in tables])
        if rows.empty:
            raise UserError(f"{where}: its labels name no function")
        return gold_figures.functions(rows, styles)
    summary = summary_of(results)
    accuracies, handed_on = with_level(summary, "accuracy"), with_level(summary, "handed_on")
    if not accuracies:
        raise UserError(f"{where}: holds no accuracy by level")
    title = figures.accuracy_title(accuracies, settings.title)
    return figures.accuracy(accuracies, handed_on, styles).properties(title=title)


def check(settings: FigureSettings) -> None:
    """Refuse in a dry run names of inputs that cannot be, and what exists of inputs and output as a start would."""
    check_ranges(settings)
    check_maker(file_of(settings.output), STEP, force=settings.force)
    if settings.figure == SCALING:
        if is_to_be_checked(*settings.inputs, dry=True):
            chosen_laws(settings)
    elif present := existing(settings.inputs):
        read_results(present, settings.models, METRICS[settings.figure])


def with_level(summary: Row, measure: str) -> list[dict[str, Any]]:
    """Return the rows of ``accuracy`` or ``handed_on`` that a figure by level shows."""
    return [row for row in summary[measure] if row["level"] and row[measure] is not None]


def chosen_laws(settings: FigureSettings) -> tuple[dict[str, Any], Row, Row]:
    """Return the content of scaling.json, the law to show fitted, the law to show predicting."""
    if len(settings.inputs) != 1:
        raise UserError(f"inputs: {len(settings.inputs)} of them; give figure=scaling one scaling.json")
    path = Path(settings.inputs[0])
    if verify(path).step != FIT_STEP:
        raise UserError(f"{path}: was not made by examples/fit_scaling.py")
    content = read_json_object(path, AGAIN, SCALING_SHAPE)
    laws = {law["law"]: law for law in content["laws"] if law["curves"]}
    if not laws:
        raise UserError(f"{path}: no law could be fitted")
    for name in filter(None, (settings.fitted, settings.predicting)):
        if name not in laws:
            raise UserError(f"{name}: no such law was fitted; {choices(name, laws)}")
    fitted, predicting = best_laws(content["laws"])
    return content, laws.get(settings.fitted, fitted), laws.get(settings.predicting, predicting)


def best_laws(rows: Sequence[Row]) -> tuple[Row, Row]:
    """Return the law with the least AIC and no parameter on a bound, and the one that predicts best.

    That is, of those that predict most regions without a parameter on a bound, the least error in the last.
    """
    laws = [law for law in rows if law["curves"]]
    determined = [law for law in laws if not law["on_bound"]] or laws
    most = max(len(law["held_out"]) for law in laws)
    candidates = [law for law in laws if len(law["held_out"]) == most]
    candidates = [law for law in candidates if not law["held_out_on_bound"]] or candidates
    best = min(candidates, key=lambda law: float(law["held_out"][-1]["error"]) if law["held_out"] else 0.0)
    return min(determined, key=lambda law: float(law["aic"])), best
