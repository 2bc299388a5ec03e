"""The figures that steps write beside their tables: a study's accuracy, one seed's failure modes, a scaling study."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compositionality.analysis.scaling import STEP as FIT_STEP
from compositionality.data.artefact import Recipe, exclusive, is_to_be_checked, verify, write_derived
from compositionality.data.json_files import NUMBER, Shape, check_shape, read_json_object
from compositionality.errors import UserError
from compositionality.evaluate.failures import by_function, by_pair, class_shares, read_labels
from compositionality.evaluate.naming import named_paths, with_run_names
from compositionality.evaluate.results import LABELS, read_results
from compositionality.evaluate.seeds import summary_of, table_files
from compositionality.ranges import REQUIRED
from compositionality.report.theme import arm_styles, rendered, renderer_versions, spec_of
from compositionality.types import Metric

if TYPE_CHECKING:
    import altair as alt

AGAIN = "run examples/fit_scaling.py again with --force"
FORMATS = (".png", ".svg", ".pdf")
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
    """Settings of ``draw_accuracy``.

    ``arms``: title and colour of arms, ``arms={my-arm: {title: My arm, colour: "#0072B2"}}``.
    """

    inputs: list[str] = REQUIRED  # NAME:FOLDER of examples/evaluate.py, one for each seed
    output: Path = REQUIRED  # the figure: .png, .svg or .pdf; without an ending .png
    title: str = ""  # above the figure
    models: list[str] = field(default_factory=list)  # these only, in this order; empty: all
    arms: dict[str, dict[str, str]] = field(default_factory=dict)  # title and colour of arms that no study names
    force: bool = False  # replace a result that was made from something else


def draw_accuracy(settings: FigureSettings) -> Path:
    """Write the figure with a manifest. UserError if the results are altered or have no levels."""
    from compositionality.report.figures import accuracy, accuracy_title

    results = read_results(settings.inputs, settings.models)
    rows, composed = by_level(summary_of(results))
    if not rows:
        raise UserError(f"{settings.inputs[0]}: holds no accuracy by level")
    styles = arm_styles(results.arms, settings.arms)
    looks = {name: asdict(style) for name, style in styles.items()}
    recipe = Recipe("draw_figure", {"title": settings.title, "arms": looks}, table_files(results))
    title = accuracy_title(rows, settings.title)
    return write_figure(
        settings.output, lambda: accuracy(rows, composed, styles).properties(title=title), recipe, force=settings.force
    )


def check(settings: FigureSettings) -> None:
    """Refuse in a dry run names of inputs that cannot be, and results, where they exist, that lack the models."""
    paths = named_paths("inputs", with_run_names(settings.inputs)).values()
    if is_to_be_checked(*paths, dry=True):
        read_results(settings.inputs, settings.models)


def by_level(summary: Row) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of accuracy and those of composed responses that a figure by level shows."""
    accuracy, composed = (
        [row for row in summary[part] if row["level"] and row[part] is not None] for part in ("accuracy", "composed")
    )
    return accuracy, composed


def draw_failures(folder: Path, *, force: bool = False) -> list[Path]:
    """Write failure_modes.png and, where functions are known, functions.png into ``folder``, which has the labels."""
    from compositionality.report import figures

    results, labels = read_results([f"run:{folder}"], metric=Metric.FAILURES), read_labels(folder / LABELS)
    styles = arm_styles(results.arms)
    functions, pairs = (of(labels).to_dict("records") for of in (by_function, by_pair))
    looks = {name: asdict(style) for name, style in styles.items()}
    recipe = Recipe("draw_failures", {"arms": looks}, {"labels": folder / LABELS})
    charts = {"failure_modes": lambda: figures.failure_modes(class_shares(results), styles)}
    if functions:
        charts["functions"] = lambda: figures.heat_maps(functions, pairs, styles)
    return [write_figure(folder / name, chart, recipe, force=force) for name, chart in charts.items()]


@dataclass
class ScalingFigureSettings:
    """Settings of ``draw_scaling``."""

    fits: Path = REQUIRED  # scaling.json of fit_scaling
    output: Path = REQUIRED  # the figure: .png, .svg or .pdf; without an ending .png
    fitted: str = ""  # law of the fit; empty: that with the least AIC and no parameter on a bound
    predicting: str = ""  # law of the predictions; empty: that with the least error on the most that was left out
    force: bool = False  # replace a result that was made from something else


def draw_scaling(settings: ScalingFigureSettings) -> Path:
    """Write the figure with a manifest. UserError for another file, or a law that it lacks."""
    from compositionality.report.scaling_figures import scaling

    content, fitted, predicting = chosen_laws(settings)
    recipe = Recipe("draw_scaling", {"fitted": fitted["law"], "predicting": predicting["law"]}, {"fits": settings.fits})
    return write_figure(settings.output, lambda: scaling(content, fitted, predicting), recipe, force=settings.force)


def check_scaling(settings: ScalingFigureSettings) -> None:
    """Refuse in a dry run fits, if they exist, that lack the laws."""
    if is_to_be_checked(settings.fits, dry=True):
        chosen_laws(settings)


def chosen_laws(settings: ScalingFigureSettings) -> tuple[dict[str, Any], Row, Row]:
    """Return the content of scaling.json, the law to show fitted, the law to show predicting."""
    path = settings.fits
    if verify(path).step != FIT_STEP:
        raise UserError(f"{path}: was not made by examples/fit_scaling.py")
    content = read_json_object(path, AGAIN)
    check_shape(content, SCALING_SHAPE, path, AGAIN)
    laws = {law["law"]: law for law in content["laws"] if law["curves"]}
    if not laws:
        raise UserError(f"{path}: no law could be fitted")
    for name in filter(None, (settings.fitted, settings.predicting)):
        if name not in laws:
            raise UserError(f"{name}: no such law was fitted; there are: {', '.join(laws)}")
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


def write_figure(output: Path, chart: "Callable[[], alt.TopLevelMixin]", recipe: Recipe, *, force: bool) -> Path:
    """Write a chart in the format that ``output`` ends in (none: .png), unless it exists; return its path."""
    path = output if output.suffix in FORMATS else output.with_name(f"{output.name}.png")
    ending = path.suffix[1:]
    made = Recipe(recipe.step, {**recipe.settings, "format": ending, **renderer_versions()}, recipe.inputs)
    with exclusive(path):
        write_derived(path, made, lambda partial: partial.write_bytes(rendered(spec_of(chart()), ending)), force=force)
    print(path)
    return path
