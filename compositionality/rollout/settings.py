"""Settings of a collection of rollouts: defaults, checks, and what its result is made from."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from compositionality.data.artefact import Recipe
from compositionality.errors import UserError
from compositionality.rollout.engines.base import SamplingOptions
from compositionality.rollout.model_folder import resolve_model
from compositionality.rollout.store import STEP

ENGINES = {name: name for name in ("vllm", "ray", "transformers", "openai")} | {"builtin": "torch"}  # its package


@dataclass
class CollectSettings:
    """Settings of ``collect``; those in the last block change speed or safety, never the result."""

    problems: Path = MISSING
    output: Path = MISSING
    model: str = MISSING  # a model folder or a Hub id (owner/name); engine=openai: the name that the server knows
    engine: str = "vllm"
    base_url: str = ""  # engine=openai: http://HOST:PORT/v1; the key is read from OPENAI_API_KEY
    n_samples: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 1024
    seed: int = 0
    limit: int = 0  # the first so many problems; 0 = all
    dtype: str = "auto"
    rows_per_shard: int = 0  # 0 = chosen by the number of responses

    max_prompt_tokens: int = 4096
    tensor_parallel: int = 1
    replicas: int = 0  # engine=ray: 0 = as many as the GPUs allow
    ray_address: str = ""  # engine=ray: an existing cluster ("auto" or HOST:PORT); empty = start one here
    gpu_memory: float = 0.9
    concurrency: int = 64  # engine=openai: requests at a time
    judge_workers: int = 1
    judge_timeout_s: float = 10.0
    max_error_rate: float = 0.01
    force: bool = False

    def sampling(self) -> SamplingOptions:
        """The sampling part."""
        return SamplingOptions(self.temperature, self.top_p, self.top_k, self.max_tokens)


def check_settings(settings: CollectSettings) -> None:
    """UserError for values that mean nothing."""
    if settings.engine not in ENGINES:
        raise UserError(f"engine={settings.engine}: unknown; known: {', '.join(ENGINES)}")
    package = ENGINES[settings.engine]
    if importlib.util.find_spec(package) is None:
        raise UserError(f"engine={settings.engine}: the package {package} is not installed; see README for the extras")
    if settings.engine == "openai" and not settings.base_url:
        raise UserError("engine=openai needs base_url=http://HOST:PORT/v1")
    for name in ("n_samples", "max_tokens", "judge_workers", "tensor_parallel"):
        if getattr(settings, name) < 1:
            raise UserError(f"{name}={getattr(settings, name)}: must be at least 1")
    for name in ("limit", "top_k", "rows_per_shard", "replicas", "temperature"):
        if getattr(settings, name) < 0:
            raise UserError(f"{name}={getattr(settings, name)}: must not be negative")
    if not 0 < settings.top_p <= 1:
        raise UserError(f"top_p={settings.top_p}: must lie in (0, 1]")


def recipe(settings: CollectSettings) -> Recipe:
    """What the result is made from. Ray only spreads vLLM's work, so both engines make the same result."""
    inputs = {"problems": settings.problems}
    same: dict[str, Any] = {
        name: getattr(settings, name)
        for name in ("n_samples", "temperature", "top_p", "top_k", "max_tokens", "seed", "limit", "rows_per_shard")
    }
    if settings.engine == "openai":
        same |= {"engine": "openai", "base_url": settings.base_url, "model": settings.model}
    else:
        same |= {"engine": "vllm" if settings.engine == "ray" else settings.engine, "dtype": settings.dtype}
        inputs["model"] = resolve_model(settings.model)
    return Recipe(STEP, same, inputs)
