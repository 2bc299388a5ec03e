"""From models and problem files to ``results.parquet``: sample missing answers, one engine per model, and count."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from compositionality.data import artefact
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import iterate_problems, read_problems
from compositionality.data.row_format import RowSettings
from compositionality.errors import UserError
from compositionality.evaluate.gold import gold_of, measure_gold, read_gold
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.results import ROLLOUTS, replicate_of
from compositionality.evaluate.table import REASONS, RESULTS, SCHEMA, count, problem_columns, problem_sets, write
from compositionality.evaluate.types import CHAIN
from compositionality.ranges import REQUIRED, NonNegativeInt
from compositionality.rollout.collect import check as check_collection
from compositionality.rollout.collect import collect, settle_engine
from compositionality.rollout.engines.factory import choose_engine, open_engine
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.rollout.prompts import prompt_tokens
from compositionality.rollout.settings import CollectSettings, SamplingSettings, check_settings
from compositionality.rollout.settings import recipe as rollout_recipe
from compositionality.rollout.store import SCHEMA as ROLLOUT_SCHEMA
from compositionality.rollout.store import has_other_rollouts, rollout_manifest
from compositionality.stats.estimate import Counts
from compositionality.tasks.registry import known_task
from compositionality.types import Problem, Reason
from compositionality.validation import check_ranges

EXPORTED = "exported"  # a model folder with the weights of a verl checkpoint, beside its shards
SAME_IN_ALL = ("n_samples", "temperature", "top_p", "top_k", "max_tokens")


@dataclass
class EvaluationSettings(RowSettings, SamplingSettings):
    """The models and the problems that they answer; shared by ``evaluate`` and ``passk``."""

    models: list[str] = field(default_factory=list)  # models to sample, NAME:PATH; RUN/steps: all its checkpoints
    rollouts: list[str] = field(default_factory=list)  # existing rollouts, NAME:FOLDER of collect_rollouts
    problems: list[str] = REQUIRED  # problem files, PATH or NAME:PATH
    output: Path = REQUIRED  # folder of the results
    levels: list[NonNegativeInt] = field(default_factory=list)  # only these levels; empty: all
    per_level: NonNegativeInt = 0  # use only the first N problems of each level; 0: all
    gold_log_probs: bool = False  # also compute exact probabilities of gold solutions for a part of the problems
    answers_only: bool = False  # collect answers without making the table: several processes can do that at a time
    force: bool = False  # replace a result that was made from something else


@dataclass(frozen=True)
class SampledProblems:
    """The selected problems of one file; ``rows``: their row numbers in the ``source`` file."""

    path: Path
    source: Path
    rows: Counts
    table: pa.Table


@dataclass(frozen=True)
class Evaluation:
    """The plan of an evaluation: ``jobs`` to collect, ``folders`` of these and of existing rollouts.

    Problems are by the name of their file, jobs and folders by the names of model and file.
    """

    settings: EvaluationSettings
    models: Mapping[str, str]
    problems: Mapping[str, SampledProblems]
    jobs: Mapping[tuple[str, str], CollectSettings]
    folders: Mapping[tuple[str, str], Path]

    @property
    def gold(self) -> dict[tuple[str, str], Path]:
        """The files with the probabilities of gold solutions, by the names of model and file."""
        place = self.settings.output / "gold"
        return {key: Path(place, *key).with_suffix(".parquet") for key in self.jobs if self.settings.gold_log_probs}

    def jobs_of(self, model: str) -> dict[str, CollectSettings]:
        """Return the jobs of one model, by file."""
        return {file: job for (name, file), job in self.jobs.items() if name == model}


def open_evaluation(settings: EvaluationSettings, step: str) -> Evaluation:
    """Check settings and names and read the problems; parts of files are written to ``output``/problems/."""
    models, rollouts, files = names_of(settings)
    check_table(settings, step)
    settings = _choose_engine(settings, models)
    for path in models.values():
        folder = Path(path)
        if folder.name == EXPORTED and (folder.parent / "actor").is_dir():  # verl's shards
            from compositionality.train.verl.export import ExportSettings, export_step

            export_step(ExportSettings(checkpoint=str(folder.parent), output=path))
        check_settings(settings.collection(path, settings.problems[0], settings.output))
    problems = {name: _choose(settings, name, Path(path)) for name, path in files.items()}
    jobs = {}
    for (model, path), (file, sampled) in product(models.items(), problems.items()):
        job = settings.collection(path, str(sampled.path), settings.output / ROLLOUTS / model / file)
        # A part of a file is in our columns, whatever those of the file are.
        jobs[model, file] = job if sampled.path == sampled.source else replace(job, **vars(RowSettings()))
    sampled_before = {(name, file): Path(folder) for name, folder in rollouts.items() for file in files}
    folders = {key: job.output for key, job in jobs.items()} | sampled_before
    return Evaluation(settings, models, problems, jobs, folders)


def check_table(settings: EvaluationSettings, step: str) -> None:
    """Raise UserError if another step than ``step`` made the existing table, or the output has no name."""
    artefact.hidden_sibling(settings.output, "lock")
    if not settings.answers_only:
        artefact.check_maker(settings.output / RESULTS, step, force=settings.force)


def check(settings: EvaluationSettings, step: str = "evaluate_accuracy") -> None:
    """Check names and settings, and the existing table and inputs, as at a start of ``step``."""
    models, rollouts, files = names_of(settings)
    check_table(settings, step)
    for path in rollouts.values():
        if artefact.is_to_be_checked(path, dry=True):
            rollout_manifest(Path(path))
    for path in files.values():
        if artefact.is_to_be_checked(path, dry=True) and (settings.levels or settings.per_level):
            _rows(settings, Path(path))
    settled = bool(settings.base_url) or artefact.is_to_be_checked(*models.values(), dry=True)
    if settled and models:  # one engine for all of them
        settings = _choose_engine(settings, models)
    for model, path in models.items():
        for name, file in files.items():
            output = settings.output / ROLLOUTS / model / name
            check_collection(replace(settings.collection(path, file, output), force=settings.force or not settled))


def _choose_engine(settings: EvaluationSettings, models: Mapping[str, str]) -> EvaluationSettings:
    """Return the settings with the engine that fits all models."""
    return replace(settings, engine=choose_engine(settings.engine, settings.base_url, list(models.values())))


def names_of(settings: EvaluationSettings) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return models, rollouts and problem files by name. UserError for settings that exclude each other."""
    check_ranges(settings)
    if not settings.models and not settings.rollouts:
        raise UserError("models, rollouts: give at least one, as models=[NAME:PATH,...] or rollouts=[NAME:FOLDER,...]")
    if settings.rollouts and len(settings.problems) != 1:
        raise UserError("rollouts=[...] needs exactly one problem file, that of the rollouts: problems=[NAME:PATH]")
    if settings.limit and (settings.levels or settings.per_level or settings.rollouts):
        raise UserError(f"limit={settings.limit}: not with levels, per_level or rollouts; give only per_level")
    if settings.gold_log_probs and (settings.base_url or not settings.models):
        raise UserError("gold_log_probs needs model folders, models=[NAME:PATH,...], and no base_url")
    models = models_of(settings.models) if settings.models else {}
    rollouts = named_paths("rollouts", settings.rollouts) if settings.rollouts else {}
    if shared := sorted(models.keys() & rollouts.keys()):
        raise UserError(f"models and rollouts both have {shared[0]!r}; write NAME:PATH for one")
    return models, rollouts, named_paths("problems", settings.problems)


