"""The figures that steps write beside their tables: accuracy by level of a study, failure modes of one seed."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compositionality.data.artefact import Recipe, exclusive, is_to_be_checked, verify, write_derived
from compositionality.data.json_files import NUMBER, Shape, check_shape, read_json_object
from compositionality.errors import UserError
from compositionality.evaluate.failures.summary import by_function, by_pair, class_shares, read_labels
from compositionality.evaluate.results import LABELS, read_results
from compositionality.evaluate.seeds import STEP as SUMMARY_STEP
from compositionality.ranges import REQUIRED
from compositionality.report import failure_figures, figures
from compositionality.report.drawing import FORMATS, save
from compositionality.report.styles import Styles, arm_styles
from compositionality.types import Metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHARE: Shape = {
    "model": str,
    "group": str,
    "level": int,
    "data_source": str,
    "low": NUMBER | None,
    "high": NUMBER | None,
    "values": list | None,
    "interval": str | None,
    "n_problems": int,
    "n_seeds": int,
}
SUMMARY_SHAPE: Shape = {
    "models": list,
    "accuracy": {**_SHARE, "accuracy": NUMBER | None},
    "composed": {**_SHARE, "composed": NUMBER | None},
    "training": dict,
}
"""What a figure reads of a seeds.json."""
STEP, FAILURE_STEP = "draw_figure", "draw_failures"


@dataclass
class FigureSettings:
    """Settings of ``draw_accuracy``: ``seeds`` is a seeds.json, ``output`` a path without suffix.

    ``models``: only these, in this order. ``arms``: title and colour of arms,
    ``arms={my-arm: {title: My arm, colour: "#0072B2"}}``.
    """

    seeds: Path = REQUIRED  # seeds.json, or a summary of failures
    output: Path = REQUIRED  # path without suffix
    title: str = ""  # above the figure
    models: list[str] = field(default_factory=list)  # these only, in this order; empty: all
    arms: dict[str, dict[str, str]] = field(default_factory=dict)  # title and colour of arms that no study names
    force: bool = False  # replace a result that was made from something else


def draw_accuracy(settings: FigureSettings) -> list[Path]:
    """Write ``output``.svg and .png, each with a manifest. UserError if the summary is altered or has no levels."""
    summary, models = chosen(settings)
    styles = arm_styles(models, settings.arms)
    rows, composed = ([row for row in of if row["model"] in models] for of in by_level(summary))
    title = figures.accuracy_title(rows, settings.title)
    kept = {"models": models, "title": settings.title, "arms": _as_data(styles)}
    recipe = Recipe(STEP, kept, {"seeds": settings.seeds})
    drawing = partial(figures.accuracy, rows, composed, styles, title)
    return write_figure(settings.output, drawing, FORMATS[:2], recipe, force=settings.force)


def check(settings: FigureSettings) -> None:
    """A dry run's: the summary, if it is there, has the models."""
    if is_to_be_checked(settings.seeds, dry=True):
        chosen(settings)


def chosen(settings: FigureSettings) -> tuple[dict[str, Any], list[str]]:
    """The summary and the models to draw. UserError for a model that it does not have."""
    summary = read_summary(settings.seeds)
    models = settings.models or summary["models"]
    unknown = [model for model in models if model not in summary["models"]]
    if unknown:
        raise UserError(f"models: {', '.join(unknown)} unknown; the summary has {', '.join(summary['models'])}")
    return summary, models


def draw_failures(folder: Path, *, force: bool = False) -> list[Path]:
    """Write failure_modes.{svg,png,pdf} and functions.{svg,png,pdf} into ``folder``, which has the labels."""
    results = read_results([f"run:{folder}"], metric=Metric.FAILURES)
    labels = read_labels(folder / LABELS)
    functions, pairs = (of(labels).to_dict("records") for of in (by_function, by_pair))
    styles = arm_styles(results.arms)
    recipe = Recipe(FAILURE_STEP, {"arms": _as_data(styles)}, {"labels": folder / LABELS})
    drawing = partial(failure_figures.shares, class_shares(results), styles)
    paths = write_figure(folder / "failure_modes", drawing, FORMATS, recipe, force=force)
    if functions:
        drawing = partial(failure_figures.heat_maps, functions, pairs, styles)
        paths += write_figure(folder / "functions", drawing, FORMATS, recipe, force=force)
    return paths


def read_summary(path: Path) -> dict[str, Any]:
    """A seeds.json. UserError if it is missing, altered, another step's or without accuracy by level."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with examples/summarise_seeds.py")
    if verify(path).step != SUMMARY_STEP:
        raise UserError(f"{path}: was not made by examples/summarise_seeds.py")
    fix = "run examples/summarise_seeds.py again with --force"
    summary = read_json_object(path, fix)
    check_shape(summary, SUMMARY_SHAPE, path, fix)
    if not by_level(summary)[0]:
        raise UserError(f"{path}: holds no accuracy by level")
    return summary


def by_level(summary: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of accuracy and those of composed responses that a figure by level shows."""
    accuracy, composed = (
        [row for row in summary[part] if row["level"] and row[part] is not None] for part in ("accuracy", "composed")
    )
    return accuracy, composed


def _as_data(styles: Styles) -> dict[str, Any]:
    return {name: asdict(style) for name, style in styles.items()}


def write_figure(
    output: Path, drawing: "Callable[[], Figure]", formats: tuple[str, ...], recipe: Recipe, *, force: bool
) -> list[Path]:
    """The figure in each format, unless it is there already. Drawn once for all."""
    from matplotlib import __version__

    drawn = cache(partial(save, drawing, formats))
    paths = [output.with_name(f"{output.name}.{ending}") for ending in formats]
    with exclusive(output):
        for path, ending in zip(paths, formats, strict=True):
            settings = {**recipe.settings, "format": ending, "matplotlib": __version__}
            body = partial(_save, drawn, ending)
            write_derived(path, Recipe(recipe.step, settings, recipe.inputs), body, force=force)
    print(f"{output}.{{{','.join(formats)}}}")
    return paths


def _save(drawn: Callable[[], dict[str, bytes]], ending: str, path: Path) -> None:
    path.write_bytes(drawn()[ending])
