"""The split ledger: what has been trained on may not come back as evaluation.

A string problem is an expression with its input. A composition is two or more nested operators; parameters and literals
aside, it is known by its text, and with them by its behaviour on fixed strings. Single functions are no compositions:
Stage 1 teaches all of them on purpose. A Countdown problem is its numbers, in any order, with its target.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.tasks.countdown.judge import judge_countdown
from compositionality.tasks.countdown.prompts import short_name
from compositionality.tasks.countdown.truth import read_ground_truth
from compositionality.tasks.registry import find_judge
from compositionality.tasks.string.expression import (
    Apply,
    Expression,
    Text,
    evaluate,
    nodes,
    parse_program,
    render,
    uses_input,
)
from compositionality.tasks.string.fingerprint import fingerprint


class Place(NamedTuple):
    """A row of a problem file."""

    path: Path
    row: int


@dataclass(frozen=True, slots=True)
class RowKeys:
    """What a row is recognised by; no text and behaviour if it is no composition on x."""

    row: int
    held_out: bool
    problem: str
    text: str | None
    behaviour: str | None


@dataclass(frozen=True, slots=True)
class Leak:
    """A row of an evaluation file that is also in a training file: the same problem, text or behaviour."""

    kind: str
    row: int
    key: str
    other: Place


@dataclass
class SplitLedger:
    """What the training files hold."""

    problems: dict[str, Place] = field(default_factory=dict)
    texts: dict[str, Place] = field(default_factory=dict)
    behaviours: dict[str, Place] = field(default_factory=dict)

    def add_training(self, path: Path) -> None:
        """Enter a training file."""
        for keys in row_keys(path):
            place = Place(path, keys.row)
            self.problems.setdefault(keys.problem, place)
            if keys.text is not None and keys.behaviour is not None:
                self.texts.setdefault(keys.text, place)
                self.behaviours.setdefault(keys.behaviour, place)

    def leaks(self, path: Path, *, held_out: bool | None = None) -> Iterator[Leak]:
        """Rows of ``path`` that a training file holds; compositions are compared where ``held_out``.

        By default those rows are held out whose ``data_source`` says so (``string-heldout-…``).
        """
        for keys in row_keys(path):
            if place := self.problems.get(keys.problem):
                yield Leak("problem", keys.row, keys.problem, place)
            elif not (keys.held_out if held_out is None else held_out):
                continue
            elif place := self.texts.get(keys.text or ""):
                yield Leak("composition", keys.row, keys.text or "", place)
            elif place := self.behaviours.get(keys.behaviour or ""):
                yield Leak("behaviour", keys.row, keys.text or "", place)

    def check(self, path: Path, *, held_out: bool | None = None, shown_as: Path | None = None) -> None:
        """UserError that names the first leaking row, and how many there are."""
        found = list(self.leaks(path, held_out=held_out))
        if found:
            first = found[0]
            raise UserError(
                f"{shown_as or path}: row {first.row} has the same {first.kind} ({first.key[:80]}) as "
                f"{first.other.path} row {first.other.row}; {len(found)} such rows in all; "
                "make it with another seed, split or set of functions"
            )


def row_keys(path: Path) -> Iterator[RowKeys]:
    """The keys of all rows of a problem file."""
    table = read_problems(path).select(["data_source", "reward_model"])
    for row, entry in enumerate(table.to_pylist()):
        source, truth = entry["data_source"], entry["reward_model"]["ground_truth"]
        if find_judge(source) is judge_countdown:
            asked = read_ground_truth(truth)
            yield RowKeys(row, False, short_name(asked.numbers, asked.target), None, None)
        else:
            try:
                yield RowKeys(row, "-heldout-" in source, *string_keys(truth))
            except (KeyError, TypeError, UserError) as error:
                raise UserError(f"{path}: row {row} is no row of the string task ({error})") from error


def string_keys(ground_truth: str) -> tuple[str, str | None, str | None]:
    """What a string row is recognised by: its problem, and its composition's text and behaviour, if it is one."""
    truth = json.loads(ground_truth)
    canonical, text, behaviour = program_keys(truth["ref_code"])
    return f"{canonical} on {truth['ref_input']['x']}", text, behaviour


@lru_cache(maxsize=200_000)
def program_keys(code: str) -> tuple[str, str | None, str | None]:
    """Canonical text of a program's expression; the composition's text and fingerprint, or None twice."""
    expression = parse_program(code)
    operators = sum(isinstance(node, Apply) for node in nodes(expression))
    if operators < 2 or not uses_input(expression):
        return render(expression), None, None
    return render(expression), render(skeleton(expression)), fingerprint(lambda text: evaluate(expression, text))


def skeleton(expression: Expression) -> Expression:
    """The expression without its parameters and literals."""
    if isinstance(expression, Apply):
        return Apply(expression.operator, tuple(skeleton(argument) for argument in expression.arguments))
    return Text("") if isinstance(expression, Text) else expression