def models_of(entries: Sequence[str]) -> dict[str, str]:
    """Return model folders by name; the folder ``steps`` of a run stands for its checkpoints, step8, step16 …"""
    models = {}
    for name, path in named_paths("models", entries).items():
        steps = {int(step.name.rpartition("_")[2]): step for step in Path(path).glob("global_step_*")}
        for number in sorted(steps):
            folder = steps[number] / (EXPORTED if (steps[number] / "actor").is_dir() else "huggingface")
            models[f"step{number}"] = str(folder)
        if not steps:
            models[name] = path
    return models


def _choose(settings: EvaluationSettings, name: str, source: Path) -> SampledProblems:
    """Return the selected problems of one file; a part of it is written to a separate file."""
    table, rows = _rows(settings, source)
    if not settings.levels and not settings.per_level:
        return SampledProblems(source, source, rows, table.take(rows))
    target = settings.output / "problems" / f"{name}.parquet"
    part = {"levels": settings.levels, "per_level": settings.per_level}
    recipe = artefact.Recipe("passk_problems", part, {"problems": source})
    # Several processes may use these problems at the same time.
    artefact.make(target, recipe, lambda path: write_table(table.take(rows), path), follows=True, wait=600)
    return SampledProblems(target, source, rows, table.take(rows))


