"""Results as runs in wandb and TensorBoard, each with its tables, figures and what sums it up.

A run is called as its folder, and the same result is the same run in wandb, whoever sends it.
"""

import base64
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from compositionality.analysis.scaling import REMARKS
from compositionality.data.artefact import Manifest, file_hash, manifest_path, read_manifest
from compositionality.data.parquet import read_table
from compositionality.evaluate.failures import class_shares
from compositionality.evaluate.passk import spaced_curves
from compositionality.evaluate.results import LABELS, Results, read_results
from compositionality.evaluate.seeds import summary_rows
from compositionality.evaluate.table import RESULTS
from compositionality.evaluate.types import Metric
from compositionality.report import figures, scaling_figures
from compositionality.report.draw import SCALING, FigureSettings, chart_of, chosen_laws
from compositionality.report.page.inputs import CLAIMS, Inputs
from compositionality.report.theme import arm_styles, rendered, spec_of
from compositionality.rollout.store import read_rollouts
from compositionality.train.boards import ALIAS, OF_A_STUDY, facts_of, open_wandb, or_left_out, send_artifacts
from compositionality.train.log import wandb_is_usable
from compositionality.train.run_folder import models_in, task_of_files

SOURCES = ("model", "models", "problems", "rollouts", "evaluation", "results", "points")
"""Settings that name what a verb reads, some as NAME:PATH."""
TABLES = (RESULTS, "influence.parquet", "scaling.json")
"""Files in its output of which a run is made, in place of the whole output."""
OF_ALL = ("engine", "seed", "split")
FACTS = {**dict.fromkeys(OF_A_STUDY, OF_ALL), "scaling": ("study", *OF_ALL)}
"""Facts that a run of several replicates has of all of them, by its job; the folder of a fit does not say its study."""
COUNTED = ["model", "problems", "group", "level", "data_source"]
"""Columns that identify a row of a table."""
ESTIMATE = {"": "difference", "/low": "low", "/high": "high"}
"""Keys of a claim's comparison in the summary, by what follows its name."""
VALUE = {"": "value", "/low": "low", "/high": "high"}
"""Keys of a fitted quantity in the summary, by what follows its name."""
COMPLETIONS = 20
"""Completions to read, of a folder of rollouts."""


class Content(NamedTuple):
    """Content sent for a result: tables, figures as PNG, the page as HTML, what sums up the run, its arms."""

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
        details = {key if key in ("claim", "text") else f"claim_{key}": value for key, value in claim.items()}
        rows += [{**details, **row} for row in details.pop("claim_comparisons")]
    decisions = {f"claims/{claim['claim']}": str(claim["decision"]) for claim in listed}
    shown = [row for row in rows if row.get("difference") is not None]
    estimates = {f"estimates/{row['comparison']}{end}": row.get(key) for row in shown for end, key in ESTIMATE.items()}
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
    content, fitted, predicting = chosen_laws(FigureSettings([str(target)], target, SCALING))
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
    values = {f"quantities/{row['name']}{end}": row[key] for row in content["quantities"] for end, key in VALUE.items()}
    summary = {"laws/fitted": fitted["law"], "laws/predicting": predicting["law"], **values}
    return Content(tables, {"scaling": drawn(scaling_figures.scaling(content, fitted, predicting))}, summary=summary)


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


def send_made(settings: Any) -> None:
    """Send what a verb with these settings has made, where wandb can be used; nothing where that is no such result."""
    values = [getattr(settings, name, ()) for name in SOURCES]
    texts = [str(text) for value in values for text in (value if isinstance(value, list) else [value]) if text]
    parts = [part for text in texts for part in (text, text.partition(":")[2]) if part]
    output = Path(settings.output)
    target = next((output / name for name in TABLES if (output / name).is_file()), output)
    send_result(target, asdict(settings), [Path(part, name) for part in parts for name in ("", RESULTS, "final")])


def send_result(target: Path, settings: Mapping[str, Any], used: Iterable[Path]) -> bool:
    """Send a result with its ``settings`` and what it ``used``; False if it is none of which a run is made."""
    manifest = read_manifest(target) if target.exists() else None
    if manifest is None or manifest.step not in JOBS or not wandb_is_usable(os.environ):
        return False
    job, content_of = JOBS[manifest.step]
    folder = target.parent if target.name in TABLES else target
    with or_left_out():
        content, used = content_of(target, manifest), [*used]
        facts = {"task": task_of_files([target, *used]), "arm": ",".join(content.arms)}
        facts |= facts_of_all(used, FACTS[job]) if job in FACTS else {"engine": engine_of(manifest)}
        identity = file_hash(manifest_path(target))[:ALIAS]
        run = open_wandb(folder, job, settings, identity, code=manifest.code, facts=facts)
        if run is not None:
            send(run, content)
            collected = sorted(folder.glob("rollouts/*/*")) if target.name == RESULTS else []
            send_artifacts(run, used, made=[*collected, folder / LABELS, target])
            run.finish()
            return True
    return False


def engine_of(manifest: Manifest) -> str:
    """Return the engine that sampled a result; empty of another."""
    return str(manifest.settings.get("sampling", manifest.settings).get("engine") or "")


def facts_of_all(used: Iterable[Path], names: Iterable[str]) -> dict[str, str]:
    """Return engines (of samplers; of trainings if known), seeds … of what a result of several was made from."""
    facts = [{"engine": engine_of(made), **facts_of(path.parent)} for path in used if (made := read_manifest(path))]
    return {name: ",".join(dict.fromkeys(one[name] for one in facts if one.get(name))) for name in names}


def send(run: Any, content: Content) -> None:
    """Log the tables and figures of a result, and its summary."""
    import wandb

    html = {"page": content.page} if content.page else {}
    for name, png in content.figures.items():  # wandb.Image needs pillow
        html[f"figures/{name}"] = f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}">'
    sent: dict[str, Any] = {name: wandb.Html(text, inject=False) for name, text in html.items()}
    for name, rows in content.tables.items():
        sent[f"tables/{name}"] = wandb.Table(dataframe=plain(rows))
    run.summary.update(content.summary)
    run.log(sent)


def plain(rows: Any) -> pd.DataFrame:
    """Return a table without lists and mappings, which are written as JSON, and with None where nothing is."""
    table = pd.DataFrame(rows)
    cells = table.map(lambda cell: json.dumps(cell) if isinstance(cell, list | dict) else cell).astype(object)
    return cells.where(table.notna(), None)


def used_by(inputs: Inputs) -> list[Path]:
    """Return the tables and claims that a report shows, and the models of the runs that it reports."""
    runs = [path.parent for name, path in inputs.files.items() if name.startswith("runs/") and path.suffix == ".jsonl"]
    bases = [place / "base" for place in dict.fromkeys(run.parent for run in runs) if (place / "base").is_dir()]
    shown = [path for path in inputs.files.values() if path.name in (RESULTS, CLAIMS)]
    return [*shown, *bases, *(model for run in runs for model in models_in(run))]
