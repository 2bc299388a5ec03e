"""Accuracy by level of every arm, a panel for each kind of functions, the paper's figures beside them: PNG and SVG.

The same summary gives the same bytes (with the same matplotlib): no dates, fixed ids, text as text in the SVG.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import MISSING

from compositionality.data.artefact import Recipe, verify, write_derived
from compositionality.errors import UserError
from compositionality.evaluate.accuracy.seeds import STEP as SUMMARY_STEP
from compositionality.evaluate.tables import TITLES, by_functions, plural, sizes
from compositionality.report.paper import NOTE, SOURCE, STATED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEP = "draw_figure"
FORMATS = ("png", "svg")
SIZE, DPI = (12.0, 5.4), 100  # inches: 1200 × 540 pixels
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "svg.fonttype": "none",
    "svg.hashsalt": "compositionality",
}
Summary = Mapping[str, Any]


@dataclass(frozen=True)
class Look:
    """How an arm is drawn: colours of Okabe & Ito (told apart by colour-blind readers), a marker and a line each."""

    colour: str
    marker: str
    line: str
    label: str


STRING_LOOKS = {
    "base": Look("#999999", "x", ":", "base model"),
    "stage1": Look("#000000", "s", "--", "stage 1 (atoms)"),
    "rl-level1": Look("#56B4E9", "v", "--", "RL on level 1"),
    "rl-level2": Look("#D55E00", "o", "-", "RL on level 2"),
    "rl-level1to2": Look("#E69F00", "^", "-", "RL on levels 1 and 2"),
    "rl-level2-verl": Look("#0072B2", "<", "-", "RL on level 2, verl"),
    "rft": Look("#009E73", "D", "-.", "RFT on level 2"),
    "rft-matched": Look("#CC79A7", "P", "-.", "RFT, RL's budget"),
    "rl-level2-shuffled": Look("#882255", "X", ":", "control: rewards shuffled"),
    "rl-level2-format": Look("#8C510A", "h", ":", "control: reward for form"),
}
COUNTDOWN_LOOKS = {
    "string-base": Look("#999999", "x", ":", "string-base"),
    "string-rl-level1to2": Look("#56B4E9", "v", "--", "string-base + RL, levels 1 and 2"),
    "multi-base": Look("#000000", "s", "--", "multi-base"),
    "multi-rl-level1": Look("#E69F00", "^", "-", "multi-base + RL, level 1"),
    "multi-rl-level1to2": Look("#D55E00", "o", "-", "multi-base + RL, levels 1 and 2"),
}
LOOKS = {**STRING_LOOKS, **COUNTDOWN_LOOKS}
HERO = ("rl-level2", "multi-rl-level1to2")
"""The arms that the claims are about: a thicker line."""
SPARE = ("#444444", "#117733", "#5E3C99")


@dataclass
class FigureSettings:
    """Settings of ``draw``: ``seeds`` is a seeds.json; ``output`` a path without ending; ``models``: these arms."""

    seeds: Path = MISSING
    output: Path = MISSING
    title: str = ""
    models: list[str] = field(default_factory=list)
    force: bool = False


def draw(settings: FigureSettings) -> list[Path]:
    """Write ``output``.png and .svg, each with a manifest. UserError if the summary was altered or has no levels."""
    summary = read_summary(settings.seeds)
    models = settings.models or summary["models"]
    unknown = [model for model in models if model not in summary["models"]]
    if unknown:
        raise UserError(f"models: {', '.join(unknown)} unknown; the summary has {', '.join(summary['models'])}")
    paths = []
    for ending in FORMATS:
        path = settings.output.with_name(f"{settings.output.name}.{ending}")
        recipe = Recipe(STEP, _identity(settings, models, ending), {"seeds": settings.seeds})
        drawing = partial(render, summary, models, settings.title, ending)
        write_derived(path, recipe, partial(_save, drawing), force=settings.force)
        paths.append(path)
    print(" and ".join(str(path) for path in paths))
    return paths


def _save(drawing: Callable[[], bytes], path: Path) -> None:
    path.write_bytes(drawing())


def read_summary(path: Path) -> dict[str, Any]:
    """A seeds.json, checked against its manifest."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with examples/summarise_seeds.py")
    if verify(path).step != SUMMARY_STEP:
        raise UserError(f"{path}: was not made by examples/summarise_seeds.py")
    summary: dict[str, Any] = json.loads(path.read_text())
    if not any(row["level"] and row["accuracy"] is not None for row in summary["accuracy"]):
        raise UserError(f"{path}: holds no accuracy by level")
    return summary


