"""Accuracy of any models on any problem files: sample missing answers, one engine per model, and count them."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from compositionality.console import new_console
from compositionality.data import artefact
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import iterate_problems, read_problems
from compositionality.data.row_format import RowSettings
from compositionality.errors import UserError
from compositionality.evaluate.gold import gold_of, measure_gold, read_gold
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.results import ROLLOUTS, TRAINING, read_results, replicate_of
from compositionality.evaluate.seeds import print_summary
from compositionality.evaluate.table import (
    REASON,
    REASONS,
    RESULTS,
    SCHEMA,
    count,
    problem_columns,
    problem_sets,
    write,
)
from compositionality.evaluate.tables import rich_table
from compositionality.evaluate.types import CHAIN
from compositionality.ranges import REQUIRED, NonNegativeInt
from compositionality.rollout.collect import check as check_collection
from compositionality.rollout.collect import check_inputs, collect, settle_engine
from compositionality.rollout.engines.factory import choose_engine, open_engine
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.rollout.prompts import tokenized
from compositionality.rollout.settings import CollectSettings, SamplingSettings, check_settings
from compositionality.rollout.settings import recipe as rollout_recipe
from compositionality.rollout.store import SCHEMA as ROLLOUT_SCHEMA
from compositionality.rollout.store import has_other_rollouts, rollout_manifest
from compositionality.stats.estimate import Counts
from compositionality.tasks.registry import known_task
from compositionality.train.training_report import report_of
from compositionality.types import Problem, Reason
from compositionality.validation import check_ranges

EXPORTED = "exported"  # a model folder with the weights of a verl checkpoint, beside its shards
STEP = "evaluate_accuracy"
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


def evaluate(settings: EvaluationSettings) -> Path:
    """Write ``output``/results.parquet, training.json and the rollouts behind them; print the tables."""
    evaluation = open_evaluation(settings, STEP)
    sample(evaluation)
    if settings.answers_only:
        return settings.output
    table = write_results(evaluation, STEP, {}, chains=True)
    folders = {model: Path(folder) for model, folder in evaluation.models.items()}
    reports = {model: asdict(report) for model, folder in folders.items() if (report := report_of(folder))}
    recipe = artefact.Recipe(STEP, {"training": artefact.config_hash(reports)}, {"table": table})
    write = partial(Path.write_text, data=json.dumps(reports, indent=1) + "\n")
    artefact.make(table.with_name(TRAINING), recipe, write, force=settings.force, follows=True)
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

    def gold(self, model: str, file: str) -> Path:
        """Return the file with the probabilities of gold solutions."""
        return Path(self.settings.output, "gold", model, f"{file}.parquet")


def open_evaluation(settings: EvaluationSettings, step: str) -> Evaluation:
    """Check settings and names and read the problems; parts of files are written to ``output``/problems/."""
    models, rollouts, files = names_of(settings)
    check_table(settings, step)
    settings = replace(settings, engine=choose_engine(settings.engine, settings.base_url, list(models.values())))
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


def check(settings: EvaluationSettings, step: str = STEP) -> None:
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
        settings = replace(settings, engine=choose_engine(settings.engine, settings.base_url, list(models.values())))
    for (model, path), (name, file) in product(models.items(), files.items()):
        job = settings.collection(path, file, settings.output / ROLLOUTS / model / name)
        check_collection(replace(job, force=settings.force or not settled))


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
    settings, problems = evaluation.settings, evaluation.problems
    for job in evaluation.jobs.values():  # before the first is sampled, which may take hours
        check_inputs(job)
    for model, folder in evaluation.models.items():
        _collect([evaluation.jobs[model, file] for file in problems], force=settings.force)
        if settings.gold_log_probs:
            measure_gold(
                folder, [(evaluation.gold(model, file), part.path, part.table) for file, part in problems.items()]
            )


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
    chats = ((str(job.problems), read_problems(job.problems, job.form())["prompt"].to_pylist()) for job in jobs)
    return max(len(tokens) for source, rows in chats for tokens in tokenized(rows, tokenizer, source))


def write_results(evaluation: Evaluation, step: str, recorded: Mapping[str, Any], *, chains: bool) -> Path:
    """Write ``output``/results.parquet from the rollouts; models can be added to an existing one, not removed.

    ``chains``: also count properties of the steps in the responses. ``force`` replaces any table.
    """
    table, problems = evaluation.settings.output / RESULTS, evaluation.problems
    folders, n_samples, force = evaluation.folders, evaluation.settings.n_samples, evaluation.settings.force
    gold = {key: evaluation.gold(*key) for key in evaluation.jobs if evaluation.settings.gold_log_probs}
    inputs = {f"rollouts/{model}/{name}": folder for (model, name), folder in folders.items()}
    inputs |= {f"problems/{name}": sampled.path for name, sampled in problems.items()}
    inputs |= {f"gold/{model}/{name}": path for (model, name), path in gold.items()}
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
                is_measured = (model, file) in gold
                tables.append(rows.merge(read_gold(gold[model, file]), "left", on="problem") if is_measured else rows)
        write(pd.concat(tables), path)

    recipe = artefact.Recipe(step, settings, inputs)
    artefact.make(table, recipe, write_table_of_all, force=lambda: force or _grows(table, recipe))
    return table


def _sampling(folders: Mapping[tuple[str, str], Path], n_samples: int) -> dict[str, Any]:
    """Return the sampling settings of all folders. UserError if they differ, or for another ``n_samples``."""
    sampled = [(model, folder, rollout_manifest(folder).settings) for (model, _), folder in folders.items()]
    first, _, sampling = sampled[0]
    for model, folder, settings in sampled:
        if (n := settings.get("n_samples", n_samples)) != n_samples:
            raise UserError(f"{folder}: has {n} samples per problem; give n_samples={n}")
        for name in (name for name in SAME_IN_ALL if settings.get(name) != sampling.get(name)):
            difference = f"sampled differently ({name}: {settings.get(name)} and {sampling.get(name)})"
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
