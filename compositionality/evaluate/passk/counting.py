"""From rollout folders to counts by problem: every sample there once, and all folders sampled in the same way."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.evaluate.answers import Folders
from compositionality.evaluate.passk.questions import Questions
from compositionality.evaluate.tally import Tally, tally
from compositionality.rollout.reading import rollout_manifest
from compositionality.stats.intervals import Counts

SAME_IN_ALL = ("n_samples", "temperature", "top_p", "top_k", "max_tokens")
COLUMNS = ("problem", "sample", "tokens", "reason")


def check_sampling(folders: Folders, n_samples: int) -> dict[str, Any]:
    """How all of them were sampled; UserError if two of them differ, or hold another number of samples."""
    told: dict[str, Any] | None = None
    first = ""
    for (model, _), folder in folders.items():
        settings = rollout_manifest(folder).settings
        mine = {name: settings.get(name) for name in SAME_IN_ALL}
        if mine["n_samples"] != n_samples:
            raise UserError(f"{folder}: holds {mine['n_samples']} samples of each problem; give n_samples of that many")
        if told is not None and mine != told:
            changed = next(name for name in SAME_IN_ALL if mine[name] != told[name])
            raise UserError(
                f"{model} and {first}: sampled differently ({changed}: {mine[changed]} and {told[changed]}); "
                "curves can be compared if nothing but the checkpoint differs"
            )
        told, first = told or mine, first or model
    return told or {}


def count_all(folders: Folders, questions: Mapping[str, Questions], n_samples: int) -> dict[tuple[str, str], Tally]:
    """Counts of every folder, one shard in memory at a time."""
    return {
        (model, name): _count(folder, _rows_in(folder, questions[name]), n_samples)
        for (model, name), folder in folders.items()
    }


def _rows_in(folder: Path, questions: Questions) -> Counts:
    rows = questions.rows_of(rollout_manifest(folder).inputs.get("problems", ""))
    if rows is None:
        raise UserError(
            f"{folder}: answers other problems than those of {questions.source}; collect them for that file"
        )
    return rows


def _count(folder: Path, rows: Counts, n_samples: int) -> Tally:
    seen = np.zeros((len(rows), n_samples), np.uint8)
    counts = tally(_chosen(folder, rows, seen), len(rows))
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
        shard = read_table(folder / name, COLUMNS)
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
