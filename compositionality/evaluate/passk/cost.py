"""What sampling will cost, foretold from a short probe of the engine."""

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.data.parquet import read_table
from compositionality.rollout.engine import Engine, Request, request_seed
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.shards import shard_table
from compositionality.tasks import Reason, Verdict


@dataclass(frozen=True)
class Cost:
    """A probe of the engine: so many answers took so many tokens, seconds, and bytes as a shard."""

    answers: int
    tokens: int
    seconds: float
    bytes: int

    def told(self, planned: int) -> str:
        """One sentence on ``planned`` answers."""
        times = planned / self.answers
        return (
            f"{planned:,} answers to collect: about {_short(times * self.tokens)} tokens, "
            f"{_duration(times * self.seconds)} and {_short(times * self.bytes)}B of disk, going by {self.answers} "
            f"answers at once ({self.tokens / self.seconds:,.0f} tok/s; larger batches are faster, judging is extra)"
        )


def probe(engine: Engine, jobs: Sequence[CollectSettings], answers: int) -> Cost:
    """Sample ``answers`` of the answers that ``jobs`` will ask for, spread over their problems, and drop them."""
    requests, units = [], []
    for job in jobs:
        chats = read_table(job.problems, ["prompt"])["prompt"].to_pylist()
        share = min(-(-answers // len(jobs)), len(chats) * job.n_samples)
        for unit in np.linspace(0, len(chats) * job.n_samples - 1, share).astype(int).tolist():
            problem, sample = divmod(unit, job.n_samples)
            requests.append(Request(tuple(chats[problem]), request_seed(job.seed, problem, sample)))
            units.append((problem, sample))
    engine.generate(requests[:1], jobs[0].sampling())  # the first call may compile
    begin = time.perf_counter()
    completions = engine.generate(requests, jobs[0].sampling())
    seconds = time.perf_counter() - begin
    table = shard_table(units, completions, [Verdict(0.0, Reason.WRONG)] * len(units))
    return Cost(len(units), sum(one.tokens for one in completions), seconds, _size(table))


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
