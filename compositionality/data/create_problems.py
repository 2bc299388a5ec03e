"""Making a problem file: settings in, one parquet with its manifest out."""

from collections import Counter
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from compositionality.data.artefact import Recipe, is_done, new_artefact
from compositionality.data.ledger import SplitLedger
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.tasks.base import Problem
from compositionality.tasks.string.clean import StringTask
from compositionality.tasks.string.options import LETTERS_AND_SOME_DIGITS, StringOptions
from compositionality.tasks.string.paper import PaperOptions, paper_problems
from compositionality.tasks.string.stream import problem_stream

PAPER_ONLY = ("stage", "min_level", "max_level")
NOT_CONTENT = ("output", "avoid", "workers", "force")


@dataclass
class CreateProblems:
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


def create_problems(settings: CreateProblems) -> Path:
    """Write the problem file ``settings.output`` unless it is already there; its path."""
    out = Path(settings.output)
    avoid = {f"avoid_{i}": Path(path) for i, path in enumerate(settings.avoid)}
    recipe = Recipe("create_problems", _content(settings), avoid)
    if is_done(out, recipe, force=settings.force):
        print(f"{out} is already there")
        return out
    problems = _paper(settings) if settings.mode == "paper" else _clean(settings)
    facts = _facts(problems)
    with new_artefact(out, recipe, facts) as partial:
        write_table(to_table(problems, "dummy" if settings.mode == "paper" else settings.split), partial)
        _refuse_leaks(partial, out, list(avoid.values()))
    print(f"{out}: {facts['rows']} problems, by level {facts['by_level']}")
    return out


def string_options(settings: CreateProblems) -> StringOptions:
    """The clean mode's options among the settings."""
    if len(settings.input_length) != 2:
        raise UserError(f"input_length={settings.input_length}: give shortest and longest, as [3,10]")
    chosen: dict[str, Any] = {}
    for entry in fields(StringOptions):
        value = getattr(settings, entry.name)
        chosen[entry.name] = tuple(value) if isinstance(value, list) else value
    return StringOptions(**chosen)


def _content(settings: CreateProblems) -> dict[str, Any]:
    """The settings that decide what is in the file."""
    if settings.mode == "paper":
        names = ["mode", "split", "count", *PAPER_ONLY]
    elif settings.mode == "clean":
        names = [entry.name for entry in fields(settings) if entry.name not in (*PAPER_ONLY, *NOT_CONTENT)]
    else:
        raise UserError(f"mode={settings.mode}: choose paper or clean")
    return {name: getattr(settings, name) for name in names}


def _paper(settings: CreateProblems) -> list[Problem]:
    options = PaperOptions(settings.stage, settings.split, settings.min_level, settings.max_level, settings.count)
    return list(paper_problems(options))


def _clean(settings: CreateProblems) -> list[Problem]:
    task = StringTask(string_options(settings))
    return list(problem_stream(task, settings.split, settings.seed, settings.count, settings.workers))


def _facts(problems: list[Problem]) -> dict[str, Any]:
    by_level = Counter(problem.level for problem in problems)
    return {"rows": len(problems), "by_level": {str(level): by_level[level] for level in sorted(by_level)}}


def _refuse_leaks(partial: Path, out: Path, avoid: list[Path]) -> None:
    ledger = SplitLedger()
    for path in avoid:
        ledger.add_training(path)
    if avoid:
        ledger.check(partial, shown_as=out)
