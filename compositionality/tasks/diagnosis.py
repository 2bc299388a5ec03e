"""A task's reading of a solution's steps, and of what went wrong in a completion."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

ROLES = ("name", "copy", "result", "end")
"""Roles of the tokens in a step of a solution: what is applied and what is left, the values that go in, what comes out
with the end of the line, and the EOS."""


class Span(NamedTuple):
    """Characters ``start`` to ``end`` of a solution: of which ``step``, from 0, and in which of ``ROLES``."""

    start: int
    end: int
    step: int
    role: str


class ReadChain(NamedTuple):
    """Properties of the steps that a completion states, against the problem's functions; None: the task cannot tell."""

    names_in_order: bool | None = None
    handed_on: bool | None = None  # and each is applied to the result stated before it
    right_chain: bool | None = None  # and every result is right


NOT_READ = ReadChain()


class Failure(StrEnum):
    """Classes of completions by what went wrong: each has exactly one."""

    CORRECT = "correct"
    IGNORES = "ignores_composition"
    INCOMPLETE = "incomplete_trace"
    INCORRECT = "incorrect_composition"
    MISCOPIED = "miscopied_string"
    ATOMIC = "atomic_error"
    FORMAT = "format"
    OVERLONG = "overlong"
    UNPARSED = "unparsed"


FAILURES = tuple(failure.value for failure in Failure)
"""The classes in the order of tables and figures."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The class of a completion, and what is known of its first fault."""

    failure: Failure
    step: int | None = None  # of the fault: operators from 1 in the order of application
    skill: str | None = None  # the operator of that step
    fault: str | None = None  # its kind in the task's own words
    expected: tuple[str, ...] = ()  # the problem's operators in order of application; empty: some have no name
    chain: ReadChain = NOT_READ
    applied: tuple[tuple[str, bool], ...] = ()  # the operators that the completion states; is the result wrong?
