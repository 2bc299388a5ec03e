"""Logic puzzles behind the interface of all tasks; what is accepted is in README.md beside this.

The kind of a puzzle is read off its truth: an object with rows is a zebra puzzle, a list of lists of whole numbers a
grid (arc), a list of names an ordering, a word a node of a graph.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from string import ascii_lowercase, ascii_uppercase
from typing import Any, ClassVar, NamedTuple

from compositionality.domains.logic.puzzles import CONTENTS, KINDS, MAKERS, LogicOptions
from compositionality.errors import UserError
from compositionality.tasks.answers import UNREADABLE, last_answer, read_literal
from compositionality.tasks.draws import SEED_CLASSES, draw_owned
from compositionality.tasks.task import Mode, Task, truth_text
from compositionality.types import Problem, Reason, Verdict

SOURCES = {
    "zebra": "logic__zebra_puzzle_generated",
    "ordering": "logic__ordering_puzzle_generated",
    "graph": "logic__graph_generated",
    "arc": "logic__arcagi_generated",
}
MAX_CELL = 200
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_NAME = re.compile(r"[\w-]+(?: [\w-]+)*")


class LogicTruth(NamedTuple):
    """``kind``, and by kind: rows of cells, rows of whole numbers, names, or one name; ``header`` of a zebra puzzle."""

    kind: str
    value: Any
    header: tuple[str, ...] | None = None


class LogicTask(Task):
    """Zebra, ordering, graph and grid puzzles; the level is the size of the puzzle."""

    name = "logic"
    title = "Logic puzzles"
    data_sources = (
        r"(logic__)?zebra_puzzle.*",
        r"(logic__)?ordering_puzzle.*",
        r"(logic__graph|graph_logical).*",
        r"(simulation|logic)__(arcagi|barc).*",
    )
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(LogicOptions)}
    kinds = KINDS
    seed_classes = SEED_CLASSES
    too_few = "ask for fewer rows or larger levels"

    def problem(self, options: LogicOptions, split: str, seed: int, index: int) -> Problem:
        """Return the puzzle at ``index``; its solution decides which split and seed it belongs to."""
        level = options.levels[index % len(options.levels)]
        draw, ask = MAKERS[options.kind]
        name, content = f"logic/{options!r}/{index}", CONTENTS.get(options.kind)
        drawn, draws = draw_owned(partial(draw, options, level), split, seed, name, content)
        puzzle = ask(drawn, options, draws)
        metadata = {"seed": seed, "skills": list(puzzle.skills)}
        return Problem(SOURCES[options.kind], level, options.kind, puzzle.prompt, puzzle.truth, index, metadata)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """Judge the last closed ``<answer>``, by the kind of the truth."""
        truth = read_truth(ground_truth)
        answer = last_answer(answer_text)
        if not answer:
            return Verdict(0.0, Reason.NO_ANSWER)
        if truth.kind == "zebra":
            score = _score_table(answer, truth)
        else:
            value = _READERS[truth.kind](answer)
            score = None if value is None else float(_lower(value) == _lower(truth.value))
        if score is None:
            return Verdict(0.0, Reason.MALFORMED, answer)
        return Verdict(score, Reason.CORRECT if score == 1 else Reason.WRONG, answer)

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """Return the solution as JSON text, out of JSON, a Python literal, a bare word, a struct or numpy's arrays."""
        del extra_info
        is_number = ground_truth is None or isinstance(ground_truth, bool | int | float)
        truth = read_truth(ground_truth if is_number else truth_text(ground_truth))
        if truth.kind != "zebra":
            return truth_text(truth.value)
        return truth_text({**({"header": truth.header} if truth.header else {}), "rows": truth.value})

    def parse_truth(self, ground_truth: str) -> LogicTruth:
        return read_truth(ground_truth)

    def gold(self, problem: Problem) -> str:
        truth = read_truth(problem.ground_truth)
        return f"<answer>{truth.value if truth.kind == 'graph' else problem.ground_truth}</answer>"


# ---- truths


