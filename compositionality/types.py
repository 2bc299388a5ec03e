"""The vocabulary of the project: one meaning per word, in the field's terms. Imports nothing heavy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict


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


ROLES = ("name", "copy", "result", "end")
"""Roles of the tokens in a step of a solution: operator names and the rest, input values, the result with the end of
the line, and the EOS."""


class Span(NamedTuple):
    """Characters ``start`` to ``end`` of a solution, with their ``step`` (from 0) and their role of ``ROLES``."""

    start: int
    end: int
    step: int
    role: str


class ReadChain(NamedTuple):
    """Checks of a completion's stated steps against the problem's functions; None: the task cannot tell."""

    names_in_order: bool | None = None
    handed_on: bool | None = None  # and each is applied to the result stated before it
    right_chain: bool | None = None  # and every result is right


NOT_READ = ReadChain()


class Failure(StrEnum):
    """What went wrong in a completion. Each completion has exactly one class."""

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
    """What went wrong in a completion: its class, and details of its first fault."""

    failure: Failure
    step: int | None = None  # step of the fault: operators from 1 in the order of application
    skill: str | None = None  # the operator of that step
    fault: str | None = None  # kind of the fault, in the task's own words
    expected: tuple[str, ...] = ()  # the problem's operators in order of application; empty if some have no name
    chain: ReadChain = NOT_READ
    applied: tuple[tuple[str, bool], ...] = ()  # the operators that the completion states; True: its result is wrong


PROBLEMS, SEEDS_AND_PROBLEMS, NESTED = "problems", "seeds and problems", "seeds, splits and problems"
"""Sources of chance that an interval covers."""


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share, or a difference of shares, with its 95 % intervals."""

    value: float  # mean over seeds
    n_problems: int  # per replicate
    over_problems: Interval  # for the same models on other problems
    over_seeds: Interval | None = None  # for other seeds and problems; None for one seed
    df: float = float("nan")  # degrees of freedom of Student's t for ``interval``; NaN: unknown
    by_replicate: tuple[tuple[float, ...], ...] = ()  # the value by seed and split
    nested: bool = False  # every replicate has problems of its own

    @property
    def interval(self) -> Interval:
        """The widest interval: over seeds and problems if there are several seeds."""
        return self.over_seeds or self.over_problems

    @property
    def source(self) -> str:
        """The sources of chance that ``interval`` covers."""
        return PROBLEMS if not self.over_seeds else NESTED if self.nested else SEEDS_AND_PROBLEMS

    @property
    def by_seed(self) -> tuple[float, ...]:
        """The mean of each seed over its splits."""
        return tuple(sum(splits) / len(splits) for splits in self.by_replicate)

    @property
    def low(self) -> float:
        return self.interval.low

    @property
    def high(self) -> float:
        return self.interval.high


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """Counts of an arm's training; None: unknown, or without meaning for its method.

    A group is one problem with all its completions in one step.
    """

    updates: int | None = None  # all, with and without signal
    updates_without_signal: int | None = None  # all advantages are 0
    groups: int | None = None
    groups_with_signal: int | None = None  # some completions are correct and some are not (control: rewards differ)
    completions: int | None = None  # sampled for training
    tokens: int | None = None  # tokens with a loss, counted in every epoch
    rows: int | None = None  # rows of supervised fine-tuning, each counted once
    first_entropy: float | None = None  # of the policy in the first update, in nats per token
    last_entropy: float | None = None  # in the last update

    @property
    def updates_with_signal(self) -> int | None:
        """The number of updates that have a signal."""
        return None if self.updates is None else self.updates - (self.updates_without_signal or 0)

    @property
    def not_testable(self) -> bool:
        """True if no group of an RL run had a signal: its model then says nothing about what RL can teach."""
        return bool(self.groups) and self.groups_with_signal == 0


class Decision(StrEnum):
    """The decision on a claim by the interval of an estimate."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    NOT_TESTABLE = "not testable"
    NOT_RUN = "not run"


class Metric(StrEnum):
    """The quantity measured for a model; ``Comparison.part`` names the part of it."""

    ACCURACY = "accuracy"
    PASS_AT_K = "pass@k"
    FAILURES = "failure share"
    INFLUENCE = "influence"  # of queries on a model before training
    SCALING = "scaling"  # quantities of fitted laws, by name


CORRECT, CHAIN = "correct", ReadChain._fields
"""Parts of accuracy: right answers; checks of the steps, whatever the answer."""
ALL_SAMPLES, GROWTH = "pass@N", "pass@N − pass@1"
"""Parts of pass@k: all N samples of a problem; the gain from samples after the first."""
MIXED = "mixed"
"""Part of influence: the share of queries with both right and wrong completions."""
QUERY_VALUES = ("influence", "entropy")
"""Parts of influence: means over queries; these are not shares."""
ALL_LEVELS = 0  # level of a comparison: problems of all levels together
DEEPEST = -1  # level of a comparison: the highest level of its group that was run
