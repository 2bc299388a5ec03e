"""The nouns every task speaks: Problem, Verdict, Task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypedDict


class Message(TypedDict):
    """One chat turn, as chat templates take it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One question with its gold answer.

    ``ground_truth`` is the JSON text that the judge reads; ``level`` is the depth of the composition;
    ``index`` is the position in its (split, seed) stream.
    """

    data_source: str
    level: int
    prompt: str
    ground_truth: str
    index: int
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Reason(StrEnum):
    """Why a response got its score: a closed list."""

    CORRECT = "correct"
    WRONG = "wrong"
    NO_ANSWER = "no_answer"
    MALFORMED = "malformed"
    ILLEGAL = "illegal"
    OVERLONG = "overlong"
    WRONG_VALUE = "wrong_value"
    WRONG_NUMBERS = "wrong_numbers"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's finding: ``score`` in [0, 1], the reason, and the answer that was read (None if none was)."""

    score: float
    reason: Reason
    answer: str | None = None


class Task(Protocol):
    """Makes problems and judges answers; pure and deterministic."""

    def problem(self, split: str, seed: int, index: int) -> Problem:
        """The problem at ``index`` of the stream (split, seed)."""
        ...

    def judge(self, response: str, ground_truth: str) -> Verdict:
        """Judge one response text. Never raises on what a model wrote; linear in its length."""
        ...
