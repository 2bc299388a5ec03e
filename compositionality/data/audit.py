"""What problem files really hold, level by level: one report for each task."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from omegaconf import MISSING

from compositionality.console import new_console, new_table
from compositionality.data.artefact import Recipe, is_done, new_artefact
from compositionality.data.audit_countdown import (
    COUNTDOWN_COLUMNS,
    CountdownAudit,
    audit_countdown_file,
    countdown_cells,
)
from compositionality.data.audit_string import STRING_COLUMNS, LevelAudit, audit_string_file, string_cells
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.tasks.countdown.judge import judge_countdown
from compositionality.tasks.registry import find_judge


@dataclass
class AuditData:
    """``files`` are audited; overlap with ``against`` is counted; ``output`` takes the report as JSON, if given."""

    files: list[str] = MISSING
    against: list[str] = field(default_factory=list)
    output: str = ""
    force: bool = False


def audit_file(path: Path, against: Sequence[Path] = ()) -> Sequence[LevelAudit] | Sequence[CountdownAudit]:
    """The audit of a problem file, level by level. UserError if it mixes tasks."""
    sources = read_problems(path)["data_source"].unique().to_pylist()
    countdown = {find_judge(source) is judge_countdown for source in sources}
    if len(countdown) > 1:
        raise UserError(f"{path}: rows of different tasks ({', '.join(sorted(sources)[:4])}); audit their files")
    return audit_countdown_file(path, against) if True in countdown else audit_string_file(path, against)


def audit_data(settings: AuditData) -> None:
    """Audit the files, show the tables, and write the report if ``output`` is given."""
    files, against = [Path(path) for path in settings.files], [Path(path) for path in settings.against]
    inputs = {f"file_{i}": path for i, path in enumerate(files)} | {f"against_{i}": p for i, p in enumerate(against)}
    out, recipe = Path(settings.output), Recipe("audit_data", {}, inputs)
    if settings.output and is_done(out, recipe, force=settings.force):
        print(f"{out} is already there")
        return
    report = {}
    for path in files:
        levels = audit_file(path, against)
        show(path, levels)
        report[path.name] = [asdict(level) for level in levels]
    if settings.output:
        with new_artefact(out, recipe) as partial:
            partial.write_text(json.dumps(report, indent=1) + "\n")


def show(path: Path, levels: Sequence[LevelAudit] | Sequence[CountdownAudit]) -> None:
    """The table on screen."""
    countdown = any(isinstance(level, CountdownAudit) for level in levels)
    table = new_table(title=str(path))
    for title in COUNTDOWN_COLUMNS if countdown else STRING_COLUMNS:
        table.add_column(title, justify="right")
    for level in levels:
        table.add_row(*(countdown_cells(level) if isinstance(level, CountdownAudit) else string_cells(level)))
    new_console().print(table)
