"""Section 4.5: failure classes of all responses, by program; shares by class, function and pair of functions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from compositionality.console import natural_key, new_console
from compositionality.data import artefact
from compositionality.data.parquet import check_file, read_table
from compositionality.data.problems import iterate_problems, read_problems
from compositionality.errors import UserError
from compositionality.evaluate.llm_judge import JUDGED, agreement, judge_labels, judge_server, print_agreement
from compositionality.evaluate.naming import check_name, named_paths
from compositionality.evaluate.results import LABELS, ROLLOUTS, Results, read_results, replicate_of
from compositionality.evaluate.summary import Row, columns, share
from compositionality.evaluate.summary import labels as about
from compositionality.evaluate.table import FAILURE, KEYS, REASONS, RESULTS, SCHEMA, write
from compositionality.evaluate.tables import WORDS, rich_table, share_cell
from compositionality.evaluate.types import CHAIN, CORRECT, Metric
from compositionality.ranges import REQUIRED, NonNegativeInt, PositiveInt
from compositionality.rollout.store import read_rollouts, rollout_manifest
from compositionality.stats.estimate import over_problems
from compositionality.tasks.diagnosis import FAILURES
from compositionality.tasks.registry import task_of
from compositionality.types import Completion, Problem, Reason, Verdict
from compositionality.validation import check_ranges

STEP = "find_failures"
RULES = 2  # version of the classification; a new number invalidates old labels
LABELS_SCHEMA = pa.schema(
    [
        ("arm", pa.string()),
        ("file", pa.string()),
        ("problem", pa.int64()),
        ("sample", pa.int32()),
        ("group", pa.string()),
        ("level", pa.int64()),
        ("data_source", pa.string()),
        ("cluster", pa.string()),  # equal for problems that share a composition (Task.cluster)
        ("class", pa.string()),
        ("step", pa.int32()),  # of the first fault, from 1, innermost first
        ("function", pa.string()),
        ("fault", pa.string()),
        ("outer", pa.string()),  # for problems of one or two functions: the last function applied …
        ("inner", pa.string()),  # … and the first, if there are two
        *((name, pa.bool_()) for name in CHAIN),  # null: the task cannot tell
        ("applied", pa.list_(pa.string())),  # the functions of the stated steps …
        ("wrong", pa.list_(pa.bool_())),  # … and whether the stated result is wrong
    ]
)
COLUMNS = ("problem", "sample", "response", "n_tokens", "finish_reason", "score", "reason", "answer")
"""Columns of the rollouts that a diagnosis needs."""
ROWS_AT_ONCE = 8192
TITLES = {"arm": "model", "file": "problems"}  # names of these columns in the tables by function and pair


@dataclass
class FailureSettings:
    """Settings of ``find_failures``: give ``evaluation`` or ``rollouts``."""

    problems: list[str] = REQUIRED  # problem files, PATH or NAME:PATH
    output: Path = REQUIRED  # folder of the results
    evaluation: str = ""  # output folder of examples/evaluate.py
    rollouts: list[str] = field(default_factory=list)  # instead: NAME:FOLDER of collect_rollouts
    models: list[str] = field(default_factory=list)  # models of the evaluation, in this order; empty: all
    levels: list[NonNegativeInt] = field(default_factory=list)  # only these levels; empty: all
    level: NonNegativeInt = 3  # the level to print, and to judge
    judge: bool = False  # let a language model judge too
    judge_base_url: str = ""  # http://HOST:PORT/v1; default: $JUDGE_BASE_URL
    judge_model: str = ""  # name of the model on the server; default: $JUDGE_MODEL
    judge_responses: NonNegativeInt = 100  # responses to judge of every model and problem file; 0: all of the level
    judge_max_tokens: PositiveInt = 256  # limit of the judge's answer
    judge_concurrency: PositiveInt = 16  # requests at a time
    force: bool = False  # replace a result that was made from something else


class Source(NamedTuple):
    """The rollouts of one model on one problem file, named ``file``."""

    model: str
    file: str
    rollouts: Path
    problems: Path


def find_failures(settings: FailureSettings) -> Path:
    """Write ``output``/labels.parquet and results.parquet; print the table of ``level``."""
    output, force, sources = settings.output, settings.force, find_sources(settings)
    table, judged = output / LABELS, output / JUDGED
    inputs = {f"rollouts/{source.model}/{source.file}": source.rollouts for source in sources}
    inputs |= {f"problems/{source.file}": source.problems for source in sources}
    names = [[source.model, source.file] for source in sources]
    values = {"rules": RULES, "columns": LABELS_SCHEMA.names, "sources": names, "levels": sorted(settings.levels)}
    replicate = replicate_of((source.rollouts for source in sources), {source.problems: None for source in sources})
    recipe = artefact.Recipe(STEP, {**values, "replicate": replicate}, inputs)
    write_labels = partial(_write_labels, sources, settings.levels)
    if artefact.make(table, recipe, write_labels, force=force, follows=True) is None:
        print(f"{table} is already there")
    labels = read_labels(table)
    counts = artefact.Recipe(STEP, {"rules": RULES, "columns": SCHEMA.names}, {"labels": table})
    artefact.make(output / RESULTS, counts, lambda path: write(count_classes(labels), path), force=force, follows=True)
    if settings.judge:
        texts = (
            ((source.model, source.file, row["problem"], row["sample"]), problem, row["response"])
            for source, problem, row in _responses(sources)
        )
        judge_labels(settings, table, labels, texts, judged)
    console = new_console()
    print_failures(read_results([f"run:{output}"], metric=Metric.FAILURES), labels, settings.level, console)
    judge_manifest = artefact.read_manifest(judged) if judged.is_file() else None
    if judge_manifest is not None and judge_manifest.inputs.get("labels") == artefact.file_hash(table):
        print_agreement(agreement(judged), console)
    print(f"{output / RESULTS} and {LABELS}")
    return output


def check(settings: FailureSettings) -> None:
    """Check the settings for a dry run, and those rollouts and problem files that exist."""
    files, rollouts = _check_settings(settings)
    for name in (LABELS, RESULTS):
        artefact.check_maker(settings.output / name, STEP, force=settings.force)
    folders = [folder for _, folder in rollouts]
    if artefact.is_to_be_checked(*files.values(), *(folders or [Path(settings.evaluation)]), dry=True):
        find_sources(settings)
        return
    for path in filter(Path.exists, files.values()):
        read_problems(path)
    for folder in filter(Path.exists, folders):
        rollout_manifest(folder)


def _check_settings(settings: FailureSettings) -> tuple[dict[str, Path], list[tuple[str, Path]]]:
    """Return the problem files by name, and models with their ``rollouts``. UserError for invalid settings."""
    if bool(settings.evaluation) == bool(settings.rollouts):
        raise UserError("give one of the two: evaluation=FOLDER, or rollouts=[NAME:FOLDER,...]")
    artefact.hidden_sibling(settings.output, "lock")  # refuses a path without a name
    for name in settings.models:
        check_name("models", name)
    check_ranges(settings)
    if settings.judge:
        judge_server(settings)
    rollouts = [item for entry in settings.rollouts for item in named_paths("rollouts", [entry]).items()]
    files = {name: Path(path) for name, path in named_paths("problems", settings.problems).items()}
    return files, [(model, Path(folder)) for model, folder in rollouts]


def find_sources(settings: FailureSettings) -> list[Source]:
    """Return the rollouts, model by model. UserError if one is missing or belongs to none of the problem files."""
    files, rollouts = _check_settings(settings)
    for path in files.values():
        check_file(path)
    names = {artefact.file_hash(path): name for name, path in files.items()}
    sources: dict[tuple[str, str], Source] = {}
    chosen = [(model, folder) for model, folder in rollouts if model in (settings.models or [model])]
    folders = chosen if rollouts else _evaluated(settings, files)
    if not folders:
        place = settings.evaluation or f"models={settings.models}"
        raise UserError(f"{place}: has no rollouts; run examples/evaluate.py, or give rollouts=[NAME:FOLDER,...]")
    for model, folder in folders:
        name = names.get(rollout_manifest(folder).inputs.get("problems", ""))
        if name is None:
            raise UserError(f"{folder}: answers none of the files in problems; give the file it was made from")
        if (model, name) in sources:
            raise UserError(f"rollouts: {model} answers {name} twice; give {folder} another NAME:FOLDER")
        sources[model, name] = Source(model, name, folder, files[name])
    levels = {level for source in sources.values() for level in read_problems(source.problems)["level"].to_pylist()}
    fault = f"the problems have levels {sorted(levels)}"
    if settings.levels and not levels.intersection(settings.levels):
        raise UserError(f"levels={settings.levels}: {fault}; leave levels out for all")
    if settings.judge and settings.level not in levels:
        raise UserError(f"level={settings.level}: {fault}; choose one to judge")
    return list(sources.values())


def _evaluated(settings: FailureSettings, files: Mapping[str, Path]) -> list[tuple[str, Path]]:
    """Return models with their folders of rollouts in an evaluation, in the order of its table."""
    rollouts = Path(settings.evaluation) / ROLLOUTS
    models = sorted(path.name for path in rollouts.glob("[!.]*") if path.is_dir())
    table = artefact.read_manifest(rollouts.parent / RESULTS)
    order = table.settings.get("models", []) if table else []
    models.sort(key=lambda model: order.index(model) if model in order else len(order))
    folders = [(model, rollouts / model / name) for model in settings.models or models for name in files]
    for model, folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: has no answers of {model}; evaluate it, or narrow models and problems")
    return folders


def _responses(sources: Sequence[Source]) -> Iterator[tuple[Source, Problem, Row]]:
    """Yield every response: source, problem, ``COLUMNS``. UserError for a row with an unknown problem or verdict."""
    problems = {path: list(iterate_problems(read_problems(path))) for path in {source.problems for source in sources}}
    for source in sources:
        path, problems_of_file = source.problems, problems[source.problems]
        for row in (row for shard in read_rollouts(source.rollouts) for row in shard.select(COLUMNS).to_pylist()):
            if not 0 <= row["problem"] < len(problems_of_file):
                raise UserError(f"{path}: has no row {row['problem']}, which the rollouts answer; collect them again")
            if row["reason"] not in REASONS:
                raise UserError(f"{path}: row {row['problem']}: unknown verdict {row['reason']!r}; collect them again")
            yield source, problems_of_file[row["problem"]], row


def _write_labels(sources: Sequence[Source], levels: Sequence[int], path: Path) -> None:
    """Classify every response to problems of ``levels`` (empty: all). UserError if there are no responses."""
    labels = (_label(*response) for response in _responses(sources) if not levels or response[1].level in levels)
    n_rows = 0
    with pq.ParquetWriter(path, LABELS_SCHEMA, compression="zstd") as writer:
        while rows := list(islice(labels, ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(rows, schema=LABELS_SCHEMA))
            n_rows += len(rows)
    if not n_rows:
        raise UserError(f"levels={levels}: no response to problems of these levels; leave levels out for all")


def _label(source: Source, problem: Problem, row: Row) -> Row:
    task = task_of(problem.data_source)
    completion = Completion(row["response"], row["n_tokens"], row["finish_reason"])
    try:
        diagnosis = task.diagnose(problem, completion, Verdict(row["score"], Reason(row["reason"]), row["answer"]))
    except UserError as error:
        raise UserError(f"{source.problems}: row {row['problem']}: {error}") from error
    expected = diagnosis.expected if len(diagnosis.expected) <= 2 else ()
    return {
        "arm": source.model,
        "file": source.file,
        "problem": row["problem"],
        "sample": row["sample"],
        "group": problem.group,
        "level": problem.level,
        "data_source": problem.data_source,
        "cluster": task.cluster(problem),
        "class": diagnosis.failure.value,
        "step": diagnosis.step,
        "function": diagnosis.skill,
        "fault": diagnosis.fault,
        "outer": expected[-1] if expected else None,
        "inner": expected[0] if len(expected) == 2 else None,
        **diagnosis.chain._asdict(),
        "applied": [name for name, _ in diagnosis.applied],
        "wrong": [wrong for _, wrong in diagnosis.applied],
    }


def read_labels(path: Path) -> pd.DataFrame:
    """Read labels.parquet; models and files keep their order."""
    return read_table(path, LABELS_SCHEMA.names, types=LABELS_SCHEMA, gaps=LABELS_SCHEMA.names).to_pandas()


def count_classes(labels: pd.DataFrame) -> pd.DataFrame:
    """Return a row of the table of results for each model and problem: its responses by class."""
    keys = list(KEYS)
    order = {name: pd.Categorical(labels[name], labels[name].unique()) for name in ("arm", "file")}
    classes = {FAILURE + name: labels["class"] == name for name in FAILURES}
    counts = labels[keys].assign(**order, **classes, **labels[[*CHAIN]].astype(float), n=1)
    counts = counts.assign(chains_read=labels[CHAIN[0]].notna())
    rows = counts.groupby(keys, observed=True, as_index=False).sum(min_count=1).astype({"arm": str, "file": str})
    return rows.assign(judged=rows["n"], right=rows[FAILURE + CORRECT])


def class_shares(results: Results) -> list[Row]:
    """Return the share of every class by set of problems and model, with its interval and values by seed."""
    return [
        {"model": arm, **about(results, problems), "class": name,
         **columns(share(results, arm, problems, name), "share")}
        for problems, arm, name in product(results.sets, results.arms, FAILURES)
    ]  # fmt: skip


def by_function(labels: pd.DataFrame) -> pd.DataFrame:
    """Return the ``error_rate`` of each function: the share of steps with a wrong result among those that apply it.

    Steps of all levels. ``alone``: accuracy on problems with only this function (null: none).
    """
    keys = ["arm", "file", "group"]
    steps = labels[[*keys, "problem", "applied", "wrong"]].explode(["applied", "wrong"]).dropna(subset="applied")
    rates = _rates(steps.rename(columns={"applied": "function"}), [*keys, "function"], "wrong", "error_rate")
    place = rates.groupby(keys, sort=False).ngroup()
    rates = rates.loc[sorted(rates.index, key=lambda row: (place[row], natural_key(rates.at[row, "function"])))]
    single = labels[labels["inner"].isna()].assign(alone=labels["class"] == CORRECT, function=labels["outer"])
    alone = single.groupby([*keys, "function"])["alone"].mean()
    rates = rates.rename(columns={"n": "reached", "hits": "wrong"}).join(alone, on=[*keys, "function"])
    return rates.rename(columns=TITLES)


def by_pair(labels: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy on the problems that compose two functions, outer after inner."""
    pairs = labels.dropna(subset=["inner"]).assign(right=labels["class"] == CORRECT)
    keys = ["arm", "file", "group", "outer", "inner"]
    return _rates(pairs, keys, "right", "accuracy").drop(columns="hits").rename(columns=TITLES)


