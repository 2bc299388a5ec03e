"""What the classification can be told."""

from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import MISSING


@dataclass
class FailureSettings:
    """Settings of ``find_failures``: give ``evaluation`` (a folder of examples/evaluate.py) or ``rollouts``."""

    problems: list[str] = MISSING
    output: Path = MISSING
    evaluation: str = ""
    rollouts: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)  # of the evaluation, in this order; none: all
    levels: list[int] = field(default_factory=list)  # none: all
    level: int = 3  # the one that is printed, and judged
    judge: bool = False
    judge_base_url: str = ""  # http://HOST:PORT/v1; default: $JUDGE_BASE_URL
    judge_model: str = ""  # the name that the server knows; default: $JUDGE_MODEL
    judge_responses: int = 100  # of every model and problem file; 0: all of that level
    judge_max_tokens: int = 256
    judge_concurrency: int = 16
    force: bool = False