def _rows(settings: EvaluationSettings, source: Path) -> tuple[pa.Table, Counts]:
    """Return a problem file and the selected row numbers, in file order. UserError if a level has too few problems."""
    table = read_problems(source, settings.row_format(any_source=bool(settings.reward.function)))
    if not settings.levels and not settings.per_level:
        return table, np.arange(min(settings.limit or table.num_rows, table.num_rows))
    problems, per_level = problem_sets(table), settings.per_level
    levels = sorted(set(problems["level"]))
    if lacking := sorted(set(settings.levels) - set(levels)):
        raise UserError(f"{source}: has no level {lacking[0]}; its levels are {levels}")
    chosen = problems[problems["level"].isin(settings.levels)] if settings.levels else problems
    sets = chosen.groupby(["group", "level", "data_source"], sort=False)
    for (group, level, _), n in sets.size().items():
        if n < per_level:
            raise UserError(f"{source}: has {n} problems of {group} L{level}; lower per_level={per_level}")
    return table, (sets.head(per_level) if per_level else chosen)["problem"].to_numpy(np.int64)


def sample(evaluation: Evaluation) -> None:
    """Sample every model and measure gold solutions, if set; ``force`` replaces answers of other models or settings."""
    for model, folder in evaluation.models.items():
        _collect(list(evaluation.jobs_of(model).values()), force=evaluation.settings.force)
        parts = [(path, evaluation.problems[file]) for (name, file), path in evaluation.gold.items() if name == model]
        if parts:
            measure_gold(folder, [(path, part.path, part.table) for path, part in parts])


def _collect(jobs: Sequence[CollectSettings], *, force: bool) -> None:
    """Collect one model's answers to every file, with one engine, which is opened when it is first needed."""
    with ExitStack() as stack:
        engine = cache(lambda: stack.enter_context(closing(open_engine(jobs[0], longest_prompt(jobs)))))
        for job in jobs:
            collect(replace(job, force=force and _holds_others(job)), engine)


def _holds_others(job: CollectSettings) -> bool:
    """Return whether the output has answers, or an unfinished run, of another model or other settings."""
    job_recipe = rollout_recipe(settle_engine(job))
    try:
        artefact.is_done(job.output, job_recipe)
    except UserError:
        return True
    return has_other_rollouts(job.output, job_recipe.identity())


def longest_prompt(jobs: Sequence[CollectSettings]) -> int:
    """Return the number of tokens of the longest prompt; 0 for a server, which checks its prompts itself."""
    if jobs[0].engine == "openai":
        return 0
    tokenizer = load_tokenizer(Path(jobs[0].model))
    chats = (chat for job in jobs for chat in read_problems(job.problems, job.form())["prompt"].to_pylist())
    return max(len(prompt_tokens(tokenizer, chat)) for chat in chats)


def write_results(evaluation: Evaluation, step: str, recorded: Mapping[str, Any], *, chains: bool) -> Path:
    """Write ``output``/results.parquet from the rollouts; models can be added to an existing one, not removed.

    ``chains``: also count properties of the steps in the responses. ``force`` replaces any table.
    """
    table, problems = evaluation.settings.output / RESULTS, evaluation.problems
    folders, n_samples = evaluation.folders, evaluation.settings.n_samples
    inputs = {f"rollouts/{model}/{name}": folder for (model, name), folder in folders.items()}
    inputs |= {f"problems/{name}": sampled.path for name, sampled in problems.items()}
    inputs |= {f"gold/{model}/{name}": path for (model, name), path in evaluation.gold.items()}
    settings = {
        "models": list(dict.fromkeys(model for model, _ in folders)),
        "problems": list(problems),
        "sampling": _sampling(folders, n_samples),
        "columns": SCHEMA.names,
        "replicate": replicate_of(folders.values(), [sampled.source for sampled in problems.values()]),
        **recorded,
    }

    def write_table_of_all(path: Path) -> None:
        tables = []
        for file, sampled in problems.items():
            described = problem_columns(sampled.table)
            to_read = list(iterate_problems(sampled.table)) if chains else None
            for model in (model for model, name in folders if name == file):
                counts = count_samples(folders[model, file], sampled, n_samples, to_read)
                rows = pd.concat([described, counts], axis=1).assign(arm=model, file=file)
                gold = evaluation.gold.get((model, file))
                tables.append(rows.merge(read_gold(gold), "left", on="problem") if gold else rows)
        write(pd.concat(tables), path)

    recipe = artefact.Recipe(step, settings, inputs)
    force = evaluation.settings.force
    artefact.make(table, recipe, write_table_of_all, force=lambda: force or _grows(table, recipe))
    return table


