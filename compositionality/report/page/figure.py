"""A figure of the page: its specification, its words, its rows and the inputs behind it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from compositionality.evaluate.tables import plural
from compositionality.report import figures, paper
from compositionality.report.page.inputs import SHOWN, Inputs
from compositionality.report.theme import Styles, arm_styles, group_title, spec_of, unique
from compositionality.stats.estimate import NESTED
from compositionality.yaml_files import read_yaml_mapping

Row = dict[str, Any]
WORDS: dict[str, dict[str, str]] = read_yaml_mapping(Path(__file__).with_name("figures.yaml"))
ONE_SEED = "one seed (how much other seeds would differ is not known)"
INTERVALS = {NESTED: "seeds, their divisions of the functions, and problems"}
"""Words for kinds of intervals whose names say too little."""
MOST_LINES = 6
"""Models of which a chart by level can be read."""


@dataclass(frozen=True)
class PageFigure:
    """A figure: the chapter that shows it, its Vega-Lite specification, the rows of its CSV file, its inputs.

    ``details``: tables below it that unfold: summary, titles, rows, a note; ``frame``: rows of the CSV file ``name``.
    ``finding``: sentence and lead of a page of which this is the main figure.
    """

    name: str
    title: str
    chapter: str
    caption: str
    spec: dict[str, Any]
    rows: Any
    inputs: Sequence[str]
    details: Sequence[Mapping[str, Any]] = ()
    finding: Mapping[str, str] = field(default_factory=dict)


def figure_of(
    inputs: Inputs,
    name: str,
    chart: Any,
    rows: Any,
    sources: Sequence[str],
    values: Mapping[str, str],
    *sentences: str,
    details: Sequence[Mapping[str, Any]] = (),
) -> PageFigure:
    """Return a chart with its words; ``values`` fill title and caption, ``sentences`` follow it, then the paper's.

    In the heads of ``details`` models have their titles.
    """
    words = WORDS[name]
    stated = words["paper"] if "paper" in words and paper.matching_test(inputs.accuracy) else ""
    caption = " ".join(filter(None, [words["caption"].format(**values), *sentences, stated]))
    title = words["title"].format(**values)
    finding = {str(key): words[key].format(**values) for key in ("sentence", "lead") if key in words}
    styles = styles_of(inputs, [title for table in details if table for title in table["titles"]])
    tables = [
        {**table, "titles": [styles[title].title for title in table["titles"]]} if table else {} for table in details
    ]
    return PageFigure(name, title, words["chapter"], caption, spec_of(chart), rows, sources, tables, finding)


def drawn(
    inputs: Inputs,
    name: str,
    draw: Callable[[Any, Styles], Any],
    rows: Sequence[Row],
    sources: Sequence[str],
    values: Mapping[str, str] | None = None,
    *,
    key: str = "model",
    details: Sequence[Mapping[str, Any]] = (),
) -> PageFigure | None:
    """Return ``rows`` as ``draw`` draws them, in the styles of the arms in ``key``; None where there is no row."""
    if not rows:
        return None
    chart = draw(rows, styles_of(inputs, unique(rows, key)))
    words = words_of(inputs, name, rows) if values is None else values
    return figure_of(inputs, name, chart, rows, sources, words, details=details)


def words_of(inputs: Inputs, name: str, rows: Sequence[Row]) -> dict[str, str]:
    """Return what fills a caption: how many seeds; problems a level, kind of interval, models of this page left out."""
    n = max(row["n_seeds"] for row in rows) if "n_seeds" in rows[0] else len(unique(rows, "seed"))
    measured = "interval" in rows[0]
    noun = "seed" if measured or not any("-" in seed for seed in inputs.seeds) else "replicate"
    dots = "; dots: single seeds" if n <= figures.MOST_DOTS else ""
    words = {"seeds": f"{plural(n, noun)} ({WORDS[name]['seeds'].format(dots=dots)})" if n > 1 else ONE_SEED}
    absent = [name for name in SHOWN.get(inputs.settings.section, ()) if name in inputs.summary["models"]]
    absent = [name for name in absent if measured and name not in unique(rows, "model")]
    titles = ", ".join(styles_of(inputs, absent)[name].title for name in absent)
    words["missing"] = f" Not measured: {titles}." if absent else ""
    return words | ({"n": figures.sizes(rows), "interval": interval_words(rows[0]["interval"])} if measured else {})


def interval_words(interval: str) -> str:
    """Return what an interval is over, for a reader who does not know what a split is."""
    return INTERVALS.get(interval, interval)


def shown_words(inputs: Inputs) -> str:
    """Return the replicate that is shown first, and of a registered study the rule by which it was chosen."""
    rule = ", the replicate with the median effect on the first primary claim"
    return f"{inputs.shown}{rule if inputs.effects else ''}"


def kept_words(inputs: Inputs) -> str:
    """Return the replicate whose completions are shown, and its effect if another is shown first."""
    name, effects = inputs.kept, inputs.effects
    if inputs.shown == name:
        return shown_words(inputs)
    pair = [f"{100 * effects[one]:+.1f}".replace("-", "−") for one in (name, inputs.shown)]
    why = f"of {inputs.shown}, which has the median effect ({pair[1]} points), none were kept"
    return f"{name} (effect on the first primary claim: {pair[0]} points; {why})"


def arms_by_level(inputs: Inputs, models: Sequence[str]) -> tuple[list[str], str]:
    """Return the models that a chart by level shows, and a sentence on those that it leaves to the table."""
    shown = [model for model in models if model in SHOWN.get(inputs.settings.section, models)]
    if len(models) <= MOST_LINES or not shown:
        return [*models], ""
    return shown, WORDS["headline"]["left_out"].format(n=len(shown), total=len(models))


def styles_of(inputs: Inputs, models: Sequence[str]) -> Styles:
    """Return the styles of these models in the order of the study's table; the same colours as there."""
    styles = arm_styles([*inputs.summary["models"], *models], inputs.settings.arms)
    return {model: style for model, style in styles.items() if model in models}


def interval_table(summary: str, rows: Sequence[Row], value: str, *index: str) -> dict[str, Any]:
    """Return a table of shares in per cent with their intervals, a column for each model, to unfold."""
    frame = pd.DataFrame(rows)
    percent = 100 * frame[[value, "low", "high"]].astype(float)
    frame["cell"] = [f"{share:.1f} [{low:.1f}–{high:.1f}]" for share, low, high in percent.itertuples(index=False)]
    frame["group"] = frame["group"].map(group_title)
    return cell_table(summary, frame, *index)


def cell_table(summary: str, frame: pd.DataFrame, *index: str) -> dict[str, Any]:
    """Return a table of cells that a column ``cell`` holds, a column for each model, to unfold."""
    wide = frame.pivot_table("cell", list(index), "model", "first", sort=False).reindex(columns=frame["model"].unique())
    cells = [[*key, *line] for key, line in zip(wide.index, wide.fillna("–").to_numpy().tolist(), strict=True)]
    return {"summary": summary, "titles": [*index, *wide.columns], "rows": cells}
