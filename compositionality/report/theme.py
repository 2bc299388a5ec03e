"""Looks: titles, colours and marks of arms, groups, failure classes; a chart as a spec, PNG, SVG or PDF."""

import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from compositionality.errors import UserError
from compositionality.evaluate.tables import TITLES
from compositionality.study.model import all_arms

if TYPE_CHECKING:
    import altair as alt

INK, MUTED, GRID, PAPER = "#1b1e23", "#5a616b", "#e2e5e9", "#ffffff"
"""Text, secondary text, lines, background: the page's style sheet replaces them by the colours of its theme."""
SPARE_COLOURS = ("#0072B2", "#117733", "#5E3C99", "#D55E00", "#CC79A7", "#8C510A", "#009E73", "#56B4E9")
LEVEL_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C510A", "#5E3C99")
"""Colours of levels 1, 2, …: those of Okabe & Ito, which colour-blind readers can tell apart, then two more."""
CLASS_COLOURS = {
    **{"correct": "#009E73", "ignores_composition": "#D55E00", "incomplete_trace": "#E69F00", "overlong": "#CC79A7"},
    **{
        "incorrect_composition": "#F0E442",
        "atomic_error": "#56B4E9",
        "miscopied_string": "#8C510A",
        "format": "#0072B2",
        "unparsed": "#999999",
    },
}
MARKERS = {
    **{"o": "circle", "s": "square", "D": "diamond", "^": "triangle-up", "v": "triangle-down", "P": "cross"},
    **{"<": "triangle-left", ">": "triangle-right", "d": "M0,-1L.5,0L0,1L-.5,0Z", "X": "M-1,-1H1L-1,1H1Z"},
    "x": "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z",
    "*": "M0,-1L.22,-.31L.95,-.31L.36,.12L.59,.81L0,.38L-.59,.81L-.36,.12L-.95,-.31L-.22,-.31Z",
    "p": "M0,-1L.95,-.31L.59,.81L-.59,.81L-.95,-.31Z",
    "h": "M0,-1L.87,-.5L.87,.5L0,1L-.87,.5L-.87,-.5Z",
    "H": "M-1,0L-.5,-.87L.5,-.87L1,0L.5,.87L-.5,.87Z",
}
"""Vega's shapes, or paths, of the markers that studies name."""
SPARE_MARKERS = "*pdH<>oP"
DASHES = {"-": [], "--": [6, 3], "-.": [7, 2, 2, 2], ":": [2, 2]}
WRAPPED = r"split(trim(replace(datum.label, regexp('(.{1,16})( |$)', 'g'), '$1\n')), '\n')"
"""Vega's expression for labels in lines of 16 characters at most."""
CONFIG: dict[str, Any] = {
    "font": "Liberation Sans, Helvetica Neue, Arial, sans-serif",
    "background": None,
    "aria": False,  # the page names each drawing as a whole
    "view": {"stroke": None},
    "title": {"anchor": "start", "color": INK, "subtitleColor": MUTED, "fontSize": 12},
    "header": {"labelFontSize": 12, "labelFontWeight": "bold", "labelColor": INK, "labelAnchor": "start"},
    "axis": {
        "labelColor": MUTED, "titleColor": INK, "gridColor": GRID, "domainColor": MUTED, "tickColor": MUTED,
        "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelAngle": 0,
    },
    "legend": {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "labelLimit": 260, "symbolSize": 70,
               "columns": 4, "symbolStrokeWidth": 0, "symbolOpacity": 1, "orient": "bottom", "title": None},
}  # fmt: skip


@dataclass(frozen=True)
class ArmStyle:
    """The look of an arm; ``marker`` and ``line`` as in the study's YAML."""

    title: str
    colour: str = ""
    marker: str = ""
    line: str = "-"
    width: float = 1.5


Styles = Mapping[str, ArmStyle]


@cache
def study_styles() -> Styles:
    """Return the style of every arm of ``config/study/``; ``arm_styles`` chooses a colour or marker that is empty."""
    arms = all_arms().items()
    return {name: ArmStyle(arm.title, arm.colour, arm.marker, arm.line or "-", arm.width) for name, arm in arms}


def arm_styles(models: Iterable[str], looks: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, ArmStyle]:
    """Return the style of every model: its arm's in ``config/study/``, or the title and colour that are ``given``.

    Models without an arm have their name as title. A model without a colour gets one that no other model has.
    """
    chosen = dict[str, ArmStyle]()
    for name in models:
        style, look = study_styles().get(name, ArmStyle(name)), (looks or {}).get(name, {})
        if unknown := sorted(look.keys() - {"title", "colour"}):
            raise UserError(f"arms: {unknown[0]!r} unknown; an arm has title and colour")
        if "colour" in look and not re.fullmatch("#[0-9a-fA-F]{6}", look["colour"]):
            raise UserError(f"arms: colour {look['colour']!r}: give red, green and blue as #0072B2")
        chosen[name] = replace(style, title=look.get("title", style.title), colour=look.get("colour", style.colour))
    used = {style.colour for style in chosen.values()}
    free = [place for place, colour in enumerate(SPARE_COLOURS) if colour not in used] or [0]
    for number, name in enumerate([name for name, style in chosen.items() if not style.colour]):
        place = free[number % len(free)]
        marker = chosen[name].marker or SPARE_MARKERS[place]
        chosen[name] = replace(chosen[name], colour=SPARE_COLOURS[place], marker=marker)
    return {name: replace(style, marker=style.marker or "*") for name, style in chosen.items()}


def group_title(group: str) -> str:
    """Return the words for a group of problems: a known title, or the group's name."""
    return TITLES.get(group, group.replace("_", " "))


def class_colours(classes: Sequence[str]) -> dict[str, str]:
    """Return a colour for every failure class, in order; classes that are not known get spare ones."""
    spare = [colour for colour in (*LEVEL_COLOURS, *SPARE_COLOURS) if colour not in CLASS_COLOURS.values()]
    unknown = [name for name in classes if name not in CLASS_COLOURS]
    return {name: CLASS_COLOURS.get(name) or spare[unknown.index(name) % len(spare)] for name in classes}


def unique(rows: Iterable[Mapping[str, Any]], key: str) -> list[Any]:
    """Return the values of a column, once each, as they come."""
    return list(dict.fromkeys(row[key] for row in rows))


def spec_of(chart: "alt.TopLevelMixin") -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart, in this theme."""
    return {**chart.to_dict(), "config": CONFIG}


def rendered(spec: Mapping[str, Any], ending: str, stamp: str = "") -> bytes:
    """Return a specification as png or svg, the same bytes each time, or pdf (svg2pdf orders its parts at random).

    ``stamp``: the Description of a PNG.
    """
    import vl_convert

    spec = {**spec, "background": PAPER}
    if ending == "svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    if ending == "pdf":
        return vl_convert.vegalite_to_pdf(spec)
    png = vl_convert.vegalite_to_png(spec, scale=1.5)
    body = b"tEXtDescription\0" + stamp.encode("latin-1", "replace")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return png[:33] + chunk + png[33:] if stamp else png  # after the signature and IHDR


def renderer_versions() -> dict[str, str]:
    """Return the versions of the packages that decide a figure's bytes."""
    return {name: version(name) for name in ("altair", "vl-convert-python")}
