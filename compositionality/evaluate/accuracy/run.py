"""Any checkpoints on any problem files: answers through ``rollout.collect``, then accuracy by level and function."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from omegaconf import MISSING

from compositionality.console import new_console
from compositionality.data.artefact import (
    Recipe,
    exclusive,
    is_done,
    new_artefact,
    read_manifest,
    verify,
    write_derived,
)
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import read_problems
from compositionality.evaluate.accuracy.rows import SCHEMA, Row, groups_of, rows_of
from compositionality.evaluate.completions import AskSettings, Folders, all_collected, engine_for, jobs_of
from compositionality.evaluate.counts import BY_PROBLEM, Tally, by_problem_table, tally
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.tables import print_results
from compositionality.rollout.settings import recipe as collection_recipe
from compositionality.rollout.store import read_rollouts

STEP = "evaluate_accuracy"


@dataclass
class EvaluateSettings(AskSettings):
    """Settings of ``evaluate``."""

    models: list[str] = MISSING
    problems: list[str] = MISSING
    output: Path = MISSING
    answers_only: bool = False  # collect the answers, make no table: several processes may do that at the same time
    by_function: bool = False  # print accuracy by function too; the files hold it always
    force: bool = False


@dataclass(frozen=True)
class Counted:
    """All answers as counts, by (checkpoint name, problem file name), and the problems they answer."""

    tallies: dict[tuple[str, str], Tally]
    problems: dict[str, pa.Table]

    @property
    def levels(self) -> dict[str, list[str]]:
        """The data source of every problem, by problem file."""
        return {name: table["data_source"].to_pylist() for name, table in self.problems.items()}


def evaluate(settings: EvaluateSettings) -> Path:
    """Write ``output``/accuracy.{json,parquet}, by_problem.parquet and the rollouts behind them; print the table."""
    models = named_paths("models", settings.models)
    files = named_paths("problems", settings.problems)
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
        _write_json(table, table.with_suffix(".json"), force=settings.force)
    print_results(read_table(table).to_pylist(), new_console(), by_function=settings.by_function)
    print(f"{table} and {table.with_suffix('.json').name}")
    return output


def _write_tables(settings: EvaluateSettings, files: Mapping[str, str], folders: Folders, recipe: Recipe) -> None:
    """The two parquet files, each if it is not there yet."""
    counts: Counted | None = None
    makers: dict[str, Callable[[Counted], pa.Table]] = {
        "accuracy.parquet": lambda counted: pa.Table.from_pylist(list(_rows(settings, counted)), schema=SCHEMA),
        BY_PROBLEM: lambda counted: by_problem_table(counted.tallies, counted.levels),
    }
    for name, make in makers.items():
        table = settings.output / name
        if is_done(table, recipe, force=settings.force or _grows(table, recipe)):
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
    return Recipe(STEP, {"models": list(models), "problems": list(files), "sampling": dict(sampling)}, inputs)


def _grows(table: Path, recipe: Recipe) -> bool:
    """True if the table there is made from a part of the same rollouts: then a new one loses nothing."""
    old = read_manifest(table) if table.is_file() else None
    if old is None or old.step != recipe.step:
        return False
    _, settings, inputs = recipe.identity()
    same = old.inputs == inputs and old.settings == json.loads(settings)
    return not same and old.inputs.items() <= inputs.items()


def _count(settings: EvaluateSettings, files: Mapping[str, str], folders: Folders) -> Counted:
    """Read every rollout folder once, problem file by problem file."""
    tallies, problems = {}, {}
    for name, path in files.items():
        table = read_problems(Path(path))
        problems[name] = table.slice(0, settings.limit) if settings.limit else table
        for model in dict.fromkeys(model for model, _ in folders):
            tallies[model, name] = tally(read_rollouts(folders[model, name]), problems[name].num_rows)
    return Counted(tallies, problems)


def _rows(settings: EvaluateSettings, counted: Counted) -> Iterator[Row]:
    """The rows of every table, problem file by problem file; differences are to the first checkpoint."""
    for name, problems in counted.problems.items():
        groups = groups_of(problems)
        base: Tally | None = None
        for (model, file), counts in counted.tallies.items():
            if file == name:
                yield from rows_of(counts, base, groups, _labels(settings, model, name))
                base = base or counts


def _labels(settings: EvaluateSettings, model: str, problems: str) -> Row:
    return {
        "model": model,
        "problems": problems,
        "n_samples": settings.n_samples,
        "temperature": settings.temperature,
        "seed": settings.seed,
    }


def _write_json(table: Path, output: Path, *, force: bool) -> None:
    """The same rows for readers without parquet: a copy of the table, so it follows the table without asking."""
    made_from = verify(table)
    content = {"settings": made_from.settings, "inputs": made_from.inputs, "results": read_table(table).to_pylist()}
    recipe = Recipe(STEP, {"format": "json"}, {"table": table})
    write_derived(output, recipe, lambda path: path.write_text(json.dumps(content, indent=1) + "\n"), force=force)
