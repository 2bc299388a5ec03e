"""What an evaluation can be told: checkpoints, problem files, and how to sample."""

from dataclasses import dataclass, fields
from pathlib import Path

from omegaconf import MISSING

from compositionality.rollout.settings import CollectSettings

OF_ONE_COLLECTION = ("model", "problems", "output", "force")


@dataclass
class AskSettings:
    """How to ask; every setting means what it means for ``collect_rollouts``."""

    engine: str = "vllm"
    base_url: str = ""
    n_samples: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 1024
    seed: int = 0
    limit: int = 0
    dtype: str = "auto"
    rows_per_shard: int = 0

    max_prompt_tokens: int = 4096
    tensor_parallel: int = 1
    replicas: int = 0
    ray_address: str = ""
    gpu_memory: float = 0.9
    concurrency: int = 64
    judge_workers: int = 1
    judge_timeout_s: float = 10.0
    max_error_rate: float = 0.01

    def collection(self, model: str, problems: str, output: Path) -> CollectSettings:
        """How one checkpoint answers one problem file; never forced (see ``answers.collected``)."""
        names = (entry.name for entry in fields(CollectSettings) if entry.name not in OF_ONE_COLLECTION)
        shared = {name: getattr(self, name) for name in names}
        return CollectSettings(problems=Path(problems), output=output, model=model, **shared)


@dataclass
class EvaluateSettings(AskSettings):
    """Settings of ``evaluate``."""

    models: list[str] = MISSING
    problems: list[str] = MISSING
    output: Path = MISSING
    answers_only: bool = False  # collect the answers, make no table: several processes may do that at the same time
    by_function: bool = False  # print accuracy by function too; the files hold it always
    force: bool = False
