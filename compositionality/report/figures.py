"""The figures, one function each: rows of a table (shares from 0 to 1) and the arms' styles in, a chart out.

A chart of several panels wraps: ``columns`` is the most of them in a line; the page takes fewer where it is narrow.
"""

import json
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from compositionality.report import paper, theme
from compositionality.report.theme import DASHES, INK, LEVEL_COLOURS, MARKERS, MUTED, Styles, class_colours, group_title

Row = Mapping[str, Any]
Chart = alt.LayerChart | alt.FacetChart
POINTS = 40
"""Points of a line of ``budget``."""
APART = 0.055
"""Distance of labels in ``headline``, a share of the axis."""
SHARE, RIGHT = "share of completions", "right among them"
MOST_DOTS = 5
"""Seeds of which charts by level have a dot each; of more their interval alone."""


def inline(frame: pd.DataFrame) -> alt.InlineData:
    """Return a frame as data of a chart, ``short``. As JSON: Vega reads CSV by eval, which the page forbids."""
    floats = {name: frame[name].map(short) for name in frame.select_dtypes("float")}
    return alt.InlineData(json.loads(frame.assign(**floats).to_json(orient="records", double_precision=15)))


def short(value: float) -> float:
    """Return a number with five digits; a whole one as it is, as it may be a name: a size of models."""
    return value if float(value).is_integer() else float(f"{value:.5g}")


