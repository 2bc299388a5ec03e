"""From models and problem files to ``results.parquet``: sample what is missing, one engine a model, and count."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from compositionality.data.artefact import (
    MANIFEST,
    Recipe,
    exclusive,
    is_done,
    is_to_be_checked,
    new_artefact,
    read_manifest,
    tree_hash,
    write_derived,
)
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import RowSettings, iterate_problems, read_problems
from compositionality.errors import UserError
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.replicate import replicate_of
from compositionality.evaluate.table import RESULTS, SCHEMA, HandsOn, count, problem_columns, write
from compositionality.ranges import REQUIRED, NonNegativeInt, check_ranges
from compositionality.rollout.collect import check as check_collection
from compositionality.rollout.collect import collect
from compositionality.rollout.engines.base import Chat, Engine, SamplingOptions, Tick, no_tick
from compositionality.rollout.engines.factory import choose_engine, open_engine
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.rollout.prompts import prompt_tokens
from compositionality.rollout.settings import CollectSettings, SamplingSettings, check_settings
from compositionality.rollout.store import SCHEMA as ROLLOUT_SCHEMA
from compositionality.rollout.store import rollout_manifest
from compositionality.stats.estimate import Counts
from compositionality.tasks.registry import known_task
from compositionality.types import Completion, Problem

Folders = Mapping[tuple[str, str], Path]
"""Rollout folders by (model name, problem file name)."""
SAME_IN_ALL = ("n_samples", "temperature", "top_p", "top_k", "max_tokens")


@dataclass
class EvaluationSettings(RowSettings, SamplingSettings):
    """Which models answer which problems; shared by ``evaluate`` and ``passk``."""

    models: list[str] = field(default_factory=list)  # NAME:PATH, sampled here
    rollouts: list[str] = field(default_factory=list)  # NAME:FOLDER, sampled before by collect_rollouts
    problems: list[str] = REQUIRED  # problem files, PATH or NAME:PATH
    output: Path = REQUIRED  # folder of the results
    levels: list[NonNegativeInt] = field(default_factory=list)  # these only; empty: all
    per_level: NonNegativeInt = 0  # the first so many problems of each level; 0: all
    answers_only: bool = False  # collect the answers, make no table: several processes may do that at the same time
    force: bool = False  # replace a result that was made from something else


@dataclass(frozen=True)
class SampledProblems:
    """The problems of one file that are asked; ``rows``: their row numbers in the ``source`` that they come from."""

    path: Path
    source: Path
    rows: Counts
    table: pa.Table

    def rows_of(self, problems_hash: str) -> Counts | None:
        """Row numbers of these problems in the file of that hash; None if it is neither this file nor its source."""
        if problems_hash == tree_hash(self.path):
            return np.arange(len(self.rows))
        return self.rows if problems_hash == tree_hash(self.source) else None


@dataclass(frozen=True)
class Evaluation:
    """What is asked of whom: models by name, rollouts by name, problems by the name of their file."""

    settings: EvaluationSettings
    models: Mapping[str, str]
    rollouts: Mapping[str, str]
    problems: Mapping[str, SampledProblems]

    def jobs(self, model: str) -> dict[str, CollectSettings]:
        """What to collect of one model, by problem file: ``output``/rollouts/MODEL/FILE."""
        output = self.settings.output / "rollouts" / model
        return {
            name: _job(self.settings, self.models[model], problems.path, output / name)
            for name, problems in self.problems.items()
        }

    def missing(self) -> dict[str, dict[str, CollectSettings]]:
        """The jobs of each model of which no answers are there, or a part."""
        jobs = {model: self.jobs(model) for model in self.models}
        open_jobs = {
            model: {name: job for name, job in mine.items() if not (job.output / MANIFEST).is_file()}
            for model, mine in jobs.items()
        }
        return {model: mine for model, mine in open_jobs.items() if mine}


def open_evaluation(settings: EvaluationSettings) -> Evaluation:
    """Check settings and names and read the problems. UserError if levels or problems are lacking."""
    models, rollouts, files = names_of(settings)
    settings = replace(settings, engine=choose_engine(settings.engine, settings.base_url, list(models.values())))
    for model in models.values():
        check_settings(settings.collection(model, settings.problems[0], settings.output))
    problems = {name: _choose(settings, name, Path(path)) for name, path in files.items()}
    return Evaluation(settings, models, rollouts, problems)


def check(settings: EvaluationSettings) -> None:
    """Check names and settings, and the models and problem files that exist, as a start does."""
    models, _, files = names_of(settings)
    for path in files.values():
        if is_to_be_checked(path, dry=True) and (settings.levels or settings.per_level):
            _rows(settings, Path(path), _read(settings, Path(path)))
    known = bool(settings.base_url) or is_to_be_checked(*models.values(), dry=True)  # with which engine all are asked
    if known and models:
        settings = replace(settings, engine=choose_engine(settings.engine, settings.base_url, list(models.values())))
    for model, path in models.items():
        for name, file in files.items():
            output = settings.output / "rollouts" / model / name
            check_collection(replace(settings.collection(path, file, output), force=settings.force or not known))


def names_of(settings: EvaluationSettings) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Models, rollouts and problem files by name. UserError for settings that do not go together."""
    check_ranges(settings)
    if not settings.models and not settings.rollouts:
        raise UserError("models, rollouts: give at least one, as models=[NAME:PATH,...] or rollouts=[NAME:FOLDER,...]")
    if settings.rollouts and len(settings.problems) != 1:
        raise UserError("rollouts=[...] needs the one problem file that they answer, problems=[NAME:PATH]")
    if settings.limit and (settings.levels or settings.per_level or settings.rollouts):
        raise UserError(f"limit={settings.limit}: not with levels, per_level or rollouts; give per_level alone")
    models = named_paths("models", settings.models) if settings.models else {}
    rollouts = named_paths("rollouts", settings.rollouts) if settings.rollouts else {}
    if twice := sorted(models.keys() & rollouts.keys()):
        raise UserError(f"models and rollouts both have {twice[0]!r}; write NAME:PATH for one")
    return models, rollouts, named_paths("problems", settings.problems)


