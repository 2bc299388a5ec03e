"""A rollout folder on disk: its rows and shards, resumable writing, reading and counting.

Completion number ``u`` is sample ``u % n_samples`` of problem ``u // n_samples``; file ``i`` holds the completions
``layout(…)[i]``.
"""

import contextlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.table import Table

from compositionality.console import new_table
from compositionality.data.artefact import (
    Manifest,
    Recipe,
    file_hash,
    hidden_sibling,
    input_hash,
    publish,
    remove,
    verify,
    write_text,
)
from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.stats.estimate import over_problems
from compositionality.types import Completion, Reason, Verdict, storable

STEP = "collect_rollouts"
RECIPE = "recipe.json"
CONTENT = {RECIPE, "shards", "hashes"}
OTHER_ROLLOUTS = (
    "{}: holds half-finished rollouts of other settings or inputs; run those again to finish them, "
    "or pass --force to delete them"
)
MIN_ROWS, MAX_ROWS = 1024, 8192  # per file
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
"""Columns that may be empty; no step reads them."""

Identity = tuple[str, str, dict[str, str]]
Cell = tuple[str, int]
"""Group and level."""


# ---- rows and files


def layout(n_rows: int, rows_per_shard: int = 0) -> list[range]:
    """Return the range of completions in each file: an eighth of ``n_rows``, but from 1,024 to 8,192."""
    size = rows_per_shard or min(max(-(-n_rows // 8), MIN_ROWS), MAX_ROWS)
    return [range(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


def shard_name(shard: int) -> str:
    """Return the file name of a shard; names sort in the order of numbers."""
    return f"shard-{shard:05d}.parquet"


def shard_table(
    units: Sequence[tuple[int, int]],
    groups: Sequence[tuple[int, str]],
    completions: Sequence[Completion],
    verdicts: Sequence[Verdict],
) -> pa.Table:
    """Return the rows of one shard, each from (problem, sample), (level, group), completion and verdict."""
    rows = []
    for (problem, sample), (level, group), sampled, verdict in zip(units, groups, completions, verdicts, strict=True):
        cells = (problem, level, group, sample, storable(sampled.text), sampled.n_tokens, sampled.finish_reason)
        rows.append((*cells, verdict.score, verdict.reason.value, verdict.answer))
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


# ---- writing


def has_other_rollouts(output: Path, identity: Identity) -> bool:
    """Return whether ``output`` has half-finished rollouts, at least a shard, of other settings or inputs."""
    begun = working_path(output) / RECIPE
    return _has_shards(output) and begun.is_file() and begun.read_text() != json.dumps(identity, indent=1)


def _has_shards(output: Path) -> bool:
    return any(working_path(output).glob("shards/*"))


class WorkingFolder:
    """``.OUT.working`` beside OUT, from which a killed collection is resumed.

    ``recipe.json`` holds the identity of the collection, ``shards/`` the finished shards, ``hashes/`` the hash of each.
    """

    def __init__(self, output: Path, identity: Identity, *, force: bool = False) -> None:
        """Raise UserError if the folder holds the shards of another collection, unless ``force`` deletes them."""
        self._output, self._identity = output, identity
        self.path = working_path(output)
        self.shards, self.hashes = self.path / "shards", self.path / "hashes"
        if has_other_rollouts(output, identity):
            if not force:
                raise UserError(OTHER_ROLLOUTS.format(self.path))
            remove(self.path)
        for path in self.path.glob("[!.]*"):
            if path.name not in CONTENT:
                raise UserError(f"{path}: does not belong to a collection of rollouts; move it away")
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self.path / RECIPE, json.dumps(identity, indent=1))
        for folder in (self.shards, self.hashes):
            folder.mkdir(exist_ok=True)

    def missing(self, shards: Sequence[range]) -> list[int]:
        """Return the numbers of the missing shards; delete changed and half-written ones."""
        names = {shard_name(number): len(rows) for number, rows in enumerate(shards)}
        for path in sorted(self.shards.iterdir()):
            if path.name not in names or not self._is_whole(path, names[path.name]):
                remove(path)
        return [number for number, name in enumerate(names) if not (self.shards / name).exists()]

    def write(self, shard: int, table: pa.Table) -> None:
        """Add one finished shard atomically; its hash is written first."""
        name = shard_name(shard)
        partial = self.path / f".{name}.partial"
        pq.write_table(table, partial, compression="zstd")
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        write_text(self.hashes / name, file_hash(partial))
        os.replace(partial, self.shards / name)

    def read(self, shard: int) -> pa.Table:
        return pq.read_table(self.shards / shard_name(shard))

    def publish(self, facts: dict[str, object]) -> None:
        publish(self.shards, self._output, self._identity, facts)
        remove(self.path)

    def _is_whole(self, path: Path, rows: int) -> bool:
        recorded = self.hashes / path.name
        if not path.is_file() or not recorded.is_file() or recorded.read_bytes() != file_hash(path).encode():
            return False
        return bool(pq.read_metadata(path).num_rows == rows)


def working_path(output: Path) -> Path:
    return hidden_sibling(output, "working")


def check_unfinished(output: Path, recipe: Recipe) -> None:
    """Raise UserError if ``output`` has half-finished rollouts of other settings; does not hash inputs."""
    begun = working_path(output) / RECIPE
    if not begun.is_file() or not _has_shards(output):
        return
    with contextlib.suppress(ValueError):
        step, settings, _ = json.loads(begun.read_text())
        if step == recipe.step and json.loads(settings) == json.loads(json.dumps(recipe.settings, default=str)):
            return
    raise UserError(OTHER_ROLLOUTS.format(begun.parent))


# ---- reading


def rollout_manifest(folder: Path) -> Manifest:
    """Return a rollout folder's manifest after checking every file. UserError for another or a changed folder."""
    manifest = verify(folder)
    if manifest.step != STEP:
        raise UserError(f"{folder}: was made by step {manifest.step!r}; a folder of rollouts is needed")
    return manifest


def check_answers(folder: Path, problems: Path | None, model: Path | None = None) -> None:
    """Raise UserError unless these are rollouts for ``problems`` by ``model``; None: any."""
    inputs = rollout_manifest(folder).inputs
    expected = (("problems", problems, "another problem file"), ("model", model, "another model"))
    for name, path, other in expected:
        if path is not None and name in inputs and inputs[name] != input_hash(path):
            raise UserError(f"{folder}: its rollouts come from {other} than {path}; give the rollouts of {path}")


def read_rollouts(folder: Path) -> Iterator[pa.Table]:
    """Read the rows of a rollout folder, one shard at a time, in the order (problem, sample)."""
    for name in sorted(rollout_manifest(folder).files):
        yield read_table(folder / name, SCHEMA.names, types=SCHEMA, gaps=GAPS)


def read_by_problem(folder: Path) -> Iterator[tuple[int, pa.Table]]:
    """Yield pairs (problem, all its rows) in order; a problem whose rows are in two shards comes once."""
    pending: pa.Table = SCHEMA.empty_table()
    for shard in read_rollouts(folder):
        rows = pa.concat_tables([pending, shard])
        ends = pc.run_end_encode(rows["problem"].combine_chunks()).run_ends.to_pylist()  # where the problem changes
        starts = [0, *ends[:-1]]
        for start, end in zip(starts[:-1], ends[:-1], strict=True):
            yield rows["problem"][start].as_py(), rows.slice(start, end - start)
        pending = rows.slice(starts[-1])
    if pending.num_rows:
        yield pending["problem"][0].as_py(), pending


# ---- counting


class RolloutSummary:
    """Counts over shards: accuracy by group and level, reasons, lengths. Keeps two numbers per problem."""

    def __init__(self, problems: pa.Table) -> None:
        self._groups, self._levels = problems["group"].to_numpy(), problems["level"].to_numpy()
        self._correct = np.zeros(problems.num_rows, np.int64)  # per problem
        self._judged = np.zeros(problems.num_rows, np.int64)
        self._reasons: dict[Cell, Counter[str]] = defaultdict(Counter)
        self._tokens: Counter[Cell] = Counter()

    def add(self, shard: pa.Table) -> None:
        counts = shard.group_by(["group", "level", "reason"]).aggregate([("n_tokens", "sum"), ("n_tokens", "count")])
        for row in counts.to_pylist():
            cell = row["group"], row["level"]
            self._reasons[cell][row["reason"]] += row["n_tokens_count"]
            self._tokens[cell] += row["n_tokens_sum"]
        correct = pc.equal(shard["reason"], Reason.CORRECT)
        judged = pc.not_equal(shard["reason"], Reason.ERROR)
        for counts_by_problem, chosen in ((self._correct, correct), (self._judged, judged)):
            problems = shard["problem"].filter(chosen).to_numpy()
            counts_by_problem += np.bincount(problems, minlength=len(counts_by_problem))

    def facts(self) -> dict[str, object]:
        """Return the counts for the manifest, whole numbers only."""
        reasons = sum(self._reasons.values(), Counter[str]())
        levels = [
            {"group": group, "level": level, "n": counts.total(), "correct": counts[Reason.CORRECT]}
            for (group, level), counts in sorted(self._reasons.items())
        ]
        tokens = self._tokens.total()
        return {"rows": reasons.total(), "tokens": tokens, "reasons": dict(sorted(reasons.items())), "levels": levels}

    def table(self) -> Table:
        """Return accuracy, 95 % interval (problems as clusters), mean length, shares of other reasons by cell."""
        counted = set().union(*self._reasons.values()) - {Reason.CORRECT}
        reasons = [reason for reason in Reason if reason in counted]
        headers = [f"{reason} %" for reason in reasons]
        table = new_table("group", "level", "n", "correct %", "95 % interval", "mean tokens", *headers)
        for (group, level), counts in sorted(self._reasons.items()):
            rows = (self._groups == group) & (self._levels == level)
            accuracy, n = over_problems(self._correct[rows], self._judged[rows]), counts.total()
            value, interval = "–", "–"  # nothing was judged
            if accuracy is not None:
                value = f"{100 * accuracy.value:.1f}"
                interval = f"{100 * accuracy.low:.1f} – {100 * accuracy.high:.1f}"
            shares = [f"{100 * counts[reason] / n:.1f}" for reason in reasons]
            table.add_row(group, str(level), str(n), value, interval, f"{self._tokens[group, level] / n:.1f}", *shares)
        return table
