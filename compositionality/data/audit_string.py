"""What a file of string problems really holds: depth, duplicates, unused inputs, balance, lengths, overlap."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean, quantiles
from typing import NamedTuple

from compositionality.data.ledger import SplitLedger
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.tasks.string.expression import (
    Expression,
    Input,
    Text,
    apply_operator,
    evaluate,
    function_names,
    parse_program,
    render,
    uses_input,
)
from compositionality.tasks.string.fingerprint import PROBES
from compositionality.tasks.string.partition import owner

STRING_COLUMNS = (
    *("level", "rows", "dup", "x matters", "no-op", "constant", "real depth", "len med/p90/max"),
    *("functions", "balance", "overlap", "wrong"),
)


class Row(NamedTuple):
    """One problem, read back from its row."""

    level: int
    expression: Expression
    input: str
    output: str
    split: str
    seed: int | None


class RowFacts(NamedTuple):
    """What one row is worth."""

    input_named: bool
    input_matters: bool
    depth: int
    no_ops: int
    constants: int
    right: bool


@dataclass(frozen=True)
class LevelAudit:
    """Figures of one level; shares are of rows, from 0 to 1. ``balance`` is rarest over commonest function."""

    level: int
    rows: int
    duplicates: int
    wrong_gold: int
    input_named: float
    input_matters: float
    with_no_op: float
    with_constant: float
    real_depth: float
    length_median: float
    length_p90: float
    length_max: int
    functions_mean: float
    balance: float
    functions: dict[str, int]
    overlap_problems: int
    overlap_compositions: int
    wrong_stream: int


def audit_string_file(path: Path, against: Sequence[Path] = ()) -> list[LevelAudit]:
    """The audit of a file of string problems, level by level."""
    ledger = SplitLedger()
    for other in against:
        ledger.add_training(other)
    overlap = {leak.row: leak.kind for leak in ledger.leaks(path, held_out=True)} if against else {}
    by_level: dict[int, list[tuple[Row, str]]] = defaultdict(list)
    for number, row in enumerate(read_rows(path)):
        by_level[row.level].append((row, overlap.get(number, "")))
    return [_audit_level(level, by_level[level]) for level in sorted(by_level)]


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a string problem file, published ones too."""
    table = read_problems(path).select(["level", "reward_model", "extra_info"])
    for number, entry in enumerate(table.to_pylist()):
        truth, info = json.loads(entry["reward_model"]["ground_truth"]), entry["extra_info"]
        try:
            expression = _parse(truth["ref_code"])
            x, output = truth["ref_input"]["x"], truth["ref_output"]
            yield Row(entry["level"], expression, x, output, str(info.get("split")), info.get("seed"))
        except (KeyError, TypeError, UserError) as error:
            raise UserError(f"{path}: row {number} is no row of the string task ({error})") from error


def row_facts(row: Row) -> RowFacts:
    """Evaluate a row again and see what its parts do."""
    value, depth, no_ops, constants = _walk(row.expression, row.input)
    return RowFacts(
        uses_input(row.expression), _input_matters(row.expression), depth, no_ops, constants, value == row.output
    )


@lru_cache(maxsize=200_000)
def _parse(code: str) -> Expression:
    return parse_program(code)


@lru_cache(maxsize=200_000)
def _input_matters(expression: Expression) -> bool:
    return uses_input(expression) and len({evaluate(expression, probe) for probe in PROBES}) > 1


def _walk(expression: Expression, x: str) -> tuple[str, int, int, int]:
    """Value, real depth, no-ops and constant operators of an expression on ``x``.

    The real depth counts operators on the longest path from x that change what they are given: a no-op adds
    nothing, and neither does anything below a constant, which folds into a literal.
    """
    if isinstance(expression, Input):
        return x, 0, 0, 0
    if isinstance(expression, Text):
        return expression.text, -1, 0, 0
    parts = [_walk(argument, x) for argument in expression.arguments]
    values = [part[0] for part in parts]
    value, depth = apply_operator(expression, values), max(part[1] for part in parts)
    constant, idle = depth < 0, value in values
    real = depth if constant or idle else depth + 1
    return value, real, sum(part[2] for part in parts) + idle, sum(part[3] for part in parts) + constant


def _audit_level(level: int, rows: Sequence[tuple[Row, str]]) -> LevelAudit:
    facts = [row_facts(row) for row, _ in rows]
    lengths = sorted(len(row.output) for row, _ in rows)
    names = [function_names(row.expression) for row, _ in rows]
    functions = Counter(name for used in names for name in used)
    overlaps = Counter(kind for _, kind in rows)
    deciles = quantiles(lengths, n=10, method="inclusive") if len(lengths) > 1 else lengths * 9
    return LevelAudit(
        level=level,
        rows=len(rows),
        duplicates=len(rows) - len({(render(row.expression), row.input) for row, _ in rows}),
        wrong_gold=sum(not fact.right for fact in facts),
        input_named=_share(facts, lambda fact: fact.input_named),
        input_matters=_share(facts, lambda fact: fact.input_matters),
        with_no_op=_share(facts, lambda fact: fact.no_ops > 0),
        with_constant=_share(facts, lambda fact: fact.constants > 0),
        real_depth=_share(facts, lambda fact: fact.depth == level),
        length_median=deciles[4],
        length_p90=deciles[8],
        length_max=lengths[-1],
        functions_mean=fmean(len(used) for used in names),
        balance=min(functions.values()) / max(functions.values()) if functions else 0.0,
        functions=dict(sorted(functions.items(), key=lambda item: int(item[0].removeprefix("func_")))),
        overlap_problems=overlaps["problem"],
        overlap_compositions=overlaps["composition"] + overlaps["behaviour"],
        wrong_stream=sum(_in_wrong_stream(row) for row, _ in rows),
    )


def _share(facts: Sequence[RowFacts], test: Callable[[RowFacts], bool]) -> float:
    return sum(map(test, facts)) / len(facts)


def _in_wrong_stream(row: Row) -> bool:
    """Whether a clean row's input has a checksum that belongs to another split or seed."""
    return row.seed is not None and owner(row.input) != (row.split, row.seed % 8)


def string_cells(level: LevelAudit) -> list[str]:
    """A line of the table on screen."""
    lengths = f"{level.length_median:.0f}/{level.length_p90:.0f}/{level.length_max}"
    shares = [level.input_matters, level.with_no_op, level.with_constant, level.real_depth]
    overlap = f"{level.overlap_problems}+{level.overlap_compositions}"
    return [
        *(str(level.level), str(level.rows), str(level.duplicates)),
        *(f"{share:.1%}" for share in shares),
        *(lengths, f"{level.functions_mean:.2f}", f"{level.balance:.2f}", overlap),
        str(level.wrong_gold + level.wrong_stream),
    ]
