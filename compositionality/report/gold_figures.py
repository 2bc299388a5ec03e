"""Figures of each model beside the one that it starts from, problem by problem; a run along its checkpoints."""

from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from compositionality.evaluate.gold_tables import (
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
from compositionality.report.theme import INK, LEVEL_COLOURS, MUTED, Styles
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
