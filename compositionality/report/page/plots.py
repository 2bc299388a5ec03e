"""The drawings of the page: training, RL against RFT, pass@k. Shares in, matplotlib figures out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from compositionality.evaluate.tables import TITLES
from compositionality.report.figure import HERO, LOOKS, SPARE, Look
from compositionality.report.page.drawing import INK, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVEL_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C510A", "#5E3C99")
"""One for each level: those of Okabe & Ito, then two more."""
LEVEL_MARKERS = "osD^vPX*"
Row = Mapping[str, Any]


def look_of(model: str, place: int = 0) -> Look:
    """How an arm is drawn; arms that are not known get one of the spare colours. Black is the page's own ink."""
    look = LOOKS.get(model) or Look(SPARE[place % len(SPARE)], "*", "-", model)
    return replace(look, colour=INK) if look.colour == "#000000" else look


def unique(rows: Iterable[Row], key: str) -> list[Any]:
    """The values of a column, once each, as they come."""
    return list(dict.fromkeys(row[key] for row in rows))


def in_order(arms: Iterable[str]) -> list[str]:
    """Arms in the order of the looks; those that are not known last."""
    known = list(LOOKS)
    return sorted(arms, key=lambda arm: (known.index(arm) if arm in known else len(known), arm))


def functions_of(rows: Sequence[Row]) -> list[str]:
    """Sets of functions: the held-out ones first, as in the paper."""
    return sorted(unique(rows, "functions"), key=lambda name: (name != "heldout", name))


def training(rows: Sequence[Row]) -> "Figure":
    """Accuracy by level over the steps: a panel for each arm (across) and set of functions (down)."""
    from matplotlib.figure import Figure

    arms, sets = in_order(unique(rows, "arm")), functions_of(rows)
    drawing = Figure(figsize=(1.2 + 3.1 * len(arms), 0.7 + 2.7 * len(sets)), layout="constrained")
    panels = drawing.subplots(len(sets), len(arms), sharex=True, sharey=True, squeeze=False)
    for line, name in enumerate(sets):
        for column, arm in enumerate(arms):
            panel = panels[line][column]
            mine = [row for row in rows if row["arm"] == arm and row["functions"] == name]
            _levels_over_steps(panel, mine)
            panel.set_title(f"{look_of(arm).label}\n{TITLES.get(name, name)}", fontsize=10)
            panel.set_ylim(-3, 103)
        panels[line][0].set_ylabel("correct, %")
    for panel in panels[-1]:
        panel.set_xlabel("RL steps")
        panel.xaxis.get_major_locator().set_params(integer=True)
    _one_legend(drawing, panels.flat)
    return drawing


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
                panel.plot(steps.index, 100 * steps[seed], color=colour, alpha=0.25, linewidth=0.8)
        panel.plot(
            steps.index, 100 * steps.mean(axis=1), color=colour, linewidth=1.8, label=f"level {level}",
            marker=LEVEL_MARKERS[place], markersize=4,
        )  # fmt: skip


def budget(rows: Sequence[Row]) -> "Figure":
    """Share correct among the answers sampled to learn from, by how many were sampled: one line an arm and seed."""
    import pandas as pd
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(9.0, 4.2), layout="constrained")
    panel = drawing.subplots()
    for arm in in_order(unique(rows, "arm")):
        look, mine = look_of(arm), [row for row in rows if row["arm"] == arm]
        for place, seed in enumerate(unique(mine, "seed")):
            table = pd.DataFrame([row for row in mine if row["seed"] == seed])
            label = look.label if place == 0 else None
            if "low" in table.columns:
                error = 100 * table[["low", "high"]].sub(table["correct"], axis=0).abs().T.to_numpy()
                panel.errorbar(
                    table["answers"], 100 * table["correct"], yerr=error, color=look.colour, marker=look.marker,
                    linestyle=look.line, label=label, markersize=7, linewidth=2,
                )  # fmt: skip
            else:
                smooth = table["correct"].rolling(max(1, len(table) // 20), min_periods=1, center=True).mean()
                panel.plot(
                    table["answers"], 100 * smooth, color=look.colour, linestyle=look.line, label=label,
                    linewidth=2 if arm in HERO else 1.4,
                )  # fmt: skip
    panel.set_xlabel("answers sampled to learn from, so far")
    panel.set_ylabel("correct among them, %")
    panel.set_ylim(-3, 103)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _one_legend(drawing, [panel])
    return drawing


def pass_at_k(curves: Sequence[Row]) -> "Figure":
    """pass@k with its band: a panel for each level (across) and set of functions (down), k on a logarithmic axis."""
    from matplotlib.figure import Figure

    levels, sets = sorted({row["level"] for row in curves} - {0}) or [0], functions_of(curves)
    drawing = Figure(figsize=(1.0 + 2.1 * len(levels), 0.8 + 2.5 * len(sets)), layout="constrained")
    panels = drawing.subplots(len(sets), len(levels), sharex=True, sharey=True, squeeze=False)
    for line, name in enumerate(sets):
        for panel, level in zip(panels[line], levels, strict=True):
            mine = [row for row in curves if row["functions"] == name and row["level"] == level]
            _curves(panel, mine, unique(curves, "model"))
            size = f"n = {mine[0]['n_problems']}" if mine else "not sampled"
            panel.set_title(f"{TITLES.get(name, name)}, level {level}" if level else TITLES.get(name, name), fontsize=9)
            panel.text(0.03, 0.95, size, transform=panel.transAxes, fontsize=8, color=MUTED, va="top")
        panels[line][0].set_ylabel("pass@k, %")
    for panel in panels[-1]:
        panel.set_xlabel("k")
    _one_legend(drawing, panels.flat)
    return drawing


def _curves(panel: "Axes", rows: Sequence[Row], models: Sequence[str]) -> None:
    for row in rows:
        look = look_of(row["model"], models.index(row["model"]))
        low, value, high = ([100 * share for share in row[key]] for key in ("low", "pass_at_k", "high"))
        panel.fill_between(row["k"], low, high, color=look.colour, alpha=0.18, linewidth=0)
        panel.plot(row["k"], value, color=look.colour, linestyle=look.line, linewidth=1.8, label=look.label)
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.set_ylim(-3, 103)


def _one_legend(drawing: "Figure", panels: Iterable["Axes"]) -> None:
    """One legend for all panels, each label once."""
    handles: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        columns = min(len(handles), max(2, int(drawing.get_figwidth() / 2.4)))
        drawing.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns, fontsize=10)
