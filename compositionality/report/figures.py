"""The study's figures: accuracy by level, training, RL against RFT, pass@k. Shares in, matplotlib figures out.

Rows are those of the tables: ``model``, ``group`` (the group of problems), ``level``, shares from 0 to 1.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from compositionality.evaluate.tables import plural
from compositionality.report import paper
from compositionality.report.drawing import new_panels, shared_legend, title_panel
from compositionality.report.styles import (
    LEVEL_COLOURS,
    LEVEL_MARKERS,
    MUTED,
    PAPER,
    ArmStyle,
    Styles,
    group_title,
    unique,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
PERCENT = (-3, 103)
LETTERS_PER_INCH = 11
"""Of a figure's title."""


def accuracy(rows: Sequence[Row], composed: Sequence[Row], styles: Styles, title: str = "") -> "Figure":
    """Mean accuracy by level with its interval and a dot for each seed: a panel for each group, then the paper's.

    Below it, if there are any, shares of ``composed`` responses.
    """
    groups, levels = unique(rows, "group"), sorted(unique(rows, "level"))
    test = paper.matching_test(rows)
    n_panels = len(groups) + (test is not None)
    size = (max(6.0, 4 * n_panels), 9.6 if composed else 5.4)
    figure, lines = new_panels(size, 2 if composed else 1, n_panels, sharey=True)
    _groups(lines[0], rows, groups, styles, "accuracy")
    lines[0][0].set_ylabel("correct, %")
    if test:
        _paper(lines[0][-1], test, styles, levels)
        title_panel(lines[0][-1], test.title, paper.NOTE)
    if composed:
        _groups(lines[1], composed, groups, styles, "composed")
        lines[1][0].set_ylabel("right functions, handed on, %")
        if test:
            lines[1][-1].remove()
            lines[1].pop()
    for panel in (panel for line in lines for panel in line):
        panel.set_xticks(levels)
        panel.set_xlim(min(levels) - 0.5, max(levels) + 0.5)
        panel.set_ylim(*PERCENT)
        panel.set_xlabel("level")
    if title:
        letters = int(LETTERS_PER_INCH * figure.get_figwidth())
        figure.suptitle(textwrap.fill(title, letters), x=0.01, ha="left", fontsize=12)
    shared_legend(figure, lines[0])
    return figure


def _groups(panels: "Sequence[Axes]", rows: Sequence[Row], groups: Sequence[str], styles: Styles, value: str) -> None:
    """A panel for each group."""
    for panel, group in zip(panels, groups, strict=False):
        mine = [row for row in rows if row["group"] == group]
        for place, (model, style) in enumerate(styles.items()):
            _arm(panel, [row for row in mine if row["model"] == model], style, _shift(place, styles), value)
        title_panel(panel, group_title(group), f"n = {sizes(mine)} problems a level" if mine else "not known")


def accuracy_title(rows: Sequence[Row], study: str) -> str:
    """What an accuracy figure shows, for a figure without a caption."""
    seeds = rows[0]["n_seeds"]
    mean = f"mean of {plural(seeds, 'seed')} (dots: seeds)" if seeds > 1 else "1 seed"
    what = f"ccuracy by level, {mean}; bars: 95 % interval over {rows[0]['interval']}"
    return f"{study}: a{what}" if study else f"A{what}"


def sizes(rows: Sequence[Row]) -> str:
    """How many problems a level has: ``500``, or ``10 to 128``."""
    counts = [row["n_problems"] for row in rows]
    return " to ".join(f"{count:,}" for count in dict.fromkeys((min(counts), max(counts))))


def _shift(place: int, styles: Styles) -> float:
    """Arms stand a little apart so that their intervals do not hide each other."""
    return min(0.08, 0.7 / len(styles)) * (place - (len(styles) - 1) / 2)


def _arm(panel: "Axes", rows: Sequence[Row], style: ArmStyle, shift: float, share: str) -> None:
    """The mean over the seeds, its interval, and under them the value of every seed where there are several."""
    rows = sorted(rows, key=lambda row: row["level"])
    x = [row["level"] + shift for row in rows]
    value, low, high = ([100 * row[key] for row in rows] for key in (share, "low", "high"))
    below = [middle - end for middle, end in zip(value, low, strict=True)]
    above = [end - middle for middle, end in zip(value, high, strict=True)]
    panel.errorbar(x, value, yerr=[below, above], elinewidth=1, markersize=5, **_look(style))
    dots = [(at, 100 * one) for at, row in zip(x, rows, strict=True) if row["n_seeds"] > 1 for one in row["values"]]
    if dots:
        x_dots, y_dots = zip(*dots, strict=True)
        panel.scatter(x_dots, y_dots, s=26, color=style.colour, linewidths=0, alpha=0.4, zorder=1.9)


def _paper(panel: "Axes", test: paper.PaperTest, styles: Styles, levels: Sequence[int]) -> None:
    """What the paper's text states of these levels; an upper bound is an open marker."""
    for place, (model, style) in enumerate(styles.items()):
        stated = [one for one in paper.accuracy_on(test, [model]) if one.level in levels]
        if not stated:
            continue
        shift = _shift(place, styles)
        look = {**_look(style), "markersize": 5}
        panel.plot([one.level + shift for one in stated], [one.percent for one in stated], **look)
        for one in stated:
            if one.bound:
                panel.plot([one.level + shift], [one.percent], **{**look, "markerfacecolor": PAPER})


