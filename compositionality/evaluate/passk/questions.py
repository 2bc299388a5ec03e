"""Which problems are asked: all of a file, or the first so many of each of its levels, as a file of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from compositionality.data.artefact import Recipe, tree_hash, write_derived
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import COLUMNS
from compositionality.errors import UserError
from compositionality.evaluate.study import Group
from compositionality.stats.intervals import Counts

STEP = "passk_problems"


@dataclass(frozen=True)
class Questions:
    """The problems asked of one file; ``rows``: their row numbers in the file that they come from, (P,)."""

    path: Path
    source: Path
    rows: Counts

    def table(self) -> pa.Table:
        """The problems themselves."""
        return read_table(self.path, COLUMNS)

    def levels(self) -> list[str]:
        """The data source of every problem."""
        sources: list[str] = read_table(self.path, ["data_source"])["data_source"].to_pylist()
        return sources

    def rows_of(self, problems_hash: str) -> Counts | None:
        """Row numbers of these problems in the file of that hash; None if it is neither this file nor its source."""
        if problems_hash == tree_hash(self.path):
            return np.arange(len(self.rows))
        return self.rows if problems_hash == tree_hash(self.source) else None


def choose_all(files: Mapping[str, str], levels: Sequence[int], per_level: int, folder: Path) -> dict[str, Questions]:
    """The problems of every file; a part of a file is written to ``folder``/NAME.parquet. UserError if too few."""
    return {name: _choose(Path(path), levels, per_level, folder / f"{name}.parquet") for name, path in files.items()}


def _choose(source: Path, levels: Sequence[int], per_level: int, target: Path) -> Questions:
    table = read_table(source, COLUMNS)
    if not levels and not per_level:
        return Questions(source, source, np.arange(table.num_rows))
    rows = _rows(source, table["data_source"].to_pylist(), levels, per_level)
    recipe = Recipe(STEP, {"levels": list(levels), "per_level": per_level}, {"problems": source})
    write_derived(target, recipe, lambda path: write_table(table.take(rows), path))
    return Questions(target, source, rows)


def _rows(source: Path, sources: Sequence[str], levels: Sequence[int], per_level: int) -> Counts:
    """The rows to take, in file order."""
    level_of = {name: Group(source.stem, name).level for name in dict.fromkeys(sources)}
    lacking = sorted(set(levels) - set(level_of.values()))
    if lacking:
        raise UserError(f"{source}: has no level {lacking[0]}; its levels are {sorted(set(level_of.values()))}")
    taken: list[int] = []
    for name, level in level_of.items():
        if levels and level not in levels:
            continue
        rows = [row for row, found in enumerate(sources) if found == name]
        if len(rows) < per_level:
            raise UserError(f"{source}: has {len(rows)} problems of {name}; lower per_level={per_level}")
        taken += rows[:per_level] if per_level else rows
    return np.array(sorted(taken), np.int64)