def render(summary: Summary, models: Sequence[str], title: str, ending: str) -> bytes:
    """The figure as a file of that kind (png or svg)."""
    import matplotlib as mpl

    stream = io.BytesIO()
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}):
        fixed = {"Date": None, "Creator": None} if ending == "svg" else {"Software": None}
        draw_summary(summary, models, title).savefig(stream, format=ending, dpi=DPI, metadata=fixed)
    return stream.getvalue()


def draw_summary(summary: Summary, models: Sequence[str], title: str) -> "Figure":
    """One panel for each kind of functions, then the paper's."""
    from matplotlib.figure import Figure

    rows = [row for row in summary["accuracy"] if row["level"] and row["accuracy"] is not None]
    ours = by_functions(rows)
    width = SIZE[0] * max(1, (len(ours) + 1) / 3)
    drawing = Figure(figsize=(width, SIZE[1]), layout="constrained")
    panels = list(drawing.subplots(1, len(ours) + 1, sharey=True, squeeze=False)[0])
    levels = sorted({row["level"] for row in rows})
    for panel, mine in zip(panels, ours, strict=False):
        _draw_ours(panel, mine, models)
        functions = TITLES.get(mine[0]["functions"], mine[0]["functions"])
        _dress(panel, f"here: {functions}", f"n = {sizes(mine)} problems a level", levels)
    _draw_paper(panels[-1], models)
    countdown = rows[0]["functions"] == "countdown"
    _dress(panels[-1], SOURCE.format(what="Countdown" if countdown else "held-out functions"), NOTE, levels)
    for panel in panels:
        panel.set_xlabel(f"level ({'numbers given' if countdown else 'functions composed'})")
    panels[0].set_ylabel("correct answers, %")
    _finish(drawing, panels, rows, title)
    return drawing


def _draw_ours(panel: "Axes", rows: Sequence[Summary], models: Sequence[str]) -> None:
    """A line an arm with its 95 % interval; arms stand a little apart so that their bars do not hide each other."""
    for place, model in enumerate(models):
        mine = sorted((row for row in rows if row["model"] == model), key=lambda row: row["level"])
        shift = _shift(place, models)
        percent = [[100 * row[key] for row in mine] for key in ("accuracy", "low", "high")]
        below = [value - low for value, low in zip(percent[0], percent[1], strict=True)]
        above = [high - value for value, high in zip(percent[0], percent[2], strict=True)]
        panel.errorbar(
            [row["level"] + shift for row in mine], percent[0], yerr=[below, above], elinewidth=1, **_line(model, place)
        )


def _shift(place: int, models: Sequence[str]) -> float:
    return 0.08 * (place - (len(models) - 1) / 2)


def _draw_paper(panel: "Axes", models: Sequence[str]) -> None:
    """What the paper's text states; an upper bound is an open marker."""
    for place, model in enumerate(models):
        stated = [one for one in STATED if one.arm == model]
        if not stated:
            continue
        look, shift = _line(model, place), _shift(place, models)
        panel.plot([one.level + shift for one in stated], [one.percent for one in stated], **look)
        for one in stated:
            if one.bound:
                panel.plot([one.level + shift], [one.percent], **{**look, "markerfacecolor": "white"})


def _line(model: str, place: int) -> dict[str, Any]:
    look = LOOKS.get(model) or Look(SPARE[place % len(SPARE)], "*", "-", model)
    return {
        "color": look.colour, "marker": look.marker, "linestyle": look.line, "label": look.label,
        "linewidth": 2.2 if model in HERO else 1.5, "markersize": 6,
    }  # fmt: skip


def _dress(panel: "Axes", title: str, note: str, levels: Sequence[int]) -> None:
    panel.set_title(title, fontsize=12, fontweight="bold", loc="left", pad=20)
    panel.text(0, 1.02, note, transform=panel.transAxes, fontsize=8.5, color="#555555")
    panel.set_xticks(list(levels))
    panel.set_xlim(min(levels) - 0.4, max(levels) + 0.4)
    panel.set_ylim(-3, 103)


def _finish(drawing: "Figure", panels: Sequence["Axes"], rows: Sequence[Summary], title: str) -> None:
    """Title, and one legend for all panels."""
    seeds, kind = rows[0]["n_seeds"], rows[0]["interval"]
    what = (
        f"Accuracy by level, {'mean of ' if seeds > 1 else ''}{plural(seeds, 'seed')}; bars: 95 % interval over {kind}"
    )
    drawing.suptitle(f"{title}: {what[0].lower()}{what[1:]}" if title else what, x=0.01, ha="left", fontsize=12)
    handles, labels = panels[0].get_legend_handles_labels()
    drawing.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels) if len(labels) <= 7 else 5,
        frameon=False,
        fontsize=10,
    )


def _identity(settings: FigureSettings, models: Sequence[str], ending: str) -> dict[str, Any]:
    from matplotlib import __version__

    return {"models": list(models), "title": settings.title, "format": ending, "matplotlib": __version__}
