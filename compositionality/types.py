"""The vocabulary of the project: one word, one meaning, in the field's terms. Imports nothing heavy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypedDict


class Message(TypedDict):
    """One chat turn, as chat templates take it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One question with its gold answer.

    ``level`` is the depth of the composition; ``group`` names the set that the problem belongs to (trained, heldout,
    ood, …); ``ground_truth`` is the JSON text that the judge reads; ``index`` is the position in the stream
    (split, seed).
    """

    data_source: str
    level: int
    group: str
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
    """What a judge says of a completion: ``score`` in [0, 1], the reason, the answer that was read (None: none)."""

    score: float
    reason: Reason
    answer: str | None = None


STOP, LENGTH = "stop", "length"
"""Finish reasons: the model ended its response; the limit of tokens ended it."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled response to a problem.

    ``text`` has no special tokens. ``token_ids`` include the EOS; ``log_probs`` (natural logarithm, one for each
    token) are those of the tempered, untruncated distribution. A server that gives neither leaves both empty;
    ``n_tokens`` is known in any case.
    """

    text: str
    n_tokens: int
    finish_reason: str
    token_ids: Sequence[int] = ()
    log_probs: Sequence[float] = ()


class Failure(StrEnum):
    """What went wrong in a completion: each has exactly one class."""

    CORRECT = "correct"
    IGNORES = "ignores_composition"
    INCOMPLETE = "incomplete_trace"
    INCORRECT = "incorrect_composition"
    ATOMIC = "atomic_error"
    FORMAT = "format"
    OVERLONG = "overlong"
    UNPARSED = "unparsed"


FAILURES = tuple(failure.value for failure in Failure)
"""The classes in the order of tables and figures."""
