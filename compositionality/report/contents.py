"""What is sent of each kind of result to wandb and TensorBoard: its tables, its figures, what sums it up."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from compositionality.analysis.scaling import REMARKS
from compositionality.data.artefact import Manifest
from compositionality.data.parquet import read_table
from compositionality.evaluate.failures import class_shares
from compositionality.evaluate.passk import spaced_curves
from compositionality.evaluate.results import Results, read_results
from compositionality.evaluate.seeds import summary_rows
from compositionality.report import figures, scaling_figures
from compositionality.report.draw import FigureSettings, chart_of, read_laws
from compositionality.report.theme import arm_styles, rendered, spec_of
from compositionality.rollout.store import read_rollouts
from compositionality.types import Metric

COUNTED = ["model", "problems", "group", "level", "data_source"]
"""What the rows of a table are about."""
ESTIMATE = {"": "difference", "/low": "low", "/high": "high"}
"""What the summary has of a comparison of a claim, and after its name."""
VALUE = {"": "value", "/low": "low", "/high": "high"}
"""The same of a quantity of a fit."""
COMPLETIONS = 20
"""Of a folder of rollouts, to read."""


class Content(NamedTuple):
    """What is sent of a result: tables, figures as PNG, the page as HTML, what sums up the run, its arms."""

    tables: Mapping[str, Any]
    figures: Mapping[str, bytes] = {}
    page: str = ""
    summary: Mapping[str, Any] = {}
    arms: Iterable[str] = ()


def drawn(chart: Any) -> bytes:
    """Return a chart as PNG."""
    return rendered(spec_of(chart), "png")


def with_counts(rows: Any, results: Results) -> pd.DataFrame:
    """Return rows of a table with how many completions they are about, and how many of these are right."""
    counts = results.rows.rename(columns={"arm": "model", "file": "problems"})
    counts = counts.groupby(COUNTED, as_index=False, observed=True)[["n", "right"]].sum()
    return pd.DataFrame(rows).merge(counts, "left", COUNTED)


def evaluation(target: Path, name: str, metric: Metric, rows_of: Callable[[Results], Any]) -> Content:
    """Return the table of one replicate as the report has it, and the figure of this name where it has levels."""
    results = read_results([f"run:{target.parent}"], metric=metric)
    drawings, settings = {}, FigureSettings([str(target.parent)], target.parent, name)
    if any(problems.level for problems in results.sets):
        drawings[name] = drawn(chart_of(settings, results, arm_styles(results.arms)))
    return Content({name: with_counts(rows_of(results), results)}, drawings, arms=results.arms)


def passk(target: Path, manifest: Manifest) -> Content:
    """Return pass@k over k, and its paired differences."""
    results = read_results([f"run:{target.parent}"], metric=Metric.PASS_AT_K)
    table = spaced_curves(results, [(arm, base) for arm, base in manifest.settings["pairs"]])
    chart = figures.pass_at_k(table[table["base"] == ""].to_dict("records"), arm_styles(results.arms))
    return Content({"passk": with_counts(table, results)}, {"passk": drawn(chart)}, arms=results.arms)


def claims(target: Path, _: Manifest) -> Content:
    """Return every comparison of every claim, and what is said of that; decisions and estimates for the summary."""
    content = json.loads(target.read_text(encoding="utf-8"))
    listed, rows = [*content["claims"], *content["controls"]], list[dict[str, Any]]()
    for claim in listed:
        said = {key if key in ("claim", "text") else f"claim_{key}": value for key, value in claim.items()}
        rows += [{**said, **row} for row in said.pop("claim_comparisons")]
    decisions = {f"claims/{claim['claim']}": str(claim["decision"]) for claim in listed}
    known = [row for row in rows if row.get("difference") is not None]
    estimates = {f"estimates/{row['comparison']}{end}": row.get(key) for row in known for end, key in ESTIMATE.items()}
    return Content({"claims": rows}, summary=decisions | estimates)


def influence(target: Path, manifest: Manifest) -> Content:
    """Return the influence of a model's queries: their means by right completions, of pairs of groups, and each one."""
    from compositionality.analysis.influence import summary  # with torch, which no other result needs

    queries, model = read_table(target).to_pylist(), target.parent.name
    means, of_model, styles = summary(queries), {"model": model, "seed": "0"}, arm_styles([model])
    by_accuracy, pairs = means.pop("by_accuracy"), figures.pair_rows(manifest.facts["co_influence"])
    drawings = {
        "influence": figures.influence([{**of_model, **row} for row in by_accuracy], styles),
        "influence_pairs": figures.influence_pairs([{**of_model, **row} for row in pairs], styles),
    }
    return Content(
        {"influence": by_accuracy, "influence_pairs": pairs, "queries": queries},
        {name: drawn(chart) for name, chart in drawings.items()},
        summary={f"influence/{name}": value for name, value in means.items()},
        arms=[model],
    )


def laws(target: Path, _: Manifest) -> Content:
    """Return the laws that were fitted, their parameters, what they predict, and the quantities of claims."""
    content, fitted, predicting = read_laws([str(target)])
    about, listed = ("law", "formula", "n_parameters", "aic", *REMARKS), content["laws"]
    tables = {
        "laws": [{name: law[name] for name in about} for law in listed],
        "parameters": [{"law": law["law"], **row} for law in listed for row in law["parameters"]],
        "predictions": [
            {"law": law["law"], **{name: value for name, value in row.items() if name != "curves"}}
            for law in listed
            for row in law["held_out"]
        ],
        "scaling": scaling_figures.drawn_rows(fitted, predicting),
        "quantities": content["quantities"],
    }
    known = {f"quantities/{row['name']}{end}": row[key] for row in content["quantities"] for end, key in VALUE.items()}
    said = {"laws/fitted": fitted["law"], "laws/predicting": predicting["law"], **known}
    return Content(tables, {"scaling": drawn(scaling_figures.scaling(content, fitted, predicting))}, summary=said)


def rollouts(target: Path, manifest: Manifest) -> Content:
    """Return how many completions of each level are right, the verdicts, and some completions to read."""
    levels = pd.DataFrame(manifest.facts["levels"]).rename(columns={"correct": "right"})
    reasons = pd.DataFrame(manifest.facts["reasons"].items(), columns=["reason", "n"])
    first = next(read_rollouts(target)).slice(0, COMPLETIONS).to_pandas()
    return Content({"rollouts": levels, "reasons": reasons, "completions": first})


def page(target: Path, _: Manifest) -> Content:
    """Return the page of a report, its tables and figures."""
    tables = {path.stem: pd.read_csv(path) for path in sorted(target.glob("tables/*.csv"))}
    pictures = {path.stem: path.read_bytes() for path in sorted(target.glob("figures/*.png"))}
    return Content(tables, pictures, (target / "index.html").read_text(encoding="utf-8"))


JOBS: Mapping[str, tuple[str, Callable[[Path, Manifest], Content]]] = {
    "collect_rollouts": ("rollouts", rollouts),
    "evaluate_accuracy": ("evaluate", lambda target, _: evaluation(target, "accuracy", Metric.ACCURACY, summary_rows)),
    "passk": ("passk", passk),
    "find_failures": ("failures", lambda target, _: evaluation(target, "failure_modes", Metric.FAILURES, class_shares)),
    "influence": ("influence", influence),
    "fit_scaling": ("scaling", laws),
    "decide_claims": ("claims", claims),
    "report": ("report", page),
}
"""Job type of a run, and what is sent of it, by the step that made the result."""
