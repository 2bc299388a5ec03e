"""Figures of per-step influence: by how many completions are right, and which problems teach which.

Rows: ``model``, ``seed``; of queries with ``correct`` of ``samples`` completions right their number ``n`` and mean
``influence``; of pairs the labels ``teacher`` and ``learner`` of two groups of queries and their mean ``influence``.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from compositionality.report.drawing import new_panels, shared_legend, title_panel
from compositionality.report.styles import ArmStyle, Styles, unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]


def by_accuracy(rows: Sequence[Row], styles: Styles) -> "Figure":
    """Mean influence, and share of the queries, by the number of correct completions; a line for each model."""
    figure, ((taught, counted),) = new_panels((10.0, 4.8), 1, 2)
    for model, style in styles.items():
        mine = [row for row in rows if row["model"] == model]
        _line(taught, mine, style, "influence")
        _line(counted, _shares(mine), style, "share")
    title_panel(taught, "What a step on a query teaches", "predicted change of the mean objective of all queries")
    title_panel(counted, "How many queries there are", "%; only those between 0 and all have a signal")
    taught.axhline(0, linewidth=0.8, color="#9aa0a6")
    for panel in (taught, counted):
        panel.set_xlabel(f"correct completions of {max(row['samples'] for row in rows)}")
    shared_legend(figure, [taught])
    return figure


def _line(panel: "Axes", rows: Sequence[Row], style: ArmStyle, value: str) -> None:
    """Mean over the seeds, and a dot for each of several."""
    seeds, places = unique(rows, "seed"), sorted(unique(rows, "correct"))
    known = {(row["seed"], row["correct"]): row[value] for row in rows if row[value] is not None}
    shown = [place for place in places if any((seed, place) in known for seed in seeds)]
    of = {place: [known[seed, place] for seed in seeds if (seed, place) in known] for place in shown}
    means = [float(np.mean(of[place])) for place in shown]
    panel.plot(shown, means, color=style.colour, linestyle=style.line, marker=style.marker, label=style.title)
    if len(seeds) > 1:
        for place in shown:
            panel.plot([place] * len(of[place]), of[place], ".", color=style.colour, alpha=0.4)


def _shares(rows: Sequence[Row]) -> list[Row]:
    """The rows with their share of a seed's queries, in per cent."""
    totals = {seed: sum(row["n"] for row in rows if row["seed"] == seed) for seed in unique(rows, "seed")}
    return [{**row, "share": 100 * row["n"] / totals[row["seed"]] if totals[row["seed"]] else None} for row in rows]


def pairs(rows: Sequence[Row], styles: Styles) -> "Figure":
    """Mean influence of queries of one group (lines) on those of another (columns), of each model its largest = 1."""
    figure, (line,) = new_panels((1.6 + 3.2 * len(styles), 4.0), 1, len(styles))
    for (model, style), panel in zip(styles.items(), line, strict=True):
        mine = [row for row in rows if row["model"] == model]
        names = unique(mine, "teacher")
        cells = cells_of(mine, names)
        image = panel.imshow(cells, vmin=-1, vmax=1, cmap="PuOr")
        for (row, column), value in np.ndenumerate(cells):
            if np.isfinite(value):
                colour = "white" if abs(value) > 0.7 else "black"
                panel.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)
        panel.set_yticks(range(len(names)), names if panel is line[0] else [""] * len(names), fontsize=8)
        panel.set_xticks(range(len(names)), names, fontsize=8)
        panel.set_title(style.title, fontsize=9)
        panel.grid(visible=False)
        panel.set_xlabel("what is learnt about")
    line[0].set_ylabel("a step on")
    figure.colorbar(image, ax=line, shrink=0.7, label="influence, largest = 1")
    return figure


def predicted(rows: Sequence[Row], styles: Styles) -> "Figure":
    """Gain from RL by mean influence, a panel for each group; ``styles`` are those of rl-ARM."""
    groups = list(dict.fromkeys((row["group"], row["level"]) for row in rows))
    figure, (line,) = new_panels((5.0 * len(groups), 4.4), 1, len(groups))
    for (group, level), panel in zip(groups, line, strict=True):
        for model, style in styles.items():
            mine = [row for row in rows if (row["group"], row["level"], f"rl-{row['arm']}") == (group, level, model)]
            points = np.array([(row["influence"], 100 * row["gain"]) for row in mine])
            panel.plot(*points.T, ".", color=style.colour, alpha=0.4)
            panel.plot(*points.mean(axis=0), style.marker, color=style.colour, markersize=9, label=style.title)
        title_panel(panel, f"{group} L{level}", "gain from RL in points")
        panel.axhline(0, linewidth=0.8, color="#9aa0a6")
        panel.set_xlabel("mean influence of a query on the SFT model")
    shared_legend(figure, [line[0]])
    return figure


def cells_of(rows: Sequence[Row], names: Sequence[str]) -> NDArray[np.float64]:
    """Means over the seeds (L, L) over the largest absolute value; nan where a seed has no such pair."""
    cells = np.full((len(names), len(names)), np.nan)
    for line, teacher in enumerate(names):
        for column, learner in enumerate(names):
            values = [row["influence"] for row in rows if (row["teacher"], row["learner"]) == (teacher, learner)]
            if values:
                cells[line, column] = float(np.mean(values))
    largest = np.nanmax(np.abs(cells)) if np.isfinite(cells).any() else 0.0
    return cells / largest if largest else cells
