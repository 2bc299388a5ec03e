"""Making a file of string problems: settings in, one parquet with its manifest out."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from compositionality.data.create_problems import ProblemFile, write_problems
from compositionality.errors import UserError
from compositionality.tasks.string.clean import StringTask
from compositionality.tasks.string.options import LETTERS_AND_SOME_DIGITS, StringOptions
from compositionality.tasks.string.paper import PaperOptions, paper_problems
from compositionality.tasks.string.stream import problem_stream
from compositionality.types import Problem

PAPER_ONLY = ("stage", "min_level", "max_level")
NOT_CONTENT = ("output", "avoid", "workers", "force")


@dataclass
class CreateStringProblems:
    """mode "paper" uses stage, split, min_level, max_level and count; mode "clean" all but the first of these.

    ``avoid``: problem files that the new one may share no problem with (nor, if it holds held-out functions, a
    composition); ``workers`` changes the speed only.
    """

    output: str = MISSING
    mode: str = "clean"
    split: str = "train"
    count: int = 1000
    stage: int = 1
    min_level: int = 1
    max_level: int = 1
    seed: int = 1
    levels: list[int] = field(default_factory=lambda: [1])
    functions: str = "trained"
    ids: list[int] = field(default_factory=list)
    drop: list[int] = field(default_factory=list)
    shape: str = "chain"
    alphabet: str = LETTERS_AND_SOME_DIGITS
    input_length: list[int] = field(default_factory=lambda: [3, 10])
    max_length: int = 100
    frozen_parameters: bool = False
    style: str = "json"
    show_definitions: bool = False
    avoid: list[str] = field(default_factory=list)
    workers: int = 1
    force: bool = False


def create_string_problems(settings: CreateStringProblems) -> Path:
    """Write the problem file ``settings.output`` unless it is already there; its path."""
    paper = settings.mode == "paper"
    split = "dummy" if paper else settings.split  # the name that the published files have
    file = ProblemFile(
        "create_string_problems", settings.output, settings.avoid, settings.force, _content(settings), split
    )
    return write_problems(file, lambda: _paper(settings) if paper else _clean(settings))


def string_options(settings: CreateStringProblems) -> StringOptions:
    """The clean mode's options among the settings."""
    if len(settings.input_length) != 2:
        raise UserError(f"input_length={settings.input_length}: give shortest and longest, as [3,10]")
    chosen: dict[str, Any] = {}
    for entry in fields(StringOptions):
        value = getattr(settings, entry.name)
        chosen[entry.name] = tuple(value) if isinstance(value, list) else value
    return StringOptions(**chosen)


def _content(settings: CreateStringProblems) -> dict[str, Any]:
    """The settings that decide what is in the file."""
    if settings.mode == "paper":
        names = ["mode", "split", "count", *PAPER_ONLY]
    elif settings.mode == "clean":
        names = [entry.name for entry in fields(settings) if entry.name not in (*PAPER_ONLY, *NOT_CONTENT)]
    else:
        raise UserError(f"mode={settings.mode}: choose paper or clean")
    return {name: getattr(settings, name) for name in names}


def _paper(settings: CreateStringProblems) -> list[Problem]:
    options = PaperOptions(settings.stage, settings.split, settings.min_level, settings.max_level, settings.count)
    return list(paper_problems(options))


def _clean(settings: CreateStringProblems) -> list[Problem]:
    task = StringTask(string_options(settings))
    return list(problem_stream(task, settings.split, settings.seed, settings.count, settings.workers))
