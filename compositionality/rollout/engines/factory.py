"""Choose, check and open an engine by the settings; ``engine=auto`` resolves to one that fits models and machine."""

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from compositionality import memory
from compositionality.gpus import check_gpus_are_used, count_gpus
from compositionality.memory import GPU, HOST, ModelShape, Need
from compositionality.rollout.engines.base import Engine
from compositionality.rollout.engines.local import ROWS, BuiltinEngine, TransformersEngine
from compositionality.rollout.engines.openai import OpenAIEngine
from compositionality.rollout.engines.vllm import RayEngine, VllmEngine, VllmOptions, check_heads, takes_heads
from compositionality.rollout.model_folder import FAMILIES, check_family, known_shape, read_config, resolve_model
from compositionality.rollout.settings import CollectSettings, SamplingSettings

AUTO = "auto"
SMALL = 1 << 30  # bytes of weights up to which the built-in sampler is as fast as vLLM on a CPU


def choose_engine(engine: str, base_url: str, models: Sequence[str]) -> str:
    """Return ``engine``, or resolve ``auto`` to one engine for all ``models`` (folders or Hub ids).

    With a ``base_url`` openai, with a GPU vLLM. Otherwise the built-in sampler for small models of its families, or if
    vLLM is not installed or does not support the models; transformers for models that neither supports.
    """
    if engine != AUTO:
        return engine
    if base_url:
        return "openai"
    folders = [resolve_model(model) for model in models]
    installed = importlib.util.find_spec("vllm") is not None
    if installed and count_gpus():
        return "vllm"
    vllm = installed and all(map(takes_heads, folders))
    builtin = all(read_config(folder).get("model_type") in FAMILIES for folder in folders)
    weights = [[*folder.glob("*.safetensors"), *folder.glob("*.bin")] for folder in folders]
    if builtin and (not vllm or all(sum(file.stat().st_size for file in files) <= SMALL for files in weights)):
        return "builtin"
    return "vllm" if vllm else "transformers"


def check_engine(settings: SamplingSettings, model: Path, longest_prompt: int) -> None:
    """Raise UserError for a model that the engine does not support, or that does not fit this machine.

    The memory of other machines is not checked: a server, a Ray cluster elsewhere, or, on a machine without a GPU, the
    target of a dry run for GPUs.
    """
    if settings.engine in ("vllm", "ray"):
        check_heads(model, "engine=builtin or engine=transformers")
    if settings.engine == "builtin":
        check_family(model)
    machine = memory.this_machine()
    gpu = machine.gpu_bytes is not None
    elsewhere = not gpu and (bool(cluster_of(settings)) or os.environ.get("COMPOSITIONALITY_DEVICE") == "gpu")
    if settings.engine != "openai" and not elsewhere and (shape := known_shape(model)):
        memory.check_needs(sampling_needs(settings, shape, longest_prompt, gpu=gpu, rows=1), machine)


def cluster_of(settings: SamplingSettings) -> str:
    """Return the address of the Ray cluster to join; empty without one (engine=ray then starts Ray here)."""
    return (settings.ray_address or os.environ.get("RAY_ADDRESS", "")) if settings.engine == "ray" else ""


def sampling_needs(
    settings: SamplingSettings, shape: ModelShape, longest_prompt: int, *, gpu: bool, rows: int = ROWS
) -> list[Need]:
    """Return the memory for one completion of full length with vLLM, and for ``rows`` of them with other engines.

    The default is a full batch. On a GPU the built-in sampler takes as many rows as fit; only one must fit.
    """
    vllm = vllm_of(settings, shape, longest_prompt, gpu=gpu)
    if settings.engine not in ("vllm", "ray"):
        place = GPU if gpu else HOST
        rows = 1 if gpu and settings.engine == "builtin" else rows
        parts = memory.builtin_parts(shape, rows, vllm.length, vllm.bytes_each, place)
        return [Need("sampling", place, parts, "lower max_tokens, or use engine=vllm")]
    if gpu:
        host = {"vLLM": settings.tensor_parallel * memory.VLLM_HOST}
        return [vllm.need(shape, "sampling"), Need("sampling", HOST, host, "use other engines")]
    parts = {"weights": vllm.weights(shape), "one completion": vllm.completion(shape), "vLLM": 2 * memory.PYTHON}
    return [Need("sampling", HOST, parts, "lower max_tokens, or use another engine")]


def vllm_of(settings: SamplingSettings, shape: ModelShape, longest_prompt: int, *, gpu: bool) -> memory.Vllm:
    """Return the sizes of one vLLM engine of a collection."""
    length = longest_prompt + settings.max_tokens
    bytes_each = memory.BYTES.get(settings.dtype, shape.stored_bytes if gpu else 4)
    hint = "lower max_tokens, raise gpu_memory, or split the model over GPUs with tensor_parallel"
    tokens = max(memory.VLLM_TOKENS, length)
    return memory.Vllm(
        settings.gpu_memory, length, settings.tensor_parallel, bytes_each, tokens, memory.VLLM_SEQUENCES, hint
    )


def open_engine(settings: CollectSettings, longest_prompt: int) -> Engine:
    """Open the engine that ``settings`` name, for prompts of up to ``longest_prompt`` tokens."""
    if settings.engine == "openai":
        return OpenAIEngine(settings)
    if not cluster_of(settings):
        check_gpus_are_used()
    model = resolve_model(settings.model)
    check_engine(settings, model, longest_prompt)
    if settings.engine == "builtin":
        return BuiltinEngine(model, dtype=settings.dtype)
    if settings.engine == "transformers":
        return TransformersEngine(model, dtype=settings.dtype)
    options = VllmOptions(
        max_model_len=longest_prompt + settings.max_tokens,
        tensor_parallel=settings.tensor_parallel,
        dtype=settings.dtype,
        gpu_memory=settings.gpu_memory,
        seed=settings.seed,
    )
    if settings.engine == "ray":
        return RayEngine(model, options, replicas=settings.replicas, address=cluster_of(settings))
    return VllmEngine(model, options)
