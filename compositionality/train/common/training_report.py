"""What a training run did in all, from its metrics: kept among the facts of the model that it made."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from compositionality.data.artefact import manifest_path, read_manifest
from compositionality.errors import UserError
from compositionality.train.common.compute import FLOPS
from compositionality.train.common.metrics import (
    ENTROPY,
    GROUPS,
    NO_SIGNAL,
    SAMPLED,
    SIGNAL,
    TOKENS,
    UPDATES,
    is_update,
    read_metrics,
)
from compositionality.types import TrainingReport

KEY = "training"
NAMES = tuple(field.name for field in fields(TrainingReport))
ITERATION = re.compile(r"(.+-iteration)(\d+)")
"""Runs of one iterative arm lie side by side: NAME-iteration0, NAME-iteration1 …"""
Row = Mapping[str, Any]


def rl_report(metrics: Path, last: int) -> dict[str, Any]:
    """Totals of a run of RL up to step ``last``, with either engine; None for what a step's metrics do not say."""
    rows = [row for row in read_metrics(metrics) if is_update(row) and row["step"] <= last]
    entropies = [round(row[ENTROPY], 4) for row in rows if row.get(ENTROPY) is not None]
    report = TrainingReport(
        updates=_total(rows, UPDATES),
        updates_without_signal=_total(rows, UPDATES, NO_SIGNAL),
        groups=_total(rows, GROUPS),
        groups_with_signal=_total(rows, SIGNAL),
        completions=_total(rows, SAMPLED),
        tokens=_total(rows, TOKENS),
        first_entropy=entropies[0] if entropies else None,
        last_entropy=entropies[-1] if entropies else None,
    )
    return {KEY: asdict(report)}


def run_until(model: Path) -> dict[str, Any] | None:
    """FLOPs and report of a run of RL until it wrote this model (final/, or of one step); None of any other model."""
    step = re.search(r"/global_step_(\d+)", model.absolute().as_posix())
    if not step and model.name != "final":
        return None
    metrics = next((path for run in [*model.absolute().parents][:3] if (path := run / "metrics.jsonl").is_file()), None)
    last = int(step[1]) if step else sys.maxsize
    spent = [row[FLOPS] for row in read_metrics(metrics) if FLOPS in row and row["step"] <= last] if metrics else []
    return {"flops": spent[-1], **rl_report(metrics, last)[KEY]} if metrics and spent else None


def sft_report(metrics: Path, updates: int, rows: int, train_files: Sequence[str]) -> dict[str, Any]:
    """Totals of a supervised run; the completions are those that its rows were filtered from, if that is known."""
    filtered = [read_manifest(folder) for folder in {Path(path).parent for path in train_files}]
    responses = [manifest.facts["responses"] for manifest in filtered if manifest and "responses" in manifest.facts]
    report = TrainingReport(
        updates=updates,
        completions=sum(responses) if len(responses) == len(filtered) else None,
        tokens=_total([row for row in read_metrics(metrics) if is_update(row)], TOKENS),
        rows=rows,
    )
    return {KEY: asdict(report)}


def _total(rows: Sequence[Row], *names: str) -> int | None:
    """Sum over the rows of a count, or of the product of several; None if a row lacks one, or there is no row."""
    if not rows or any(row.get(name) is None for row in rows for name in names):
        return None
    return sum(round(float(math.prod(row[name] for name in names))) for row in rows)


def report_of(model: Path) -> TrainingReport | None:
    """What made the model in a folder, all its iterations together; None where that is not known."""
    model = model.absolute()
    found = ITERATION.fullmatch(model.parent.name)
    runs = [f"{found[1]}{number}" for number in range(int(found[2]) + 1)] if found else [model.parent.name]
    reports = [_of_run(model.parent.with_name(run) / model.name) for run in runs]
    known = [one for one in reports if one]
    return _together(known) if known and len(known) == len(runs) else None


def _of_run(model: Path) -> TrainingReport | None:
    manifest = read_manifest(model) if model.is_dir() else None
    content = manifest.facts.get(KEY) if manifest else None
    return None if content is None else report_from(content, f"{manifest_path(model)}: facts: {KEY}")


def report_from(content: Any, where: str) -> TrainingReport:
    """A report from JSON. UserError unless it is one."""
    if not isinstance(content, dict) or set(content) != set(NAMES):
        raise UserError(f"{where}: {', '.join(NAMES)} are needed; train or evaluate again with --force")
    for name, value in content.items():
        if value is not None and (not isinstance(value, int | float) or not math.isfinite(value)):
            raise UserError(f"{where}: {name}={value!r} is not a number; train or evaluate again with --force")
    return TrainingReport(**content)


def _together(reports: Sequence[TrainingReport]) -> TrainingReport:
    """Sums over the iterations; an entropy is only of a single run."""
    if len(reports) == 1:
        return reports[0]
    sums = {name: [getattr(one, name) for one in reports] for name in NAMES if not name.endswith("entropy")}
    return TrainingReport(**{name: None if None in each else sum(each) for name, each in sums.items()})
