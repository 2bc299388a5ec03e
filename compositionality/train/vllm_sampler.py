"""vLLM in this process as the sampler of the single-file trainer, which takes new weights between calls."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from compositionality.errors import UserError
from compositionality.rollout.engines.base import no_tick
from compositionality.rollout.engines.vllm import VllmOptions, run_requests, set_environment, start_vllm, stop_vllm
from compositionality.train.dist import world_size
from compositionality.train.samplers import LARGEST_SEED, Weights
from compositionality.types import LENGTH, STOP, Completion, SamplingOptions

BLOCK = 64  # rows that vLLM multiplies at a time on a CPU


class VllmSampler:
    """vLLM in this process, one engine per process (under torchrun: one per rank, each on its own device).

    New weights are written into the running model. On a CPU that needs linear layers whose weights vLLM has not packed.
    """

    def __init__(self, model: Path, eos_ids: Sequence[int], options: VllmOptions) -> None:
        self._eos_ids = list(eos_ids)
        launcher: dict[str, Any] = {"distributed_executor_backend": "external_launcher"} if world_size() > 1 else {}
        set_environment()
        use_plain_linears()
        self._llm = start_vllm(model, options, logprobs_mode="processed_logprobs", **launcher)

    def load(self, weights: Weights) -> None:
        """Write ``weights`` into the model; UserError for a name or a shape that it does not have."""
        try:
            self._llm.apply_model(partial(_load_into, list(weights)))
        except (KeyError, ValueError, AssertionError, RuntimeError) as error:
            raise UserError(f"vLLM does not take the weights: {' '.join(str(error).split())[:200]}") from error

    def sample(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[int], options: SamplingOptions
    ) -> list[Completion]:
        if not prompts:
            return []
        outputs = run_requests(self._llm, prompts, [self._sampling(seed, options) for seed in seeds], no_tick)
        return [_vllm_completion(output) for output in outputs]

    def close(self) -> None:
        """Free the engine, so that this process can start another. One of several ranks ends with the run."""
        self._llm = None
        if world_size() == 1:
            stop_vllm()

    def _sampling(self, seed: int, options: SamplingOptions) -> Any:
        from vllm import SamplingParams

        return SamplingParams(
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            seed=seed & LARGEST_SEED,
            logprobs=0,
            ignore_eos=True,  # the model folder's idea of an EOS; ours follow
            stop_token_ids=self._eos_ids,
            detokenize=False,
        )


def _vllm_completion(output: Any) -> Completion:
    tokens = list(output.token_ids)
    logps = [float(entry[token].logprob) for token, entry in zip(tokens, output.logprobs, strict=True)]
    return Completion("", len(tokens), STOP if output.finish_reason == STOP else LENGTH, tokens, logps)


def _load_into(weights: Sequence[tuple[str, Tensor]], model: Any) -> None:
    model.load_weights(iter(weights))


# ---- vLLM's linear layers on a CPU, with weights that can be loaded again


def use_plain_linears() -> None:
    """Make linear layers of CPU engines that start from now on in this process keep their weight."""
    from vllm.model_executor.layers import utils

    def dispatch(layer: torch.nn.Module, remove_weight: bool) -> None:  # noqa: ARG001  (vLLM's signature)
        layer.cpu_linear = _linear

    utils.dispatch_cpu_unquantized_gemm = dispatch


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``x`` (..., in) times ``weight`` (out, in), in blocks of equal height.

    A matrix product picks its kernel by the number of rows, and kernels round differently: cut this way, a token's
    logits do not depend on which requests happen to share its batch, and a run can be repeated to the last bit.
    """
    rows = x.reshape(-1, x.shape[-1])
    padded = functional.pad(rows, (0, 0, 0, -len(rows) % BLOCK))
    blocks = [functional.linear(block, weight, bias) for block in padded.split(BLOCK)]
    return torch.cat(blocks)[: len(rows)].reshape(*x.shape[:-1], -1)
