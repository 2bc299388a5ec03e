"""The problems that a run of RL asks: in which order, with which seeds, and how many more to refill an update.

The order is a function of the seed and of positions in an endless stream of prompts, so that a resumed run, or one on
another number of processes, asks the same.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compositionality.reward.pool import JudgeInput
from compositionality.seeds import request_seed, row_at
from compositionality.types import Completion

HEADROOM = 1.25  # a refill asks for a few more prompts than the last share of groups with signal would need


@dataclass(frozen=True)
class TokenizedProblem:
    """A problem for the sampler and the judge; ``extra_info`` only for a reward function."""

    prompt_ids: list[int]
    data_source: str
    ground_truth: Any
    extra_info: Any = None

    def judge_input(self, completion: Completion) -> JudgeInput:
        """Return a completion as the pool of judges takes it."""
        reason = completion.finish_reason
        return JudgeInput(self.data_source, completion.text, self.ground_truth, reason, self.extra_info)


@dataclass(frozen=True)
class GrpoInputs:
    """Inputs of a run: the model's tokenizer and EOS, problems to train on and to validate on; ``entropies`` of
    another run, by step, if there is one to follow."""

    tokenizer: Any
    eos_ids: Sequence[int]
    problems: Sequence[TokenizedProblem]
    val_problems: Sequence[TokenizedProblem]
    entropies: Sequence[float]


def problem_at(place: int, problems: Sequence[TokenizedProblem], data: Any) -> TokenizedProblem:
    """Return the problem at a place of the endless stream: every pass over them in another order, by ``data.seed``."""
    return problems[row_at(place, len(problems), data.seed, shuffle=data.shuffle)]


def completion_seeds(run_seed: int, positions: Sequence[int], samples: Sequence[int]) -> list[int]:
    """Return a seed for each of the numbered ``samples`` of each problem, practically its own (31 bits)."""
    return [request_seed(run_seed, place, number) for place in positions for number in samples]


class Refills:
    """The numbers of problems that dynamic sampling asks until an update has its groups, with either engine.

    ``wanted``: groups with signal; ``size``: problems asked first, and at most later; ``limit``: problems in all, as a
    multiple of ``size`` (0: no limit).
    """

    def __init__(self, wanted: int, size: int, limit: int) -> None:
        self.wanted, self.size = wanted, size
        self.allowed = limit * size if limit > 0 else sys.maxsize
        self.asked, self.last, self.useful = size, size, 0

    def next(self, useful: int) -> int:
        """Return how many problems to ask next, if ``useful`` groups have signal so far; 0 at the limit.

        Enough if as many have signal as of those asked last, and a few more.
        """
        share = (useful - self.useful) / self.last
        enough = math.ceil(HEADROOM * (self.wanted - useful) / max(share, 1 / self.size))
        self.last, self.useful = min(self.size, enough, self.allowed - self.asked), useful
        self.asked += self.last
        return self.last


def too_few_groups(step: int, useful: int, needed: int, prompts: int, limit: str) -> str:
    """Return the message of a run whose problems give no signal; ``limit`` is the setting that ended the search."""
    saved = "; the same command continues with other problems" if step > 1 else ""  # from its checkpoint
    return (
        f"step {step}: only {useful} of the {needed} groups needed had completions that differ, after "
        f"{prompts} prompts ({limit}): the problems are too easy or too hard for this model{saved}. Give others, or "
        "train on what signal there is: algorithm.dynamic_sampling=false"
    )
