"""The rows of a rollout folder, cut into numbered shards.

Response number ``u`` is sample ``u % n_samples`` of problem ``u // n_samples``; shard ``i`` holds the responses
``i * rows_per_shard`` up to the next shard's first. So the cut depends on the numbers alone, never on the machine.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.types import Verdict

SCHEMA = pa.schema(
    [
        ("problem", pa.int64()),
        ("sample", pa.int32()),
        ("response", pa.string()),
        ("tokens", pa.int32()),
        ("finish_reason", pa.string()),
        ("score", pa.float32()),
        ("reason", pa.string()),
        ("answer", pa.string()),
    ]
)
ROWS_PER_SHARD = 8192


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered: the text without special tokens, its length in tokens, "stop" or "length"."""

    text: str
    tokens: int
    finish_reason: str


@dataclass(frozen=True)
class ShardPlan:
    """Which responses belong to which shard."""

    n_problems: int
    n_samples: int
    rows_per_shard: int = ROWS_PER_SHARD

    @property
    def n_rows(self) -> int:
        """Responses in all shards together."""
        return self.n_problems * self.n_samples

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return -(-self.n_rows // self.rows_per_shard)

    def units(self, shard: int) -> list[tuple[int, int]]:
        """The (problem, sample) pairs of one shard, in order."""
        first = shard * self.rows_per_shard
        last = min(first + self.rows_per_shard, self.n_rows)
        return [divmod(unit, self.n_samples) for unit in range(first, last)]


def shard_name(shard: int) -> str:
    """File name of shard number ``shard``; names sort as numbers do."""
    return f"shard-{shard:05d}.parquet"


def shard_table(
    units: Sequence[tuple[int, int]], completions: Sequence[Completion], verdicts: Sequence[Verdict]
) -> pa.Table:
    """The rows of one shard: three sequences of the same length, side by side."""
    return pa.table(
        {
            "problem": [problem for problem, _ in units],
            "sample": [sample for _, sample in units],
            "response": [_storable(completion.text) for completion in completions],
            "tokens": [completion.tokens for completion in completions],
            "finish_reason": [completion.finish_reason for completion in completions],
            "score": [verdict.score for verdict in verdicts],
            "reason": [verdict.reason.value for verdict in verdicts],
            "answer": [None if verdict.answer is None else _storable(verdict.answer) for verdict in verdicts],
        },
        schema=SCHEMA,
    )


def write_shard(table: pa.Table, path: Path) -> None:
    """Write one shard whole or not at all; the unfinished file lies beside the shards' folder, not in it."""
    partial = path.parent.with_name(f".{path.name}.partial")
    pq.write_table(table, partial, compression="zstd")
    with partial.open("rb") as stream:
        os.fsync(stream.fileno())
    os.replace(partial, path)


def _storable(text: str) -> str:
    """A lone surrogate (a server may send one) has no UTF-8 form: it becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