def panels(
    layers: Sequence[alt.Chart], frame: pd.DataFrame, columns: int, width: int = 240, height: int = 200
) -> Chart:
    """Return a panel for each value of ``frame.panel``, in order, under that title, in lines of its width."""
    lines = {
        title: "\n".join(fill(line, 3 * width // 20, break_on_hyphens=False) for line in title.split("\n"))
        for title in frame["panel"].unique()
    }
    facet = alt.Facet(
        "panel:N", title=None, sort=[*lines.values()], header=alt.Header(labelExpr="split(datum.value, '\\n')")
    )
    data = inline(frame.assign(panel=frame["panel"].map(lines)))
    chart = alt.layer(*layers, data=data).properties(width=width, height=height)
    wrapped: Chart = chart.facet(facet, columns=columns).resolve_axis(x="independent")
    return wrapped


def arm_encodings(styles: Styles) -> dict[str, Any]:
    """Return colour, marker and dashes of arms by their titles, in one legend."""
    looks: dict[str, tuple[Any, list[Any]]] = {
        "color": (alt.Color, [style.colour for style in styles.values()]),
        "shape": (alt.Shape, [MARKERS[style.marker] for style in styles.values()]),
        "strokeDash": (alt.StrokeDash, [DASHES[style.line] for style in styles.values()]),
    }
    titles = [style.title for style in styles.values()]
    return {name: made("arm:N", scale=alt.Scale(domain=titles, range=of)) for name, (made, of) in looks.items()}


def level_name(level: int) -> str:
    """Return the words for a level; 0: all levels."""
    return f"level {level}" if level else "all levels"


def panel_titles(frame: pd.DataFrame) -> "pd.Series[str]":
    """Return group, level and number of problems of each row, for the panel that it is in."""
    levels, counts = frame["level"].map(level_name), frame["n_problems"].map("n = {:,}".format)
    return frame["group"].map(group_title) + ", " + levels + "\n" + counts


def level_colour(frame: pd.DataFrame) -> alt.Color:
    """Return the colours of the levels of ``frame``, whose names are in ``name``."""
    levels = sorted(frame["level"].unique())
    colours = [LEVEL_COLOURS[(level - 1) % len(LEVEL_COLOURS)] for level in levels]
    return alt.Color("name:N", scale=alt.Scale(domain=[*map(level_name, levels)], range=colours))


def share(field: str, title: str, *, x: bool = False) -> Any:
    """Return the axis of a share, 0 to 100 %: the vertical one, or with ``x`` the horizontal. Layers need one title."""
    axis = alt.Axis(format="%", tickCount=2 if x else 5)
    return (alt.X if x else alt.Y)(f"{field}:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=axis)


def tooltip(*names: str, **shares: str) -> list[alt.Tooltip]:
    """Return what is shown beside the pointer: columns as they are, then shares in per cent by their titles."""
    plain = [alt.Tooltip(f"{name}:{'N' if name == 'arm' else 'Q'}") for name in names]
    return [*plain, *(alt.Tooltip(f"{field}:Q", title=title, format=".1%") for title, field in shares.items())]


def sizes(rows: Any) -> str:
    """Return how many problems a level has: ``500``, or ``10 to 128``."""
    counts = pd.DataFrame(rows)["n_problems"]
    return " to ".join(f"{count:,}" for count in dict.fromkeys((counts.min(), counts.max())))


def with_arms(rows: Any, styles: Styles) -> pd.DataFrame:
    """Return rows of the arms that have a style, with their titles as ``arm``."""
    frame = pd.DataFrame(rows)
    frame = frame[frame["model"].isin([*styles])]
    return frame.assign(arm=frame["model"].map({name: style.title for name, style in styles.items()}))


def by_level(rows: Any, value: str, words: str, styles: Styles) -> pd.DataFrame:
    """Return panel, arm, level, place on the level axis, ``value``, ends; a row more with a ``dot`` for each seed."""
    frame = with_arms(rows, styles).rename(columns={value: "value"})
    title = {
        group: f"{group_title(group)}: {words}\nn = {sizes(part)} problems a level"
        for group, part in frame.groupby("group", sort=False)
    }
    frame["panel"] = frame["group"].map(title)
    keys = ["panel", "model", "arm", "level"]
    dots = frame[frame["n_seeds"].between(2, MOST_DOTS)].explode("values").rename(columns={"values": "dot"})
    return pd.concat([frame[[*keys, "value", "low", "high"]], dots[[*keys, "dot"]].astype({"dot": float})])


def level_layers(frame: pd.DataFrame, styles: Styles) -> list[alt.Chart]:
    """Return dots, lines, intervals and marks by level; writes ``x``, which sets arms apart, into the frame."""
    order, apart = {name: place for place, name in enumerate(styles)}, min(0.08, 0.7 / len(styles))
    frame["x"] = frame["level"] + apart * (frame.pop("model").map(order) - (len(styles) - 1) / 2)
    axis = alt.Axis(values=sorted(map(int, frame["level"].unique())), format="d", grid=False)
    base = alt.Chart().encode(
        alt.X("x:Q", title="level", axis=axis, scale=alt.Scale(zero=False, nice=False, padding=8))
    )
    mean, arm, y = base.transform_filter("isValid(datum.value)"), arm_encodings(styles), share("value", SHARE)
    inside = alt.condition("datum.bound == 1", alt.value("white"), arm["color"])
    told = tooltip("arm", "level", value="value", low="low", high="high")
    layers = [
        mean.mark_line().encode(y, arm["color"], arm["strokeDash"]),
        mean.mark_rule().encode(share("low", SHARE), alt.Y2("high:Q"), arm["color"]),
        mean.mark_point(size=45, opacity=1).encode(y, arm["color"], arm["shape"], fill=inside, tooltip=told),
    ]
    if frame["dot"].notna().any():
        dots = base.transform_filter("isValid(datum.dot)").mark_circle(size=22, opacity=0.35)
        layers.insert(0, dots.encode(share("dot", SHARE), arm["color"]))
    return layers


def accuracy(rows: Any, handed_on: Any, styles: Styles) -> Chart:
    """Draw means by level, intervals, a dot a seed: a panel for each group, then the paper's; below, ``handed_on``.

    The paper's at the levels that were measured here.
    """
    parts, test = [by_level(rows, "accuracy", "right answers", styles)], paper.matching_test(rows)
    if test:
        title = f"{paper.PAPER['tests'][test]['title']}\nopen mark: upper bound"
        stated = with_arms(paper.stated_accuracy(test), styles)
        parts.append(stated[stated["level"].isin(parts[0]["level"])].assign(panel=title))
    columns = pd.concat(parts)["panel"].nunique()
    if handed_on:
        parts.append(by_level(handed_on, "handed_on", "results handed on", styles))
    frame = pd.concat(parts).reindex(columns=["panel", "model", "arm", "level", "value", "low", "high", "dot", "bound"])
    return panels(level_layers(frame, styles), frame, columns)


def accuracy_title(rows: Sequence[Row], study: str) -> alt.Title:
    """Return what an accuracy figure shows, for a figure without a caption."""
    seeds = rows[0]["n_seeds"]
    dots = " (dots: seeds)" if seeds <= MOST_DOTS else ""
    mean = f"mean of {seeds} seeds{dots}" if seeds > 1 else "1 seed"
    what = f"ccuracy by level, {mean}; bars: 95 % interval over {rows[0]['interval']}"
    return alt.Title(f"{study}: a{what}" if study else f"A{what}", fontSize=14, offset=14)


def headline(rows: Any, styles: Styles, value: str = "accuracy", words: str = "right answers") -> Chart:
    """Draw a share of one group by level, large; each line has its arm's title beside the chart (layers ``label-…``).

    Levels above the last at which an arm has 5 % are left out, but not the first three.
    """
    frame = by_level(rows, value, words, styles)
    solved = frame.loc[frame["value"] >= 0.05, "level"]
    frame = frame[frame["level"] <= max([*solved, *sorted(frame["level"].unique())[:3]])].copy()
    layers = level_layers(frame, styles)
    ends = frame.dropna(subset="value").sort_values("level").groupby("arm", sort=False).tail(1)
    ends = ends.sort_values("value")
    ends["label_y"] = np.maximum.accumulate(ends["value"] - APART * np.arange(len(ends))) + APART * np.arange(len(ends))
    arm, edge = {name: encoding.legend(None) for name, encoding in arm_encodings(styles).items()}, alt.value("width")
    rows, parts = inline(ends[["arm", "x", "value", "label_y"]]), ("line", "mark", "text")
    line, mark, text = (alt.Chart(rows, name=f"label-{part}").encode(y="label_y:Q") for part in parts)
    look: dict[str, Any] = {"strokeDash": [1, 3], "strokeWidth": 1, "xOffset": 7, "x2Offset": 9}
    return alt.layer(
        *(layer.encode(color=arm["color"]) for layer in layers),
        line.mark_rule(color=MUTED, **look).encode(x="x:Q", y="value:Q", x2=edge, y2="label_y:Q"),
        mark.mark_point(filled=True, opacity=1, size=45, xOffset=18).encode(arm["color"], arm["shape"], x=edge),
        text.mark_text(align="left", dx=27, fontSize=13, color=INK).encode(x=edge, text="arm:N"),
        data=inline(frame),
    ).properties(
        title=frame["panel"].iloc[0].splitlines(), width=760, height=340,
        usermeta={"margin": 90 + 7 * int(ends["arm"].str.len().max())},
    )  # fmt: skip


def ladder(rows: Any, styles: Styles) -> Chart:
    """Draw each rung's share of the gain of the last, with its interval, in the order of the rungs."""
    frame = with_arms(rows, styles)[["arm", "share", "low", "high"]]
    base = alt.Chart().encode(
        alt.X("arm:N", title=None, sort=None, axis=alt.Axis(labelAngle=0, labelExpr=theme.WRAPPED)),
        arm_encodings(styles)["color"].legend(None),
    )
    y = alt.Y("share:Q", title="share of RL’s gain", axis=alt.Axis(format="%", tickCount=5))
    layers = [
        base.mark_rule().encode(alt.Y("low:Q"), alt.Y2("high:Q")),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            y, tooltip=tooltip("arm", share="share", low="low", high="high")
        ),
        alt.Chart(inline(pd.DataFrame({"all": [1.0]}))).mark_rule(strokeDash=[4, 3]).encode(y="all:Q"),
    ]
    return alt.layer(*layers, data=inline(frame)).properties(width=640, height=260)


def training(rows: Any, styles: Styles) -> Chart:
    """Draw accuracy by level over the steps of RL: mean and range over the seeds; a panel for each arm and group."""
    keys = ["arm", "group", "level", "step"]
    frame = with_arms(pd.DataFrame(rows).rename(columns={"arm": "model"}), styles)
    frame = frame.groupby(keys, sort=False)["accuracy"].agg(value="mean", low="min", high="max").reset_index()
    frame["name"] = frame["level"].map(level_name)
    order = [*frame["group"].unique(), *(style.title for style in styles.values())]
    frame["panel"] = frame["arm"] + "\n" + frame["group"].map(group_title)
    frame = frame.sort_values(["group", "arm"], key=lambda column: column.map(order.index), kind="stable")
    base = alt.Chart().encode(
        alt.X("step:Q", title="RL steps", axis=alt.Axis(format="d", tickCount=min(5, int(frame["step"].max())))),
        level_colour(frame),
    )
    told = [alt.Tooltip("name:N", title="level"), *tooltip("step", value="value", low="low", high="high")]
    layers = [
        base.mark_area(opacity=0.2).encode(share("low", "right answers"), alt.Y2("high:Q")),
        base.mark_line(point=alt.OverlayMarkDef(size=20)).encode(share("value", "right answers"), tooltip=told),
    ]
    frame = frame[["panel", "step", "name", "value", "low", "high"]]
    return panels(layers, frame, len(styles))


def budget(rows: Any, styles: Styles) -> Chart:
    """Draw the share right among training completions, by how many were sampled: a line for each arm and seed.

    RL's steps as a moving mean over a twentieth of them; RFT's iterations with their intervals.
    """
    frame = with_arms(pd.DataFrame(rows).rename(columns={"arm": "model"}), styles).reindex(
        columns=["arm", "seed", "completions", "correct", "low", "high"]
    )
    curves = []
    for _, curve in frame.groupby(["arm", "seed"], sort=False):
        if curve["low"].isna().all():
            smooth = curve["correct"].rolling(max(1, len(curve) // 20), min_periods=1, center=True).mean()
            curve = curve.assign(correct=smooth).iloc[np.unique(np.linspace(0, len(curve) - 1, POINTS).astype(int))]
        curves.append(curve)
    arm, frame = arm_encodings(styles), pd.concat(curves)
    marked = frame["low"].notna().any()  # the legend has the marks of RFT's iterations, else lines
    colour = arm["color"] if marked else arm["color"].legend(symbolType="stroke", symbolStrokeWidth=3)
    x = alt.X("completions:Q", title="completions sampled for training, so far", axis=alt.Axis(format="~s"))
    base = alt.Chart().encode(x, colour)
    line = base.mark_line().encode(share("correct", RIGHT), arm["strokeDash"], detail="seed:N")
    rft = base.transform_filter("isValid(datum.low)")
    marks = rft.mark_point(filled=True, size=50, opacity=1).encode(share("correct", RIGHT), arm["shape"])
    layers = [rft.mark_rule().encode(share("low", RIGHT), alt.Y2("high:Q")), marks] if marked else []
    return alt.layer(line, *layers, data=inline(frame)).properties(width=640, height=280)


def pass_at_k(curves: Any, styles: Styles) -> Chart:
    """Draw pass@k with its interval over k on a logarithmic axis: a panel for each group and level."""
    frame = with_arms(curves, styles).rename(columns={"value": "pass_at_k"})
    at = frame["level"].map(lambda level: f", level {level}" if level else "")
    frame["panel"] = frame["group"].map(group_title) + at + frame["n_problems"].map(lambda n: f"\nn = {n:,}")
    columns = max(frame.groupby("group")["panel"].nunique())
    frame = frame[["panel", "arm", "k", "pass_at_k", "low", "high"]]
    arm = arm_encodings(styles)
    base = alt.Chart().encode(
        alt.X("k:Q", scale=alt.Scale(type="log", base=2, nice=False), axis=alt.Axis(format="d", tickCount=5)),
        arm["color"],
    )
    layers = [
        base.mark_area(opacity=0.18).encode(share("low", "pass@k"), alt.Y2("high:Q")),
        base.mark_line().encode(
            share("pass_at_k", "pass@k"), arm["strokeDash"],
            tooltip=tooltip("arm", "k", pass_at_k="pass_at_k", low="low", high="high"),
        ),
    ]  # fmt: skip
    return panels(layers, frame, min(4, columns), 215, 170)


def failure_modes(rows: Any, styles: Styles) -> Chart:
    """Draw stacked shares of the failure classes, a bar an arm: a panel for each group and level, then the paper's."""
    frame = with_arms(rows, styles)
    colours = class_colours([*frame["class"].unique()])
    frame["panel"] = panel_titles(frame)
    if paper.matching_test(rows) == paper.FAILURES_TEST:
        title = "paper: Llama-3.1-8B\nlevel 3, pale: lower bound"
        frame = pd.concat([frame, with_arms(paper.stated_failures(), styles).assign(panel=title)])
    frame = frame[frame["share"] > 0].reindex(columns=["panel", "arm", "class", "share", "bound"])
    shown = {name.replace("_", " "): colour for name, colour in colours.items() if name in set(frame["class"])}
    frame["place"] = frame["class"].map([*colours].index)
    frame["class"] = frame["class"].str.replace("_", " ")
    bars = alt.Chart().mark_bar().encode(
        share("share", SHARE, x=True).stack("zero"),
        alt.Y("arm:N", title=None, sort=[style.title for style in styles.values()], axis=alt.Axis(labelLimit=170)),
        alt.Color("class:N", scale=alt.Scale(domain=[*shown], range=[*shown.values()])),
        opacity=alt.condition("datum.bound == 1", alt.value(0.45), alt.value(1)),
        order="place:Q",
        tooltip=[alt.Tooltip("class:N"), *tooltip("arm", share="share")],
    )  # fmt: skip
    return panels([bars], frame, 4, 190, 24 * len(styles)).properties(usermeta={"margin": 190})


def influence(rows: Any, styles: Styles) -> Chart:
    """Draw mean influence of queries, and their share, by how many completions are right: mean and dots over seeds."""
    frame = with_arms(rows, styles)
    frame["share"] = frame["n"] / frame.groupby(["model", "seed"])["n"].transform("sum")
    titles = {
        "influence": "What a step on a query teaches\npredicted change of the mean objective of all queries",
        "share": "How many queries there are\nonly those between 0 and all have a signal",
    }
    dots = frame.melt(["arm", "seed", "correct"], [*titles], "panel", "dot").dropna(subset="dot")
    means = dots.groupby(["arm", "correct", "panel"], sort=False)["dot"].mean().rename("value").reset_index()
    several = dots["seed"].nunique() > 1
    frame = pd.concat([means, dots] if several else [means]).replace({"panel": titles})
    arm = arm_encodings(styles)
    base = alt.Chart().encode(alt.X("correct:Q", title="right completions", axis=alt.Axis(format="d")), arm["color"])
    mean = base.transform_filter("isValid(datum.value)").encode(alt.Y("value:Q", title=None))
    marks = mean.mark_point(filled=True, size=45, opacity=1)
    layers = [
        mean.mark_line().encode(arm["strokeDash"]),
        marks.encode(arm["shape"], tooltip=tooltip("arm", "correct", "value")),
    ]
    if several:
        points = base.transform_filter("isValid(datum.dot)").mark_circle(opacity=0.4)
        layers.insert(0, points.encode(alt.Y("dot:Q", title=None)))
    drawn: Chart = panels(layers, frame, 2, 360, 260).resolve_scale(y="independent")
    return drawn


def pair_rows(known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each pair of groups, a teacher and a learner, of what influence.parquet has as co_influence."""
    names = known["labels"]
    return [
        {"teacher": teacher, "learner": learner, "influence": value}
        for teacher, values in zip(names, known["means"], strict=True)
        for learner, value in zip(names, values, strict=True)
    ]


def influence_pairs(rows: Any, styles: Styles) -> Chart:
    """Draw the mean influence of queries of one group on those of another, of each model its largest set to 1."""
    frame = with_arms(rows, styles).groupby(["arm", "teacher", "learner"], sort=False)["influence"].mean().reset_index()
    largest = frame["influence"].abs().groupby(frame["arm"]).transform("max")
    frame = frame.assign(panel=frame["arm"], influence=frame["influence"] / largest.replace(0, 1))
    names = [*frame["teacher"].unique()]
    cell = alt.Chart().mark_rect().encode(
        alt.X("learner:N", title="what is learnt about", sort=names, axis=alt.Axis(labelAngle=-45)),
        alt.Y("teacher:N", title="a step on", sort=names),
        alt.Color("influence:Q", scale=alt.Scale(scheme="purpleorange", domain=[-1, 1])),
        tooltip=["teacher:N", "learner:N", alt.Tooltip("influence:Q", format=".2f")],
    )  # fmt: skip
    return panels([cell], frame, 4, 200, 180)


def gains(rows: Any, styles: Styles) -> Chart:
    """Draw the share right before RL (open) and after it, an arm a line, a panel a group; bars: the gain's interval."""
    frame = with_arms(rows, styles).assign(line=lambda frame: frame["arm"].str.partition(":")[0])
    frame["panel"] = panel_titles(frame)
    order = [*frame.groupby("line")["gain"].mean().sort_values(ascending=False).index]
    base = alt.Chart().encode(alt.Y("line:N", title=None, sort=order), arm_encodings(styles)["color"].legend(None))
    x = {
        name: alt.X(f"{name}:Q", title="right answers", scale=alt.Scale(zero=False), axis=alt.Axis(format="%"))
        for name in ("low", "before", "after")
    }
    told = [alt.Tooltip("line:N", title="arm"), *tooltip(**{name: name for name in ("before", "after", "gain")})]
    layers = [
        base.mark_bar(height=9, opacity=0.3).encode(x["low"], alt.X2("high:Q")),
        base.mark_rule().encode(x["before"], alt.X2("after:Q")),
        base.mark_point(fill="white", size=60, opacity=1).encode(x["before"], tooltip=told),
        base.mark_point(filled=True, size=90, opacity=1).encode(x["after"], tooltip=told),
    ]
    frame = frame[["panel", "line", "arm", "before", "after", "gain", "low", "high"]]
    return panels(layers, frame, 2, 400, 30 * len(order))


def predicted_gains(rows: Any, styles: Styles) -> Chart:
    """Draw the gain from RL by mean influence, a panel a group: small marks are seeds, large ones means."""
    frame = with_arms(rows, styles)
    frame["panel"] = frame["group"] + frame["level"].map(lambda level: f" L{level}\ngain from RL")
    mean = frame.groupby(["panel", "arm"], sort=False)[["influence", "gain"]].mean().reset_index()
    frame = pd.concat([mean.assign(mean=1), frame])[["panel", "arm", "influence", "gain", "mean"]]
    arm = arm_encodings(styles)
    points = alt.Chart().mark_point(filled=True).encode(
        alt.X("influence:Q", title="mean influence of a query on the SFT model", scale=alt.Scale(zero=False)),
        alt.Y("gain:Q", title=None, axis=alt.Axis(format="+.0%")), arm["color"], arm["shape"],
        size=alt.condition("datum.mean == 1", alt.value(110), alt.value(25)),
        opacity=alt.condition("datum.mean == 1", alt.value(1), alt.value(0.4)),
        tooltip=tooltip("arm", "influence", gain="gain"),
    )  # fmt: skip
    return panels([points], frame, 3, 320, 260)
