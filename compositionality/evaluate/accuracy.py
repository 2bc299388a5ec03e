"""Accuracy of any models on any problem files: by level, by group, by skill, and of all problems."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from compositionality.console import natural_key, new_console
from compositionality.data.artefact import Recipe, config_hash, exclusive, write_derived
from compositionality.evaluate.collect import EvaluationSettings, open_evaluation, sample, write_results
from compositionality.evaluate.frames import Row, grid, rich_table
from compositionality.evaluate.results import TRAINING
from compositionality.evaluate.summary import by_problem
from compositionality.evaluate.table import REASON, REASONS, read
from compositionality.evaluate.tables import COMPOSES, NOT_TESTABLE, level_name, not_testable, print_training
from compositionality.stats.estimate import difference, over_problems
from compositionality.train.common.training_report import report_of
from compositionality.types import COMPOSED, CORRECT

STEP = "evaluate_accuracy"
ALL, SKILL = "all", "skill"
COLUMNS = ("file", "by", "part", "arm", "n", "accuracy", "composed", "difference")
ARMS_AT_ONCE, DIFFERENCES_AT_ONCE, WIDEST_NAME = 3, 2, 18
"""What fits on a terminal of 80 columns."""


@dataclass
class EvaluateSettings(EvaluationSettings):
    """Settings of ``evaluate``."""

    by_skill: bool = False  # print accuracy by skill too; the table says which skills a problem asks for


def evaluate(settings: EvaluateSettings) -> Path:
    """Write ``output``/results.parquet, training.json and the rollouts behind them; print the table."""
    evaluation = open_evaluation(settings)
    if settings.answers_only:
        sample(evaluation)
        return settings.output
    with exclusive(settings.output):
        sample(evaluation)
        table = write_results(evaluation, STEP, {}, hands_on=True)
        training = _write_training(evaluation.models, table, force=settings.force)
    rows, console = read(table), new_console()
    if settings.by_skill:
        rows["skills"] = pq.read_table(table, columns=["skills"])["skills"].to_pylist()
    sampling = f"{settings.n_samples} per problem, temperature {settings.temperature:g}, seed {settings.seed}"
    print_accuracy(rows, sampling, training, console)
    if rule := settings.reward.rule():
        print(rule)
    print_training({"": training}, console)
    print(table)
    return settings.output


def _write_training(models: Mapping[str, str], table: Path, *, force: bool) -> Mapping[str, Row]:
    """Write the training report of each model whose folder has one; it follows them without asking."""
    reports = {model: asdict(report) for model, folder in models.items() if (report := report_of(Path(folder)))}
    recipe, text = Recipe(STEP, {"training": config_hash(reports)}, {"table": table}), json.dumps(reports, indent=1)
    write_derived(table.with_name(TRAINING), recipe, lambda path: path.write_text(text + "\n"), force=force)
    return reports


def accuracy_lines(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each file, part of its problems and model, with ``COLUMNS``; by skill if ``rows`` have skills.

    The last three hold an ``Estimate``, None where nothing is known; differences are to the file's first model.
    """
    lines = []
    for file, of_file in rows.groupby("file", sort=False):
        arms = {arm: answers.set_index("problem") for arm, answers in of_file.groupby("arm", sort=False)}
        base = next(iter(arms.values()))
        for by, part, problems in _parts(base):
            before = by_problem(base.loc[problems], CORRECT)
            for arm, answers in arms.items():
                asked = answers.loc[problems]
                right, composed = (by_problem(asked, name) for name in (CORRECT, COMPOSED))
                change = None if answers is base else over_problems(*difference((1, -1), [right, before]), low=-1)
                figures = over_problems(*right), over_problems(*composed), change
                lines.append((file, by, part, arm, len(asked), *figures))
    return pd.DataFrame(lines, columns=COLUMNS)


def _parts(problems: pd.DataFrame) -> Iterator[tuple[str, str, "pd.Index[Any]"]]:
    """Yield kind, name and numbers of: the problems of each level, of each of several groups, all, of each skill."""
    for (group, level), part in problems.groupby(["group", "level"]):
        sources, name = part.groupby("data_source"), level_name(level, group, with_group=True)
        for source, of_source in sources:
            yield "level", name if len(sources) == 1 else f"{name} {source}", of_source.index
    if problems["group"].nunique() > 1:
        for group, part in problems.groupby("group"):
            yield "group", f"{group}, all levels", part.index
    yield ALL, ALL, problems.index
    if "skills" in problems:
        skills = problems["skills"].explode().dropna()
        for skill in sorted(skills.unique(), key=natural_key):
            yield SKILL, skill, skills.index[skills == skill].unique()


def print_accuracy(rows: pd.DataFrame, sampling: str, reports: Mapping[str, Row], console: Console) -> None:
    """Print for every problem file: accuracy by level (and skill), differences to the first model, reasons."""
    absent = not_testable({"": reports})
    for file, lines in accuracy_lines(rows).groupby("file", sort=False):
        console.print(f"\n{file}: accuracy in % with 95 % intervals ({sampling})", highlight=False)
        levels, (first, *others) = lines[lines["by"] != SKILL], lines["arm"].unique()
        _print_cells(levels, "accuracy", absent, console)
        if levels["composed"].notna().any():
            console.print(f"{COMPOSES}, in %", highlight=False)
            _print_cells(levels, "composed", absent, console)
        if others:
            console.print(f"difference to {first}, paired by problem, in points", highlight=False)
            _print_cells(levels[levels["arm"] != first], "difference", absent, console)
        _print_cells(lines[lines["by"] == SKILL], "accuracy", absent, console, title=SKILL)
        console.print(_reasons(rows[rows["file"] == file]))


def _print_cells(lines: pd.DataFrame, figure: str, absent: set[str], console: Console, *, title: str = "level") -> None:
    """Print a table of one figure, so many models side by side as fit."""
    form = "{:+.1f} [{:+.1f}, {:+.1f}]" if figure == "difference" else "{:.1f} [{:.1f}–{:.1f}]"

    def cell(line: Row) -> str:
        if line["arm"] in absent:
            return NOT_TESTABLE
        estimate = line[figure]
        return form.format(*(100 * end for end in (estimate.value, *estimate.over_problems))) if estimate else "–"

    wide = grid(lines.to_dict("records"), lambda line: line["part"], cell, across="arm")
    wide.columns = pd.Index([fill(name, WIDEST_NAME) for name in wide.columns])
    n = lines.drop_duplicates("part", keep="last").set_index("part")["n"]
    at_once = DIFFERENCES_AT_ONCE if figure == "difference" else ARMS_AT_ONCE
    for start in range(0, wide.shape[1], at_once):
        block = wide.iloc[:, start : start + at_once].copy()
        block.insert(0, "n", n)
        console.print(rich_table(block, title))


def _reasons(rows: pd.DataFrame) -> Table:
    """Return mean length and the share of each reason that occurs, one line per checkpoint."""
    sums = rows.groupby("arm", sort=False)[["n", "tokens", *(REASON + reason for reason in REASONS)]].sum()
    means = sums.div(sums["n"].clip(lower=1), axis=0)
    cells = {"tokens": means["tokens"]}
    for reason in (reason for reason in REASONS if sums[REASON + reason].any()):
        cells[f"{reason.replace('_', ' ')} %"] = 100 * means[REASON + reason]
    return rich_table(pd.DataFrame(cells).map("{:.1f}".format), "checkpoint")