def _read(settings: EvaluationSettings, path: Path) -> pa.Table:
    return read_problems(path, settings.row_format(any_source=bool(settings.reward.function)))


def _choose(settings: EvaluationSettings, name: str, source: Path) -> SampledProblems:
    """The problems that are asked of one file; a part of its levels is written to ``output``/problems/NAME.parquet."""
    table = _read(settings, source)
    if settings.limit:
        table = table.slice(0, settings.limit)
    if not settings.levels and not settings.per_level:
        return SampledProblems(source, source, np.arange(table.num_rows), table)
    rows, target = _rows(settings, source, table), settings.output / "problems" / f"{name}.parquet"
    recipe = Recipe(
        "passk_problems", {"levels": settings.levels, "per_level": settings.per_level}, {"problems": source}
    )
    with exclusive(target, wait=600):  # several processes may ask these problems at the same time
        write_derived(target, recipe, lambda path: write_table(table.take(rows), path))
    return SampledProblems(target, source, rows, table.take(rows))


def _rows(settings: EvaluationSettings, source: Path, table: pa.Table) -> Counts:
    """Row numbers of the chosen levels' first problems, in file order. UserError if there are too few."""
    problems, most = problem_columns(table), settings.per_level
    known = sorted(set(problems["level"]))
    if lacking := sorted(set(settings.levels) - set(known)):
        raise UserError(f"{source}: has no level {lacking[0]}; its levels are {known}")
    chosen = problems[problems["level"].isin(settings.levels)] if settings.levels else problems
    each = chosen.groupby(["group", "level", "data_source"], sort=False)
    for (group, level, _), n in each.size().items():
        if n < most:
            raise UserError(f"{source}: has {n} problems of {group} L{level}; lower per_level={most}")
    rows: Counts = (each.head(most) if most else chosen)["problem"].to_numpy(np.int64)
    return rows


