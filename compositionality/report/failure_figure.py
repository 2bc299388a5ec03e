"""Figures of section 4.5: shares by class, a bar for each model and level, the paper's beside ours; accuracy by
function and by pair of functions as heat maps. PNG, SVG and PDF; the same failure_modes.json gives the same bytes.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from compositionality.data.artefact import Recipe, verify, write_derived
from compositionality.evaluate.failures.run import SUMMARY
from compositionality.evaluate.tables import TITLES
from compositionality.report.figure import DPI, LOOKS, STYLE
from compositionality.rollout.summary import by_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEP = "draw_failures"
FORMATS = ("png", "svg", "pdf")
FIXED = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}
COLOURS = {
    "correct": "#009E73",
    "ignores_composition": "#D55E00",
    "incomplete_trace": "#E69F00",
    "incorrect_composition": "#F0E442",
    "atomic_error": "#56B4E9",
    "format": "#0072B2",
    "overlong": "#CC79A7",
    "unparsed": "#999999",
}
NOT_STATED = "#f4f4f4"
BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
BEFORE = 2
"""Columns of a heat map before those of the inner functions."""
PAPER_TITLE = "paper: level 3, held-out functions"
PAPER_NOTE = "arXiv 2509.25123 §4.5, judged by Gemini-2.5-Pro; hatched: lower bound"
Summary = Mapping[str, Any]


@dataclass(frozen=True)
class StatedShare:
    """Share in % of one class at level 3 in the paper's text; ``bound``: the paper says more than that."""

    arm: str
    kind: str
    percent: float
    bound: bool = False


_FAILING = ("stage1", "rft", "rl-level1")
STATED_SHARES = (
    *(StatedShare(arm, "ignores_composition", 50, bound=True) for arm in _FAILING),
    *(StatedShare(arm, "incorrect_composition", 35, bound=True) for arm in _FAILING),
    StatedShare("rl-level2", "correct", 28.1),
    StatedShare("rl-level2", "ignores_composition", 0),
    StatedShare("rl-level2", "atomic_error", 55),
)


def draw_failures(folder: Path, *, force: bool = False) -> list[Path]:
    """Write failure_modes.{png,svg,pdf} and functions.{png,svg,pdf} beside ``folder``/failure_modes.json."""
    source = folder / SUMMARY
    verify(source)
    summary: Summary = json.loads(source.read_text())
    drawings: dict[str, Callable[[Summary], Figure]] = {"failure_modes": draw_shares}
    if summary["by_function"]:
        drawings["functions"] = draw_functions
    paths = [folder / f"{name}.{ending}" for name in drawings for ending in FORMATS]
    for path in paths:
        recipe = Recipe(STEP, _identity(path.suffix), {"failure_modes": source})
        _write(path, recipe, drawings[path.stem], summary, force=force)
    print(", ".join(f"{folder / name}.{{{','.join(FORMATS)}}}" for name in drawings))
    return paths


def _write(
    path: Path, recipe: Recipe, drawing: "Callable[[Summary], Figure]", summary: Summary, *, force: bool
) -> None:
    write_derived(path, recipe, lambda place: place.write_bytes(render(drawing, summary, path.suffix[1:])), force=force)


def render(drawing: "Callable[[Summary], Figure]", summary: Summary, ending: str) -> bytes:
    """A figure as a file of that kind: png, svg or pdf."""
    import matplotlib as mpl

    stream = io.BytesIO()
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE, "pdf.fonttype": 42}):
        drawing(summary).savefig(stream, format=ending, dpi=DPI, metadata=FIXED[ending])
    return stream.getvalue()


