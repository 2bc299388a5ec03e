"""Figures of scaling laws, from scaling.json: fits, predictions, slopes, residuals, equal losses.

A law is an entry of its ``laws``; rows of ``curves`` are means over the runs of a size: ``size``, ``resource``,
``loss``, ``predicted``, ``low``, ``high`` (for the mean of as many runs), ``band_low``, ``band_high`` (for the
expectation).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compositionality.report.drawing import new_panels, shared_legend, title_panel
from compositionality.report.styles import INK, MUTED, unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
UNITS = {"flops": "FLOPs", "flops_paper": "FLOPs (6 N a token)"}
_LEVELS = 4


def scaling(content: Row, fitted: Row, predicting: Row) -> "Figure":
    """Fit, prediction, slopes, residuals and equal losses; ``fitted``, ``predicting``: laws of ``content``."""
    figure, ((fits, held_out, slopes), (rest, equal, last)) = new_panels((14.0, 8.4), 2, 3)
    unit = str(UNITS.get(content["resource"], content["resource"]))
    colours = size_colours(content["sizes"])
    _curves(fits, fitted["curves"], colours, "band_low", "band_high")
    title_panel(
        fits, f"Fit: {fitted['law'].replace('_', ' ')}", "dots: means over runs; band: 95 % for the expectation"
    )
    for region in predicting["held_out"]:
        _curves(held_out, region["curves"], colours, "low", "high")
    note = "dots were not fitted; band: 95 % for the mean of as many runs"
    title_panel(held_out, f"Prediction: {predicting['law'].replace('_', ' ')}", note)
    _slopes(slopes, content["laws"], colours)
    _residuals(rest, fitted["curves"], colours)
    _equal_losses(equal, fitted["curves"], unit)
    last.axis("off")
    for panel in (fits, held_out, rest):
        panel.set_xscale("log")
        panel.set_xlabel(unit)
        _ticks(panel.xaxis)
    for panel in (fits, held_out):
        panel.set_yscale("log")
        panel.set_ylabel("loss: 1 − accuracy")
        _ticks(panel.yaxis, (1, 2, 3, 4, 5, 6, 8))
    shared_legend(figure, [fits])
    return figure


def _ticks(axis: Any, subs: tuple[int, ...] = (1, 2, 5)) -> None:
    """Of a logarithmic axis, also where it spans less than a power of ten; powers alone where it spans 40 times."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1,) if len(subs) < 4 and high > 40 * low else subs))
    axis.set_major_formatter(lambda value, _: f"{value:,.5g}" if value < 1e5 else f"{value:.0e}".replace("e+", "e"))
    axis.set_minor_formatter(NullFormatter())


def size_colours(sizes: Sequence[float]) -> dict[float, Any]:
    """From dark to light by size."""
    from matplotlib import colormaps

    map_ = colormaps["viridis"]
    return {size: map_(0.9 * place / max(1, len(sizes) - 1)) for place, size in enumerate(sorted(sizes))}


def _curves(panel: "Axes", rows: Sequence[Row], colours: Mapping[float, Any], low: str, high: str) -> None:
    for size, colour in colours.items():
        mine = sorted((row for row in rows if row["size"] == size), key=lambda row: row["resource"])
        if not mine:
            continue
        at = [row["resource"] for row in mine]
        panel.plot(at, [row["loss"] for row in mine], ".", color=colour, markersize=5)
        panel.plot(at, [row["predicted"] for row in mine], color=colour, linewidth=1.4, label=f"{size:,.0f} parameters")
        if mine[0][low] is not None:
            lowest, highest = ([row[end] for row in mine] for end in (low, high))
            panel.fill_between(at, lowest, highest, color=colour, alpha=0.2, linewidth=0)


