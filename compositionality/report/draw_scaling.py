"""``examples/draw_scaling.py``: the figure of a scaling.json."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from compositionality.analysis.scaling import STEP as FIT_STEP
from compositionality.data.artefact import Recipe, is_to_be_checked, verify
from compositionality.data.json_files import NUMBER, Shape, check_shape, read_json_object
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED
from compositionality.report.draw import write_figure
from compositionality.report.drawing import FORMATS
from compositionality.report.scaling_figures import Row, scaling

STEP = "draw_scaling"
AGAIN = "run examples/fit_scaling.py again with --force"
SHAPE: Shape = {
    "resource": str,
    "sizes": list,
    "laws": {
        "law": str,
        "on_bound": list,
        "held_out_on_bound": list,
        "curves": {"size": NUMBER, "resource": NUMBER, "loss": NUMBER, "predicted": NUMBER},
        "held_out": {"region": str, "error": NUMBER, "curves": list},
        "parameters": {"name": str, "value": NUMBER},
    },
}


@dataclass
class ScalingFigureSettings:
    """Settings of ``draw_scaling``."""

    fits: Path = REQUIRED  # scaling.json of fit_scaling
    output: Path = REQUIRED  # path without suffix
    fitted: str = ""  # law of the fit; empty: that with the least AIC and no parameter on a bound
    predicting: str = ""  # law of the predictions; empty: that with the least error on the most that was left out
    force: bool = False  # replace a result that was made from something else


def draw_scaling(settings: ScalingFigureSettings) -> list[Path]:
    """Write ``output``.svg, .png and .pdf, each with a manifest. UserError for another file, or a law that it lacks."""
    content, fitted, predicting = chosen(settings)
    kept = {"fitted": fitted["law"], "predicting": predicting["law"]}
    drawing = partial(scaling, content, fitted, predicting)
    return write_figure(
        settings.output, drawing, FORMATS, Recipe(STEP, kept, {"fits": settings.fits}), force=settings.force
    )


def check(settings: ScalingFigureSettings) -> None:
    """A dry run's: the fits, if they are there, have the laws."""
    if is_to_be_checked(settings.fits, dry=True):
        chosen(settings)


def chosen(settings: ScalingFigureSettings) -> tuple[dict[str, Any], Row, Row]:
    """The content of scaling.json, the law to show fitted, the law to show predicting."""
    path = settings.fits
    if verify(path).step != FIT_STEP:
        raise UserError(f"{path}: was not made by examples/fit_scaling.py")
    content = read_json_object(path, AGAIN)
    check_shape(content, SHAPE, path, AGAIN)
    laws = [one for one in content["laws"] if one["curves"]]
    if not laws:
        raise UserError(f"{path}: no law could be fitted")
    fitted, predicting = best_laws(laws)
    return content, _named(laws, settings.fitted) or fitted, _named(laws, settings.predicting) or predicting


def best_laws(rows: Sequence[Row]) -> tuple[Row, Row]:
    """The law with the least AIC and no parameter on a bound; the one with the least error of prediction."""
    laws = [one for one in rows if one["curves"]]
    determined = [one for one in laws if not one["on_bound"]] or laws
    return min(determined, key=lambda one: float(one["aic"])), _best_prediction(laws)


def _named(laws: Sequence[Row], name: str) -> Row | None:
    if name and name not in {one["law"] for one in laws}:
        raise UserError(f"{name}: no such law was fitted; there are: {', '.join(one['law'] for one in laws)}")
    return next((one for one in laws if one["law"] == name), None)


def _best_prediction(laws: Sequence[Row]) -> Row:
    """Of those that predict most regions without a parameter on a bound, the one with the least error in the last."""
    most = max(len(one["held_out"]) for one in laws)
    candidates = [one for one in laws if len(one["held_out"]) == most]
    determined = [one for one in candidates if not one["held_out_on_bound"]] or candidates
    return min(determined, key=lambda one: float(one["held_out"][-1]["error"]) if one["held_out"] else 0.0)
