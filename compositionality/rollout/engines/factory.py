"""The engine that the settings name, and the one that ``engine=auto`` stands for."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from compositionality.gpus import check_gpus_are_used, count_gpus
from compositionality.rollout.engines.base import Engine
from compositionality.rollout.engines.builtin import BuiltinEngine
from compositionality.rollout.engines.openai import OpenAIEngine
from compositionality.rollout.engines.ray import RayEngine
from compositionality.rollout.engines.transformers import TransformersEngine
from compositionality.rollout.engines.vllm import VllmEngine, VllmOptions, check_heads, takes_heads
from compositionality.rollout.forecast.check import check_sampling
from compositionality.rollout.model_folder import FAMILIES, check_family, read_config, resolve_model
from compositionality.rollout.settings import CollectSettings

AUTO = "auto"
SMALL = 1 << 30  # bytes of weights up to which the built-in sampler is a match for vLLM on a CPU


def choose_engine(engine: str, base_url: str, models: Sequence[str]) -> str:
    """``engine``, or what ``auto`` stands for: one engine for all ``models`` (folders or Hub ids).

    With a ``base_url`` that is openai, with a GPU vLLM. Without, the built-in sampler for small models of its families
    and where vLLM is not installed or does not take the models; transformers for what neither takes.
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
    if builtin and (not vllm or all(_weight_bytes(folder) <= SMALL for folder in folders)):
        return "builtin"
    return "vllm" if vllm else "transformers"


def _weight_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for pattern in ("*.safetensors", "*.bin") for file in folder.glob(pattern))


def check_engine(settings: CollectSettings, model: Path, longest_prompt: int) -> None:
    """UserError for a model that the engine does not take, or that does not fit this machine with its prompts."""
    if settings.engine in ("vllm", "ray"):
        check_heads(model, "engine=builtin or engine=transformers")
    if settings.engine == "builtin":
        check_family(model)
    check_sampling(settings, model, longest_prompt)


def open_engine(settings: CollectSettings, longest_prompt: int) -> Engine:
    """The engine that ``settings`` name, for prompts of up to ``longest_prompt`` tokens.

    UserError if it would compute here and GPUs are visible that cannot be used.
    """
    if settings.engine == "openai":
        return OpenAIEngine(
            settings.base_url,
            settings.model,
            concurrency=settings.concurrency,
            retries=settings.retries,
            timeout_s=settings.timeout_s,
            max_error_rate=settings.max_error_rate,
        )
    if not (settings.engine == "ray" and settings.ray_address):
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
        return RayEngine(model, options, replicas=settings.replicas, address=settings.ray_address or None)
    return VllmEngine(model, options)