def _job(settings: EvaluationSettings, model: str, problems: Path, output: Path) -> CollectSettings:
    """A part of a file is in our columns, whatever those of the file are."""
    own = {} if problems.parent != settings.output / "problems" else {
        entry.name: getattr(RowSettings(), entry.name) for entry in fields(RowSettings)
    }  # fmt: skip
    return replace(settings.collection(model, str(problems), output), **own)


def sample(evaluation: Evaluation) -> dict[tuple[str, str], Path]:
    """Ask every model; answers that are there stay. Folders of rollouts that were given come last."""
    folders: dict[tuple[str, str], Path] = {}
    for model in evaluation.models:
        jobs = evaluation.jobs(model)
        with SharedEngine(list(jobs.values())) as engine:
            for name, job in jobs.items():
                folders[model, name] = collected(job, engine, force=evaluation.settings.force)
    file = next(iter(evaluation.problems))  # with rollouts there is one
    return folders | {(model, file): Path(folder) for model, folder in evaluation.rollouts.items()}


def collected(job: CollectSettings, engine: Engine, *, force: bool) -> Path:
    """Collect; ``force`` replaces answers of another model or with other settings, and only those."""
    try:
        return collect(job, engine)
    except UserError:
        if not force:
            raise
    return collect(replace(job, force=True), engine)


