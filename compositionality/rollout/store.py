"""A rollout folder on disk: its rows, how they are cut into shards, writing them resumably, reading them as a stream.

Completion number ``u`` is sample ``u % n_samples`` of problem ``u // n_samples``; shard ``i`` holds the completions
``i * rows_per_shard`` up to the first of the next shard. How many these are may follow from the machine on which a
collection was begun: the working folder records it, and elsewhere it goes on with the same cut.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compositionality.data.artefact import (
    Manifest,
    Recipe,
    beside,
    file_hash,
    input_hash,
    publish,
    remove,
    verify,
    write_text,
)
from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.types import Completion, Verdict

STEP = "collect_rollouts"
CUT = "rows_per_shard.json"
OURS = {"recipe.json", CUT, "shards", "hashes"}
OF_OTHERS = (
    "{}: holds half-finished rollouts of other settings or inputs; run those again to finish them, "
    "or pass --force to drop them"
)
ROWS_PER_SHARD = 8192
SCHEMA = pa.schema(
    [
        ("problem", pa.int64()),  # row of the problem file
        ("level", pa.int32()),
        ("group", pa.string()),
        ("sample", pa.int32()),
        ("response", pa.string()),
        ("n_tokens", pa.int32()),
        ("finish_reason", pa.string()),
        ("score", pa.float32()),
        ("reason", pa.string()),
        ("answer", pa.string()),
    ]
)
GAPS = ("level", "group", "answer")
"""Columns that may be empty: nothing but a reader's eye goes by them."""

Identity = tuple[str, str, dict[str, str]]


# ---- the cut


@dataclass(frozen=True)
class ShardPlan:
    """Which completions belong to which shard."""

    n_problems: int
    n_samples: int
    rows_per_shard: int = ROWS_PER_SHARD

    @property
    def n_rows(self) -> int:
        """Completions in all shards together."""
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
    """File name of a shard; names sort as numbers do."""
    return f"shard-{shard:05d}.parquet"


# ---- rows


def shard_table(
    units: Sequence[tuple[int, int]],
    groups: Sequence[tuple[int, str]],
    completions: Sequence[Completion],
    verdicts: Sequence[Verdict],
) -> pa.Table:
    """The rows of one shard: (problem, sample), (level, group), completion and verdict of each."""
    return pa.table(
        {
            "problem": [problem for problem, _ in units],
            "level": [level for level, _ in groups],
            "group": [group for _, group in groups],
            "sample": [sample for _, sample in units],
            "response": [_storable(completion.text) for completion in completions],
            "n_tokens": [completion.n_tokens for completion in completions],
            "finish_reason": [completion.finish_reason for completion in completions],
            "score": [verdict.score for verdict in verdicts],
            "reason": [verdict.reason.value for verdict in verdicts],
            "answer": [None if verdict.answer is None else _storable(verdict.answer) for verdict in verdicts],
        },
        schema=SCHEMA,
    )


