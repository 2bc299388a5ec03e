"""pass@k: sample, count, then curves, paired differences, and budget factors.

The budget factor at k is the smallest whole m at which the base's pass@(m·k) is not below the model's pass@k. Its
interval has the factors at which the interval of the difference contains 0; an end beyond the largest possible m is
None. Only if the lower end is None, RL did more than re-rank what the base finds with these samples.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from compositionality.console import new_console
from compositionality.data.artefact import MANIFEST, Recipe, make
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.evaluate import collect
from compositionality.evaluate.collect import Evaluation, EvaluationSettings, open_evaluation
from compositionality.evaluate.results import ProblemSet, Results, read_results
from compositionality.evaluate.summary import Row, columns, contrast, labels
from compositionality.evaluate.table import problem_columns
from compositionality.evaluate.tables import NOT_TESTABLE, rich_table
from compositionality.evaluate.types import ALL_LEVELS, Metric
from compositionality.ranges import PositiveInt
from compositionality.rollout.store import read_by_problem
from compositionality.stats.estimate import CONFIDENCE, TIE
from compositionality.train.training_report import TrainingReport, run_until

STEP = "passk"
ALL = "all.parquet"
POWER = 0.8
WORST_SPREAD = math.sqrt(0.5)
"""Standard deviation of a problem's difference if it is solved always or never, and the models are unrelated."""
POINTS = 40  # largest number of values of k, or of budget factors, to compute
Pairs = Sequence[tuple[str, str]]  # (model, base): the difference is the model − the base
Runs = Mapping[str, tuple[float, TrainingReport]]
"""FLOPs and training report of the models that are checkpoints of a run."""


@dataclass
class PasskSettings(EvaluationSettings):
    n_samples: PositiveInt = 1000  # completions of a problem, at least 2
    pairs: list[str] = field(default_factory=list)  # comparisons MODEL:BASE; empty: every model with the first
    ks: list[PositiveInt] = field(default_factory=list)  # columns of the printed table; empty: 1, 2, 4, …, n_samples
    plan: bool = False  # only print which differences can be detected and how many answers are missing


def passk(settings: PasskSettings) -> Path:
    """Write ``output``/results.parquet and the rollouts behind it; print the curves."""
    pairs, evaluation = check_pairs(settings), open_evaluation(settings, STEP)
    missing = [job for job in evaluation.jobs.values() if not (job.output / MANIFEST).is_file()]
    if settings.plan or (missing and not settings.answers_only):
        problems = [problem_columns(sampled.table).assign(file=name) for name, sampled in evaluation.problems.items()]
        n_missing = sum(read_problems(job.problems, job.form()).num_rows * job.n_samples for job in missing)
        print_plan(pd.concat(problems), settings.n_samples, n_missing, new_console())
    if settings.plan:
        return settings.output
    collect.sample(evaluation)
    for model in evaluation.models:
        _write_responses(evaluation, model)
    if settings.answers_only:
        return settings.output
    recipe_settings = {"pairs": [list(pair) for pair in pairs]}
    table = collect.write_results(evaluation, STEP, recipe_settings, chains=False)
    runs = {model: run for model, path in evaluation.models.items() if (run := run_until(Path(path)))}
    results = read_results([f"run:{settings.output}"], metric=Metric.PASS_AT_K)
    print_curves(results, pairs, settings.ks, runs, new_console())
    print(table)
    return settings.output


def check(settings: PasskSettings) -> None:
    """Check names and settings, and the existing models and problem files."""
    check_pairs(settings)
    collect.check(settings, STEP)