def draw_shares(summary: Summary) -> "Figure":
    """A row for each problem file: stacked bars by level and model; the last row is the paper's."""
    from matplotlib.figure import Figure

    rows = summary["shares"]
    files = list(dict.fromkeys(row["problems"] for row in rows))
    models, levels = summary["models"], sorted({row["level"] for row in rows})
    width = max(7.0, 2.2 + 0.27 * len(levels) * (len(models) + 1))
    drawing = Figure(figsize=(width, 3.9 * len(files) + 3.0), layout="constrained")
    panels = list(drawing.subplots(len(files) + 1, 1, squeeze=False)[:, 0])
    for panel, name in zip(panels, files, strict=False):
        mine = [row for row in rows if row["problems"] == name]
        _stack_ours(panel, mine, models, levels)
        n = ", ".join(str(size) for size in sorted({row["n_problems"] for row in mine}))
        _dress(panel, f"here: {_functions(mine[0])}", f"n = {n} problems a level", note_at=1.13)
    _stack_paper(panels[-1], models)
    _dress(panels[-1], PAPER_TITLE, PAPER_NOTE)
    _legend(drawing, {row["class"] for row in rows if row["share"]})
    return drawing


def draw_functions(summary: Summary) -> "Figure":
    """A heat map for each problem file and model: right results of each function, right answers of each pair."""
    from matplotlib.figure import Figure

    files = list(dict.fromkeys(row["problems"] for row in summary["by_function"]))
    models = summary["models"]
    drawing = Figure(figsize=(1.2 + 3.9 * len(models), 0.6 + 3.9 * len(files)), layout="constrained")
    panels = drawing.subplots(len(files), len(models), squeeze=False)
    titles = {row["problems"]: _functions(row) for row in summary["shares"]}
    for name, line in zip(files, panels, strict=True):
        for model, panel in zip(models, line, strict=True):
            grid, names = _grid(summary, model, name)
            image = panel.imshow(grid, vmin=0, vmax=100, cmap="cividis", aspect="auto")
            _write_cells(panel, grid)
            _name_cells(panel, names)
            panel.set_title(f"{_label(model)}, {titles[name]}", fontsize=9, loc="left")
    for panel in panels[:, 0]:
        panel.set_ylabel("outer function")
    for panel in panels[-1]:
        panel.set_xlabel("inner function")
    drawing.colorbar(image, ax=panels, shrink=0.5, label="%")
    title = (
        "Right answers to outer(inner(x)), %; first columns: the function at level 1 (L1), at any step that applies it"
    )
    drawing.suptitle(title, x=0.01, ha="left", fontsize=9.5)
    return drawing


