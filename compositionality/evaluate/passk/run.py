"""pass@k from models or rollout folders to a table of counts: sample, count, compute."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, exclusive, is_to_be_checked, write_derived
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.evaluate import collect
from compositionality.evaluate.collect import Evaluation, EvaluationSettings, Folders, SharedEngine, open_evaluation
from compositionality.evaluate.passk.curves import Pairs
from compositionality.evaluate.passk.plan import detectable, print_detectable, probe
from compositionality.evaluate.passk.tables import print_curves, table_ks
from compositionality.evaluate.results import read_results
from compositionality.evaluate.table import RESULTS, problem_columns, read
from compositionality.ranges import NonNegativeInt, PositiveInt
from compositionality.rollout.store import read_by_problem
from compositionality.train.common.training_report import run_until
from compositionality.types import Metric

STEP = "passk"
ALL = "all.parquet"


@dataclass
class PasskSettings(EvaluationSettings):
    """Settings of ``passk``: models, problems, samples, and what is compared."""

    n_samples: PositiveInt = 1000  # completions of a problem, at least 2
    pairs: list[str] = field(default_factory=list)  # MODEL:BASE; empty = every one with the first
    ks: list[PositiveInt] = field(default_factory=list)  # columns of the printed table; empty: 1, 2, 4, …, n_samples
    plan: bool = False  # say what differences can be seen and what it costs, then stop
    prior: str = ""  # folder of an earlier evaluation: how hard the problems are, for the plan
    probe: NonNegativeInt = 256  # answers sampled to predict time and disk; 0: none


def passk(settings: PasskSettings) -> Path:
    """Write ``output``/results.parquet and the rollouts behind it; print the curves."""
    check_settings(settings)
    models, rollouts, _ = collect.names_of(settings)
    pairs = _pairs(settings.pairs, [*models, *rollouts])
    evaluation = open_evaluation(settings)
    if settings.plan or (evaluation.missing() and not settings.answers_only):
        _print_plan(settings, evaluation)
    if settings.plan:
        return settings.output
    folders = collect.sample(evaluation)
    for model in evaluation.models:
        _write_responses(evaluation, model, folders)
    if settings.answers_only:
        return settings.output
    with exclusive(settings.output):
        kept = {"pairs": [list(pair) for pair in pairs]}
        table = collect.write_results(evaluation, folders, STEP, kept, hands_on=False)
    runs = {model: run for model, path in evaluation.models.items() if (run := run_until(Path(path)))}
    results = read_results([f"run:{settings.output}"], metric=Metric.PASS_AT_K)
    print_curves(results, pairs, settings.ks, runs, new_console())
    print(table)
    return settings.output


def check_settings(settings: PasskSettings) -> None:
    """Raise UserError for invalid values."""
    if settings.n_samples < 2:
        raise UserError(f"n_samples={settings.n_samples}: pass@k needs at least 2 samples of each problem")
    if settings.models and settings.temperature <= 0:
        raise UserError("temperature=0: every sample of a problem would be the same; give one above 0")
    beyond = [k for k in settings.ks if not 1 <= k <= settings.n_samples]
    if beyond:
        raise UserError(f"ks: {beyond[0]} does not lie between 1 and n_samples={settings.n_samples}")


def check(settings: PasskSettings) -> None:
    """Check names and settings, and of the models and problem files those that exist."""
    check_settings(settings)
    if settings.prior and is_to_be_checked(settings.prior, dry=True):
        read_prior(settings.prior)
    collect.check(settings)
    models, rollouts, _ = collect.names_of(settings)
    _pairs(settings.pairs, [*models, *rollouts])


def _pairs(entries: list[str], known: list[str]) -> Pairs:
    """From MODEL:BASE; by default every model with the first one."""
    if not entries:
        return [(model, known[0]) for model in known[1:]]
    pairs = [tuple(entry.split(":")) for entry in entries]
    for entry, pair in zip(entries, pairs, strict=True):
        if len(pair) != 2 or not set(pair) <= set(known):
            raise UserError(f"pairs: {entry} is no MODEL:BASE of {', '.join(known)}")
    return [(model, base) for model, base in pairs]


def _print_plan(settings: PasskSettings, evaluation: Evaluation) -> None:
    """The power note, and what sampling will cost, going by the first model that is not sampled yet."""
    console = new_console()
    prior = read_prior(settings.prior) if settings.prior else None
    problems = pd.concat(
        problem_columns(sampled.table).assign(file=name) for name, sampled in evaluation.problems.items()
    )
    rows = list(detectable(problems, settings.n_samples, table_ks(settings.ks, settings.n_samples), prior))
    print_detectable(rows, settings.n_samples, console)
    missing = evaluation.missing()
    if not missing or not settings.probe:
        return
    sizes = {name: sampled.rows.size * settings.n_samples for name, sampled in evaluation.problems.items()}
    planned = sum(sizes[name] for jobs in missing.values() for name in jobs)
    first = list(evaluation.jobs(next(iter(missing))).values())
    with SharedEngine(first) as engine:
        console.print(probe(engine, first, settings.probe).words(planned))


def read_prior(given: str) -> pd.DataFrame:
    """Read the rows of an evaluation, by its folder or a file in it. UserError if there are none."""
    path = Path(given)
    table = (path if path.is_dir() else path.parent) / RESULTS
    if not path.exists() or not table.is_file():
        reason = f"no {RESULTS} there" if path.exists() else "no such folder"
        raise UserError(f"prior={given}: {reason}; give the output folder of examples/passk.py or examples/evaluate.py")
    return read(table)


def _write_responses(evaluation: Evaluation, model: str, folders: Folders) -> None:
    """All answers of one model in one file beside their folders."""
    jobs = evaluation.jobs(model)
    problems = {folders[model, name]: read_problems(job.problems, job.form()) for name, job in jobs.items()}
    inputs = {f"{model}/{name}": folders[model, name] for name in jobs}
    target, recipe = next(iter(problems)).parent / ALL, Recipe(STEP, {}, inputs)
    write_derived(target, recipe, lambda path: _write_rows(problems, path), force=evaluation.settings.force)


def _write_rows(problems: Mapping[Path, pa.Table], target: Path) -> None:
    """The rows of the problem files, one after the other, with a column ``responses``: all texts, by sample.

    A row at a time is in memory, and a row group of its own: it may hold thousands of long texts.
    """
    rows = pa.concat_tables(problems.values(), promote_options="permissive")
    schema = rows.schema.append(pa.field("responses", pa.list_(pa.string())))
    first = 0
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for folder, table in problems.items():
            for number, answers in read_by_problem(folder):
                texts = pa.array([answers["response"].to_pylist()], schema.field("responses").type)
                writer.write_table(rows.slice(first + number, 1).append_column("responses", texts))
            first += table.num_rows
