"""Accuracy of one checkpoint on one problem file, by level and by skill, as plain rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from compositionality.console import natural_key
from compositionality.data.problems import iterate_problems
from compositionality.evaluate.counts import REASONS, Stratum, Tally, clusters_of, known_composed, strata_of
from compositionality.evaluate.frames import columns
from compositionality.stats.estimate import ByProblem, Counts, difference, over_problems
from compositionality.tasks.registry import known_task

ALL, LEVEL, GROUP, SKILL = "all", "level", "group", "skill"
"""What a row is about: a whole problem file, one group at one level of it, one of several groups at all its levels, or
the problems that ask for a skill."""
COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("model", pa.string()),
    ("problems", pa.string()),
    ("by", pa.string()),
    ("group", pa.string()),
    ("level", pa.int64()),
    ("data_source", pa.string()),
    ("skill", pa.string()),
    ("accuracy", pa.float64()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("composed", pa.float64()),
    ("composed_low", pa.float64()),
    ("composed_high", pa.float64()),
    ("difference", pa.float64()),
    ("difference_low", pa.float64()),
    ("difference_high", pa.float64()),
    ("n_problems", pa.int64()),
    ("n_responses", pa.int64()),
    ("n_judged", pa.int64()),
    ("n_correct", pa.int64()),
    ("n_composed", pa.int64()),
    ("n_samples", pa.int64()),
    ("temperature", pa.float64()),
    ("seed", pa.int64()),
    ("mean_tokens", pa.float64()),
    *((f"share_{reason}", pa.float64()) for reason in REASONS),
)
SCHEMA = pa.schema(COLUMNS)
Row = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """Problems (row numbers) that are reported together; ``labels``: by, skill, and those of a stratum."""

    labels: Row
    problems: Counts
    clusters: Counts  # a number for that of each of them


def parts_of(problems: pa.Table) -> list[Part]:
    """All problems; those of each group and level, of each of several groups, and those that ask for each skill."""
    clusters = np.unique(clusters_of(problems), return_inverse=True)[1]

    def part(labels: Row, rows: Sequence[int]) -> Part:
        return Part(labels, np.array(rows), clusters[rows])

    strata: dict[Stratum, list[int]] = {}
    groups: dict[str, list[int]] = {}
    skills: dict[str, list[int]] = {}
    for row, stratum in enumerate(strata_of(problems)):
        strata.setdefault(stratum, []).append(row)
        groups.setdefault(stratum.group, []).append(row)
    for row, problem in enumerate(iterate_problems(problems)):
        for name in known_task(problem.data_source).skills(problem):
            skills.setdefault(name, []).append(row)
    return [
        part({"by": ALL}, range(problems.num_rows)),
        *(part({"by": LEVEL, **one._asdict()}, strata[one]) for one in sorted(strata)),
        *(part({"by": GROUP, "group": name}, groups[name]) for name in sorted(groups) if len(groups) > 1),
        *(part({"by": SKILL, "skill": name}, skills[name]) for name in sorted(skills, key=natural_key)),
    ]


def rows_of(tally: Tally, base: Tally | None, parts: Sequence[Part], labels: Row) -> Iterator[Row]:
    """One row per part; ``base`` is the tally that differences are taken from (None: no difference)."""
    for part in parts:
        mine = tally.only(part.problems)
        theirs = None if base is None else base.only(part.problems)
        own = {**dict.fromkeys(("by", *Stratum._fields, "skill")), **part.labels}
        yield {**labels, **own, **_figures(mine, part.clusters), **_difference(mine, theirs, part.clusters)}


def _figures(tally: Tally, clusters: Counts) -> Row:
    composed = over_problems(*known_composed(tally), clusters)
    return {
        **columns(over_problems(tally.correct, tally.judged, clusters), "accuracy"),
        **dict(zip(("composed", "composed_low", "composed_high"), columns(composed, "share").values(), strict=True)),
        "n_problems": len(tally.tokens),
        "n_responses": tally.responses,
        "n_judged": int(tally.judged.sum()),
        "n_correct": int(tally.correct.sum()),
        "n_composed": int(known_composed(tally)[0].sum()) if composed else None,
        "mean_tokens": tally.mean_tokens(),
        **{f"share_{reason}": value for reason, value in tally.shares().items()},
    }


def _difference(mine: Tally, base: Tally | None, clusters: Counts) -> Row:
    found = None
    if base is not None:
        both = [ByProblem(one.correct, one.judged, clusters) for one in (mine, base)]
        found = over_problems(*difference((1, -1), both), low=-1)
    value, low, high = columns(found, "difference").values()
    return {"difference": value, "difference_low": low, "difference_high": high}
