"""How much a training run has computed, in FLOPs, by two counts.

A pass forward of a token takes 2 N, forward and backward 6 N, N: parameters without embeddings (attention over the
context, a few per cent at these lengths, is in neither count). *Paper*: 6 N for every token of prompts and responses
sampled in a step, as arXiv 2509.25300 counts. *Full*: what was done: sampling, updates on the tokens that entered them,
log-probs of the old and of the reference policy, evaluation.
"""

from dataclasses import dataclass

FORWARD, FORWARD_AND_BACKWARD = 2, 6


@dataclass(frozen=True)
class TokenCounts:
    """Tokens, prompts included, that a run has passed through the model until now."""

    sampled: int = 0  # read and written by the sampler
    trained: int = 0  # of the updates, each as often as it was in one
    old_log_probs: int = 0  # of passes for π_old of their own
    reference: int = 0  # of the reference policy
    evaluated: int = 0  # read and written in evaluations

    def __add__(self, other: "TokenCounts") -> "TokenCounts":
        return TokenCounts(
            self.sampled + other.sampled, self.trained + other.trained, self.old_log_probs + other.old_log_probs,
            self.reference + other.reference, self.evaluated + other.evaluated,
        )  # fmt: skip


def paper_flops(n_parameters: int, counts: TokenCounts) -> float:
    """6 N for every token sampled."""
    return float(FORWARD_AND_BACKWARD * n_parameters * counts.sampled)


def full_flops(n_parameters: int, counts: TokenCounts) -> float:
    """2 N for every token passed forward, 6 N for every token of an update."""
    forward = counts.sampled + counts.old_log_probs + counts.reference + counts.evaluated
    return float(n_parameters * (FORWARD * forward + FORWARD_AND_BACKWARD * counts.trained))
