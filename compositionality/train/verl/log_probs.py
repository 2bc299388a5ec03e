"""Compute log-probabilities of tokens without flash-attn: its cross-entropy kernel, in plain torch.

Without flash-attn verl takes a Python loop over the tokens of a micro-batch, several kernels for each. This module
takes the place of the kernel; verl imports it with the model's configuration (hooks.py).
"""

# ruff: noqa: N803, N806

from typing import Any

import torch
from torch import Tensor
from verl.utils import torch_functional

CHUNK_BYTES = 1 << 24
"""Bytes of float32 logits at a time: all of them exist in the data type of the model only."""


class CrossEntropy(torch.autograd.Function):  # type: ignore[misc]
    """-log softmax(logits_TV)[labels_T] in float32, shape (T,). With ``inplace`` the gradient overwrites the logits."""

    @staticmethod
    def forward(ctx: Any, logits_TV: Tensor, labels_T: Tensor, inplace: bool) -> Tensor:
        log_sums_T = torch.cat([part_cV.float().logsumexp(-1) for part_cV in logits_TV.split(rows_of(logits_TV))])
        chosen_T = logits_TV.gather(-1, labels_T[:, None])[:, 0].float()
        ctx.save_for_backward(logits_TV, labels_T, log_sums_T)
        ctx.inplace = inplace
        return log_sums_T - chosen_T

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        logits_TV, labels_T, log_sums_T = ctx.saved_tensors
        result_TV = logits_TV if ctx.inplace else torch.empty_like(logits_TV)
        rows = rows_of(logits_TV)
        for start in range(0, len(labels_T), rows):
            part = slice(start, start + rows)
            grad_cV = (logits_TV[part].float() - log_sums_T[part, None]).exp_()
            grad_cV.scatter_add_(-1, labels_T[part, None], -torch.ones_like(log_sums_T[part, None]))
            result_TV[part] = grad_cV.mul_(grads[0][part, None])
        return result_TV, None, None


def rows_of(logits_TV: Tensor) -> int:
    """Return the tokens whose float32 logits take CHUNK_BYTES."""
    return max(1, CHUNK_BYTES // (4 * int(logits_TV.shape[-1])))


def cross_entropy(logits_TV: Tensor, labels_T: Tensor, *, inplace_backward: bool = False) -> tuple[Tensor, None]:
    """Return, in the form of flash-attn's function, the losses, shape (T,), and what verl does not read."""
    return CrossEntropy.apply(logits_TV, labels_T, inplace_backward), None


if not torch_functional.FLAH_ATTN_CROSS_ENTROPY_LOSS_AVAILABLE:
    torch_functional.cross_entropy_loss = cross_entropy
    torch_functional.FLAH_ATTN_CROSS_ENTROPY_LOSS_AVAILABLE = True
