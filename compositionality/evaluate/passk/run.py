"""pass@k from models or rollout folders: which differences will show and what sampling costs, then sample and count."""

import io
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.filesize import decimal

from compositionality.console import new_console
from compositionality.data.artefact import MANIFEST, Recipe, exclusive, is_to_be_checked, write_derived
from compositionality.data.parquet import read_table
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.evaluate import collect
from compositionality.evaluate.collect import Evaluation, EvaluationSettings, open_evaluation, shared_engine
from compositionality.evaluate.passk.curves import Pairs, print_curves, table_ks
from compositionality.evaluate.results import ProblemSet, read_results
from compositionality.evaluate.table import RESULTS, problem_columns, read
from compositionality.evaluate.tables import rich_table
from compositionality.ranges import NonNegativeInt, PositiveInt
from compositionality.rollout.engines.base import Engine, request_seed
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import read_by_problem, shard_table
from compositionality.stats.estimate import CONFIDENCE, Counts
from compositionality.stats.pass_at_k import pass_at_k
from compositionality.train.common.training_report import run_until
from compositionality.types import Metric, Reason, Verdict

STEP = "passk"
ALL = "all.parquet"
POWER = 0.8
SIMULATED = 4000
WORST_SPREAD = math.sqrt(0.5)


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
    missing = [key for key, job in evaluation.jobs.items() if not (job.output / MANIFEST).is_file()]
    if settings.plan or (missing and not settings.answers_only):
        _print_plan(settings, evaluation, missing)
    if settings.plan:
        return settings.output
    collect.sample(evaluation)
    for model in evaluation.models:
        _write_responses(evaluation, model)
    if settings.answers_only:
        return settings.output
    with exclusive(settings.output):
        kept = {"pairs": [list(pair) for pair in pairs]}
        table = collect.write_results(evaluation, STEP, kept, hands_on=False)
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
    """Return pairs from MODEL:BASE; by default every model with the first one."""
    if not entries:
        return [(model, known[0]) for model in known[1:]]
    pairs = [tuple(entry.split(":")) for entry in entries]
    for entry, pair in zip(entries, pairs, strict=True):
        if len(pair) != 2 or not set(pair) <= set(known):
            raise UserError(f"pairs: {entry} is no MODEL:BASE of {', '.join(known)}")
    return [(model, base) for model, base in pairs]


def _print_plan(settings: PasskSettings, evaluation: Evaluation, missing: Sequence[tuple[str, str]]) -> None:
    """Print which differences will show, and what the ``missing`` answers (model, file) cost, by the first model."""
    console, n_samples = new_console(), settings.n_samples
    prior = read_prior(settings.prior) if settings.prior else None
    problems = pd.concat(
        problem_columns(sampled.table).assign(file=name) for name, sampled in evaluation.problems.items()
    )
    differences = detectable(problems, n_samples, table_ks(settings.ks, n_samples), prior)
    print_detectable(differences, n_samples, console)
    if missing and settings.probe:
        planned = sum(evaluation.problems[file].rows.size * n_samples for _, file in missing)
        jobs = list(evaluation.jobs_of(missing[0][0]).values())
        with shared_engine(jobs) as engine:
            console.print(cost(engine(), jobs, settings.probe, planned))


def read_prior(given: str) -> pd.DataFrame:
    """Read the rows of an evaluation, by its folder or a file in it. UserError if there are none."""
    path = Path(given)
    table = (path if path.is_dir() else path.parent) / RESULTS
    if not path.exists() or not table.is_file():
        reason = f"no {RESULTS} there" if path.exists() else "no such folder"
        raise UserError(f"prior={given}: {reason}; give the output folder of examples/passk.py or examples/evaluate.py")
    return read(table)