class SharedEngine:
    """Opens the engine of a model's jobs at the first question, wide enough for the prompts of all their files."""

    def __init__(self, jobs: Sequence[CollectSettings]) -> None:
        self._jobs = jobs
        self._engine: Engine | None = None

    @property
    def parallel_calls(self) -> int:
        """As the engine behind it."""
        return self._opened().parallel_calls

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Tick = no_tick
    ) -> list[Completion]:
        """One completion per prompt and seed, in order."""
        return self._opened().generate(prompts, seeds, options, tick)

    def close(self) -> None:
        """Close the engine if it was opened."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> Engine:
        if self._engine is None:
            self._engine = open_engine(self._jobs[0], self._longest_prompt())
        return self._engine

    def _longest_prompt(self) -> int:
        """In tokens; a server checks its own (0)."""
        if self._jobs[0].engine == "openai":
            return 0
        tokenizer = load_tokenizer(Path(self._jobs[0].model))
        chats = (chat for job in self._jobs for chat in read_problems(job.problems, job.form())["prompt"].to_pylist())
        return max(len(prompt_tokens(tokenizer, chat)) for chat in chats)


def write_results(
    evaluation: Evaluation, folders: Folders, step: str, kept: Mapping[str, Any], *, hands_on: bool
) -> Path:
    """Write ``output``/results.parquet from the rollouts; one that is there may grow, not lose models, unless forced.

    UserError unless all were sampled alike and every sample is there exactly once.
    """
    table, problems = evaluation.settings.output / RESULTS, evaluation.problems
    inputs = {f"rollouts/{model}/{name}": folder for (model, name), folder in folders.items()}
    inputs |= {f"problems/{name}": sampled.path for name, sampled in problems.items()}
    settings = {
        "models": [*evaluation.models, *evaluation.rollouts],
        "problems": list(problems),
        "sampling": _sampling(folders, evaluation.settings.n_samples),
        "columns": SCHEMA.names,
        "replicate": replicate_of(folders.values(), [sampled.source for sampled in problems.values()]),
        **kept,
    }
    recipe = Recipe(step, settings, inputs)
    if is_done(table, recipe, force=evaluation.settings.force or _grows(table, recipe)):
        print(f"{table} is already there")
        return table
    with new_artefact(table, recipe) as path:
        write(pd.concat(_counts(evaluation, folders, hands_on=hands_on)), path)
    return table


def _sampling(folders: Folders, n_samples: int) -> dict[str, Any]:
    """How all of them were sampled."""
    first: tuple[str, dict[str, Any]] | None = None
    for (model, _), folder in folders.items():
        settings = rollout_manifest(folder).settings
        if settings.get("n_samples", n_samples) != n_samples:
            found = settings["n_samples"]
            raise UserError(f"{folder}: holds {found} samples of each problem; give n_samples of that many")
        first = first or (model, settings)
        for name in SAME_IN_ALL:
            if settings.get(name) != first[1].get(name):
                raise UserError(
                    f"{model} and {first[0]}: sampled differently ({name}: {settings.get(name)} and "
                    f"{first[1].get(name)}); only models that were sampled alike can be compared"
                )
    return {name: value for name, value in first[1].items() if name != "model"} if first else {}


def _grows(table: Path, recipe: Recipe) -> bool:
    """True if the table there is made from a part of the same rollouts, or by another version: nothing is lost."""
    old = read_manifest(table) if table.is_file() else None
    if old is None or old.step != recipe.step:
        return False
    _, settings, inputs = recipe.identity()
    same = old.inputs == inputs and old.settings == json.loads(settings)
    return not same and old.inputs.items() <= inputs.items()


def _counts(evaluation: Evaluation, folders: Folders, *, hands_on: bool) -> Iterator[pd.DataFrame]:
    """Rows of every file and model, one shard in memory at a time."""
    for name, sampled in evaluation.problems.items():
        problems = problem_columns(sampled.table)
        asked = list(iterate_problems(sampled.table)) if hands_on else []
        for model in dict.fromkeys(model for model, file in folders if file == name):
            check = partial(_hands_on, asked) if hands_on else None
            counts = count_samples(folders[model, name], sampled, evaluation.settings.n_samples, check)
            yield pd.concat([problems, counts], axis=1).assign(arm=model, file=name)


def _hands_on(problems: Sequence[Problem], number: int, text: str) -> bool | None:
    problem = problems[number]
    return known_task(problem.data_source).composed(problem, text)


def count_samples(
    folder: Path, sampled: SampledProblems, n_samples: int, hands_on: HandsOn | None = None
) -> pd.DataFrame:
    """Count the completions of the sampled problems. UserError for rollouts of another file, or samples that are
    missing or there twice."""
    rows = sampled.rows_of(rollout_manifest(folder).inputs.get("problems", ""))
    if rows is None:
        raise UserError(f"{folder}: answers other problems than those of {sampled.source}; collect them for that file")
    seen = np.zeros((len(rows), n_samples), np.uint8)
    counts = count(_chosen(folder, rows, seen, texts=hands_on is not None), len(rows), hands_on)
    if not seen.all():
        place, number = np.argwhere(seen == 0)[0]
        raise UserError(
            f"{folder}: problem {rows[place]} has no sample {number}, and {np.count_nonzero(seen == 0)} samples are "
            "missing in all; collect them again"
        )
    return counts


def _chosen(folder: Path, rows: Counts, seen: NDArray[np.uint8], *, texts: bool) -> Iterator[pa.Table]:
    """Shards with the rows of these problems only, renumbered; ``seen`` (P, N) marks every sample."""
    columns = ["problem", "sample", "n_tokens", "reason", *(["response"] if texts else [])]
    place = np.full(int(rows.max(initial=-1)) + 1, -1, np.int64)
    place[rows] = np.arange(len(rows))
    for name in sorted(rollout_manifest(folder).files):
        shard = read_table(folder / name, columns, types=ROLLOUT_SCHEMA)
        problem, number = shard["problem"].to_numpy(), shard["sample"].to_numpy()
        if len(number) and (number.min() < 0 or number.max() >= seen.shape[1] or problem.min() < 0):
            raise UserError(f"{folder / name}: names a sample or a problem that is none; collect them again")
        places = np.where(problem < len(place), place[np.minimum(problem, len(place) - 1)], -1)
        kept = places >= 0
        places, number = places[kept], number[kept]
        np.add.at(seen, (places, number), 1)
        if len(twice := np.flatnonzero(seen[places, number] > 1)):
            which = f"problem {rows[places[twice[0]]]} has sample {number[twice[0]]}"
            raise UserError(f"{folder}: {which} more than once; collect them again")
        yield shard.filter(pa.array(kept)).set_column(0, "problem", pa.array(places))
