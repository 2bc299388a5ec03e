"""Accuracy of any checkpoints on any problem files, by level and by skill; completions by ``rollout.collect``."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.console import new_console
from compositionality.data.artefact import (
    Recipe,
    config_hash,
    exclusive,
    is_done,
    new_artefact,
    read_manifest,
    verify,
    write_derived,
)
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import RowSettings, iterate_problems, read_problems
from compositionality.evaluate.accuracy.rows import SCHEMA, Row, parts_of, rows_of
from compositionality.evaluate.completions import Folders, all_collected, check_jobs, engine_for, jobs_of
from compositionality.evaluate.counts import (
    BY_PROBLEM,
    BY_PROBLEM_SCHEMA,
    Tally,
    by_problem_table,
    tally,
)
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.replicate import replicate_of
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


@dataclass(frozen=True)
class FileTallies:
    """Tallies by (checkpoint name, problem file name), and the problems by file name."""

    tallies: dict[tuple[str, str], Tally]
    problems: dict[str, pa.Table]


def evaluate(settings: EvaluateSettings) -> Path:
    """Write ``output``/accuracy.{json,parquet}, by_problem.parquet and the rollouts behind them; print the table."""
    models = named_paths("models", settings.models)
    files = named_paths("problems", settings.problems)
    settings = replace(settings, engine=choose_engine(settings.engine, settings.base_url, list(models.values())))
    output = settings.output
    if settings.answers_only:
        for model, path in models.items():
            _answers(settings, model, path, files)
        return output
    with exclusive(output):
        folders: dict[tuple[str, str], Path] = {}
        for model, path in models.items():
            folders |= _answers(settings, model, path, files)
        recipe = _recipe(settings, models, files, folders)
        _write_tables(settings, files, folders, recipe)
        table = output / "accuracy.parquet"
        training = reports_of(models)
        _write_json(table, table.with_suffix(".json"), training, force=settings.force)
    print_results(read_table(table).to_pylist(), new_console(), by_skill=settings.by_skill, reports=[training])
    if rule := settings.reward.rule():
        print(rule)
    print_training({"": training}, new_console())
    print(f"{table} and {table.with_suffix('.json').name}")
    return output


def check(settings: EvaluateSettings) -> None:
    """A dry run's: names, settings, and of the models and problem files those that are there."""
    models, files = named_paths("models", settings.models), named_paths("problems", settings.problems)
    check_jobs(settings, models, files, settings.output, force=settings.force)


def _write_tables(settings: EvaluateSettings, files: Mapping[str, str], folders: Folders, recipe: Recipe) -> None:
    """The two parquet files, each if it is not there yet."""
    counts: FileTallies | None = None
    makers: dict[str, tuple[pa.Schema, Callable[[FileTallies], pa.Table]]] = {
        "accuracy.parquet": (SCHEMA, lambda found: pa.Table.from_pylist(list(_rows(settings, found)), schema=SCHEMA)),
        BY_PROBLEM: (BY_PROBLEM_SCHEMA, lambda found: by_problem_table(found.tallies, found.problems)),
    }
    for name, (schema, make) in makers.items():
        table = settings.output / name
        again = settings.force or _grows(table, recipe) or _has_other_columns(table, schema)
        if is_done(table, recipe, force=again):
            print(f"{table} is already there")
            continue
        counts = counts or _count(settings, files, folders)
        with new_artefact(table, recipe) as partial:
            write_table(make(counts), partial)


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
    kept = {"models": list(models), "problems": list(files), "sampling": dict(sampling)}
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


def _has_other_columns(table: Path, schema: pa.Schema) -> bool:
    """True for a table that an earlier version made."""
    return table.is_file() and pq.read_schema(table).names != schema.names


def _count(settings: EvaluateSettings, files: Mapping[str, str], folders: Folders) -> FileTallies:
    """Read every rollout folder once, problem file by problem file."""
    tallies, problems = {}, {}
    for name, path in files.items():
        table = read_problems(Path(path), settings.row_format(any_source=bool(settings.reward.function)))
        problems[name] = table.slice(0, settings.limit) if settings.limit else table
        rows = list(iterate_problems(problems[name]))
        for model in dict.fromkeys(model for model, _ in folders):
            tallies[model, name] = tally(read_rollouts(folders[model, name]), len(rows), partial(_composes, rows))
    return FileTallies(tallies, problems)


def _composes(problems: Sequence[Problem], number: int, text: str) -> bool | None:
    problem = problems[number]
    return known_task(problem.data_source).composed(problem, text)


def _rows(settings: EvaluateSettings, counted: FileTallies) -> Iterator[Row]:
    """The rows of every table, problem file by problem file; differences are to the first checkpoint."""
    for name, problems in counted.problems.items():
        parts = parts_of(problems)
        base: Tally | None = None
        for (model, file), counts in counted.tallies.items():
            if file == name:
                yield from rows_of(counts, base, parts, _labels(settings, model, name))
                base = base or counts


def _labels(settings: EvaluateSettings, model: str, problems: str) -> Row:
    return {
        "model": model,
        "problems": problems,
        "n_samples": settings.n_samples,
        "temperature": settings.temperature,
        "seed": settings.seed,
    }


def reports_of(models: Mapping[str, str]) -> dict[str, Row]:
    """What made each model, by name, of those whose folder says it."""
    found = {model: report_of(Path(path)) for model, path in models.items()}
    return {model: asdict(report) for model, report in found.items() if report}


def _write_json(table: Path, output: Path, training: Mapping[str, Row], *, force: bool) -> None:
    """The same rows for readers without parquet, and what made the models: it follows both without asking."""
    made_from = verify(table)
    results = read_table(table).to_pylist()
    content = {"settings": made_from.settings, "inputs": made_from.inputs, "training": training, "results": results}
    recipe = Recipe(STEP, {"format": "json", "training": config_hash(training)}, {"table": table})
    write_derived(output, recipe, lambda path: path.write_text(json.dumps(content, indent=1) + "\n"), force=force)
