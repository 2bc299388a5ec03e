"""How figures are drawn and saved: one style, the same bytes for the same input, SVG that a page can recolour."""

import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from compositionality.report.styles import GRID, INK, MUTED, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "pdf")
DPI = 100
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.facecolor": PAPER,
    "grid.color": GRID,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "compositionality",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
}
"""No dates, fixed ids, text as text."""
_THEME = {INK: "--ink", "#000000": "--ink", MUTED: "--muted", GRID: "--line", PAPER: "--card"}
_WIDTH = re.compile(r' width="([\d.]+)pt"')
_LARGEST, _SMALLEST = 4 / 3 * 1.15, 4 / 3 * 0.8
"""Pixels of the page for a point of the figure; a figure that would be smaller scrolls in its frame."""
_PAGE = 1100
"""Pixels of a wide page: there the widest figure is seen whole."""


def save(make: "Callable[[], Figure]", formats: Sequence[str], stamp: str = "") -> dict[str, bytes]:
    """The figure that ``make`` draws, as bytes by format; ``stamp`` goes into each file's metadata."""
    import matplotlib as mpl

    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}):
        figure = make()
        figure.draw_without_rendering()
        figure.set_layout_engine(None)  # laid out once, not for every format
        return {name: _saved(figure, name, stamp) for name in formats}


def _saved(figure: "Figure", name: str, stamp: str) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format=name, dpi=DPI, metadata=_metadata(name, stamp))
    return stream.getvalue()


def _metadata(name: str, stamp: str) -> dict[str, str | None]:
    """No date and no program's name: the same input gives the same bytes."""
    if name == "svg":
        return {"Date": None, "Creator": None, "Description": stamp or None}
    if name == "pdf":
        return {"CreationDate": None, "Creator": None, "Producer": None, "Subject": stamp or None}
    return {"Software": None, **({"Description": stamp} if stamp else {})}


def inline_svg(svg: bytes, name: str) -> str:
    """The svg element for a page: its ids prefixed with ``name``, text and lines in the colours of the page's theme."""
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    for colour, variable in _THEME.items():
        text = re.sub(colour, f"var({variable})", text, flags=re.IGNORECASE)
    # The first patch is the background of the whole figure: the page has its own.
    text = re.sub(r'(<g id="[^"]*-patch_1">\s*<path [^>]*?)fill: var\(--card\)', r"\1fill: none", text, count=1)
    start, _, rest = text.partition(">")
    width = float(_WIDTH.findall(start)[0])
    start = re.sub(r' (width|height)="[^"]*"', "", start)
    size = f"max-width: {width * _LARGEST:.0f}px; min-width: {min(width * _SMALLEST, _PAGE):.0f}px"
    return f'{start} role="img" aria-labelledby="{name}-title" style="{size}">{rest}'


def new_panels(size: tuple[float, float], rows: int, columns: int, **shared: Any) -> "tuple[Figure, list[list[Axes]]]":
    """A figure of ``size`` inches and its panels, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, [list(line) for line in figure.subplots(rows, columns, squeeze=False, **shared)]


def title_panel(panel: "Axes", title: str, note: str, height: float = 1.02) -> None:
    """A title with a smaller line under it; ``height``: where the line stands, in the panel's coordinates."""
    panel.set_title(title, pad=18 if height < 1.1 else 38)
    panel.text(0, height, note, transform=panel.transAxes, fontsize=8.5, color=MUTED)


def shared_legend(figure: "Figure", panels: "Iterable[Axes]") -> None:
    """One legend below all panels, each label once, in rows of about equal length."""
    handles: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        fit = max(1, int(figure.get_figwidth() / (0.7 + 0.09 * max(map(len, handles)))))
        columns = math.ceil(len(handles) / math.ceil(len(handles) / fit))
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns, fontsize=10)
