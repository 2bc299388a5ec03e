"""How much a training run has computed until now, in FLOPs, by two counts.

A pass forward of a token takes 2 N, forward and backward 6 N (4 N where all of these weights are frozen, with LoRA);
N: parameters without embeddings. (Attention over the context and adapters, a few per cent, are in neither count.)
*Paper*: 6 N for every token of the prompts and responses of a step, as arXiv 2509.25300 counts. *Full*: what is done:
sampling, updates on the tokens that enter them, log-probs of the old and of the reference policy, evaluation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from compositionality.train.common.metrics import TRAINED

FORWARD, FORWARD_AND_BACKWARD, THROUGH_FROZEN = 2, 6, 4
SAMPLED_TOKENS = "perf/total_num_tokens"
"""Prompts and responses that a step has sampled: verl's name."""
EVALUATED_TOKENS = "perf/evaluated_tokens"
"""Prompts and responses of an evaluation."""
FLOPS, PAPER_FLOPS = "compute/flops", "compute/flops_paper"
"""Sums since the start of the run, by the full and by the paper's count."""
NOT_COUNTED = ("embed_tokens", "lm_head", "lora_")
"""In the names of weights: embeddings, the head, adapters."""


@dataclass(frozen=True)
class TokenCounts:
    """Tokens, prompts included, that a model has passed: ``sampled``, ``trained`` in updates, forward for the log-probs
    of the ``old`` and of the ``reference`` policy, ``evaluated``."""

    sampled: int = 0
    trained: int = 0
    old: int = 0
    reference: int = 0
    evaluated: int = 0


def paper_flops(n_parameters: int, counts: TokenCounts) -> float:
    """6 N for every token sampled."""
    return float(FORWARD_AND_BACKWARD * n_parameters * counts.sampled)


def full_flops(n_parameters: int, counts: TokenCounts, *, frozen: bool = False, critic: bool = False) -> float:
    """2 N for every token passed forward, 6 N for every token of an update, or 4 N through frozen weights.

    ``critic``: one of the policy's size is asked for its values and trained on every token of an update, too.
    """
    forward = counts.sampled + counts.old + counts.reference + counts.evaluated
    update = THROUGH_FROZEN if frozen else FORWARD_AND_BACKWARD
    update += (FORWARD + FORWARD_AND_BACKWARD) * critic
    return float(n_parameters * (FORWARD * forward + update * counts.trained))


def non_embedding_parameters(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """N, from the shapes of the weights by name."""
    return sum(prod(shape) for name, shape in shapes.items() if not any(part in name for part in NOT_COUNTED))


class ComputeMeter:
    """Adds up the FLOPs of a run, row by row of its metrics.

    ``old``, ``reference``: whether updates need a pass of its own for the log-probs of these policies; ``frozen``: they
    move adapters alone; ``critic``: see ``full_flops``.
    """

    def __init__(
        self, n_parameters: int, *, old: bool, reference: bool, frozen: bool = False, critic: bool = False
    ) -> None:
        self.n_parameters = n_parameters
        self.old, self.reference, self.frozen, self.critic = old, reference, frozen, critic
        self.full = self.paper = 0.0

    def add(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row with the sums until and with it."""
        trained = int(row.get(TRAINED, 0))
        counts = TokenCounts(
            int(row.get(SAMPLED_TOKENS, 0)), trained, trained * self.old, trained * self.reference,
            int(row.get(EVALUATED_TOKENS, 0)),
        )  # fmt: skip
        self.full += full_flops(self.n_parameters, counts, frozen=self.frozen, critic=self.critic)
        self.paper += paper_flops(self.n_parameters, counts)
        return {**row, FLOPS: self.full, PAPER_FLOPS: self.paper}

    def restore(self, row: Mapping[str, Any]) -> None:
        """Go on after a row; one of an earlier version has no sums, and they begin at 0."""
        self.full, self.paper = (float(row.get(name, 0.0)) for name in (FLOPS, PAPER_FLOPS))
