"""The engine that the settings name."""

from compositionality.errors import UserError
from compositionality.rollout.engines.base import Engine
from compositionality.rollout.engines.builtin import BuiltinEngine
from compositionality.rollout.engines.openai import OpenAIEngine
from compositionality.rollout.engines.ray import RayEngine
from compositionality.rollout.engines.transformers import TransformersEngine
from compositionality.rollout.engines.vllm import VllmEngine, VllmOptions
from compositionality.rollout.model_folder import ModelFolder, resolve_model
from compositionality.rollout.settings import CollectSettings


def open_engine(settings: CollectSettings, longest_prompt: int) -> Engine:
    """The engine that ``settings`` name, for prompts of up to ``longest_prompt`` tokens."""
    if settings.engine == "openai":
        return OpenAIEngine(settings.base_url, settings.model, concurrency=settings.concurrency)
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


def check_room(model: ModelFolder, longest_prompt: int, max_tokens: int) -> None:
    """UserError if prompt and completion together are longer than the model's context."""
    if model.max_positions is not None and longest_prompt + max_tokens > model.max_positions:
        raise UserError(
            f"{model.path}: takes {model.max_positions} tokens, but the longest prompt has {longest_prompt} and "
            f"max_tokens is {max_tokens}; lower max_tokens"
        )
