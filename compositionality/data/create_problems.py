"""Making a problem file, of whatever task: problems in, one parquet with its manifest out."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.data.artefact import Recipe, is_done, new_artefact
from compositionality.data.ledger import SplitLedger
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.types import Problem


@dataclass(frozen=True)
class ProblemFile:
    """Where a problem file goes and what it may share no problem with; ``content`` decides what is in it."""

    step: str
    output: str
    avoid: Sequence[str]
    force: bool
    content: Mapping[str, Any]
    split: str


def write_problems(file: ProblemFile, make: Callable[[], list[Problem]]) -> Path:
    """Write what ``make`` gives unless the file is already there; its path. UserError if it holds a leak."""
    out = Path(file.output)
    avoid = {f"avoid_{i}": Path(path) for i, path in enumerate(file.avoid)}
    recipe = Recipe(file.step, file.content, avoid)
    if is_done(out, recipe, force=file.force):
        print(f"{out} is already there")
        return out
    problems = make()
    facts = _facts(problems)
    with new_artefact(out, recipe, facts) as partial:
        write_table(to_table(problems, file.split), partial)
        _refuse_leaks(partial, out, list(avoid.values()))
    print(f"{out}: {facts['rows']} problems, by level {facts['by_level']}")
    return out


def _facts(problems: list[Problem]) -> dict[str, Any]:
    by_level = Counter(problem.level for problem in problems)
    return {"rows": len(problems), "by_level": {str(level): by_level[level] for level in sorted(by_level)}}


def _refuse_leaks(partial: Path, out: Path, avoid: list[Path]) -> None:
    ledger = SplitLedger()
    for path in avoid:
        ledger.add_training(path)
    if avoid:
        ledger.check(partial, shown_as=out)
