"""Muon (Jordan 2024): momentum whose matrices are made nearly orthogonal before they are added to the weights.

For the matrices of the hidden layers; embeddings, norms and the head are left to AdamW. ``torch.optim.Muon`` takes one
matrix after the other in bfloat16; small matrices of one shape are taken together in float32 here, which costs a CPU a
twelfth of it. Whole matrices are needed: not for sharded parameters.
"""

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from compositionality.train.settings import OptimSettings

MOMENTUM = 0.95
LEARNING_RATE_RATIO = 5.0
"""Muon's learning rate over AdamW's."""
COEFFICIENTS = (3.4445, -4.775, 2.0315)
"""Coefficients of the quintic Newton-Schulz iteration, as in ``torch.optim.Muon``."""
ITERATIONS = 5
EPSILON = 1e-7


class Muon(torch.optim.AdamW):  # type: ignore[misc]
    """AdamW whose last parameter group, the hidden matrices, is updated by Muon; both follow one learning rate.

    The processes of ``group`` have the same gradients; each makes its part of the matrices orthogonal.
    """

    param_groups: list[dict[str, Any]]

    def __init__(self, policy: nn.Module, settings: OptimSettings, group: dist.ProcessGroup | None = None) -> None:
        self.group = group
        hidden, others = split_parameters(policy)
        betas = (settings.beta1, settings.beta2)
        super().__init__(others, lr=settings.lr, betas=betas, weight_decay=settings.weight_decay, fused=True)
        self.add_param_group({"params": hidden})

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Any = None) -> None:
        groups, hidden = self.param_groups, self.param_groups[-1]
        try:
            self.param_groups = groups[:-1]
            super().step(closure)
        finally:
            self.param_groups = groups
        by_shape: dict[torch.Size, list[Tensor]] = {}
        for matrix in hidden["params"]:
            if matrix.grad is not None:
                by_shape.setdefault(matrix.shape, []).append(matrix)
        for matrices in by_shape.values():
            self._update(matrices, hidden["lr"], hidden["weight_decay"])

    def _update(self, matrices: list[Tensor], rate: float, weight_decay: float) -> None:
        """Update matrices of one shape (rows, columns)."""
        for matrix in matrices:
            self.state[matrix].setdefault("momentum", torch.zeros_like(matrix))
            self.state[matrix].setdefault("step", torch.zeros(()))  # torch's AdamW looks for it when a state is loaded
        momenta = [self.state[matrix]["momentum"] for matrix in matrices]
        gradients = [matrix.grad for matrix in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
        nesterov = torch.stack(torch._foreach_lerp(gradients, momenta, MOMENTUM))
        rows, columns = matrices[0].shape
        torch._foreach_mul_(matrices, 1 - rate * LEARNING_RATE_RATIO * weight_decay)
        scale = rate * LEARNING_RATE_RATIO * max(1.0, rows / columns) ** 0.5
        updates = orthogonalised(nesterov) if self.group is None else self._gathered(nesterov, self.group)
        torch._foreach_add_(matrices, list(updates.unbind()), alpha=-scale)

    @staticmethod
    def _gathered(matrices: Tensor, group: dist.ProcessGroup) -> Tensor:
        """Return ``orthogonalised``, of which every process computes as many; the last ones may be padding."""
        ranks, rank, n = group.size(), group.rank(), len(matrices)
        share = -(-n // ranks)
        padded = nn.functional.pad(matrices, (0, 0, 0, 0, 0, share * ranks - n))
        updates = torch.empty_like(padded)
        own = orthogonalised(padded[rank * share : (rank + 1) * share])
        dist.all_gather(list(updates.split(share)), own.contiguous(), group=group)
        return updates[:n]


def split_parameters(policy: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the matrices of the hidden layers; all other parameters."""
    outer = {id(parameter) for name, parameter in policy.named_parameters() if "embed" in name or "lm_head" in name}
    parameters: Iterable[nn.Parameter] = list(policy.parameters())
    hidden = [one for one in parameters if one.ndim == 2 and id(one) not in outer]
    return hidden, [one for one in parameters if one.ndim != 2 or id(one) in outer]


def orthogonalised(matrices: Tensor) -> Tensor:
    """Return the nearest matrices with singular values near 1 (0.7 to 1.2), of shape (matrices, rows, columns)."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT.contiguous() if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + EPSILON)
    a, b, c = COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
