"""Making a file of Countdown problems: settings in, one parquet with its manifest out."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from compositionality.data.create_problems import ProblemFile, write_problems
from compositionality.errors import UserError
from compositionality.tasks.countdown.clean import CountdownTask
from compositionality.tasks.countdown.library import PaperOptions, paper_problems
from compositionality.tasks.countdown.options import CountdownOptions
from compositionality.tasks.countdown.prompts import OPERATORS
from compositionality.tasks.countdown.stream import countdown_stream
from compositionality.types import Problem

PAPER_USES = ("mode", "levels", "count")
NOT_CONTENT = ("output", "avoid", "workers", "force")


@dataclass
class CreateCountdownProblems:
    """mode "paper" uses levels and count only; mode "clean" all of these. The level is how many numbers there are.

    ``numbers`` and ``target``: smallest and largest. ``avoid``: problem files that the new one may share no problem
    with; ``workers`` changes the speed only.
    """

    output: str = MISSING
    mode: str = "clean"
    split: str = "train"
    count: int = 1000
    seed: int = 1
    levels: list[int] = field(default_factory=lambda: [3])
    numbers: list[int] = field(default_factory=lambda: [1, 100])
    target: list[int] = field(default_factory=lambda: [1, 999])
    operators: str = OPERATORS
    use: str = "all"
    whole: bool = True
    minimal: bool = False
    style: str = "text"
    avoid: list[str] = field(default_factory=list)
    workers: int = 1
    force: bool = False


def create_countdown_problems(settings: CreateCountdownProblems) -> Path:
    """Write the problem file ``settings.output`` unless it is already there; its path."""
    paper = settings.mode == "paper"
    split = "train" if paper else settings.split  # the name that all of the paper's files have
    file = ProblemFile(
        "create_countdown_problems", settings.output, settings.avoid, settings.force, _content(settings), split
    )
    return write_problems(file, lambda: _paper(settings) if paper else _clean(settings))


def _content(settings: CreateCountdownProblems) -> dict[str, Any]:
    """The settings that decide what is in the file."""
    if settings.mode not in ("paper", "clean"):
        raise UserError(f"mode={settings.mode}: choose paper or clean")
    every = [entry.name for entry in fields(settings) if entry.name not in NOT_CONTENT]
    return {name: getattr(settings, name) for name in (PAPER_USES if settings.mode == "paper" else every)}


def _paper(settings: CreateCountdownProblems) -> list[Problem]:
    return list(paper_problems(PaperOptions(tuple(settings.levels), settings.count)))


def _clean(settings: CreateCountdownProblems) -> list[Problem]:
    options: dict[str, Any] = {}
    for entry in fields(CountdownOptions):
        value = getattr(settings, entry.name)
        options[entry.name] = tuple(value) if isinstance(value, list) else value
    task = CountdownTask(CountdownOptions(**options))
    return list(countdown_stream(task, settings.split, settings.seed, settings.count, settings.workers))
