"""The words that tasks, judges, rollouts and training share; README.md lists the others. Imports nothing heavy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypedDict


class Message(TypedDict):
    """One turn of a chat, in the form that chat templates take."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One question with its gold answer."""

    data_source: str
    level: int  # depth of the composition
    group: str  # its set: trained, heldout, ood, …
    prompt: str
    ground_truth: str  # JSON text that the judge reads
    index: int  # place in the stream (split, seed)
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
    """The result of judging a completion."""

    score: float  # in [0, 1] from a task's judge; any finite number from a reward function
    reason: Reason
    answer: str | None = None  # the answer read from the completion
    metrics: Mapping[str, float] = field(default_factory=dict)  # from a reward function
    error: str | None = None  # why the judge failed


def storable(text: str) -> str:
    """Replace lone surrogates (from a server or JSON text), which have no UTF-8 form, by question marks."""
    return text.encode("utf-8", "replace").decode()


STOP, LENGTH, FAILED = "stop", "length", "failed"
"""Finish reasons: the model ended its response; the token limit cut it off; the server failed and gave none."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled response to a problem. Token ids and log-probs are empty if the server does not return them."""

    text: str  # without special tokens
    n_tokens: int
    finish_reason: str
    token_ids: Sequence[int] = ()  # including the EOS
    log_probs: Sequence[float] = ()  # natural, one per token, at this temperature but without top-k and top-p


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """Sampling options: ``temperature`` 0 is greedy, ``top_k`` 0 and ``top_p`` 1 are off, ``max_tokens`` are new."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 1024


@dataclass(slots=True)
class PromptGroup:
    """All completions of one problem in one step; the lists have an entry for each completion."""

    position: int  # the problem's position in the stream of prompts
    prompt_ids: list[int]
    completions: list[Completion]
    rewards: list[float | None]  # None where the judge failed
    correct: list[bool]
    metrics: list[Mapping[str, float]] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)

    def has_signal(self, *, by_reward: bool = False) -> bool:
        """Return whether all were judged and some but not all are correct (``by_reward``: whether rewards differ)."""
        return self.is_judged() and len(set(self.rewards if by_reward else self.correct)) > 1

    def is_judged(self) -> bool:
        """Return whether the judge succeeded on every completion; otherwise the rest would be a biased sample."""
        return None not in self.rewards


@dataclass(frozen=True, slots=True)
class TrainSample:
    """One completion of an update: token ids, the sampler's log-prob of each response token, advantage."""

    prompt_ids: list[int]
    response_ids: list[int]
    rollout_log_probs: list[float]
    advantage: float

    def __len__(self) -> int:
        return len(self.prompt_ids) + len(self.response_ids)

    def loss_mask(self) -> list[int]:
        """Return 1 for each token of the response and 0 for each of the prompt."""
        return [0] * len(self.prompt_ids) + [1] * len(self.response_ids)
