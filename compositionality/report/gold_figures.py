"""Figures of each model beside the one that it starts from, by problem and by function; a run along its checkpoints."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from compositionality.console import natural_key
from compositionality.evaluate.failures import by_function, by_pair
from compositionality.evaluate.gold_tables import (
    ANY,
    PARTS,
    chain_and_product,
    lift_by_decile,
    prob_by_part,
    rank_by_part,
    read_exact,
)
from compositionality.evaluate.ranks import AFTER
from compositionality.evaluate.results import Results
from compositionality.evaluate.summary import HELDOUT
from compositionality.evaluate.table import SOLVED
from compositionality.report.figures import Chart, level_colour, level_name, panels, tooltip, with_arms
from compositionality.report.theme import GRID, INK, LEVEL_COLOURS, MARKERS, MUTED, Styles, group_title
from compositionality.study.model import all_arms
from compositionality.tasks.diagnosis import ROLES

FLOOR, NEW = 1e-16, 1e-6  # smaller probabilities are drawn there; a solved problem below this one before is new
TICKS = [1e-15, 1e-10, 1e-5, 1]
LINES: tuple[tuple[str, float, float, dict[str, Any]], ...] = (
    (f"↑ solved: P after > {SOLVED:g}", 1e-10, SOLVED, {"dy": 10}),
    (f"← P before < {NEW:g}".replace("e-06", "e-6"), NEW, FLOOR, {"align": "right", "dx": -4, "dy": -2}),
    ("↖ unchanged", 1e-12, 1e-13, {"align": "left"}),
)
"""Words beside the lines of ``gold_probability``: what they say, and where."""
FRAME_AND_WORDS: tuple[dict[str, Any], ...] = ({"stroke": "white", "strokeWidth": 3}, {})
ROLE_TITLES = dict(zip(ROLES, ("name", "input or handed-on string", "result", "end"), strict=True))


def starts_of(results: Results) -> dict[str, str]:
    """Return the model that each starts from: as its arm says, else the first."""
    arms = all_arms()
    return {model: arms[model].start if model in arms else results.arms[0] for model in results.arms}


def gold_rows(results: Results, replicate: str) -> pd.DataFrame:
    """Return held-out problems in one replicate: P before and after, and what each role gained in nats."""
    rows = results.rows[results.rows["replicate"] == replicate].dropna(subset="gold_log_prob")
    rows, parts = rows[rows["group"] == HELDOUT], [pd.DataFrame(columns=["model", *ROLES])]
    for model, start, both in beside_starts(rows, starts_of(results)):
        lists = both[["gold_log_prob_by_step_role", "gold_log_prob_by_step_role_0"]].dropna()
        gains = [
            np.subtract(*map(np.array, pair)).reshape(-1, len(ROLES)).sum(axis=0) / 100 for pair in lists.to_numpy()
        ]
        probs = {"before": np.exp(both["gold_log_prob_0"]), "after": np.exp(both["gold_log_prob"])}
        made = both[["level", "problem"]].assign(model=model, start=start, **probs)
        parts.append(made.join(pd.DataFrame(gains, lists.index, ROLES)))
    return pd.concat([part for part in parts if len(part)] or parts)


def beside_starts(rows: pd.DataFrame, starts: Mapping[str, str]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield each model, the one that it starts from, and both their rows of each problem, the latter's with ``_0``."""
    for model, start in starts.items():
        before = rows[rows["arm"] == start]
        yield (
            model,
            start,
            rows[rows["arm"] == model].merge(before, on=["file", "problem", "level"], suffixes=("", "_0")),
        )


def answer_rows(results: Results, replicate: str) -> pd.DataFrame:
    """Return problems in one replicate: the share right before RL and after it; ``step``: of one answer more."""
    rows = results.rows[(results.rows["replicate"] == replicate) & (results.rows["judged"] > 0)]
    starts = {model: start for model, start in starts_of(results).items() if model.startswith(AFTER)}
    parts = [pd.DataFrame(columns=["model"])]
    for model, _, both in beside_starts(rows, starts):
        shares = {"before": both["right_0"] / both["judged_0"], "after": both["right"] / both["judged"]}
        parts.append(both[["level", "problem"]].assign(model=model, **shares, step=1 / both["judged"].max()))
    return pd.concat([part for part in parts if len(part)] or parts)


def gold_probability(rows: Any, styles: Styles) -> Chart:
    """Draw P of the gold solution after against before, a dot a problem, a panel an arm; its lines are named."""
    frame = with_arms(rows, styles)[["arm", "level", "problem", "before", "after"]]
    frame = frame.assign(panel=frame["arm"], name=frame["level"].map(level_name))
    frame[["before", "after"]] = frame[["before", "after"]].clip(lower=FLOOR)
    scale = alt.Scale(type="log", domain=[FLOOR, 1], padding=8)
    axis = alt.Axis(values=TICKS, labelExpr="datum.value == 1 ? '1' : format(datum.value, '.0e')")
    base = alt.Chart().encode(alt.X("before:Q", title="P before", scale=scale, axis=axis))
    y = alt.Y("after:Q", title="P after", scale=scale, axis=axis)
    one = alt.Chart().transform_aggregate(n="count()", groupby=["panel"])  # a row a panel, for lines and their words
    layers = [
        base.mark_line(color=MUTED).encode(alt.Y("before:Q", title="P after", scale=scale)),
        one.mark_rule(color=MUTED).encode(y=alt.datum(SOLVED)),
        one.mark_rule(color=MUTED, strokeDash=[3, 3]).encode(x=alt.datum(NEW)),
        problem_dots(base, frame, 24).encode(y),
        *(  # words above the dots, first their frame in the colour of the page
            one.mark_text(text=words, fontSize=10, color=INK, **place, **look).encode(
                x=alt.datum(at), y=alt.datum(height)
            )
            for words, at, height, place in LINES
            for look in FRAME_AND_WORDS
        ),
    ]
    return panels(layers, frame, 3).add_params(alt.param(name="picked", value=-1))