def _slopes(panel: "Axes", laws: Sequence[Row], colours: Mapping[float, Any]) -> None:
    """k of each size by itself, and the curve of the law in which it saturates."""
    free = next((law for law in laws if law["law"] == "log_linear"), None)
    for one in free["parameters"] if free else []:
        if one["name"] == "k":
            error = None if one["low"] is None else [[one["value"] - one["low"]], [one["high"] - one["value"]]]
            panel.errorbar([one["size"]], [one["value"]], yerr=error, fmt="o", color=colours[one["size"]], markersize=5)
    saturating = next((law for law in laws if law["law"] == "saturating_slope" and not law["on_bound"]), None)
    if saturating and saturating["parameters"]:
        value = {one["name"]: one["value"] for one in saturating["parameters"]}
        sizes = np.geomspace(min(colours), max(colours), 60)
        panel.plot(sizes, value["K_max"] / (1 + value["N0"] / sizes), color=INK, linewidth=1)
    panel.set_xscale("log")
    _ticks(panel.xaxis)
    panel.set_xlabel("parameters without embeddings")
    panel.set_ylabel("k")
    title_panel(panel, "Slope k of log L by size", "dots: each size by itself; line: K_max / (1 + N0 / N)")


def _residuals(panel: "Axes", rows: Sequence[Row], colours: Mapping[float, Any]) -> None:
    for size in unique(rows, "size"):
        mine = [row for row in rows if row["size"] == size]
        rest = [np.log(row["loss"] / row["predicted"]) for row in mine]
        panel.plot([row["resource"] for row in mine], rest, ".-", color=colours[size], linewidth=0.8)
    panel.axhline(0, color=MUTED, linewidth=0.8)
    panel.set_ylabel("log L − fitted")
    title_panel(panel, "Residuals", "a bend means another form")


def _equal_losses(panel: "Axes", rows: Sequence[Row], unit: str) -> None:
    """What each size needs for a loss, between the points of its fitted curve."""
    from matplotlib import colormaps

    losses = [row["predicted"] for row in rows]
    levels = np.geomspace(min(losses), max(losses), _LEVELS + 2)[1:-1]
    for place, level in enumerate(levels):
        needed = [(size, at) for size in unique(rows, "size") if (at := _crossing(rows, size, level)) is not None]
        if needed:
            colour, (sizes, spent) = colormaps["cividis"](place / _LEVELS), zip(*needed, strict=True)
            panel.plot(sizes, spent, "o-", color=colour, markersize=4, label=f"loss {level:.2g}")
    panel.set_xscale("log")
    panel.set_yscale("log")
    _ticks(panel.xaxis)
    _ticks(panel.yaxis)
    panel.set_xlabel("parameters without embeddings")
    panel.set_ylabel(unit)
    panel.legend(fontsize=8.5)
    title_panel(panel, "Equal losses", "what each size needs, where its fit reaches the loss")


def _crossing(rows: Sequence[Row], size: float, level: float) -> float | None:
    mine = sorted((row for row in rows if row["size"] == size), key=lambda row: row["resource"])
    logs = np.log([[row["resource"], row["predicted"]] for row in mine])
    target = float(np.log(level))
    if not logs[:, 1].min() <= target <= logs[:, 1].max():
        return None
    order = np.argsort(logs[:, 1])
    return float(np.exp(np.interp(target, logs[order, 1], logs[order, 0])))


def reuse(rows: Sequence[Row]) -> "Figure":
    """Accuracy by level against how often each problem is seen: ``times``, ``level``, ``accuracy``, its ends."""
    from matplotlib import colormaps

    figure, ((panel,),) = new_panels((6.5, 4.2), 1, 1)
    levels = sorted({row["level"] for row in rows})
    for place, level in enumerate(levels):
        mine = sorted((row for row in rows if row["level"] == level), key=lambda row: row["times"])
        at, values = [row["times"] for row in mine], [100 * row["accuracy"] for row in mine]
        ends = [[100 * abs(row[end] - row["accuracy"]) for row in mine] for end in ("low", "high")]
        colour = colormaps["viridis"](0.9 * place / max(1, len(levels) - 1))
        panel.errorbar(
            at, values, yerr=ends, fmt="o-", color=colour, markersize=4, linewidth=1.2, label=f"level {level}"
        )
    panel.set_xscale("log")
    _ticks(panel.xaxis)
    panel.set_xlabel("times that each problem is seen")
    panel.set_ylabel("% correct")
    shared_legend(figure, [panel])
    return figure
