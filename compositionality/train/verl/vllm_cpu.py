"""vLLM on a CPU under verl: weights that can be loaded more than once (entry point ``vllm.general_plugins``)."""

from typing import Any

from compositionality.train.verl import on_cpu

BLOCK = 64  # rows


def keep_weights() -> None:
    """Let vLLM's CPU linear layers keep their weight, so that RL can load new ones into a running engine.

    By default they pack it for oneDNN and drop the parameter; the first weight sync then fails inside the vLLM
    worker and the trainer waits for ever. Costs a third of the decoding speed, hence only under ``VERL_PLATFORM=cpu``.
    """
    if on_cpu():
        use_plain_linears()


def use_plain_linears() -> None:
    """Make linear layers of CPU engines that start from now on in this process keep their weight."""
    import torch
    from vllm.model_executor.layers import utils

    def dispatch(layer: torch.nn.Module, remove_weight: bool) -> None:  # noqa: ARG001  (vLLM's signature)
        layer.cpu_linear = _linear

    utils.dispatch_cpu_unquantized_gemm = dispatch


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    """``x`` (..., in) times ``weight`` (out, in), in blocks of equal height.

    A matrix product picks its kernel by the number of rows, and kernels round differently: cut this way, a token's
    logits do not depend on which requests happen to share its batch, and a run can be repeated to the last bit.
    """
    import torch
    from torch.nn.functional import linear, pad

    rows = x.reshape(-1, x.shape[-1])
    padded = pad(rows, (0, 0, 0, -len(rows) % BLOCK))
    blocks = [linear(block, weight, bias) for block in padded.split(BLOCK)]
    return torch.cat(blocks)[: len(rows)].reshape(*x.shape[:-1], -1)
