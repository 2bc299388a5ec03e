"""Samplers of the single-file trainer: the built-in sampler, vLLM in this process, or a server.

An engine that only knows log-probs after top-k or top-p refuses to truncate.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from compositionality.train.grpo_settings import GrpoSettings
from compositionality.types import Completion, SamplingOptions

Weights = Iterable[tuple[str, Tensor]]
LARGEST_SEED = 2**63 - 1  # that vLLM and SGLang take


class TokenSampler(Protocol):
    """Completes token ids with weights that are replaced between calls.

    ``load`` takes some weights by their Hugging Face names, for the next ``sample``. That returns a completion for each
    prompt and seed, in order, which depends on these and the options alone: token ids, no text, and log-probs, those of
    the tempered, untruncated distribution.
    """

    def load(self, weights: Weights) -> None: ...
    def sample(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[int], options: SamplingOptions
    ) -> list[Completion]: ...
    def close(self) -> None: ...


def new_sampler(settings: GrpoSettings, config: Any, eos_ids: Sequence[int], device: torch.device) -> TokenSampler:
    """Return the rollout engine of a run: builtin, vllm with the weights of the model, a server with its own."""
    rollout, model, dtype = settings.rollout, Path(settings.model.path), settings.model.dtype
    if rollout.engine == "server":
        from compositionality.train.server_sampler import ServerSampler

        return ServerSampler(rollout.server_url or "", model, eos_ids, tied=config.tie_word_embeddings)
    if rollout.engine == "vllm":
        from compositionality.rollout.engines.vllm import VllmOptions
        from compositionality.train.vllm_sampler import VllmSampler

        length = settings.data.max_prompt_tokens + rollout.max_tokens
        dtype = "float32" if device.type == "cpu" else dtype
        options = VllmOptions(length, dtype=dtype, gpu_memory=rollout.gpu_memory, seed=rollout.seed)
        return VllmSampler(model, eos_ids, options)
    from compositionality.rollout.sampler import sampler

    return sampler.Sampler(config, eos_ids, device=device, dtype=getattr(torch, dtype), max_rows=rollout.max_rows)
