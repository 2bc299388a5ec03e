"""The figures of scaling laws: fits, predictions, slopes, residuals, equal losses; problems that are seen again."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from compositionality.report.figures import Chart, inline, level_colour, level_name, share, short, tooltip
from compositionality.report.theme import INK

Row = Mapping[str, Any]
UNITS = {"flops": "FLOPs", "flops_paper": "FLOPs (6 N a token)"}


def reuse(rows: Any) -> Chart:
    """Draw accuracy by level against ``times``, how often each problem is seen, with its interval."""
    frame = pd.DataFrame(rows)[["times", "level", "accuracy", "low", "high"]]
    frame["name"] = frame["level"].map(level_name)
    x = alt.X("times:Q", title="times that each problem is seen", scale=alt.Scale(type="log"))
    base = alt.Chart().encode(x, level_colour(frame))
    told = [alt.Tooltip("name:N", title="level"), *tooltip("times", accuracy="accuracy", low="low", high="high")]
    layers = [
        base.mark_rule().encode(share("low", "right answers"), alt.Y2("high:Q")),
        base.mark_line(point=True).encode(share("accuracy", "right answers"), tooltip=told),
    ]
    return alt.layer(*layers, data=inline(frame)).properties(width=480, height=260)


def scaling(content: Row, fitted: Row, predicting: Row) -> alt.TopLevelMixin:
    """Draw fit, prediction, slopes, residuals and equal losses; ``fitted``, ``predicting``: laws of ``content``.

    Rows of a law's curves are means over the runs of a size: ``size``, ``resource``, ``loss``, ``predicted``; ``low``,
    ``high`` for the mean of as many runs, ``band_low``, ``band_high`` for the expectation.
    """
    unit = str(UNITS.get(content["resource"], content["resource"]))
    fit, left_out = pd.DataFrame(fitted["curves"]), [row for one in predicting["held_out"] for row in one["curves"]]
    names = {law: law.replace("_", " ") for law in (fitted["law"], predicting["law"])}
    charts = [
        loss_curves(fit, "band_", unit, f"Fit: {names[fitted['law']]}", "dots: means over runs; band: 95 % of the mean")
    ]
    if left_out:
        title = f"Prediction: {names[predicting['law']]}"
        charts.append(loss_curves(pd.DataFrame(left_out), "", unit, title, "dots were not fitted; band: 95 %"))
    charts += slopes(content["laws"])
    rest = fit.assign(rest=np.log(fit["loss"] / fit["predicted"]))[["size", "resource", "rest"]]
    line = alt.Chart(inline(rest)).mark_line(point=True).encode(
        log_x("resource", unit), alt.Y("rest:Q", title="log L − fitted"), size_colour(rest["size"])
    )  # fmt: skip
    charts += [titled(line, "Residuals", "a bend means another form"), equal_losses(fit, unit)]
    drawn: alt.TopLevelMixin = alt.concat(*charts, columns=3).resolve_scale(color="independent")
    return drawn


def drawn_rows(fitted: Row, predicting: Row) -> list[dict[str, Any]]:
    """Return the rows of the curves that ``scaling`` draws, with their law and what they are of."""
    parts = [(fitted, "fitted", fitted["curves"])]
    parts += [(predicting, region["region"], region["curves"]) for region in predicting["held_out"]]
    return [{"law": law["law"], "region": region, **row} for law, region, curve in parts for row in curve]


def log_x(field: str, title: str) -> alt.X:
    """Return a logarithmic axis that begins and ends with its data."""
    scale = alt.Scale(type="log", nice=False, padding=8)
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(format="~s", grid=False, labelOverlap=True))


def size_colour(sizes_of_models: Any, legend: alt.Legend | None = None) -> alt.Color:
    """Return colours by the number of parameters, none as dark as the dark page or as light as the light one."""
    domain = sorted(set(map(short, sizes_of_models)))
    scheme = alt.SchemeParams("viridis", extent=[0.2, 0.9])
    return alt.Color("size:O", scale=alt.Scale(scheme=scheme, domain=domain), legend=legend)


def titled(chart: Any, title: str, note: str) -> Any:
    """Return a chart as a panel of ``scaling``."""
    return chart.properties(width=300, height=220, title=alt.Title(title, subtitle=note))


def loss_curves(rows: pd.DataFrame, band: str, unit: str, title: str, note: str) -> Any:
    """Return the panel of measured (dots) and predicted losses (lines) with their bands, on logarithmic axes."""
    low, high = f"{band}low", f"{band}high"
    frame = rows[["size", "step", "resource", "loss", "predicted", low, high]].sort_values(["size", "resource"])
    scale = alt.Scale(type="log", nice=False, padding=8)
    legend = alt.Legend(title="parameters", format=".3~s") if band else None
    base = alt.Chart(inline(frame)).encode(log_x("resource", unit), size_colour(frame["size"], legend))
    return titled(
        alt.layer(
            base.transform_filter(f"isValid(datum.{low})").mark_area(opacity=0.2).encode(
                alt.Y(f"{low}:Q", scale=scale), alt.Y2(f"{high}:Q")
            ),
            base.mark_line().encode(alt.Y("predicted:Q", title="loss: 1 − accuracy", scale=scale)),
            base.mark_circle(size=26, opacity=1, cursor="pointer").encode(
                alt.Y("loss:Q", scale=scale), tooltip=["size:Q", "step:Q", "loss:Q"]
            ),
        ), title, note,
    )  # fmt: skip


def slopes(laws: Sequence[Row]) -> list[Any]:
    """Return the panel of k of each size by itself, and of the law in which it saturates, where these were fitted."""
    parameters = {law["law"]: law["parameters"] for law in laws if law["law"] == "log_linear" or not law["on_bound"]}
    free = [one for one in parameters.get("log_linear", ()) if one["name"] == "k"]
    if not free:
        return []
    model_sizes = [one["size"] for one in free]
    points = alt.Chart(inline(pd.DataFrame(free).reindex(columns=["size", "value", "low", "high"]))).encode(
        log_x("size", "parameters without embeddings"), size_colour(model_sizes)
    )
    layers: list[Any] = [
        points.mark_rule().encode(alt.Y("low:Q", title="k"), alt.Y2("high:Q")),
        points.mark_circle(size=50, opacity=1).encode(y="value:Q"),
    ]
    if saturating := {one["name"]: one["value"] for one in parameters.get("saturating_slope", ())}:
        at = np.geomspace(min(model_sizes), max(model_sizes), 60)
        curve = pd.DataFrame({"size": at, "value": saturating["K_max"] / (1 + saturating["N0"] / at)})
        line = alt.Chart(inline(curve)).mark_line(color=INK)
        layers.append(line.encode(log_x("size", "parameters without embeddings"), y="value:Q"))
    note = "dots: each size by itself; line: K_max / (1 + N0 / N)"
    return [titled(alt.layer(*layers), "Slope k of log L by size", note)]


def equal_losses(fit: pd.DataFrame, unit: str) -> Any:
    """Return the panel of what each size needs for a loss, between the points of its fitted curve."""
    rows = []
    for loss in np.geomspace(fit["predicted"].min(), fit["predicted"].max(), 6)[1:-1]:
        for size, curve in fit.sort_values("predicted").groupby("size"):
            if curve["predicted"].min() <= loss <= curve["predicted"].max():
                logs = np.log(curve[["predicted", "resource"]].to_numpy(float))
                rows.append(
                    {"size": size, "loss": loss, "needed": np.exp(np.interp(np.log(loss), logs[:, 0], logs[:, 1]))}
                )
    colour = alt.Color("loss:O", scale=alt.Scale(scheme="cividis"), legend=alt.Legend(title="loss", format=".2~g"))
    y = alt.Y(
        "needed:Q", title=unit, scale=alt.Scale(type="log", padding=8), axis=alt.Axis(format="~s", labelOverlap=True)
    )
    frame = pd.DataFrame(rows, columns=["size", "loss", "needed"])
    line = (
        alt.Chart(inline(frame)).mark_line(point=True).encode(log_x("size", "parameters without embeddings"), y, colour)
    )
    return titled(line, "Equal losses", "what each size needs, where its fit reaches the loss")