def check_pairs(settings: PasskSettings) -> Pairs:
    """Return the pairs to compare; by default every model with the first one. UserError for invalid values."""
    if settings.n_samples < 2:
        raise UserError(f"n_samples={settings.n_samples}: pass@k needs at least 2 samples of each problem")
    if settings.models and settings.temperature <= 0:
        raise UserError("temperature=0: every sample of a problem would be the same; give one above 0")
    if beyond := [k for k in settings.ks if not 1 <= k <= settings.n_samples]:
        raise UserError(f"ks: {beyond[0]}: must lie between 1 and n_samples={settings.n_samples}")
    models, rollouts, _ = collect.names_of(settings)
    names, pairs = [*models, *rollouts], [entry.split(":") for entry in settings.pairs]
    for entry, pair in zip(settings.pairs, pairs, strict=True):
        if len(pair) != 2 or not set(pair) <= set(names):
            raise UserError(f"pairs: {entry}: give MODEL:BASE with names of {', '.join(names)}")
    return [(model, base) for model, base in pairs] or [(model, names[0]) for model in names[1:]]


def print_plan(problems: pd.DataFrame, n_samples: int, missing: int, console: Console) -> None:
    """Print the smallest differences that will show, and the number of answers to collect.

    ``problems``: a row for each, with the columns of ``ProblemSet``.
    """
    console.print(
        f"\n{missing:,} answers to collect, {n_samples} samples of each problem. The smallest paired difference of "
        "pass@k that would show (two-sided 5 %, power 80 %), in points, if a problem is solved always or never and the "
        "checkpoints are unrelated; checkpoints that find the same problems hard show smaller ones."
    )
    sizes = problems.groupby([*ProblemSet._fields], sort=False).size()
    points = [round(100 * smallest_difference(WORST_SPREAD, n)) for n in sizes]
    names = [f"{name.file} {name}" for name in map(ProblemSet._make, sizes.index)]
    console.print(rich_table(pd.DataFrame({"n": sizes.to_numpy(), "points": points}, names), "problems"))


def smallest_difference(spread: float, n_problems: int) -> float:
    """Return the smallest detectable mean of ``n_problems`` paired differences with this deviation; 1: none."""
    from scipy.stats import t

    if n_problems < 2:
        return 1.0
    quantiles = float(t.ppf(0.5 + CONFIDENCE / 2, n_problems - 1) + t.ppf(POWER, n_problems - 1))
    return min(1.0, quantiles * spread / math.sqrt(n_problems))


def spaced(largest: int) -> list[int]:
    """Return 1, …, ``largest``: all of them, or ``POINTS`` evenly spaced on a logarithmic axis."""
    if largest <= POINTS:
        return [*range(1, largest + 1)]
    return sorted({round(float(number)) for number in np.geomspace(1, largest, POINTS)})


def largest_k(results: Results, file: str) -> int:
    """Return the number of samples that every problem has. UserError if a problem has fewer than two."""
    rows = results.rows[results.rows["file"] == file]
    row = rows.loc[rows["judged"].idxmin()]
    if row["judged"] < 2:
        reason = f"problem {row['problem']} has {row['judged']} judged samples; judge them again"
        raise UserError(f"{row['arm']} on {file}: {reason}")
    return int(row["judged"])


def curves(results: Results, pairs: Pairs, ks: Callable[[str], Sequence[int]]) -> pd.DataFrame:
    """Return rows of pass@k and of paired differences (``base``) by model, level or ``ALL_LEVELS``, and k."""
    rows: list[Row] = []
    for problems in levels_and_pools(results):
        about = labels(results, problems)
        for k, (arm, base) in product(ks(problems.file), [*((arm, "") for arm in results.arms), *pairs]):
            estimate = contrast(results, arm, base, problems, f"pass@{k}")
            rows.append({"model": arm, "base": base, **about, "k": k, **columns(estimate, "value")})
    return pd.DataFrame(rows)


def spaced_curves(results: Results, pairs: Pairs) -> pd.DataFrame:
    """Return ``curves`` at evenly spaced k; of all levels together only where a group has no levels."""
    largest: dict[str, int] = {}
    for problems in results.sets:
        if n := results.samples(problems):
            largest[problems.file] = min(n, largest.get(problems.file, n))
    table = curves(results, pairs, lambda file: spaced(largest.get(file, 1)))
    has_levels = set(table.loc[table["level"] != ALL_LEVELS, "group"])
    return table[(table["level"] != ALL_LEVELS) | ~table["group"].isin(has_levels)]


