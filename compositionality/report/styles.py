"""Titles, colours and markers of arms, groups, levels and failure classes: the same in every figure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compositionality.errors import UserError
from compositionality.evaluate.tables import TITLES

INK, MUTED, GRID, PAPER = "#1b1e23", "#5a616b", "#e2e5e9", "#ffffff"
"""Text, secondary text, lines, background: the page replaces them by the colours of its theme."""
LEVEL_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C510A", "#5E3C99")
"""Of levels 1, 2, …: those of Okabe & Ito, then two more."""
LEVEL_MARKERS = "osD^vPX*"


@dataclass(frozen=True)
class ArmStyle:
    """How an arm is drawn. Colours of Okabe & Ito can be told apart by colour-blind readers."""

    title: str
    colour: str
    marker: str = "*"
    line: str = "-"
    width: float = 1.5


Styles = Mapping[str, ArmStyle]
ARMS: Styles = {
    "base": ArmStyle("base model", "#999999", "x", ":"),
    "stage1": ArmStyle("stage 1 (atoms)", INK, "s", "--"),
    "rl-level1": ArmStyle("RL on level 1", "#56B4E9", "v", "--"),
    "rl-level2": ArmStyle("RL on level 2", "#D55E00", "o", "-", 2.2),
    "rl-level1to2": ArmStyle("RL on levels 1 and 2", "#E69F00", "^", "-"),
    "rl-level2-verl": ArmStyle("RL on level 2, verl", "#0072B2", "<", "-"),
    "rft": ArmStyle("RFT on level 2", "#009E73", "D", "-."),
    "rft-matched": ArmStyle("RFT, RL's budget", "#CC79A7", "P", "-."),
    "rl-level2-shuffled": ArmStyle("control: rewards shuffled", "#882255", "X", ":"),
    "rl-level2-format": ArmStyle("control: reward for format", "#8C510A", "h", ":"),
    "string-base": ArmStyle("string-base", "#999999", "x", ":"),
    "string-rl-level1to2": ArmStyle("string-base + RL, levels 1 and 2", "#56B4E9", "v", "--"),
    "multi-base": ArmStyle("multi-base", INK, "s", "--"),
    "multi-rl-level1": ArmStyle("multi-base + RL, level 1", "#E69F00", "^", "-"),
    "multi-rl-level1to2": ArmStyle("multi-base + RL, levels 1 and 2", "#D55E00", "o", "-", 2.2),
}
SPARE_COLOURS = ("#0072B2", "#117733", "#5E3C99", "#D55E00", "#CC79A7", "#8C510A", "#009E73", "#56B4E9")
SPARE_MARKERS = "*pdH8>oP"
CLASS_COLOURS = {
    "correct": "#009E73",
    "ignores_composition": "#D55E00",
    "incomplete_trace": "#E69F00",
    "incorrect_composition": "#F0E442",
    "atomic_error": "#56B4E9",
    "format": "#0072B2",
    "overlong": "#CC79A7",
    "unparsed": "#999999",
}


def arm_styles(models: Iterable[str], given: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, ArmStyle]:
    """The style of every model. ``given``: title and colour by model, before those of ``ARMS``.

    Models that neither has get their name as title and one of the spare colours that no other model uses.
    """
    given = given or {}
    models = list(dict.fromkeys(models))
    chosen = {model: ARMS[model] for model in models if model in ARMS}
    used = {style.colour for style in chosen.values()} | {look.get("colour") for look in given.values()}
    free = [place for place, colour in enumerate(SPARE_COLOURS) if colour not in used] or [0]
    for number, model in enumerate(model for model in models if model not in ARMS):
        place = free[number % len(free)]
        chosen[model] = ArmStyle(model, SPARE_COLOURS[place], SPARE_MARKERS[place])
    return {model: _with(chosen[model], given.get(model, {})) for model in models}


def _with(style: ArmStyle, look: Mapping[str, str]) -> ArmStyle:
    unknown = sorted(look.keys() - {"title", "colour"})
    if unknown:
        raise UserError(f"arms: {unknown[0]!r} unknown; an arm has title and colour")
    return replace(style, title=look.get("title", style.title), colour=look.get("colour", style.colour))


def group_title(group: str) -> str:
    """The words for a group of problems: a known title, or the group's name."""
    return TITLES.get(group, group.replace("_", " "))


def class_colours(classes: Sequence[str]) -> dict[str, str]:
    """A colour for every failure class, in order; classes that are not known get those of levels."""
    spare = [colour for colour in LEVEL_COLOURS if colour not in CLASS_COLOURS.values()] or list(LEVEL_COLOURS)
    unknown = [name for name in classes if name not in CLASS_COLOURS]
    return {name: CLASS_COLOURS.get(name) or spare[unknown.index(name) % len(spare)] for name in classes}


def unique(rows: Iterable[Mapping[str, Any]], key: str) -> list[Any]:
    """The values of a column, once each, as they come."""
    return list(dict.fromkeys(row[key] for row in rows))
