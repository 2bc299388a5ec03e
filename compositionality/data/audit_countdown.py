"""What a file of Countdown problems really holds: every row is solved again."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from compositionality.data.ledger import SplitLedger
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.tasks.countdown.judge import judge_countdown
from compositionality.tasks.countdown.partition import SEED_CLASSES, owner
from compositionality.tasks.countdown.prompts import ground_truth, text_answer
from compositionality.tasks.countdown.solver import Solution, solve
from compositionality.tasks.countdown.truth import Truth, read_ground_truth

COUNTDOWN_COLUMNS = (
    *("level", "rows", "dup", "solvable", "whole", "solutions mean/med/max", "fewer do", "target given"),
    *("equal", "targets", "overlap", "wrong"),
)


@dataclass(frozen=True)
class CountdownAudit:
    """Figures of one level (numbers given); shares are of rows, from 0 to 1.

    fewer_numbers: trivial rows, whose target some of the numbers reach without the others; target_given: it is even one
    of them. wrong_*: rows whose level, gold answer or stream is not what they say.
    """

    level: int
    rows: int
    duplicates: int
    solvable: float
    whole: float
    solutions_mean: float
    solutions_median: float
    solutions_max: int
    fewer_numbers: float
    target_given: float
    equal_numbers: float
    target_lowest: int
    target_highest: int
    overlap_problems: int
    wrong_level: int
    wrong_gold: int
    wrong_stream: int


class RowFacts(NamedTuple):
    """What one row is worth; ``overlap``: it is in another file."""

    truth: Truth
    solutions: int
    whole: bool
    fewest: int
    wrong_level: bool
    wrong_gold: bool
    wrong_stream: bool
    overlap: bool


def audit_countdown_file(path: Path, against: Sequence[Path] = ()) -> list[CountdownAudit]:
    """The audit of a file of Countdown problems, level by level."""
    ledger = SplitLedger()
    for other in against:
        ledger.add_training(other)
    overlap = {leak.row for leak in ledger.leaks(path)} if against else set()
    by_level: dict[int, list[RowFacts]] = defaultdict(list)
    for number, (truth, entry) in enumerate(_rows(path)):
        try:
            found = solve(truth.numbers, truth.target, truth.operators, "any")
        except UserError as error:
            raise UserError(f"{path}: row {number}: {error}") from error
        by_level[len(truth.numbers)].append(_row_facts(truth, found, entry, number in overlap))
    return [_audit_level(level, by_level[level]) for level in sorted(by_level)]


def _rows(path: Path) -> Iterator[tuple[Truth, Mapping[str, Any]]]:
    for entry in read_problems(path).select(["data_source", "level", "reward_model", "extra_info"]).to_pylist():
        yield read_ground_truth(entry["reward_model"]["ground_truth"]), entry


def _row_facts(truth: Truth, found: list[Solution], entry: Mapping[str, Any], overlap: bool) -> RowFacts:
    info = entry["extra_info"] or {}
    level = len(truth.numbers)
    allowed = [one for one in found if truth.use == "any" or one.operations == level - 1]
    gold = info.get("expression")
    said = ground_truth(truth.numbers, truth.target, "text", truth.use, truth.operators)
    clean = entry["data_source"].startswith("countdown-clean-")
    return RowFacts(
        truth=truth,
        solutions=len(allowed),
        whole=any(one.whole for one in allowed),
        fewest=min([one.operations + 1 for one in found], default=level),
        wrong_level=entry["level"] != level,
        wrong_gold=gold is not None and judge_countdown(text_answer(gold), said).score < 1,
        wrong_stream=clean and owner(truth.numbers, truth.target) != (info["split"], info["seed"] % SEED_CLASSES),
        overlap=overlap,
    )


def _audit_level(level: int, rows: Sequence[RowFacts]) -> CountdownAudit:
    solutions, targets = [row.solutions for row in rows], [row.truth.target for row in rows]
    return CountdownAudit(
        level=level,
        rows=len(rows),
        duplicates=len(rows) - len({(row.truth.numbers, row.truth.target) for row in rows}),
        solvable=fmean(count > 0 for count in solutions),
        whole=fmean(row.whole for row in rows),
        solutions_mean=fmean(solutions),
        solutions_median=median(solutions),
        solutions_max=max(solutions),
        fewer_numbers=fmean(row.fewest < level for row in rows),
        target_given=fmean(row.fewest == 1 for row in rows),
        equal_numbers=fmean(len(set(row.truth.numbers)) < level for row in rows),
        target_lowest=min(targets),
        target_highest=max(targets),
        overlap_problems=sum(row.overlap for row in rows),
        wrong_level=sum(row.wrong_level for row in rows),
        wrong_gold=sum(row.wrong_gold for row in rows),
        wrong_stream=sum(row.wrong_stream for row in rows),
    )


def countdown_cells(level: CountdownAudit) -> list[str]:
    """A line of the table on screen."""
    solutions = f"{level.solutions_mean:.2f}/{level.solutions_median:.0f}/{level.solutions_max}"
    return [
        *(str(level.level), str(level.rows), str(level.duplicates)),
        *(f"{share:.1%}" for share in (level.solvable, level.whole)),
        solutions,
        *(f"{share:.1%}" for share in (level.fewer_numbers, level.target_given, level.equal_numbers)),
        f"{level.target_lowest}-{level.target_highest}",
        str(level.overlap_problems),
        str(level.wrong_level + level.wrong_gold + level.wrong_stream),
    ]
