"""vLLM's linear layers on a CPU with weights that can be loaded again, and results that do not depend on the batch."""

from typing import Any

BLOCK = 64  # rows


def use_plain_linears() -> None:
    """Make linear layers of CPU engines that start from now on in this process keep their weight."""
    import torch
    from vllm.model_executor.layers import utils

    def dispatch(layer: torch.nn.Module, remove_weight: bool) -> None:  # noqa: ARG001  (vLLM's signature)
        layer.cpu_linear = _linear

    utils.dispatch_cpu_unquantized_gemm = dispatch


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    """Return ``x`` (..., in) times ``weight`` (out, in), in blocks of equal height.

    A matrix product picks its kernel by the number of rows, and kernels round differently: cut this way, a token's
    logits do not depend on which requests happen to share its batch, and a run can be repeated to the last bit.
    """
    import torch
    from torch.nn.functional import linear, pad

    rows = x.reshape(-1, x.shape[-1])
    padded = pad(rows, (0, 0, 0, -len(rows) % BLOCK))
    blocks = [linear(block, weight, bias) for block in padded.split(BLOCK)]
    return torch.cat(blocks)[: len(rows)].reshape(*x.shape[:-1], -1)
