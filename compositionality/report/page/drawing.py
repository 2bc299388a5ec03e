"""Figures as files with fixed bytes, and as SVG that a page can recolour."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compositionality.report.figure import DPI, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "pdf")
INK, MUTED, GRID = "#1b1e23", "#5a616b", "#e2e5e9"
"""Text, second text, lines of a figure: the page replaces them by its own, so that they are read in the dark too."""
_WIDTH = re.compile(r' width="([\d.]+)pt"')
LARGEST, LEAST = 4 / 3 * 1.15, 4 / 3 * 0.8
"""Pixels of the page for a point of the drawing; below the least words are too small: it scrolls in its frame."""
_IN_THE_PAGE = {
    INK: "--ink", "#000000": "--ink", MUTED: "--muted", "#555555": "--muted", GRID: "--line", "#e6e6e6": "--line",
    "#ffffff": "--card",
}  # fmt: skip
PAGE_STYLE = {
    **STYLE,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": GRID,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "figure.facecolor": "#ffffff",
    "axes.facecolor": "none",
}


@dataclass(frozen=True)
class Drawn:
    """A figure: its files by ending, what it shows, and the inputs that it was drawn from."""

    name: str
    title: str
    caption: str
    files: Mapping[str, bytes]
    inputs: tuple[str, ...]
    ours: bool = True  # drawn here, in colours that the page knows how to change


def files_of(drawing: "Figure", stamp: str) -> dict[str, bytes]:
    """The figure in every format; ``stamp`` (data, config, code) is in each file's own metadata."""
    return {ending: _saved(drawing, ending, stamp) for ending in FORMATS}


def metadata(ending: str, stamp: str) -> dict[str, str | None]:
    """No date and no program's name: the same input gives the same bytes."""
    if ending == "svg":
        return {"Date": None, "Creator": None, "Description": stamp}
    if ending == "pdf":
        return {"CreationDate": None, "Creator": None, "Producer": None, "Subject": stamp}
    return {"Software": None, "Description": stamp}


def inline(svg: bytes, name: str, *, recolour: bool) -> str:
    """The svg element alone, as wide as the page lets it be up to its own size, its ids its own within the page.

    ``recolour``: the colours of text and lines are left to the page's style.
    """
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    if recolour:
        for colour, variable in _IN_THE_PAGE.items():
            text = re.sub(colour, f"var({variable})", text, flags=re.IGNORECASE)
        # A rectangle as large as the drawing is its paper: the page has its own.
        text = re.sub(r'(<g id="[^"]*-patch_1">\s*<path [^>]*?)fill: var\(--card\)', r"\1fill: none", text, count=1)
    start, _, rest = text.partition(">")
    width = float(_WIDTH.findall(start)[0])
    start = re.sub(r' (width|height)="[^"]*"', "", start)
    size = f"max-width: {width * LARGEST:.0f}px; min-width: {width * LEAST:.0f}px"
    return f'{start} role="img" aria-labelledby="{name}-title" style="{size}">{rest}'


def _saved(drawing: "Figure", ending: str, stamp: str) -> bytes:
    stream = io.BytesIO()
    drawing.savefig(stream, format=ending, dpi=DPI, metadata=metadata(ending, stamp))
    return stream.getvalue()