def _rates(rows: pd.DataFrame, keys: list[str], hit: str, name: str) -> pd.DataFrame:
    """Return the mean of the column ``hit`` by ``keys``, as ``name``, with its interval over problems."""
    rates = []
    for key, part in rows.groupby(keys, sort=False):
        counts = part[hit].astype(int).groupby(part["problem"]).agg(["sum", "size"])
        estimate = over_problems(counts["sum"].to_numpy(np.int64), counts["size"].to_numpy(np.int64))
        assert estimate
        rates.append((*key, len(part), counts["sum"].sum(), estimate.value, *estimate.over_problems))
    return pd.DataFrame(rates, columns=[*keys, "n", "hits", name, "low", "high"])


def print_failures(results: Results, labels: pd.DataFrame, level: int, console: Console) -> None:
    """Print classes by model for every set of problems of this level, and shares of properties of the steps."""
    for problems in (problems for problems in results.sets if problems.level == level):
        n = results.size(problems)
        console.print(f"\n{problems.file}, level {level}: % of responses [95 % interval], {n} problems")
        cells = {
            arm: [share_cell(columns(share(results, arm, problems, name), "share"), "share") for name in FAILURES]
            for arm in results.arms
        }
        console.print(rich_table(pd.DataFrame(cells, [name.replace("_", " ") for name in FAILURES]), "class"))
        rows = (labels[["file", "group", "level"]] == [problems.file, problems.group, level]).all(axis=1)
        for name in CHAIN:
            means = (100 * labels.loc[rows, name].astype(float)).groupby(labels["arm"], sort=False).mean().dropna()
            if not means.empty:  # the task can tell
                console.print(f"{WORDS[name]}: {', '.join(f'{arm} {value:.1f}' for arm, value in means.items())}")