def _look(style: ArmStyle) -> dict[str, Any]:
    return {
        "color": style.colour, "marker": style.marker, "linestyle": style.line, "linewidth": style.width,
        "label": style.title,
    }  # fmt: skip


def training(rows: Sequence[Row], styles: Styles) -> "Figure":
    """Accuracy by level over the steps: a panel for each arm (across) and group (down)."""
    from matplotlib.ticker import MaxNLocator

    arms, groups = [arm for arm in styles if arm in unique(rows, "arm")], unique(rows, "group")
    size = (1.2 + 3.1 * len(arms), 0.7 + 2.7 * len(groups))
    figure, panels = new_panels(size, len(groups), len(arms), sharex=True, sharey=True)
    for line, group in zip(panels, groups, strict=True):
        for panel, arm in zip(line, arms, strict=True):
            _levels_over_steps(panel, [row for row in rows if (row["arm"], row["group"]) == (arm, group)])
            panel.set_title(f"{styles[arm].title}\n{group_title(group)}", fontsize=10)
            panel.set_ylim(*PERCENT)
        line[0].set_ylabel("correct, %")
    for panel in panels[-1]:
        panel.set_xlabel("RL steps")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    shared_legend(figure, [panel for line in panels for panel in line])
    return figure


def _levels_over_steps(panel: "Axes", rows: Sequence[Row]) -> None:
    """The mean over the seeds, and each seed as a thin line."""
    import pandas as pd

    for level in sorted(unique(rows, "level")):
        table = pd.DataFrame([row for row in rows if row["level"] == level])
        steps = table.pivot_table(index="step", columns="seed", values="accuracy")
        place = (level - 1) % len(LEVEL_COLOURS)
        colour = LEVEL_COLOURS[place]
        if steps.shape[1] > 1:
            for seed in steps:
                panel.plot(steps.index, 100 * steps[seed], color=colour, alpha=0.3, linewidth=0.8)
        panel.plot(
            steps.index, 100 * steps.mean(axis=1), color=colour, linewidth=1.8, marker=LEVEL_MARKERS[place],
            markersize=4, label=f"level {level}" if level else "all levels",
        )  # fmt: skip


def budget(rows: Sequence[Row], styles: Styles) -> "Figure":
    """Share correct among the training completions, by how many were sampled so far: a line for each arm and seed."""
    import pandas as pd

    figure, ((panel,),) = new_panels((9.0, 4.2), 1, 1)
    for arm in (arm for arm in styles if arm in unique(rows, "arm")):
        mine = [row for row in rows if row["arm"] == arm]
        for place, seed in enumerate(unique(mine, "seed")):
            table = pd.DataFrame([row for row in mine if row["seed"] == seed])
            _one_budget(panel, table, styles[arm], styles[arm].title if place == 0 else None)
    panel.set_xlabel("completions sampled for training, so far")
    panel.set_ylabel("correct among them, %")
    panel.set_ylim(*PERCENT)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    shared_legend(figure, [panel])
    return figure


def _one_budget(panel: "Axes", table: Any, style: ArmStyle, label: str | None) -> None:
    """RFT's iterations with their intervals; RL's steps as a moving mean over a twentieth of them."""
    look: dict[str, Any] = {
        "color": style.colour, "linestyle": style.line, "label": label, "linewidth": style.width,
    }  # fmt: skip
    if "low" in table.columns:
        error = 100 * table[["low", "high"]].sub(table["correct"], axis=0).abs().T.to_numpy()
        panel.errorbar(
            table["completions"], 100 * table["correct"], yerr=error, marker=style.marker, markersize=6, **look
        )
    else:
        smooth = table["correct"].rolling(max(1, len(table) // 20), min_periods=1, center=True).mean()
        panel.plot(table["completions"], 100 * smooth, **look)


def pass_at_k(curves: Sequence[Row], styles: Styles) -> "Figure":
    """pass@k with its interval: a panel for each level (across) and group (down), k on a logarithmic axis."""
    levels, groups = sorted(unique(curves, "level")), unique(curves, "group")
    size = (1.0 + 2.1 * max(2, len(levels)), 0.8 + 2.5 * len(groups))
    figure, panels = new_panels(size, len(groups), len(levels), sharex=True, sharey=True)
    for line, group in zip(panels, groups, strict=True):
        for panel, level in zip(line, levels, strict=True):
            mine = [row for row in curves if (row["group"], row["level"]) == (group, level)]
            for row in mine:
                _curve(panel, row, styles[row["model"]])
            panel.set_title(f"{group_title(group)}, level {level}" if level else group_title(group), fontsize=9)
            size_note = f"n = {sizes(mine)}" if mine else "not sampled"
            panel.text(0.03, 0.95, size_note, transform=panel.transAxes, fontsize=8, color=MUTED, va="top")
            panel.set_xscale("log", base=2)
            panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            panel.set_ylim(*PERCENT)
        line[0].set_ylabel("pass@k, %")
    for panel in panels[-1]:
        panel.set_xlabel("k")
    shared_legend(figure, [panel for line in panels for panel in line])
    return figure


def _curve(panel: "Axes", row: Row, style: ArmStyle) -> None:
    low, value, high = ([100 * share for share in row[key]] for key in ("low", "pass_at_k", "high"))
    panel.fill_between(row["k"], low, high, color=style.colour, alpha=0.18, linewidth=0)
    panel.plot(row["k"], value, color=style.colour, linestyle=style.line, linewidth=1.8, label=style.title)
