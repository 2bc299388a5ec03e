"""Before anything is sampled: what sampling will cost, and which differences the problems and samples can show."""

import io
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from compositionality.console import new_table
from compositionality.data.parquet import read_table
from compositionality.evaluate.results import ProblemSet
from compositionality.rollout.engines.base import Engine, request_seed
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import shard_table
from compositionality.stats.estimate import CONFIDENCE, Counts
from compositionality.stats.pass_at_k import pass_at_k
from compositionality.types import Reason, Verdict


@dataclass(frozen=True)
class Cost:
    """A probe of the engine: so many answers took so many tokens, seconds, and bytes as a shard."""

    answers: int
    tokens: int
    seconds: float
    bytes: int

    def words(self, planned: int) -> str:
        """One sentence on ``planned`` answers."""
        times = planned / self.answers
        return (
            f"{planned:,} answers to collect: about {_short(times * self.tokens)} tokens, "
            f"{_duration(times * self.seconds)} and {_short(times * self.bytes)}B of disk, going by {self.answers} "
            f"answers at once ({self.tokens / self.seconds:,.0f} tok/s; larger batches are faster, judging is extra)"
        )


def probe(engine: Engine, jobs: Sequence[CollectSettings], answers: int) -> Cost:
    """Sample ``answers`` of the answers that ``jobs`` will ask for, spread over their problems, and drop them."""
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
    seconds = time.perf_counter() - begin
    table = shard_table(units, [(0, "")] * len(units), completions, [Verdict(0.0, Reason.WRONG)] * len(units))
    return Cost(len(units), sum(one.n_tokens for one in completions), seconds, _size(table))


def _size(table: pa.Table) -> int:
    """Bytes of the shard on disk."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.tell()


def _short(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} "


def _duration(seconds: float) -> str:
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


POWER = 0.8
SIMULATED = 4000
WORST_SPREAD = math.sqrt(0.5)


@dataclass(frozen=True)
class Detectable:
    """One set of problems: the smallest difference that shows, with nothing known, and by k with a prior."""

    problems: ProblemSet
    n_problems: int
    nothing_known: float
    by_k: Mapping[int, float] | None


def smallest_difference(spread: float, n_problems: int) -> float:
    """Of a mean over ``n_problems`` paired differences with that standard deviation; 1 if none would show."""
    from scipy.stats import t

    if n_problems < 2:
        return 1.0
    quantiles = float(t.ppf(0.5 + CONFIDENCE / 2, n_problems - 1) + t.ppf(POWER, n_problems - 1))
    return min(1.0, quantiles * spread / math.sqrt(n_problems))


def detectable(
    problems: pd.DataFrame, n_samples: int, ks: Sequence[int], prior: pd.DataFrame | None
) -> Iterator[Detectable]:
    """One for each set of ``problems`` (columns of ``ProblemSet``); ``prior``: rows of an earlier evaluation."""
    for key, rows in problems.groupby([*ProblemSet._fields], sort=False):
        by_k, n = None, len(rows)
        name = ProblemSet(*key)
        if prior is not None:
            same = prior[(prior[list(name._fields[1:])] == name[1:]).all(axis=1)]
            if same["judged"].sum():
                counts = (same[column].to_numpy(np.int64) for column in ("right", "judged"))
                spreads = unrelated_spread(*beta_of(*counts), n_samples, ks)
                by_k = {k: smallest_difference(spread, n) for k, spread in zip(ks, spreads, strict=True)}
        yield Detectable(name, n, smallest_difference(WORST_SPREAD, n), by_k)


def beta_of(correct: Counts, judged: Counts) -> tuple[float, float]:
    """Beta distribution of how hard problems are, by moments; narrow or wide limits where the counts do not say."""
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
    """Standard deviation of the difference between two unrelated checkpoints on one problem, for every k."""
    random = np.random.default_rng(0)
    correct = random.binomial(n_samples, random.beta(alpha, beta, SIMULATED))
    values = pass_at_k(correct, np.full(SIMULATED, n_samples), ks)
    return [float(spread) for spread in math.sqrt(2) * values.std(axis=0)]


def print_detectable(rows: Sequence[Detectable], n_samples: int, console: Console) -> None:
    """The power note as a table."""
    console.print(
        f"\n{n_samples} samples of each problem. The smallest paired difference of pass@k that would show (two-sided "
        "5 %, power 80 %), in points, if a problem is solved always or never and the checkpoints are unrelated; "
        "checkpoints that find the same problems hard show smaller ones.",
        highlight=False,
    )
    ks = next((list(row.by_k) for row in rows if row.by_k), [])
    table = new_table("problems", "level")
    for title in ("n", "any k", *(f"k={k}*" for k in ks)):
        table.add_column(title, justify="right", overflow="fold")
    for row in rows:
        cells = [f"{100 * row.by_k[k]:.0f}" if row.by_k else "–" for k in ks]
        table.add_row(
            row.problems.file, str(row.problems), str(row.n_problems), f"{100 * row.nothing_known:.0f}", *cells
        )
    console.print(table)
    if ks:
        console.print(
            "* if problems are as hard as in the earlier evaluation (one sample of each: always or never solved)",
            highlight=False,
        )
