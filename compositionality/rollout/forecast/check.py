"""The forecast of sampling held against this machine, before an engine starts."""

import os
from pathlib import Path

from compositionality.rollout.forecast.machine import this_machine
from compositionality.rollout.forecast.need import GPU, HOST, Need, check_needs
from compositionality.rollout.forecast.sampling import PYTHON, VLLM_HOST, Vllm, builtin_need
from compositionality.rollout.forecast.shape import BYTES, ModelShape, is_forecast, shape_of_model
from compositionality.rollout.settings import SamplingSettings

ROWS = 512
"""Rows at a time of the built-in sampler on a CPU (engines/builtin.py) and of transformers."""
TOKENS, SEQUENCES = 16384, 512
"""Tokens that vLLM computes at a time on an H100 (on an A100 half as many), and its rows (engines/vllm.py)."""
LOWER = "lower max_tokens, raise gpu_memory, or share the model among GPUs with tensor_parallel"


def check_sampling(settings: SamplingSettings, model: Path, longest_prompt: int) -> None:
    """UserError unless the engine fits this machine.

    What a server or a Ray cluster elsewhere has is not known, nor, in a dry run of bash/ with DEVICE=gpu on a machine
    without a GPU, the machine that is meant.
    """
    machine = this_machine()
    gpu = machine.gpu_bytes is not None
    elsewhere = os.environ.get("COMPOSITIONALITY_DEVICE") == "gpu" or (
        settings.engine == "ray" and settings.ray_address
    )
    if settings.engine == "openai" or (elsewhere and not gpu) or (model.is_dir() and not is_forecast(model)):
        return
    check_needs(sampling_needs(settings, shape_of_model(model), longest_prompt, gpu=gpu, rows=1), machine)


def sampling_needs(
    settings: SamplingSettings, shape: ModelShape, longest_prompt: int, *, gpu: bool, rows: int | None = None
) -> list[Need]:
    """Of sampling with the engine that ``settings`` name: of vLLM, that one completion of full length fits.

    ``rows`` of full length at a time with the other engines; None: all that they take at once, which is the most they
    can need. On a GPU the built-in sampler takes as many as fit: one must.
    """
    length = longest_prompt + settings.max_tokens
    bytes_each = BYTES.get(settings.dtype, shape.stored_bytes if gpu else 4)
    if settings.engine in ("vllm", "ray"):
        vllm = vllm_of(settings, shape, longest_prompt, gpu=gpu)
        if gpu:
            return [
                vllm.need(shape, "sampling"),
                Need("sampling", HOST, {"vLLM": settings.tensor_parallel * VLLM_HOST}, "use other engines"),
            ]
        parts = {"weights": vllm.weights(shape), "one completion": vllm.completion(shape), "vLLM": 2 * PYTHON}
        return [Need("sampling", HOST, parts, "lower max_tokens, or take another engine")]
    rows = 1 if gpu and settings.engine == "builtin" else rows or ROWS
    need = builtin_need(shape, "sampling", rows, length, bytes_each, GPU if gpu else HOST)
    return [Need(need.step, need.place, need.parts, "lower max_tokens, or take engine=vllm")]


def vllm_of(settings: SamplingSettings, shape: ModelShape, longest_prompt: int, *, gpu: bool) -> Vllm:
    """One vLLM engine of a collection."""
    length = longest_prompt + settings.max_tokens
    bytes_each = BYTES.get(settings.dtype, shape.stored_bytes if gpu else 4)
    batched = max(TOKENS, length)
    return Vllm(settings.gpu_memory, length, settings.tensor_parallel, bytes_each, batched, SEQUENCES, LOWER)
