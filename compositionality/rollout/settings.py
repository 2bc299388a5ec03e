"""Settings of a collection of rollouts: defaults, checks, and the recipe of its result."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated

from compositionality.data.artefact import Recipe
from compositionality.data.row_format import RowFormat, RowSettings
from compositionality.errors import UserError, check_installed, public_url
from compositionality.http_json import address_of
from compositionality.ranges import (
    REQUIRED,
    Fraction,
    NonNegativeFloat,
    NonNegativeInt,
    OneOf,
    PositiveFloat,
    PositiveFraction,
    PositiveInt,
    Seed,
    Workers,
)
from compositionality.reward.function import FunctionSettings
from compositionality.rollout.engines.vllm import check_temperature
from compositionality.rollout.model_folder import resolve_model
from compositionality.rollout.store import STEP
from compositionality.types import SamplingOptions
from compositionality.validation import check_ranges, choices

ENGINES = {"vllm": "vllm", "ray": "ray", "transformers": "transformers", "openai": "http", "builtin": "torch"}
"""Engine → the package that it needs."""
DType = Annotated[str, OneOf(("auto", "float32", "bfloat16", "float16"))]


@dataclass
class SamplingSettings:
    """Settings of sampling and judging completions. The second block changes speed or safety, never the result."""

    engine: str = "auto"  # builtin, vllm, ray, transformers, openai; auto: chosen by model and machine
    base_url: str = ""  # engine=openai: http://HOST:PORT/v1; the key is read from OPENAI_API_KEY
    n_samples: PositiveInt = 1  # completions per problem
    temperature: NonNegativeFloat = 1.0  # logits are divided by it; 0: greedy
    top_p: PositiveFraction = 1.0  # 1: off
    top_k: NonNegativeInt = 0  # 0: off
    max_tokens: PositiveInt = 1024  # limit of a completion; longer ones are cut off and count as wrong
    seed: Seed = 0  # seed of the completions
    limit: NonNegativeInt = 0  # take only this many problems, from the first; 0: all
    dtype: DType = "auto"  # auto: float32 on a CPU, the checkpoint's own on a GPU
    rows_per_shard: NonNegativeInt = 0  # completions per file; 0: chosen by their number
    reward: FunctionSettings = field(default_factory=FunctionSettings)

    max_prompt_tokens: PositiveInt = 4096  # longer prompts are refused before the start
    tensor_parallel: PositiveInt = 1  # vllm, ray: GPUs that share a model
    replicas: NonNegativeInt = 0  # ray: parallel engines; 0: as many as the GPUs allow
    ray_address: str = ""  # ray: an existing cluster ("auto", HOST:PORT); empty: RAY_ADDRESS, else one is started here
    gpu_memory: PositiveFraction = 0.9  # vllm, ray: share of the GPU's memory
    concurrency: PositiveInt = 64  # openai: parallel requests
    timeout_s: PositiveFloat = 600.0  # openai: maximum of seconds per request
    retries: NonNegativeInt = 5  # openai: maximum of retries per request
    judge_workers: Workers = 1  # judging processes
    judge_timeout_s: PositiveFloat = 10.0  # maximum of seconds per verdict; a slower one is an error
    max_error_rate: Fraction = 0.01  # allowed share of completions on which the judge or the server fails

    def sampling(self) -> SamplingOptions:
        return SamplingOptions(self.temperature, self.top_p, self.top_k, self.max_tokens)

    def collection(self, model: str, problems: str, output: Path) -> "CollectSettings":
        """Return the settings for one model and one problem file; never ``force`` (see ``evaluate.collect.sample``)."""
        names = {entry.name for entry in fields(CollectSettings)} - {"problems", "output", "model", "force"}
        shared = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return CollectSettings(problems=Path(problems), output=output, model=model, **shared)


@dataclass
class CollectSettings(RowSettings, SamplingSettings):
    """Settings of ``collect``."""

    problems: Path = REQUIRED  # problem file (parquet or .jsonl)
    output: Path = REQUIRED  # folder of rollouts
    model: str = REQUIRED  # a model folder or a Hub id (owner/name); engine=openai: the server's name of the model
    force: bool = False  # replace a result that was made from something else

    def form(self) -> RowFormat:
        return self.row_format(any_source=bool(self.reward.function))


def check_settings(settings: CollectSettings) -> None:
    check_ranges(settings)
    settings.reward.check()
    if settings.engine not in ENGINES:
        raise UserError(f"engine={settings.engine}: unknown; {choices(settings.engine, [*ENGINES, 'auto'])}")
    check_installed(ENGINES[settings.engine], f"engine={settings.engine}")
    if settings.engine in ("vllm", "ray"):
        check_temperature(settings.temperature, "engine=builtin or engine=transformers")
    if settings.engine == "openai":
        if not settings.base_url:
            raise UserError("engine=openai needs base_url=http://HOST:PORT/v1")
        address_of(settings.base_url)


def recipe(settings: CollectSettings) -> Recipe:
    """Return the recipe of the result. Ray only distributes vLLM's work, so both engines count as the same."""
    inputs = {"problems": settings.problems} | settings.inputs() | settings.reward.inputs()
    names = ("n_samples", "temperature", "top_p", "top_k", "max_tokens", "seed", "limit", "rows_per_shard")
    values = {name: getattr(settings, name) for name in names} | settings.changed()
    if settings.engine == "openai":
        values |= {"engine": "openai", "base_url": public_url(settings.base_url), "model": settings.model}
    else:
        values |= {"engine": "vllm" if settings.engine == "ray" else settings.engine, "dtype": settings.dtype}
        inputs["model"] = resolve_model(settings.model)
    return Recipe(STEP, values, inputs)