def levels_and_pools(results: Results) -> list[ProblemSet]:
    """Return the levels of every file and group, then all of them pooled (``ALL_LEVELS``)."""
    names = []
    for pool, parts in results.pools.items():
        names += [*(problems for problems in parts if problems.level != ALL_LEVELS), pool]
    return names


def crossover(curve: pd.DataFrame) -> int | None:
    """Return the first k at which a difference (rows by k) has changed its sign; None if it never does."""
    ahead = curve[curve["value"].abs() > TIE].set_index("k")["value"] > 0
    changed = ahead.index[ahead != ahead.iloc[0]] if len(ahead) else ahead.index
    return int(changed[0]) if len(changed) else None


def budget_factors(results: Results, arm: str, base: str, problems: ProblemSet) -> list[Row]:
    """Return, for each k that is a power of two, the budget factor with its interval."""

    @cache
    def behind(k: int, m: int) -> tuple[float, ...]:
        """Return the arm's pass@k − the base's pass@(m·k), and both ends of its interval; empty without samples."""
        estimate = contrast(results, arm, base, problems, f"pass@{k}", f"pass@{k * m}")
        return (estimate.value, *estimate.interval) if estimate else ()

    n, rows = results.samples(problems), []
    for k in (1 << power for power in range((n // 2).bit_length())):
        if not behind(k, 1):
            continue
        row: Row = {"k": k, "largest": n // k}
        for place, name in enumerate(("factor", "low", "high")):  # the base's pass@k only grows with m
            m = 1 + bisect_left(range(1, n // k + 1), True, key=lambda m: behind(k, m)[place] <= 0)
            row[name] = m if m <= n // k else None
        rows.append(row)
    return rows


def print_curves(results: Results, pairs: Pairs, ks: Sequence[int], runs: Runs, console: Console) -> None:
    """Print a table for every model, and two for every pair, on every problem file; intervals below the figures."""
    shown: dict[str, list[int]] = {}  # the given k, or powers of two and the largest
    for file in dict.fromkeys(problems.file for problems in results.sets):
        largest = largest_k(results, file)
        powers = [1 << power for power in range(largest.bit_length()) if 1 << power < largest]
        shown[file] = [k for k in ks if k <= largest] if ks else [*powers, largest]
    rows = curves(results, pairs, shown.__getitem__)
    sampling = results.replicates[0].sampling
    setting = f"{sampling['n_samples']} samples of each problem, temperature {sampling['temperature']:g}"
    for (arm, file), answers in results.rows.groupby(["arm", "file"], sort=False):
        if missing := int((answers["n"] - answers["judged"]).sum()):
            note = "have no verdict (judge or server failed); curves end at the fewest judged samples of a problem"
            console.print(f"{arm} on {file}: {missing} samples {note}")
    for (model, base, file), curve in rows.groupby(["model", "base", "problems"], sort=False):
        title = f"{model} − {base} on {file}: pass@k in points" if base else f"{model} on {file}: pass@k in %"
        intervals = "paired by problem, 95 % intervals" if base else f"95 % intervals ({setting})"
        console.print(f"\n{title}, {intervals}")
        console.print(rich_table(_curve_table(curve), "level"))
    for arm, base in pairs:
        title = f"{arm} against {base} with m times the samples: the least m at which {base} solves as much"
        console.print(f"\n{title}, 95 % interval")
        factors = {
            f"{problems.file} {problems}{'' if problems.level else ', all levels'}": {
                f"k={row['k']}": factor_text(row) for row in budget_factors(results, arm, base, problems)
            }
            for problems in levels_and_pools(results)
        }
        console.print(rich_table(pd.DataFrame.from_dict(factors, "index").fillna("–"), "level"))
    pooled = rows[(rows["level"] == ALL_LEVELS) & (rows["base"] == "")] if runs else rows.iloc[:0]
    for (group, file), curve in pooled.groupby(["group", "problems"], sort=False):
        console.print(f"\n{group} of {file}, all levels, along training: pass@k in %, and pass@1 gained")
        console.print(rich_table(_along_training(curve, runs), "checkpoint"))


def _curve_table(curve: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each level, a column for each k; for differences also where they change their sign."""
    signed = bool(curve["base"].iloc[0])
    form = "{:+.1f}\n{:+.0f} {:+.0f}" if signed else "{:.1f}\n{:.0f}–{:.0f}"
    lines = {}
    sources = curve.groupby(["group", "level"])["data_source"].nunique()
    for (group, level, source), rows in curve.groupby(["group", "level", "data_source"], sort=False):
        name = f"{group} L{level}" if level else f"{group}, all levels"
        name += f", {source}" if sources[group, level] > 1 else ""
        line = lines[name] = {"n": str(rows["n_problems"].iloc[0])}
        figures = 100 * rows[["value", "low", "high"]]
        line |= {f"k={k}": form.format(*row) for k, row in zip(rows["k"], figures.to_numpy(), strict=True)}
        if signed:
            line["crosses at k"] = str(crossover(rows) or "–")
    return pd.DataFrame.from_dict(lines, "index")


def factor_text(row: Row) -> str:
    """Return a cell: ``12`` with its interval below; ``> 64`` means beyond the largest factor."""
    ends = [str(row[end]) if row[end] is not None else f"> {row['largest']}" for end in ("factor", "low", "high")]
    return f"{ends[0]}\n[{' … '.join(dict.fromkeys(ends[1:]))}]"


def _along_training(curve: pd.DataFrame, runs: Runs) -> pd.DataFrame:
    """Return a row for each checkpoint, with the gain in pass@1 over the first row, also per power of ten of FLOPs."""
    unit = 10.0 ** math.floor(math.log10(max(flops for flops, _ in runs.values())))
    shares = 100 * curve.pivot(index="model", columns="k", values="value").reindex(curve["model"].unique())
    cells = shares.map("{:.1f}".format).add_prefix("k=")
    cells.insert(0, "FLOPs", [f"{runs[model][0]:.2e}" if model in runs else "–" for model in cells.index])
    cells[["points", f"points for {unit:.0e} FLOPs"]] = "–"
    gains = shares.iloc[:, 0] - shares.iloc[0, 0]
    for model, (flops, report) in runs.items():
        points = f"{gains[model]:+.2f}", f"{gains[model] / flops * unit:+.2f}"
        cells.loc[model, cells.columns[-2:]] = [NOT_TESTABLE] * 2 if report.not_testable else points
    return cells


def _write_responses(evaluation: Evaluation, model: str) -> None:
    """Write the problems of all files, with a column ``responses`` (all texts of one model, by sample), to one file.

    Each row is read and written separately, as its own row group: it may have thousands of long texts.
    """
    jobs = {file: job for (name, file), job in evaluation.jobs.items() if name == model}
    problems = {job.output: read_problems(job.problems, job.form()) for job in jobs.values()}

    def write(path: Path) -> None:
        rows = pa.concat_tables(problems.values(), promote_options="permissive")
        schema, first = rows.schema.append(pa.field("responses", pa.list_(pa.string()))), 0
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for folder, table in problems.items():
                for number, answers in read_by_problem(folder):
                    texts = pa.array([answers["response"].to_pylist()], schema.field("responses").type)
                    writer.write_table(rows.slice(first + number, 1).append_column("responses", texts))
                first += table.num_rows

    recipe = Recipe(STEP, {}, {f"{model}/{file}": job.output for file, job in jobs.items()})
    make(next(iter(problems)).parent / ALL, recipe, write, force=evaluation.settings.force, follows=True)
