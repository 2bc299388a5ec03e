"""Audit of problem files: their actual content, level by level; the figures come from the task (``Task.facts``)."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from compositionality.console import new_console, new_table
from compositionality.data.artefact import Recipe, check_maker, is_to_be_checked, make, name_inputs
from compositionality.data.ledger import SplitLedger
from compositionality.data.problems import iterate_problems, read_problems
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED
from compositionality.tasks.registry import task_of
from compositionality.tasks.task import Column, Task
from compositionality.types import Problem
from compositionality.validation import check_once

FIRST_COLUMNS = (
    Column("level", lambda level: str(level["level"])),
    Column("rows", lambda level: str(level["rows"])),
    Column("dup", lambda level: str(level["duplicates"])),
)
LAST_COLUMNS = (
    Column("overlap", lambda level: "{overlap_problems}+{overlap_compositions}".format(**level)),
    Column("wrong", lambda level: str(sum(value for name, value in level.items() if name.startswith("wrong_")))),
    Column("unchecked", lambda level: str(level["prompt_unchecked"])),
)


@dataclass
class AuditData:
    """Settings of ``audit_data``."""

    files: list[str] = REQUIRED  # problem files to audit
    against: list[str] = field(default_factory=list)  # files to count the overlap with
    output: str = ""  # file for the report as JSON; empty: none
    force: bool = False  # replace a result that was made from something else


class AuditedRow(NamedTuple):
    """A problem, its identity, the task's facts of it, and the kind of its overlap with other files."""

    problem: Problem
    key: str
    facts: Any
    prompt_matches: bool | None  # None: the task cannot compare prompt and truth
    overlap: str


def audit_data(settings: AuditData) -> None:
    """Audit the files, print the tables, and write or update the report if ``output`` is given."""
    files, against = [Path(path) for path in settings.files], [Path(path) for path in settings.against]
    out, recipe = Path(settings.output), check(settings)

    def report() -> str:
        audits = {}
        for name, path in zip(name_inputs("", settings.files), files, strict=True):
            task, audits[name.removeprefix("/")] = audit_file(path, against)
            show(path, task, audits[name.removeprefix("/")])
        return json.dumps(audits, indent=1) + "\n"

    if not settings.output:
        recipe.identity()  # checks the files against their manifests
        report()
        return
    make(out, recipe, lambda partial: partial.write_text(report()), force=settings.force, follows=True)
    print(out)


def check(settings: AuditData) -> Recipe:
    """Return the recipe of the report. UserError without files, and for a file that is given twice."""
    if not settings.files:
        raise UserError("files: give at least one problem file, as files=[FILE,...]")
    check_once("files", settings.files)
    check_once("against", settings.against)
    paths = [Path(path) for path in (*settings.files, *settings.against)]
    names = [*name_inputs("files", settings.files), *name_inputs("against", settings.against)]
    recipe = Recipe("audit_data", {}, dict(zip(names, paths, strict=True)))
    if settings.output:
        check_maker(Path(settings.output), recipe.step, paths, force=settings.force)
    for path in paths:
        if is_to_be_checked(path, dry=True):
            _one_task(path, read_problems(path)["data_source"].unique().to_pylist())
    return recipe


def audit_file(path: Path, against: Sequence[Path] = ()) -> tuple[Task, list[dict[str, Any]]]:
    """Return the task of a problem file, and its figures level by level; shares are of rows, from 0 to 1.

    ``duplicates`` and ``overlap_…`` (with the files ``against``) are by ``Task.identity``; ``wrong_…`` count rows that
    contradict their fields, ``prompt_unchecked`` rows whose prompt the task cannot compare with the truth. UserError if
    the file mixes tasks or a row is damaged.
    """
    table, ledger = read_problems(path), SplitLedger()
    task = _one_task(path, table["data_source"].unique().to_pylist())
    for training in against:
        ledger.add_training(training)
    overlaps = {leak.row: leak.kind for leak in ledger.leaks(path, held_out=True)} if against else {}
    levels: dict[int, list[AuditedRow]] = defaultdict(list)
    for number, problem in enumerate(iterate_problems(table)):
        try:
            key, matches = task.identity(problem).problem, task.asks_its_truth(problem)
            row = AuditedRow(problem, key, task.facts(problem), matches, overlaps.get(number, ""))
        except UserError as error:
            raise UserError(f"{path}: row {number}: {error}") from error
        levels[task.level(problem)].append(row)
    return task, [_audit_level(task, level, levels[level]) for level in sorted(levels)]


def _one_task(path: Path, sources: Sequence[str]) -> Task:
    tasks = {task.name: task for task in map(task_of, sources)}
    if len(tasks) != 1:
        raise UserError(f"{path}: rows of different tasks ({', '.join(sorted(sources)[:4])}); audit one task per file")
    return next(iter(tasks.values()))


def _audit_level(task: Task, level: int, rows: Sequence[AuditedRow]) -> dict[str, Any]:
    kinds = Counter(row.overlap for row in rows)
    return {
        "level": level,
        "rows": len(rows),
        "duplicates": len(rows) - len({row.key for row in rows}),
        **task.figures([row.facts for row in rows]),
        "wrong_level": sum(row.problem.level != level for row in rows),
        "wrong_prompt": sum(row.prompt_matches is False for row in rows),
        "prompt_unchecked": sum(row.prompt_matches is None for row in rows),
        "overlap_problems": kinds["problem"],
        "overlap_compositions": kinds["composition"] + kinds["behaviour"],
    }


def show(path: Path, task: Task, levels: Sequence[Mapping[str, Any]]) -> None:
    columns = (*FIRST_COLUMNS, *task.columns, *LAST_COLUMNS)
    table = new_table(title=str(path))
    for column in columns:
        table.add_column(column.title, justify="right", overflow="fold")
    for level in levels:
        table.add_row(*(column.cell(level) for column in columns))
    new_console().print(table)
