"""Per-step influence: what an update on one query changes in the objective on all of them, to first order.

With u(q) the gradient of the trainer's objective on query q alone, a step along u(q) at rate η changes the mean
objective J by ΔJ(q) = η ⟨mean of u, u(q)⟩. For GRPO on fresh completions of which a share α is correct,
u(q) = √(α(1−α)) (mean score of the correct ones − mean score of the others), a score being ∇ log π(completion | query):
a query teaches nothing at α = 0 and 1, most at ½, and only as far as its scores point where those of other queries do.
(The trainer divides by the unbiased deviation of S completions: its u(q) is √((S − 1)/S) of that.)
Cen et al., arXiv 2505.18917, equations 4, 5 and 12.

J includes q itself, so a part of ΔJ(q), η |u(q)|² / Q, is what the step does for its own query; ``itself=False`` is the
rest.

Names of tensors: Q queries, S completions of a query, F features (components of a gradient), A shares of correct ones.
"""

# ruff: noqa: N803, N806

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from compositionality.errors import UserError

SIGNALS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "grpo": lambda share: (share * (1 - share)).sqrt(),
    "dapo": lambda share: (share * (1 - share)).sqrt(),
    "dr_grpo": lambda share: share * (1 - share),
}
"""The size of an update by the share of correct completions, but for the scores."""


def signal(advantage: str, correct_Q: Tensor) -> Tensor:
    """How strongly queries teach, by the share of their completions that is correct. UserError for another name."""
    if advantage not in SIGNALS:
        raise UserError(f"advantage={advantage}: influence is known for {', '.join(SIGNALS)}")
    return SIGNALS[advantage](correct_Q)


def update_from_scores(scores_QSF: Tensor, correct_QS: Tensor, advantage: str = "grpo") -> Tensor:
    """The closed form of u(q) (Q, F): the signal times the difference of mean scores. Zero where all are alike."""
    weight_QS = correct_QS.to(scores_QSF.dtype)
    count_Q, samples = weight_QS.sum(1), correct_QS.shape[1]
    mixed_Q = (count_Q > 0) & (count_Q < samples)
    right_QF = torch.einsum("qs,qsf->qf", weight_QS, scores_QSF) / count_Q.clamp(min=1)[:, None]
    wrong_QF = torch.einsum("qs,qsf->qf", 1 - weight_QS, scores_QSF) / (samples - count_Q).clamp(min=1)[:, None]
    return (signal(advantage, count_Q / samples) * mixed_Q)[:, None] * (right_QF - wrong_QF)


def influence(updates_QF: Tensor, *, rate: float = 1.0, itself: bool = True) -> Tensor:
    """ΔJ(q) of a step on each query; without ``itself`` the objective on the other queries alone."""
    _check_finite(updates_QF)
    total_F = updates_QF.sum(0)
    if itself:
        return rate * (updates_QF @ total_F) / len(updates_QF)
    if len(updates_QF) < 2:
        raise UserError("influence on other queries needs at least two queries")
    own_Q = updates_QF.square().sum(1)
    return rate * (updates_QF @ total_F - own_Q) / (len(updates_QF) - 1)


def co_influence(updates_QF: Tensor) -> Tensor:
    """⟨u(q), u(q')⟩ for each pair (Q, Q)."""
    _check_finite(updates_QF)
    return updates_QF @ updates_QF.T


def _check_finite(updates_QF: Tensor) -> None:
    if not bool(updates_QF.isfinite().all()):
        bad = int((~updates_QF.isfinite()).any(1).nonzero()[0])
        raise UserError(f"the gradient of query {bad} is not finite; look at its completions, or use float32")


def between(updates_QF: Tensor, labels: Sequence[str]) -> tuple[list[str], Tensor]:
    """Mean co-influence of different queries by label (rows and columns in the order of ``names``); NaN where no pair
    is."""
    kernel_QQ = co_influence(updates_QF)
    names = sorted(set(labels))
    of_L = [torch.tensor([label == name for label in labels]) for name in names]
    others_QQ = ~torch.eye(len(labels), dtype=torch.bool)
    cells = [[kernel_QQ[one[:, None] & other[None, :] & others_QQ].mean() for other in of_L] for one in of_L]
    return names, torch.stack([torch.stack(row) for row in cells])
