"""Accuracy of any models on any problem files, by level and group."""

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pandas as pd

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, config_hash, make
from compositionality.evaluate.collect import EvaluationSettings, open_evaluation, sample, write_results
from compositionality.evaluate.results import TRAINING, read_results
from compositionality.evaluate.seeds import print_summary
from compositionality.evaluate.table import REASON, REASONS
from compositionality.evaluate.tables import rich_table
from compositionality.train.training_report import report_of

STEP = "evaluate_accuracy"


def evaluate(settings: EvaluationSettings) -> Path:
    """Write ``output``/results.parquet, training.json and the rollouts behind them; print the tables."""
    evaluation = open_evaluation(settings, STEP)
    sample(evaluation)
    if settings.answers_only:
        return settings.output
    table = write_results(evaluation, STEP, {}, chains=True)
    folders = {model: Path(folder) for model, folder in evaluation.models.items()}
    reports = {model: asdict(report) for model, folder in folders.items() if (report := report_of(folder))}
    recipe = Recipe(STEP, {"training": config_hash(reports)}, {"table": table})
    write = partial(Path.write_text, data=json.dumps(reports, indent=1) + "\n")
    make(table.with_name(TRAINING), recipe, write, force=settings.force, follows=True)
    results, console = read_results([f"run:{settings.output}"]), new_console()
    print_summary(results, console)
    for file, rows in results.rows.groupby("file", sort=False):
        console.print(f"\n{file}: mean number of tokens, and share of each verdict")
        console.print(rich_table(reasons_frame(rows), "model"))
    if rule := settings.reward.rule():
        print(rule)
    print(table)
    return settings.output


def reasons_frame(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean tokens and the share of each occurring reason, one row per model."""
    sums = rows.groupby("arm", sort=False)[["n", "tokens", *(REASON + reason for reason in REASONS)]].sum()
    means = sums.div(sums["n"].clip(lower=1), axis=0)
    cells = {"tokens": means["tokens"]}
    for reason in (reason for reason in REASONS if sums[REASON + reason].any()):
        cells[f"{reason.replace('_', ' ')} %"] = 100 * means[REASON + reason]
    return pd.DataFrame(cells).map("{:.1f}".format)
