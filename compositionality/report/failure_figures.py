"""Figures of failure modes: shares by class; accuracy by function and by pair of functions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from compositionality.console import natural_key
from compositionality.report import paper
from compositionality.report.drawing import new_panels, title_panel
from compositionality.report.figures import sizes
from compositionality.report.styles import GRID, MUTED, PAPER, Styles, class_colours, group_title, unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
FIRST_COLUMNS = ("L1", "step")
"""Columns of a heat map before those of the inner functions: the function alone, and at any step that applies it."""
CELL_TEXT = ("#fffffe", "#000001")
"""White on dark cells, black on light ones; not pure, so that the page does not replace them by its theme's colours."""
DARKEST_WITH_BLACK = 47
"""Per cent: from here on black is easier to read than white."""


def shares(rows: Sequence[Row], styles: Styles) -> "Figure":
    """Stacked bars of the classes: a panel for each level (across) and group (down), a bar for each model.

    Rows: ``model``, ``group``, ``level``, ``class``, ``share``, ``n_problems``. Where the study repeats the paper's
    test, a last line of panels shows what the paper states.
    """
    from matplotlib.figure import Figure

    groups, levels, classes = unique(rows, "group"), sorted(unique(rows, "level")), unique(rows, "class")
    test = paper.matching_test(rows)
    stated = [arm for arm in styles if any(one.arm == arm for one in paper.SHARES)] if test else []
    heights = [0.9 + 0.3 * len(styles)] * len(groups) + ([1.1 + 0.3 * len(stated)] if stated else [])
    figure = Figure(figsize=(2.4 + 1.75 * max(3, len(levels)), sum(heights) + 0.7), layout="constrained")
    grid = figure.add_gridspec(len(heights), max(3, len(levels)), height_ratios=heights)
    colours = class_colours(classes)
    for line, group in enumerate(groups):
        own = sorted(unique([row for row in rows if row["group"] == group], "level"))
        for level in own:
            panel = figure.add_subplot(grid[line, levels.index(level)])
            mine = [row for row in rows if (row["group"], row["level"]) == (group, level)]
            _stack(panel, mine, styles, colours, named=level == own[0])
            title = f"level {level}" if level else "all levels"
            title_panel(panel, f"{group_title(group)}\n{title}" if level == own[0] else title, f"n = {sizes(mine)}")
    if stated:
        panel = figure.add_subplot(grid[-1, : min(4, len(levels))])
        _stack_paper(panel, stated, styles, colours)
        title_panel(panel, f"{paper.HELDOUT.title}, level 3", paper.FAILURE_NOTE)
    shown = {row["class"] for row in rows if row["share"]} | {one.failure for one in paper.SHARES if stated}
    _legend(figure, {name: colour for name, colour in colours.items() if name in shown})
    return figure


def _stack(panel: "Axes", rows: Sequence[Row], styles: Styles, colours: Mapping[str, str], *, named: bool) -> None:
    found = {(row["model"], row["class"]): 100 * (row["share"] or 0) for row in rows}
    floor = np.zeros(len(styles))
    for name, colour in colours.items():
        widths = np.array([found.get((model, name), 0.0) for model in styles])
        panel.barh(range(len(styles)), widths, left=floor, height=0.8, color=colour, linewidth=0)
        floor += widths
    _bars(panel, [style.title for style in styles.values()] if named else [""] * len(styles))


def _stack_paper(panel: "Axes", arms: Sequence[str], styles: Styles, colours: Mapping[str, str]) -> None:
    """What the paper's text states; the rest of a bar is left open."""
    for place, arm in enumerate(arms):
        floor = 0.0
        for name, colour in colours.items():
            for one in (one for one in paper.SHARES if (one.arm, one.failure) == (arm, name)):
                hatch = "///" if one.bound else None
                panel.barh(place, one.percent, left=floor, height=0.8, color=colour, hatch=hatch, edgecolor=PAPER)
                if one.percent:
                    text = f"{'> ' if one.bound else ''}{one.percent:g}"
                    _write(panel, floor + one.percent / 2, place, text)
                floor += one.percent
        panel.barh(place, 100 - floor, left=floor, height=0.8, color="none", edgecolor=GRID)
        panel.text((floor + 100) / 2, place, "not stated", ha="center", va="center", fontsize=8, color=MUTED)
    _bars(panel, [styles[arm].title for arm in arms])
    panel.set_xlabel("completions, %")


