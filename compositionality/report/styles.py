"""Titles, colours and markers of arms, groups, levels and failure classes: the same in every figure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from compositionality.errors import UserError
from compositionality.evaluate.tables import TITLES
from compositionality.study.arms import all_arms

INK, MUTED, GRID, PAPER = "#1b1e23", "#5a616b", "#e2e5e9", "#ffffff"
"""Text, secondary text, lines, background: the page replaces them by the colours of its theme."""
LEVEL_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C510A", "#5E3C99")
"""Of levels 1, 2, …: those of Okabe & Ito, then two more."""
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
LEVEL_MARKERS = "osD^vPX*"


@dataclass(frozen=True)
class ArmStyle:
    """How an arm is drawn. Colours of Okabe & Ito can be told apart by colour-blind readers."""

    title: str
    colour: str = ""
    marker: str = ""
    line: str = "-"
    width: float = 1.5


Styles = Mapping[str, ArmStyle]
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


@cache
def study_styles() -> Styles:
    """The style of every arm of ``config/study/``; an empty colour or marker is chosen by ``arm_styles``."""
    arms = all_arms().items()
    return {name: ArmStyle(arm.title, arm.colour, arm.marker, arm.line or "-", arm.width) for name, arm in arms}


def arm_styles(models: Iterable[str], given: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, ArmStyle]:
    """The style of every model: its arm's of ``config/study/``, with the title and colour ``given`` before those.

    Models without an arm have their name as title. A model without a colour gets one that no other model uses.
    """
    models = list(dict.fromkeys(models))
    chosen = {name: _given(study_styles().get(name, ArmStyle(name)), (given or {}).get(name, {})) for name in models}
    used = {style.colour for style in chosen.values()}
    free = [place for place, colour in enumerate(SPARE_COLOURS) if colour not in used] or [0]
    plain = [name for name in models if not chosen[name].colour]
    for number, name in enumerate(plain):
        place = free[number % len(free)]
        marker = chosen[name].marker or SPARE_MARKERS[place]
        chosen[name] = replace(chosen[name], colour=SPARE_COLOURS[place], marker=marker)
    return {name: replace(style, marker=style.marker or "*") for name, style in chosen.items()}


def _given(style: ArmStyle, look: Mapping[str, str]) -> ArmStyle:
    unknown = sorted(look.keys() - {"title", "colour"})
    if unknown:
        raise UserError(f"arms: {unknown[0]!r} unknown; an arm has title and colour")
    if "colour" in look and not _COLOUR.fullmatch(look["colour"]):
        raise UserError(f"arms: colour {look['colour']!r}: give red, green and blue as #0072B2")
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