def _stack_ours(panel: "Axes", rows: Sequence[Summary], models: Sequence[str], levels: Sequence[int]) -> None:
    """Bars of a level stand together, in the order of the models."""
    shares = {(row["level"], row["model"], row["class"]): 100 * (row["share"] or 0) for row in rows}
    places = [(level, model) for level in levels for model in models]
    at = [place // len(models) * (len(models) + 1) + place % len(models) for place in range(len(places))]
    floor = np.zeros(len(places))
    for kind, colour in COLOURS.items():
        heights = np.array([shares.get((*place, kind), 0.0) for place in places])
        panel.bar(at, heights, bottom=floor, width=0.9, color=colour, linewidth=0)
        floor += heights
    panel.set_xticks(at, [model for _, model in places], rotation=90, fontsize=7)
    panel.set_ylabel("responses, %")
    above = panel.secondary_xaxis("top")
    middle = (len(models) - 1) / 2
    middles = [number * (len(models) + 1) + middle for number in range(len(levels))]
    above.set_xticks(middles, [f"level {level}" for level in levels], fontsize=9)
    above.tick_params(length=0)
    above.spines["top"].set_visible(False)


def _stack_paper(panel: "Axes", models: Sequence[str]) -> None:
    """What the paper's text states; the rest of a bar is left open."""
    arms = [arm for arm in dict.fromkeys(one.arm for one in STATED_SHARES) if arm in models or arm != "rft"]
    for place, arm in enumerate(arms):
        floor = 0.0
        for kind, colour in COLOURS.items():
            for one in (one for one in STATED_SHARES if (one.arm, one.kind) == (arm, kind)):
                hatch = "///" if one.bound else None
                panel.barh(place, one.percent, left=floor, height=0.7, color=colour, hatch=hatch, edgecolor="white")
                if one.percent:
                    words = f"{'> ' if one.bound else ''}{one.percent:g}"
                    panel.text(floor + one.percent / 2, place, words, ha="center", va="center", fontsize=9, bbox=BEHIND)
                floor += one.percent
        panel.barh(place, 100 - floor, left=floor, height=0.7, color=NOT_STATED, edgecolor="#cccccc")
        panel.text((floor + 100) / 2, place, "not stated", ha="center", va="center", fontsize=8, color="#777777")
    panel.set_yticks(range(len(arms)), [_label(arm) for arm in arms])
    panel.invert_yaxis()
    panel.set_xlabel("responses, %")


def _grid(summary: Summary, model: str, problems: str) -> tuple[NDArray[np.float64], list[str]]:
    """Per cent, (F, F + 2): each function at level 1, at any step, then outer × inner; nan: nothing there."""
    functions = {row["function"] for row in summary["by_function"] if row["problems"] == problems}
    names = sorted(functions, key=by_number)
    place = {name: number for number, name in enumerate(names)}
    grid = np.full((len(names), len(names) + BEFORE), np.nan)
    for row in summary["by_function"]:
        if (row["model"], row["problems"]) == (model, problems) and row["error_rate"] is not None:
            alone = np.nan if row["alone"] is None else 100 * row["alone"]
            grid[place[row["function"]], :BEFORE] = alone, 100 * (1 - row["error_rate"])
    for row in summary["by_pair"]:
        if (row["model"], row["problems"]) == (model, problems) and {row["outer"], row["inner"]} <= functions:
            grid[place[row["outer"]], BEFORE + place[row["inner"]]] = 100 * row["accuracy"]
    return grid, names


def _write_cells(panel: "Axes", grid: NDArray[np.float64]) -> None:
    for (line, column), value in np.ndenumerate(grid):
        if np.isfinite(value):
            colour = "white" if value < 50 else "black"
            panel.text(column, line, f"{value:.0f}", ha="center", va="center", fontsize=7, color=colour)


def _name_cells(panel: "Axes", names: Sequence[str]) -> None:
    short = [name.removeprefix("func_") for name in names]
    panel.set_yticks(range(len(names)), short, fontsize=8)
    panel.set_xticks(range(len(names) + BEFORE), ["L1", "step", *short], fontsize=8)
    panel.axvline(BEFORE - 0.5, color="white", linewidth=4)
    panel.grid(visible=False)
    panel.set_facecolor("#dddddd")


def _dress(panel: "Axes", title: str, note: str, note_at: float = 1.02) -> None:
    panel.set_title(title, fontsize=11, fontweight="bold", loc="left", pad=18 if note_at < 1.1 else 38)
    panel.text(0, note_at, note, transform=panel.transAxes, fontsize=8, color="#555555")
    panel.grid(visible=False)
    (panel.set_xlim if panel.get_xlabel() else panel.set_ylim)(0, 100)


def _legend(drawing: "Figure", present: set[str]) -> None:
    from matplotlib.patches import Patch

    stated = {one.kind for one in STATED_SHARES}
    patches = [
        Patch(color=colour, label=kind.replace("_", " "))
        for kind, colour in COLOURS.items()
        if kind in present | stated
    ]
    drawing.legend(handles=patches, loc="outside lower center", ncols=min(len(patches), 4), frameon=False, fontsize=9)


def _functions(row: Summary) -> str:
    return str(TITLES.get(row["functions"], row["functions"]))


def _label(model: str) -> str:
    return LOOKS[model].label if model in LOOKS else model


def _identity(suffix: str) -> dict[str, Any]:
    from matplotlib import __version__

    return {"format": suffix[1:], "matplotlib": __version__}
