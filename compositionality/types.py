"""The vocabulary of the project: one word, one meaning, in the field's terms. Imports nothing heavy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict


class Message(TypedDict):
    """One chat turn, as chat templates take it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One question with its gold answer."""

    data_source: str
    level: int  # depth of the composition
    group: str  # the set that it belongs to: trained, heldout, ood, …
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
    """What a judge says of a completion."""

    score: float  # of a task's judge in [0, 1], of a reward function any finite number
    reason: Reason
    answer: str | None = None  # that was read
    metrics: Mapping[str, float] = field(default_factory=dict)  # of a reward function
    error: str | None = None  # what a judge died of


def storable(text: str) -> str:
    """Replace lone surrogates (of a server, or of JSON text), which have no UTF-8 form, by question marks."""
    return text.encode("utf-8", "replace").decode()


STOP, LENGTH, FAILED = "stop", "length", "failed"
"""Finish reasons: the model ended its response; the limit of tokens ended it; the server failed, so there is none."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled response to a problem; of a server that gives no token ids or log-probs these are empty."""

    text: str  # without special tokens
    n_tokens: int
    finish_reason: str
    token_ids: Sequence[int] = ()  # with the EOS
    log_probs: Sequence[float] = ()  # natural, of the tempered, untruncated distribution, one for each token


@dataclass(slots=True)
class PromptGroup:
    """All completions of one problem in one step; the lists after them have an entry for each."""

    position: int  # of the problem in the stream of prompts
    prompt_ids: list[int]
    completions: list[Completion]
    rewards: list[float | None]  # None where the judge failed
    correct: list[bool]
    metrics: list[Mapping[str, float]] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)

    def has_signal(self, *, by_reward: bool = False) -> bool:
        """Return whether all were judged, and they differ in being correct, ``by_reward``: in reward."""
        return self.is_judged() and len(set(self.rewards if by_reward else self.correct)) > 1

    def is_judged(self) -> bool:
        """Return whether the judge succeeded on every completion: else the others would be a biased sample."""
        return None not in self.rewards


@dataclass(frozen=True, slots=True)
class TrainSample:
    """One completion on its way into an update: token ids, the sampler's log-prob of each response token, advantage."""

    prompt_ids: list[int]
    response_ids: list[int]
    rollout_log_probs: list[float]
    advantage: float

    def __len__(self) -> int:
        return len(self.prompt_ids) + len(self.response_ids)

    def loss_mask(self) -> list[int]:
        """Return 1 for each token of the response, 0 for those of the prompt."""
        return [0] * len(self.prompt_ids) + [1] * len(self.response_ids)


ROLES = ("name", "copy", "result", "end")
"""What the tokens of a step of a solution are: what is applied and what is left, the values that go in, what comes out
with the end of the line, and the EOS."""


class Span(NamedTuple):
    """Characters ``start`` to ``end`` of a solution: of which ``step``, from 0, and in which of ``ROLES``."""

    start: int
    end: int
    step: int
    role: str


class ReadChain(NamedTuple):
    """What holds of the steps that a completion states, against the problem's functions; None: the task cannot tell."""

    names_in_order: bool | None = None
    handed_on: bool | None = None  # and each is applied to the result stated before it
    right_chain: bool | None = None  # and every result is right


NOT_READ = ReadChain()


class Failure(StrEnum):
    """What went wrong in a completion: each has exactly one class."""

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
    """What went wrong in a completion: its class, and what is known of its first fault."""

    failure: Failure
    step: int | None = None  # of the fault: operators from 1 in the order of application
    skill: str | None = None  # the operator of that step
    fault: str | None = None  # its kind in the task's own words
    expected: tuple[str, ...] = ()  # the problem's operators in order of application; empty: some have no name
    chain: ReadChain = NOT_READ
    applied: tuple[tuple[str, bool], ...] = ()  # the operators that the completion states; is the result wrong?


PROBLEMS, SEEDS_AND_PROBLEMS, NESTED = "problems", "seeds and problems", "seeds, splits and problems"
"""Sources of chance that an interval covers."""


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share, or a difference of shares, with its 95 % intervals."""

    value: float  # the mean of the seeds
    n_problems: int  # of a replicate
    over_problems: Interval  # the same models on other problems
    over_seeds: Interval | None = None  # other seeds too; None for one seed
    df: float = float("nan")  # degrees of freedom of Student's t for ``interval``; NaN: not known
    by_replicate: tuple[tuple[float, ...], ...] = ()  # the value by seed and split
    nested: bool = False  # every replicate has problems of its own

    @property
    def interval(self) -> Interval:
        """The interval that covers most: over seeds and problems where there are several seeds."""
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
    """What the training of an arm did; None: not known, or without meaning for its method.

    A group is one problem with all its completions in one step.
    """

    updates: int | None = None  # also those without signal
    updates_without_signal: int | None = None  # of steps with all advantages 0
    groups: int | None = None
    groups_with_signal: int | None = None  # some completions are correct and some are not (control: rewards differ)
    completions: int | None = None  # sampled for training
    tokens: int | None = None  # that the loss was taken on, as often as it was
    rows: int | None = None  # of supervised fine-tuning, each once
    first_entropy: float | None = None  # of the policy in the first update, in nats a token
    last_entropy: float | None = None  # in the last update

    @property
    def updates_with_signal(self) -> int | None:
        """All but those without signal."""
        return None if self.updates is None else self.updates - (self.updates_without_signal or 0)

    @property
    def not_testable(self) -> bool:
        """No group of a run of RL had signal: what its model can do says nothing of what it was to learn."""
        return bool(self.groups) and self.groups_with_signal == 0


class Decision(StrEnum):
    """What the interval of an estimate says of a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    NOT_TESTABLE = "not testable"
    NOT_RUN = "not run"


class Metric(StrEnum):
    """What is measured of a model; ``Comparison.part`` says which part of it."""

    ACCURACY = "accuracy"
    PASS_AT_K = "pass@k"
    FAILURES = "failure share"
    INFLUENCE = "influence"  # of queries on a model that is to be trained
    SCALING = "scaling"  # quantities of fitted laws, by name


CORRECT, CHAIN = "correct", ReadChain._fields
"""Parts of accuracy: right answers; what holds of the steps, whatever the answer."""
ALL_SAMPLES, GROWTH = "pass@N", "pass@N − pass@1"
"""Parts of pass@k: with all N samples of a problem; what samples after the first add."""
MIXED = "mixed"
"""Of influence: queries with right and wrong completions, a share."""
QUERY_VALUES = ("influence", "entropy")
"""Of influence: means over queries that are no shares."""
ALL_LEVELS = 0  # a comparison's level: problems of all levels together
DEEPEST = -1  # a comparison's level: the highest of its group that was run