def cost(engine: Engine, jobs: Sequence[CollectSettings], answers: int, planned: int) -> str:
    """Say what ``planned`` answers will cost: sample ``answers`` of them, spread over the problems, and drop them."""
    prompts, seeds, units = [], [], []
    for job in jobs:
        chats = read_table(job.problems, ["prompt"])["prompt"].to_pylist()
        share = min(-(-answers // len(jobs)), len(chats) * job.n_samples)
        for unit in np.linspace(0, len(chats) * job.n_samples - 1, share).astype(int).tolist():
            problem, sample = divmod(unit, job.n_samples)
            prompts.append(chats[problem])
            seeds.append(request_seed(job.seed, problem, sample))
            units.append((problem, sample))
    engine.generate(prompts[:1], seeds[:1], jobs[0].sampling())  # the first call may compile
    begin = time.perf_counter()
    completions = engine.generate(prompts, seeds, jobs[0].sampling())
    seconds, tokens = time.perf_counter() - begin, sum(completion.n_tokens for completion in completions)
    verdicts, disk = [Verdict(0.0, Reason.WRONG)] * len(units), io.BytesIO()
    pq.write_table(shard_table(units, [(0, "")] * len(units), completions, verdicts), disk, compression="zstd")
    times = planned / len(units)
    duration, size = timedelta(seconds=round(times * seconds)), decimal(round(times * disk.tell()))
    return (
        f"{planned:,} answers to collect: about {times * tokens:,.0f} tokens, {duration} (h:mm:ss) and {size} of disk, "
        f"going by {len(units)} answers at once ({tokens / seconds:,.0f} tok/s; larger batches are faster, judging is "
        "extra)"
    )


def smallest_difference(spread: float, n_problems: int) -> float:
    """Return that of a mean over ``n_problems`` paired differences with this standard deviation; 1: none would show."""
    from scipy.stats import t

    if n_problems < 2:
        return 1.0
    quantiles = float(t.ppf(0.5 + CONFIDENCE / 2, n_problems - 1) + t.ppf(POWER, n_problems - 1))
    return min(1.0, quantiles * spread / math.sqrt(n_problems))


def detectable(problems: pd.DataFrame, n_samples: int, ks: Sequence[int], prior: pd.DataFrame | None) -> pd.DataFrame:
    """Return, for each set of problems, their number n and the smallest difference that shows at ``any k``.

    ``problems`` has the columns of ``ProblemSet``. Where ``prior``, rows of an earlier evaluation, has the same level,
    a column for each k says what shows if the problems are as hard as they were there.
    """
    lines = {}
    for key, rows in problems.groupby([*ProblemSet._fields], sort=False):
        name, n = ProblemSet(*key), len(rows)
        line = lines[f"{name.file} {name}"] = {"n": n, "any k": smallest_difference(WORST_SPREAD, n)}
        if prior is not None:
            same = prior[(prior[list(name._fields[1:])] == name[1:]).all(axis=1)]
            if same["judged"].sum():
                counts = (same[column].to_numpy(np.int64) for column in ("right", "judged"))
                spreads = unrelated_spread(*beta_of(*counts), n_samples, ks)
                line |= {f"k={k}*": smallest_difference(spread, n) for k, spread in zip(ks, spreads, strict=True)}
    return pd.DataFrame.from_dict(lines, "index")


def beta_of(correct: Counts, judged: Counts) -> tuple[float, float]:
    """Return the beta distribution of how hard problems are, by moments; a limit where the counts do not say."""
    mean = (float(correct.sum()) + 0.5) / (float(judged.sum()) + 1)
    several = judged > 1
    within = 0.999
    if several.sum() > 1:
        n = judged[several]
        both = float((correct[several] * (correct[several] - 1) / (n * (n - 1))).mean())
        within = min(max((both - mean**2) / (mean * (1 - mean)), 0.001), 0.999)
    total = 1 / within - 1
    return mean * total, (1 - mean) * total


def unrelated_spread(alpha: float, beta: float, n_samples: int, ks: Sequence[int]) -> list[float]:
    """Return the standard deviation of the difference of two unrelated checkpoints on one problem, for every k."""
    random = np.random.default_rng(0)
    correct = random.binomial(n_samples, random.beta(alpha, beta, SIMULATED))
    values = pass_at_k(correct, np.full(SIMULATED, n_samples), ks)
    return [float(spread) for spread in math.sqrt(2) * values.std(axis=0)]


def print_detectable(differences: pd.DataFrame, n_samples: int, console: Console) -> None:
    """Print what ``detectable`` returns, in points."""
    console.print(
        f"\n{n_samples} samples of each problem. The smallest paired difference of pass@k that would show (two-sided "
        "5 %, power 80 %), in points, if a problem is solved always or never and the checkpoints are unrelated; "
        "checkpoints that find the same problems hard show smaller ones.",
        highlight=False,
    )
    points = (100 * differences.drop(columns="n")).map(lambda value: "–" if pd.isna(value) else f"{value:.0f}")
    console.print(rich_table(differences[["n"]].join(points), "problems"))
    if points.shape[1] > 1:
        console.print(
            "* if problems are as hard as in the earlier evaluation (one sample of each: always or never solved)",
            highlight=False,
        )


def _write_responses(evaluation: Evaluation, model: str) -> None:
    """Write all answers of one model to one file beside their folders."""
    jobs = evaluation.jobs_of(model)
    problems = {job.output: read_problems(job.problems, job.form()) for job in jobs.values()}
    inputs = {f"{model}/{file}": job.output for file, job in jobs.items()}
    target, recipe = next(iter(problems)).parent / ALL, Recipe(STEP, {}, inputs)
    write_derived(target, recipe, lambda path: _write_rows(problems, path), force=evaluation.settings.force)


def _write_rows(problems: Mapping[Path, pa.Table], target: Path) -> None:
    """Write the rows of the problem files, one after the other, with a column ``responses``: all texts, by sample.

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
