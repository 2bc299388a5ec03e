"""What the report can be told."""

from dataclasses import dataclass
from pathlib import Path

from omegaconf import MISSING


@dataclass
class ReportSettings:
    """Settings of ``report``. ``study``: a results folder with section41_42/seeds.json; all folders of seed 0.

    ``countdown``: the results folder of section 4.3; ``checkpoints``, ``data``: of the same study. Empty: not shown.
    """

    study: Path = MISSING
    output: Path = MISSING
    countdown: str = ""
    checkpoints: str = ""
    data: str = ""
    check: bool = False
    force: bool = False
