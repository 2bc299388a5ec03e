"""Which problems are sampled, and counts by problem from their rollouts: every sample present exactly once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from compositionality.data.artefact import Recipe, tree_hash, write_derived
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.evaluate.completions import Folders
from compositionality.evaluate.table import count, problem_columns
from compositionality.rollout.store import SCHEMA, read_by_problem, rollout_manifest
from compositionality.stats.estimate import Counts

STEP = "passk_problems"


@dataclass(frozen=True)
class SampledProblems:
    """The problems sampled of one file; ``rows``: their row numbers in the file that they come from, (P,)."""

    path: Path
    source: Path
    rows: Counts

    def rows_of(self, problems_hash: str) -> Counts | None:
        """Row numbers of these problems in the file of that hash; None if it is neither this file nor its source."""
        if problems_hash == tree_hash(self.path):
            return np.arange(len(self.rows))
        return self.rows if problems_hash == tree_hash(self.source) else None


def choose_all(
    files: Mapping[str, str], levels: Sequence[int], per_level: int, folder: Path
) -> dict[str, SampledProblems]:
    """The problems of every file; a part of a file is written to ``folder``/NAME.parquet. UserError if too few."""
    return {name: _choose(Path(path), levels, per_level, folder / f"{name}.parquet") for name, path in files.items()}


def rows_of(source: Path, levels: Sequence[int], per_level: int) -> Counts:
    """The rows of the problems that are taken of a file, in its order. UserError if it has too few."""
    return _rows(source, problem_columns(read_problems(source)), levels, per_level)


def _choose(source: Path, levels: Sequence[int], per_level: int, target: Path) -> SampledProblems:
    table = read_problems(source)
    if not levels and not per_level:
        return SampledProblems(source, source, np.arange(table.num_rows))
    rows = _rows(source, problem_columns(table), levels, per_level)
    recipe = Recipe(STEP, {"levels": list(levels), "per_level": per_level}, {"problems": source})
    write_derived(target, recipe, lambda path: write_table(table.take(rows), path))
    return SampledProblems(target, source, rows)


def _rows(source: Path, problems: pd.DataFrame, levels: Sequence[int], per_level: int) -> Counts:
    """The rows to take, in file order."""
    known = sorted(set(problems["level"]))
    if lacking := sorted(set(levels) - set(known)):
        raise UserError(f"{source}: has no level {lacking[0]}; its levels are {known}")
    chosen = problems[problems["level"].isin(levels)] if levels else problems
    each = chosen.groupby(["group", "level", "data_source"], sort=False)
    for (group, level, _), n in each.size().items():
        if n < per_level:
            raise UserError(f"{source}: has {n} problems of {group} L{level}; lower per_level={per_level}")
    rows: Counts = (each.head(per_level) if per_level else chosen)["problem"].to_numpy(np.int64)
    return rows


SAME_IN_ALL = ("n_samples", "temperature", "top_p", "top_k", "max_tokens")
ROLLOUT_COLUMNS = ("problem", "sample", "n_tokens", "reason")


def check_sampling(folders: Folders, n_samples: int) -> dict[str, Any]:
    """How all of them were sampled; UserError if two of them differ, or hold another number of samples."""
    same: dict[str, Any] | None = None
    first = ""
    for (model, _), folder in folders.items():
        settings = rollout_manifest(folder).settings
        mine = {name: settings.get(name) for name in SAME_IN_ALL}
        if mine["n_samples"] != n_samples:
            raise UserError(f"{folder}: holds {mine['n_samples']} samples of each problem; give n_samples of that many")
        if same is not None and mine != same:
            changed = next(name for name in SAME_IN_ALL if mine[name] != same[name])
            raise UserError(
                f"{model} and {first}: sampled differently ({changed}: {mine[changed]} and {same[changed]}); "
                "curves can be compared if nothing but the checkpoint differs"
            )
        same, first = same or mine, first or model
    return same or {}


def count_samples(folder: Path, sampled: SampledProblems, n_samples: int) -> pd.DataFrame:
    """Count the completions of the sampled problems, one shard in memory at a time.

    UserError unless every sample is there exactly once, and for rollouts of another problem file.
    """
    rows = sampled.rows_of(rollout_manifest(folder).inputs.get("problems", ""))
    if rows is None:
        raise UserError(f"{folder}: answers other problems than those of {sampled.source}; collect them for that file")
    seen = np.zeros((len(rows), n_samples), np.uint8)
    counts = count(_chosen(folder, rows, seen), len(rows))
    if not seen.all():
        place, sample = np.argwhere(seen == 0)[0]
        raise UserError(
            f"{folder}: problem {rows[place]} has no sample {sample}, and {np.count_nonzero(seen == 0)} samples are "
            "missing in all; collect them again"
        )
    return counts


def _chosen(folder: Path, rows: Counts, seen: NDArray[np.uint8]) -> Iterator[pa.Table]:
    """Shards with the rows of these problems only, renumbered; ``seen`` (P, N) marks every sample."""
    place = np.full(int(rows.max()) + 1, -1, np.int64)
    place[rows] = np.arange(len(rows))
    for name in sorted(rollout_manifest(folder).files):
        shard = read_table(folder / name, ROLLOUT_COLUMNS, types=SCHEMA)
        problem, sample = shard["problem"].to_numpy(), shard["sample"].to_numpy()
        if sample.min() < 0 or sample.max() >= seen.shape[1] or problem.min() < 0:
            raise UserError(f"{folder / name}: names a sample or a problem that is none; collect them again")
        mine = np.where(problem < len(place), place[np.minimum(problem, len(place) - 1)], -1)
        kept = mine >= 0
        mine, sample = mine[kept], sample[kept]
        np.add.at(seen, (mine, sample), 1)
        twice = np.flatnonzero(seen[mine, sample] > 1)
        if len(twice):
            which = f"problem {rows[mine[twice[0]]]} has sample {sample[twice[0]]}"
            raise UserError(f"{folder}: {which} more than once; collect them again")
        yield shard.filter(pa.array(kept)).set_column(0, "problem", pa.array(mine))


def write_responses(folders: Folders, problems: Mapping[tuple[str, str], Path], target: Path) -> None:
    """The rows of the problem files, one after the other, with a column ``responses``: all texts, by sample.

    A row at a time is in memory, and a row group of its own: it may hold thousands of long texts.
    """
    tables = [read_problems(problems[key]) for key in folders]
    rows = pa.concat_tables(tables, promote_options="permissive")
    schema = rows.schema.append(pa.field("responses", pa.list_(pa.string())))
    first = 0
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for table, folder in zip(tables, folders.values(), strict=True):
            for number, answers in read_by_problem(folder):
                texts = pa.array([answers["response"].to_pylist()], schema.field("responses").type)
                writer.write_table(rows.slice(first + number, 1).append_column("responses", texts))
            first += table.num_rows