def _sampling(folders: Mapping[tuple[str, str], Path], n_samples: int) -> dict[str, Any]:
    """Return the sampling settings of all folders. UserError if they differ, or for another ``n_samples``."""
    sampled = [(model, folder, rollout_manifest(folder).settings) for (model, _), folder in folders.items()]
    first, _, sampling = sampled[0]
    for model, folder, settings in sampled:
        if (n := settings.get("n_samples", n_samples)) != n_samples:
            raise UserError(f"{folder}: has {n} samples per problem; give n_samples={n}")
        for name in SAME_IN_ALL:
            value, first_value = settings.get(name), sampling.get(name)
            if value != first_value:
                difference = f"sampled differently ({name}: {value} and {first_value})"
                raise UserError(f"{model} and {first}: {difference}; compare models with the same sampling")
    return {name: value for name, value in sampling.items() if name != "model"}


def _grows(table: Path, recipe: artefact.Recipe) -> bool:
    """Return whether the new table keeps all rollouts of the existing one, so that replacing it loses nothing."""
    old = artefact.read_manifest(table) if table.is_file() else None
    if old is None or old.step != recipe.step:
        return False
    _, settings, inputs = recipe.identity()
    unchanged = old.inputs == inputs and old.settings == json.loads(settings)
    return not unchanged and old.inputs.items() <= inputs.items()


def count_samples(
    folder: Path, sampled: SampledProblems, n_samples: int, problems: Sequence[Problem] | None = None
) -> pd.DataFrame:
    """Return counts of the completions of the sampled problems, (P,); with ``problems`` also of their chains."""
    manifest = rollout_manifest(folder)
    whole, part = artefact.tree_hash(sampled.source), artefact.tree_hash(sampled.path)
    if (file_hash := manifest.inputs.get("problems", "")) not in (whole, part):
        raise UserError(f"{folder}: answers other problems than those of {sampled.source}; collect them for that file")
    rows = sampled.rows if file_hash == whole else np.arange(len(sampled.rows))
    places = pd.Series(np.arange(len(rows)), rows)
    samples = pd.concat([_read_samples(folder / name, n_samples, places, problems) for name in sorted(manifest.files)])
    units = samples["problem"] * n_samples + samples["sample"]
    if not (repeated := units[units.duplicated()]).empty:
        place, number = divmod(int(repeated.iloc[0]), n_samples)
        raise UserError(f"{folder}: problem {rows[place]} has sample {number} more than once; collect them again")
    if len(missing := np.setdiff1d(np.arange(len(rows) * n_samples), units)):
        place, number = divmod(int(missing[0]), n_samples)
        raise UserError(
            f"{folder}: problem {rows[place]} has no sample {number}, and {len(missing)} samples are missing in all; "
            "collect them again"
        )
    return count(samples, len(rows))


def _read_samples(
    shard: Path, n_samples: int, places: "pd.Series[int]", problems: Sequence[Problem] | None
) -> pd.DataFrame:
    """Return the samples of the selected problems; with ``problems`` also properties of the steps in their texts."""
    texts = ["response"] if problems else []
    samples = read_table(shard, ["problem", "sample", "n_tokens", "reason", *texts], types=ROLLOUT_SCHEMA).to_pandas()
    if not samples["sample"].between(0, n_samples - 1).all() or (samples["problem"] < 0).any():
        raise UserError(f"{shard}: has an invalid sample or problem number; collect them again")
    samples = samples.assign(problem=samples["problem"].map(places)).dropna(subset="problem")
    samples = samples.astype({"problem": np.int64, "reason": pd.CategoricalDtype(REASONS)})
    if not problems:
        return samples
    judged = samples[samples["reason"] != Reason.ERROR]
    chains = [
        known_task(problems[number].data_source).read_chain(problems[number], text)
        for number, text in zip(judged["problem"], judged["response"], strict=True)
    ]
    gold = {number: gold_of(problems[number]) for number in judged["problem"].unique()}
    canonical = (samples["reason"] == Reason.CORRECT) & (samples["response"] == samples["problem"].map(gold))
    columns = pd.DataFrame(chains, judged.index, CHAIN, dtype=float).reindex(samples.index)
    return samples.join(columns).assign(canonical=canonical).drop(columns="response")