def read_truth(ground_truth: Any) -> LogicTruth:
    """Read the truth of a row: text (JSON, a Python literal, a bare word) or plain values; else raise UserError."""
    value = ground_truth
    if isinstance(value, str):
        literal = read_literal(value)
        value = literal if isinstance(literal, str | list | tuple | dict) else value.strip()
    if isinstance(value, dict):
        rows, header = _rows(value.get("rows")), value.get("header")
        titles = None if header is None else _names(header)
        if rows and not any(None in row for row in rows) and (header is None or len(titles or ()) == len(rows[0])):
            return LogicTruth("zebra", rows, titles)
    if isinstance(value, str | int) and (name := _cell(value)) and _NAME.fullmatch(name) and len(name) <= MAX_CELL:
        return LogicTruth("graph", name)
    if isinstance(value, list | tuple) and value:
        if grid := _grid(value):
            return LogicTruth("arc", grid)
        if names := _names(value):
            return LogicTruth("ordering", names)
    raise UserError(
        f"ground_truth {str(ground_truth)[:60]!r} is no solution of a logic puzzle: give an object with header and "
        "rows (zebra), a list of names (ordering), a word (graph) or a list of lists of whole numbers (arc)"
    )


# ---- verdicts by kind


def _score_table(answer: str, truth: LogicTruth) -> float | None:
    """Return the share of equal cells of a zebra puzzle; 0 for another shape or header, None for what is no table.

    Columns that number the rows are given: they count for nothing, and a row with another number has no equal cell.
    """
    table = read_literal(answer)
    rows = _rows(table.get("rows")) if isinstance(table, dict) else None
    if rows is None:
        return None
    header = table.get("header")
    if header is not None and truth.header is not None and _lower(_names(header)) != _lower(truth.header):
        return 0.0
    if [len(row) for row in rows] != [len(row) for row in truth.value]:
        return 0.0
    numbers = tuple(str(number) for number in range(1, len(rows) + 1))
    numbered = {column for column, cells in enumerate(zip(*truth.value, strict=False)) if cells == numbers}
    cells = list[bool]()
    for right, row in zip(truth.value, rows, strict=True):
        same = [_lower(cell) == _lower(other) for cell, other in zip(right, row, strict=True)]
        is_row = all(same[column] for column in numbered)
        cells += [is_row and is_same for column, is_same in enumerate(same) if column not in numbered]
    cells = cells or [rows == truth.value]
    return sum(cells) / len(cells)


def _read_names(answer: str) -> tuple[str, ...] | None:
    """Return the names of a list, which in brackets may leave out the quotes; None for anything else."""
    names = read_literal(answer)
    is_bare = answer.startswith("[") and answer.endswith("]") and not set("[]'\"") & set(answer[1:-1])
    return _names(answer[1:-1].split(",") if names is UNREADABLE and is_bare else names)


_READERS: dict[str, Callable[[str], Any]] = {
    "ordering": _read_names,
    "graph": lambda answer: answer if len(answer) <= MAX_CELL and _NAME.fullmatch(answer) else None,
    "arc": lambda answer: _grid(read_literal(answer)),
}


def _lower(value: Any) -> Any:
    """Return names with the letters A to Z in lower case; ``str.lower`` would take a Kelvin sign for a k."""
    if isinstance(value, tuple):
        return tuple(map(_lower, value))
    return value.translate(_LOWER) if isinstance(value, str) else value


def _cell(value: Any) -> str | None:
    """Return a cell as text: 1 and "1" are equal; None for what is neither text nor a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int) or (isinstance(value, int) and abs(value) >= 10**15):
        return None
    return str(value).strip()


def _rows(value: Any) -> tuple[tuple[str | None, ...], ...] | None:
    if not isinstance(value, list | tuple) or not all(isinstance(row, list | tuple) and row for row in value):
        return None
    return tuple(tuple(_cell(cell) for cell in row) for row in value)


def _names(value: Any) -> tuple[str, ...] | None:
    """Return a list of text or whole numbers as text; None for anything else."""
    if not isinstance(value, list | tuple):
        return None
    names = tuple(name for name in map(_cell, value) if name)
    return names if len(names) == len(value) else None


def _grid(value: Any) -> tuple[tuple[int, ...], ...] | None:
    """Return a list of lists of whole numbers (2.0 is one); None for anything else."""
    if not isinstance(value, list | tuple):
        return None
    rows = tuple(tuple(row) if isinstance(row, list | tuple) else () for row in value)
    if not rows or not all(rows) or any(type(cell) not in (int, float) or cell % 1 for row in rows for cell in row):
        return None
    return tuple(tuple(map(int, row)) for row in rows)


TASK = LogicTask()
