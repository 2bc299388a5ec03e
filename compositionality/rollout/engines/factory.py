"""The engine that the settings name."""

from compositionality.rollout.engines.base import Engine
from compositionality.rollout.engines.builtin import BuiltinEngine
from compositionality.rollout.engines.openai import OpenAIEngine
from compositionality.rollout.engines.ray import RayEngine
from compositionality.rollout.engines.transformers import TransformersEngine
from compositionality.rollout.engines.vllm import VllmEngine, VllmOptions
from compositionality.rollout.model_folder import resolve_model
from compositionality.rollout.settings import CollectSettings


def open_engine(settings: CollectSettings, longest_prompt: int) -> Engine:
    """The engine that ``settings`` name, for prompts of up to ``longest_prompt`` tokens."""
    if settings.engine == "openai":
        return OpenAIEngine(
            settings.base_url,
            settings.model,
            concurrency=settings.concurrency,
            retries=settings.retries,
            timeout_s=settings.timeout_s,
            max_error_rate=settings.max_error_rate,
        )
    model = resolve_model(settings.model)
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
