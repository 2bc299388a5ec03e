"""Reading a rollout folder as a stream."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from compositionality.data.artefact import Manifest, verify
from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.rollout.shards import SCHEMA

STEP = "collect_rollouts"


def rollout_manifest(folder: Path) -> Manifest:
    """The manifest of a rollout folder, every file checked against it. UserError if it is none or was altered."""
    manifest = verify(folder)
    if manifest.step != STEP:
        raise UserError(f"{folder}: was made by step {manifest.step!r}; a folder of rollouts is needed")
    return manifest


def read_rollouts(folder: Path) -> Iterator[pa.Table]:
    """The rows of a rollout folder, one shard at a time, in the order (problem, sample)."""
    manifest = rollout_manifest(folder)
    for name in sorted(manifest.files):
        yield read_table(folder / name, SCHEMA.names)


def read_by_problem(folder: Path) -> Iterator[tuple[int, pa.Table]]:
    """Pairs (problem, all its rows), in order; a problem whose rows lie in two shards comes once."""
    held: pa.Table = SCHEMA.empty_table()
    for shard in read_rollouts(folder):
        rows = pa.concat_tables([held, shard])
        *whole, held = _split_by_problem(rows)
        yield from ((_problem_of(table), table) for table in whole)
    if held.num_rows:
        yield _problem_of(held), held


def _split_by_problem(rows: pa.Table) -> list[pa.Table]:
    """Cut rows sorted by problem wherever the problem changes (zero-copy slices)."""
    lengths = pc.run_end_encode(rows["problem"].combine_chunks()).run_ends.to_pylist()
    return [rows.slice(start, end - start) for start, end in zip([0, *lengths], lengths, strict=False)]


def _problem_of(rows: pa.Table) -> int:
    problem: int = rows["problem"][0].as_py()
    return problem