def problem_dots(base: alt.Chart, frame: pd.DataFrame, size: int) -> alt.Chart:
    """Return marks of problems without their place, the one that the page shows marked (``at``: its place there)."""
    picked = "datum.at === picked"
    dots: alt.Chart = base.mark_circle(clip=True, opacity=0.5, cursor="pointer", strokeWidth=2).encode(
        level_colour(frame),
        tooltip=[*tooltip("level", "problem"), *(alt.Tooltip(f"{p}:Q", format=".2g") for p in ("before", "after"))],
        size=alt.condition(picked, alt.value(160), alt.value(size)),
        stroke=alt.condition(picked, alt.value(INK), alt.value(None)),
    )
    return dots


def answers(rows: Any, styles: Styles) -> Chart:
    """Draw the share right after RL against before, a dot a problem, a panel an arm; equal ones as a disc, easy inside.

    The largest disc of a panel fills its place, so that areas are counts; these are written above where an answer is
    right or wrong, nothing between.
    """
    frame = with_arms(rows, styles)[["arm", "level", "problem", "before", "after", "step"]]
    step, frame = float(frame["step"].min()), frame.assign(panel=frame["arm"], name=frame["level"].map(level_name))
    cell: list[Any] = ["panel", "before", "after"]
    scale = alt.Scale(domain=[-0.6 * step, 1 + 0.6 * step], nice=False)
    axis = alt.Axis(format="%", values=[0, 0.5, 1], grid=False)
    if step == 1:
        axis = alt.Axis(labelExpr="datum.value ? 'right' : 'wrong'", values=[0, 1], grid=False)
    axes = (
        alt.X("x:Q", title="before RL", scale=scale, axis=axis),
        alt.Y("y:Q", title="after RL", scale=scale, axis=axis),
    )
    in_order: list[Any] = [alt.SortField(key) for key in ("level", "problem")]
    discs = alt.Chart().transform_window(place="row_number()", groupby=cell, sort=in_order)
    discs = discs.transform_joinaggregate(most="max(place)", groupby=["panel"])
    radius = f"{0.38 * step} * sqrt(datum.place / datum.most)"
    discs = discs.transform_calculate(
        x=f"datum.before + {radius} * cos(2.4 * datum.place)", y=f"datum.after + {radius} * sin(2.4 * datum.place)"
    )
    counts = alt.Chart().transform_aggregate(n="count()", groupby=cell)
    counts = counts.transform_calculate(x="datum.before", y=f"datum.after + {0.5 * step}").mark_text(color=INK)
    layers = [problem_dots(discs, frame, 10).encode(*axes)]
    layers += [counts.encode(*axes, text="n:Q")] if step == 1 else []
    return panels(layers, frame.drop(columns="step"), 4, 215, 215).add_params(alt.param(name="picked", value=-1))


def gold_roles(rows: Any, styles: Styles) -> Chart:
    """Draw the mean gain in log-probability, stacked by role of the tokens, a bar a level, a panel an arm."""
    titles = [*ROLE_TITLES.values()]
    frame = with_arms(rows, styles).rename(columns=ROLE_TITLES)
    frame = frame.melt(["arm", "level"], titles, "role", "gain").dropna()
    frame = frame.groupby(["arm", "level", "role"], sort=False)["gain"].mean().reset_index()
    colour = alt.Color("role:N", scale=alt.Scale(domain=titles, range=LEVEL_COLOURS[: len(titles)]))
    x = alt.X("gain:Q", title="gain in log-probability, nats").stack("zero")
    bars = alt.Chart().mark_bar().encode(x, alt.Y("level:O"), colour, tooltip=["role:N", *tooltip("level", "gain")])
    return panels([bars], frame.assign(panel=frame["arm"]), 3, height=120)


def checkpoint_rows(results: Results) -> pd.DataFrame:
    """Return the mean probability of each part of held-out gold solutions by ``step``, the number in a model's name."""
    table = prob_by_part(read_exact(results, {name: name for name in results.arms}))
    steps = table["model"].str.extract(r"^step(\d+)$")[0]
    return table.assign(step=steps.astype(float)).dropna(subset="step")


def checkpoints(rows: pd.DataFrame) -> Chart:
    """Draw P of each part of the gold solution, in all its steps together, along the checkpoints; a panel a level."""
    frame = rows[["step", "level", "part", "prob"]].assign(panel=rows["level"].map(level_name))
    colour = alt.Color("part:N", scale=alt.Scale(domain=PARTS, range=LEVEL_COLOURS[: len(PARTS)]))
    y = alt.Y("prob:Q", title="probability", scale=alt.Scale(domain=[0, 1]))
    lines = (
        alt.Chart().mark_line(point=True).encode(alt.X("step:Q"), y, colour, tooltip=tooltip("step", "part", "prob"))
    )
    return panels([lines], frame, 3)


FIGURES = {"gold_probability": gold_probability, "gold_roles": gold_roles}
TABLES = {"gold_probability": (lift_by_decile, chain_and_product), "gold_roles": (rank_by_part,)}


# ---- heat maps by inner and outer function

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