def _write(panel: "Axes", x: float, y: float, text: str) -> None:
    """A number that can be read on any colour and hatching."""
    behind = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}
    panel.text(x, y, text, ha="center", va="center", fontsize=9, bbox=behind)


def _bars(panel: "Axes", names: Sequence[str]) -> None:
    panel.set_yticks(range(len(names)), names, fontsize=9)
    panel.invert_yaxis()
    panel.set_xlim(0, 100)
    panel.set_xticks([0, 50, 100])
    panel.grid(visible=False)
    panel.tick_params(axis="y", length=0)
    panel.spines["left"].set_visible(False)


def _legend(figure: "Figure", colours: Mapping[str, str]) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(color=colour, label=name.replace("_", " ")) for name, colour in colours.items()]
    figure.legend(handles=patches, loc="outside lower center", ncols=min(len(patches), 4), fontsize=10)


def heat_maps(by_function: Sequence[Row], by_pair: Sequence[Row], styles: Styles) -> "Figure":
    """Correct, in %: each function at level 1 and at any step, and each pair, outer × inner; a panel for each model.

    Rows: ``model``, ``group`` and ``function``, ``alone``, ``error_rate``; or ``outer``, ``inner``, ``accuracy``.
    """
    groups, models = (
        unique(by_function, "group"),
        [model for model in styles if model in unique(by_function, "model")],
    )
    figure, panels = new_panels((1.2 + 3.9 * len(models), 0.6 + 3.9 * len(groups)), len(groups), len(models))
    for group, line in zip(groups, panels, strict=True):
        for model, panel in zip(models, line, strict=True):
            cells, names = cells_of(_of(by_function, model, group), _of(by_pair, model, group))
            image = panel.imshow(cells, vmin=0, vmax=100, cmap="cividis", aspect="auto")
            _write_cells(panel, cells)
            _name_cells(panel, names)
            panel.set_title(f"{styles[model].title}, {group_title(group)}", fontsize=9)
        line[0].set_ylabel("outer function")
    for panel in panels[-1]:
        panel.set_xlabel("inner function")
    figure.colorbar(image, ax=[panel for line in panels for panel in line], shrink=0.5, label="correct, %")
    return figure


def _of(rows: Sequence[Row], model: str, group: str) -> list[Row]:
    return [row for row in rows if (row["model"], row["group"]) == (model, group)]


def cells_of(by_function: Sequence[Row], by_pair: Sequence[Row]) -> tuple[NDArray[np.float64], list[str]]:
    """Per cent, (F, 2 + F): each function alone, at any step, then outer × inner; nan where nothing was measured."""
    names = sorted(unique(by_function, "function"), key=natural_key)
    place = {name: number for number, name in enumerate(names)}
    before = len(FIRST_COLUMNS)
    cells = np.full((len(names), before + len(names)), np.nan)
    for row in by_function:
        if row["error_rate"] is not None:
            alone = np.nan if row["alone"] is None else 100 * row["alone"]
            cells[place[row["function"]], :before] = alone, 100 * (1 - row["error_rate"])
    for row in by_pair:
        if {row["outer"], row["inner"]} <= place.keys():
            cells[place[row["outer"]], before + place[row["inner"]]] = 100 * row["accuracy"]
    return cells, names


def _write_cells(panel: "Axes", cells: NDArray[np.float64]) -> None:
    for (line, column), value in np.ndenumerate(cells):
        if np.isfinite(value):
            colour = CELL_TEXT[int(value >= DARKEST_WITH_BLACK)]
            panel.text(column, line, f"{value:.0f}", ha="center", va="center", fontsize=7, color=colour)


def _name_cells(panel: "Axes", names: Sequence[str]) -> None:
    short = short_names(names)
    panel.set_yticks(range(len(names)), short, fontsize=8)
    panel.set_xticks(range(len(FIRST_COLUMNS) + len(names)), [*FIRST_COLUMNS, *short], fontsize=8)
    panel.axvline(len(FIRST_COLUMNS) - 0.5, color=PAPER, linewidth=4)
    panel.grid(visible=False)
    panel.set_facecolor(GRID)


def short_names(names: Sequence[str]) -> list[str]:
    """The numbers of names that differ in nothing else (func_3 → 3); other names as they are."""
    stems = {name.rstrip("0123456789") for name in names}
    return [name[len(next(iter(stems))) :] for name in names] if len(stems) == 1 else list(names)