def _storable(text: str) -> str:
    """A lone surrogate (a server may send one) has no UTF-8 form: it becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


# ---- writing


class WorkingFolder:
    """``.OUT.working`` beside OUT, from which a killed collection is resumed.

    ``recipe.json`` holds the identity of the collection, ``rows_per_shard.json`` its cut, ``shards/`` the finished
    shards, ``hashes/`` the hash of each.
    """

    def __init__(self, output: Path, identity: Identity, *, force: bool = False) -> None:
        """UserError if the folder holds the shards of another collection, unless ``force`` deletes them."""
        self._output, self._identity = output, identity
        self.path = working_path(output)
        self.shards, self.hashes = self.path / "shards", self.path / "hashes"
        self._open(force)

    def plan(self, n_problems: int, n_samples: int, choose: Callable[[], int]) -> ShardPlan:
        """The cut with which this collection was begun, else into shards of ``choose()`` rows, which is recorded."""
        record = self.path / CUT
        if not record.is_file():
            if any(self.shards.glob("[!.]*")):
                raise UserError(f"{record}: missing, so the cut of the shards there is unknown; delete {self.path}")
            write_text(record, json.dumps(choose()))
        rows = record.read_text()
        if not rows.isdecimal() or not int(rows):
            raise UserError(f"{record}: damaged (no number of rows); delete {self.path}")
        self._plan = ShardPlan(n_problems, n_samples, int(rows))
        self._delete_strays()
        return self._plan

    def missing(self) -> list[int]:
        """Numbers of the shards still to be made; one that has changed since it was written is deleted and counts."""
        lost = [shard for shard in range(self._plan.n_shards) if not self._is_whole(shard)]
        for shard in lost:
            remove(self.shards / shard_name(shard))
        return lost

    def write(self, shard: int, table: pa.Table) -> None:
        """Add one finished shard."""
        write_shard(table, self.shards / shard_name(shard), self.hashes / shard_name(shard))

    def read(self, shard: int) -> pa.Table:
        """One finished shard."""
        return pq.read_table(self.shards / shard_name(shard))

    def publish(self, facts: dict[str, object]) -> None:
        """Write the manifest of the complete shards and rename their folder to the output."""
        publish(self.shards, self._output, self._identity, facts)
        remove(self.path)

    def _open(self, force: bool) -> None:
        recipe = json.dumps(self._identity, indent=1)
        recipe_file = self.path / "recipe.json"
        if recipe_file.is_file() and recipe_file.read_text() != recipe:
            if not force:
                raise UserError(OF_OTHERS.format(self.path))
            remove(self.path)
        for path in self.path.glob("[!.]*"):
            if path.name not in OURS:
                raise UserError(f"{path}: not of a collection of rollouts; move it away")
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(recipe_file, recipe)
        for folder in (self.shards, self.hashes):
            folder.mkdir(exist_ok=True)

    def _delete_strays(self) -> None:
        """Delete what is no shard: a run killed while publishing leaves an unfinished manifest."""
        expected = {shard_name(shard) for shard in range(self._plan.n_shards)}
        for path in self.shards.iterdir():
            if path.name not in expected:
                remove(path)

    def _is_whole(self, shard: int) -> bool:
        path, recorded = self.shards / shard_name(shard), self.hashes / shard_name(shard)
        return path.is_file() and recorded.is_file() and recorded.read_bytes() == file_hash(path).encode()


def working_path(output: Path) -> Path:
    """The folder of the half-finished rollouts of ``output``."""
    return beside(output, "working")


def check_unfinished(output: Path, recipe: Recipe) -> None:
    """UserError if half-finished rollouts of ``output`` are of other settings; inputs are not hashed."""
    begun = working_path(output) / "recipe.json"
    if not begun.is_file():
        return
    with contextlib.suppress(ValueError):
        step, settings, _ = json.loads(begun.read_text())
        if step == recipe.step and json.loads(settings) == json.loads(json.dumps(recipe.settings, default=str)):
            return
    raise UserError(OF_OTHERS.format(begun.parent))


def write_shard(table: pa.Table, path: Path, recorded: Path) -> None:
    """Write one shard whole or not at all, its hash to ``recorded`` first.

    The unfinished file lies beside the folder of shards, not in it.
    """
    partial = path.parent.with_name(f".{path.name}.partial")
    pq.write_table(table, partial, compression="zstd")
    with partial.open("rb") as stream:
        os.fsync(stream.fileno())
    write_text(recorded, file_hash(partial))
    os.replace(partial, path)


# ---- reading


def rollout_manifest(folder: Path) -> Manifest:
    """The manifest of a rollout folder, every file checked against it. UserError if it is none or was altered."""
    manifest = verify(folder)
    if manifest.step != STEP:
        raise UserError(f"{folder}: was made by step {manifest.step!r}; a folder of rollouts is needed")
    return manifest


def check_answers(folder: Path, problems: Path, model: Path | None = None) -> None:
    """UserError if rollouts answer another problem file than ``problems``, or are another model's than ``model``."""
    made = rollout_manifest(folder).inputs
    for name, path in (("problems", problems), ("model", model)):
        if path is not None and name in made and made[name] != input_hash(path):
            what = {"problems": "of another problem file", "model": "by another model"}[name]
            raise UserError(f"{folder}: its rollouts are {what} than {path}; give those of this one")


def read_rollouts(folder: Path) -> Iterator[pa.Table]:
    """The rows of a rollout folder, one shard at a time, in the order (problem, sample)."""
    manifest = rollout_manifest(folder)
    for name in sorted(manifest.files):
        yield read_table(folder / name, SCHEMA.names, types=SCHEMA, gaps=GAPS)


def read_by_problem(folder: Path) -> Iterator[tuple[int, pa.Table]]:
    """Pairs (problem, all its rows), in order; a problem whose rows lie in two shards comes once."""
    pending: pa.Table = SCHEMA.empty_table()
    for shard in read_rollouts(folder):
        rows = pa.concat_tables([pending, shard])
        *whole, pending = _split_by_problem(rows)
        yield from ((_problem_of(table), table) for table in whole)
    if pending.num_rows:
        yield _problem_of(pending), pending


def _split_by_problem(rows: pa.Table) -> list[pa.Table]:
    """Cut rows sorted by problem wherever the problem changes (zero-copy slices)."""
    lengths = pc.run_end_encode(rows["problem"].combine_chunks()).run_ends.to_pylist()
    return [rows.slice(start, end - start) for start, end in zip([0, *lengths], lengths, strict=False)]


def _problem_of(rows: pa.Table) -> int:
    problem: int = rows["problem"][0].as_py()
    return problem
