"""Accuracy of any checkpoints on any problem files, by level and by skill; completions by ``rollout.collect``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa

from compositionality.console import new_console
from compositionality.data.artefact import (
    Recipe,
    config_hash,
    exclusive,
    is_done,
    new_artefact,
    read_manifest,
    write_derived,
)
from compositionality.data.problems import RowSettings, iterate_problems, read_problems
from compositionality.evaluate.accuracy.rows import accuracy_rows
from compositionality.evaluate.completions import Folders, all_collected, check_jobs, engine_for, jobs_of
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.replicate import replicate_of
from compositionality.evaluate.results import TRAINING
from compositionality.evaluate.table import RESULTS, SCHEMA, count, problem_columns, read, write
from compositionality.evaluate.tables import print_results
from compositionality.evaluate.training import print_training
from compositionality.ranges import REQUIRED
from compositionality.rollout.engines.factory import choose_engine
from compositionality.rollout.settings import SamplingSettings
from compositionality.rollout.settings import recipe as collection_recipe
from compositionality.rollout.store import read_rollouts
from compositionality.tasks.registry import known_task
from compositionality.train.common.training_report import report_of
from compositionality.types import Problem

STEP = "evaluate_accuracy"


@dataclass
class EvaluateSettings(RowSettings, SamplingSettings):
    """Settings of ``evaluate``."""

    models: list[str] = REQUIRED  # NAME:PATH
    problems: list[str] = REQUIRED  # problem files, PATH or NAME:PATH
    output: Path = REQUIRED  # folder of the results
    answers_only: bool = False  # collect the answers, make no table: several processes may do that at the same time
    by_skill: bool = False  # print accuracy by skill too; the files hold it always
    force: bool = False  # replace a result that was made from something else


def evaluate(settings: EvaluateSettings) -> Path:
    """Write ``output``/results.parquet, training.json and the rollouts behind them; print the table."""
    models = named_paths("models", settings.models)
    files = named_paths("problems", settings.problems)
    settings = replace(settings, engine=choose_engine(settings.engine, settings.base_url, list(models.values())))
    output, table = settings.output, settings.output / RESULTS
    if settings.answers_only:
        for model, path in models.items():
            _answers(settings, model, path, files)
        return output
    with exclusive(output):
        folders: dict[tuple[str, str], Path] = {}
        for model, path in models.items():
            folders |= _answers(settings, model, path, files)
        _write_table(settings, files, folders, _recipe(settings, models, files, folders))
        training = _write_training(models, output / TRAINING, table, force=settings.force)
    rows = accuracy_rows(read(table), _skills(table) if settings.by_skill else None)
    labels = {"n_samples": settings.n_samples, "temperature": settings.temperature, "seed": settings.seed}
    print_results([{**row, **labels} for row in rows], new_console(), by_skill=settings.by_skill, reports=[training])
    if rule := settings.reward.rule():
        print(rule)
    print_training({"": training}, new_console())
    print(table)
    return output


def check(settings: EvaluateSettings) -> None:
    """A dry run's: names, settings, and of the models and problem files those that are there."""
    models, files = named_paths("models", settings.models), named_paths("problems", settings.problems)
    check_jobs(settings, models, files, settings.output, force=settings.force)


def _write_table(settings: EvaluateSettings, files: Mapping[str, str], folders: Folders, recipe: Recipe) -> None:
    """Write the table if it is not there yet, reading every rollout folder once."""
    table = settings.output / RESULTS
    if is_done(table, recipe, force=settings.force or _grows(table, recipe)):
        print(f"{table} is already there")
        return
    with new_artefact(table, recipe) as partial_table:
        write(pd.concat(_counts(settings, files, folders)), partial_table)


def _counts(settings: EvaluateSettings, files: Mapping[str, str], folders: Folders) -> Iterator[pd.DataFrame]:
    for name, path in files.items():
        table = read_problems(Path(path), settings.row_format(any_source=bool(settings.reward.function)))
        table = table.slice(0, settings.limit) if settings.limit else table
        problems = problem_columns(table)
        hands_on = partial(_hands_on, list(iterate_problems(table)))
        for model in dict.fromkeys(model for model, _ in folders):
            counts = count(read_rollouts(folders[model, name]), len(problems), hands_on)
            yield pd.concat([problems, counts], axis=1).assign(arm=model, file=name)


def _hands_on(problems: Sequence[Problem], number: int, text: str) -> bool | None:
    problem = problems[number]
    return known_task(problem.data_source).composed(problem, text)


def _answers(
    settings: EvaluateSettings, model: str, path: str, files: Mapping[str, str]
) -> dict[tuple[str, str], Path]:
    """Collect the answers of one checkpoint to every problem file; what is there already stays."""
    jobs = jobs_of(settings, model, path, files, settings.output)
    with engine_for(jobs) as engine:
        return all_collected(jobs, engine, force=settings.force)


def _recipe(
    settings: EvaluateSettings, models: Mapping[str, str], files: Mapping[str, str], folders: Folders
) -> Recipe:
    """The tables follow from the rollouts and the problem files; the order of names decides their layout."""
    sampling = collection_recipe(settings.collection("", "", Path())).settings
    inputs = {f"rollouts/{model}/{name}": folder for (model, name), folder in folders.items()}
    inputs |= {f"problems/{name}": Path(path) for name, path in files.items()}
    kept = {"models": list(models), "problems": list(files), "sampling": dict(sampling), "columns": SCHEMA.names}
    replicate = replicate_of(folders.values(), map(Path, files.values()))
    return Recipe(STEP, {**kept, "replicate": replicate}, inputs)


def _grows(table: Path, recipe: Recipe) -> bool:
    """True if the table there is made from a part of the same rollouts: then a new one loses nothing."""
    old = read_manifest(table) if table.is_file() else None
    if old is None or old.step != recipe.step:
        return False
    _, settings, inputs = recipe.identity()
    same = old.inputs == inputs and old.settings == json.loads(settings)
    return not same and old.inputs.items() <= inputs.items()


def _skills(table: Path) -> pd.Series:
    """What each row's problem asks for."""
    return pd.Series(pa.parquet.read_table(table, columns=["skills"])["skills"].to_pylist())


def _write_training(models: Mapping[str, str], path: Path, table: Path, *, force: bool) -> dict[str, dict[str, object]]:
    """Write the training report of each model whose folder has one; it follows them without asking."""
    found = {model: report_of(Path(folder)) for model, folder in models.items()}
    reports = {model: asdict(report) for model, report in found.items() if report}
    recipe = Recipe(STEP, {"training": config_hash(reports)}, {"table": table})
    write_derived(path, recipe, lambda partial: partial.write_text(json.dumps(reports, indent=1) + "\n"), force=force)
    return reports
