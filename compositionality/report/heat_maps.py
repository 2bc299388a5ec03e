"""Heat maps by inner and outer function: right answers; how surely a result is handed on, before and after training."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from compositionality.console import natural_key
from compositionality.evaluate.failures import by_function, by_pair
from compositionality.evaluate.gold_tables import ANY
from compositionality.report.figures import Chart, panels, tooltip, with_arms
from compositionality.report.theme import GRID, MARKERS, MUTED, Styles, group_title

ALONE, STEP = "alone", "in a step"
"""Columns of a heat map before those of the inner functions: the function alone, and at any step that applies it."""
PLACES, NO_DATA = ("outer", "inner"), "no data"


def function_rows(labels: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the share right of each function alone, in any step, and of each pair: means over the seeds' labels.

    ``inner``: ``ALONE``, ``STEP`` or a function; ``n``: completions, steps in ``STEP``, of all seeds.
    """
    columns = ["model", "problems", "group", "outer", "inner", "right", "n"]
    parts = [pd.DataFrame(columns=columns)]
    for table in labels:
        functions, pairs = by_function(table).rename(columns={"function": "outer", "reached": "n"}), by_pair(table)
        if functions.empty:
            continue
        right = {ALONE: functions["alone"], STEP: 1 - functions["error_rate"].astype(float)}
        parts += [functions.assign(inner=inner, right=share)[columns] for inner, share in right.items()]
        if not pairs.empty:
            listed = pairs["outer"].isin(functions["outer"]) & pairs["inner"].isin(functions["outer"])
            parts.append(pairs[listed].rename(columns={"accuracy": "right"})[columns])
    rows = pd.concat([part for part in parts if len(part)] or parts).dropna(subset="right")
    cells = rows.astype({"right": float, "n": int}).groupby(columns[:5], sort=False)
    return cells.agg(right=("right", "mean"), n=("n", "sum"), n_seeds=("n", "size")).reset_index()


def functions(rows: Any, styles: Styles) -> Chart:
    """Draw ``function_rows`` as heat maps: a panel for each arm and group."""
    frame = with_arms(rows, styles)
    frame["panel"] = frame["arm"] + "\n" + frame["group"].map(group_title)
    return pair_maps(frame, "right", (ALONE, STEP), 4)


def hand_over(rows: pd.DataFrame, styles: Styles) -> Chart:
    """Draw ``hand_over_by_pair`` as heat maps: a panel for each start, before, and for each arm, after."""
    starts = rows.assign(model=rows["start"], start="", after=rows["before"])
    frame = pd.concat([rows, starts]).drop_duplicates(["model", "outer", "inner"])
    frame = with_arms(frame, styles).sort_values("model", key=lambda names: names.map([*styles].index), kind="stable")
    titles = {name: f"\nfrom {styles[name].title}" for name in rows["start"].unique()}
    frame["panel"] = frame["arm"] + frame["start"].map(titles).fillna("\nbefore")
    return pair_maps(frame.rename(columns={"after": "P"}), "P", (ANY,), 3)


def pair_maps(frame: pd.DataFrame, value: str, first: Sequence[str], columns: int) -> Chart:
    """Draw a share by inner and outer function, a panel each; ``first``: what is before the functions' names.

    A cell without a value has a cross: left empty it would look like a small share on a dark page.
    """
    names = sorted({*frame["outer"]} - {*first}, key=natural_key)
    short = dict(zip(names, short_names(names), strict=True))
    frame, order = frame.replace({"outer": short, "inner": short}), [*first, *short.values()]
    cells = [frame[["panel", "arm"]].drop_duplicates(), *(frame[[place]].drop_duplicates() for place in PLACES)]
    frame = cells[0].merge(cells[1], "cross").merge(cells[2], "cross").merge(frame, "left")
    frame["missing"] = frame[value].isna().map({True: NO_DATA})
    # a gradient would be an image, which the page's rules forbid
    legend = alt.Legend(type="symbol", format="%", title=value, symbolStrokeColor=GRID, symbolStrokeWidth=1)
    base = alt.Chart().encode(
        alt.X("inner:N", title="inner function", sort=order, axis=alt.Axis(labelAngle=-90, labelFontSize=9)),
        alt.Y("outer:N", title="outer function", sort=order, axis=alt.Axis(labelFontSize=9)),
        tooltip=[*(alt.Tooltip(f"{place}:N") for place in PLACES), *tooltip("arm", **{value: value})],
    )
    cell = base.transform_filter(f"isValid(datum.{value})").mark_rect(stroke=GRID).encode(
        alt.Color(f"{value}:Q", scale=alt.Scale(scheme="cividis", domain=[0, 1]), legend=legend)
    )  # fmt: skip
    cross = alt.Scale(domain=[NO_DATA], range=[MARKERS["x"]])
    none = base.transform_filter("isValid(datum.missing)").mark_point(fill=MUTED, strokeWidth=0, size=18, opacity=1)
    return panels(
        [cell, none.encode(alt.Shape("missing:N", scale=cross, legend=alt.Legend(symbolFillColor=MUTED)))],
        frame[["panel", *PLACES, value, "missing", "arm"]], columns, 240, 220,
    )  # fmt: skip


def short_names(names: Sequence[str]) -> list[str]:
    """Return the numbers of names that differ in nothing else (func_3 → 3); other names as they are."""
    stems = {name.rstrip("0123456789") for name in names}
    return [name[len(next(iter(stems))) :] for name in names] if len(stems) == 1 else list(names)
