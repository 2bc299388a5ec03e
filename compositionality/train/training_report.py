"""What made a model: the report that its manifest has, or that the metrics of its run give."""

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from compositionality.data.artefact import manifest_path, read_manifest
from compositionality.errors import UserError
from compositionality.train.metrics import (
    FLOPS,
    KEY,
    NO_SIGNAL,
    TOKENS,
    TRAINED,
    TrainingReport,
    is_update,
    read_metrics,
    rl_report,
    total,
)

NAMES = tuple(field.name for field in fields(TrainingReport))
ITERATION = re.compile(r"(.+-iteration)(\d+)")
"""Runs of one iterative arm lie side by side: NAME-iteration0, NAME-iteration1 …"""


def trained(path: Path) -> dict[str, int]:
    """Return ``updates`` of the run with this metrics.jsonl, one a step (of RL with signal), ``tokens`` in them, and
    those of them that the loss was taken on.

    UserError where its steps do not say.
    """
    rows = [row for row in read_metrics(path) if is_update(row)]
    if not rows or any(TRAINED not in row for row in rows):
        raise UserError(f"{path}: no {TRAINED} of every step; a finished run of engine=single is needed")
    updates = sum(not row.get(NO_SIGNAL) for row in rows)
    tokens, loss_tokens = (sum(int(row.get(name, 0)) for row in rows) for name in (TRAINED, TOKENS))
    return {"updates": updates, "tokens": tokens, "loss_tokens": loss_tokens}


def run_until(model: Path) -> tuple[float, TrainingReport] | None:
    """Return FLOPs and report of a run of RL until it wrote this model (final/, or one step); None of other models."""
    step = re.search(r"/global_step_(\d+)", model.absolute().as_posix())
    if not step and model.name != "final":
        return None
    metrics = next((path for run in [*model.absolute().parents][:3] if (path := run / "metrics.jsonl").is_file()), None)
    last = int(step[1]) if step else sys.maxsize
    spent = [row[FLOPS] for row in read_metrics(metrics) if FLOPS in row and row["step"] <= last] if metrics else []
    return (spent[-1], TrainingReport(**rl_report(metrics, last)[KEY])) if metrics and spent else None


def sft_report(metrics: Path, updates: int, rows: int, train_files: Sequence[str]) -> dict[str, Any]:
    """Return totals of a supervised run; its completions are those that its rows were filtered from, if known."""
    filtered = [read_manifest(folder) for folder in {Path(path).parent for path in train_files}]
    responses = [manifest.facts["responses"] for manifest in filtered if manifest and "responses" in manifest.facts]
    report = TrainingReport(
        updates=updates,
        completions=sum(responses) if len(responses) == len(filtered) else None,
        tokens=total([row for row in read_metrics(metrics) if is_update(row)], TOKENS),
        rows=rows,
    )
    return {KEY: asdict(report)}


def report_of(model: Path) -> TrainingReport | None:
    """Return what made the model in a folder, all its iterations together; None where that is not known."""
    model = model.absolute()
    match = ITERATION.fullmatch(model.parent.name)
    runs = [f"{match[1]}{number}" for number in range(int(match[2]) + 1)] if match else [model.parent.name]
    reports = []
    for folder in (model.parent.with_name(run) / model.name for run in runs):
        manifest = read_manifest(folder) if folder.is_dir() else None
        if manifest is None or manifest.facts.get(KEY) is None:
            return None
        reports.append(report_from(manifest.facts[KEY], f"{manifest_path(folder)}: facts: {KEY}"))
    if len(reports) == 1:
        return reports[0]
    sums: dict[str, Any] = {}  # without entropies, which are of a single run
    for name in NAMES:
        values = [getattr(report, name) for report in reports]
        sums[name] = None if None in values or name.endswith("entropy") else sum(values)
    return TrainingReport(**sums)


def report_from(content: Any, where: str) -> TrainingReport:
    """Return a report from JSON. UserError unless it is one."""
    if not isinstance(content, dict) or set(content) != set(NAMES):
        raise UserError(f"{where}: {', '.join(NAMES)} are needed; train or evaluate again with --force")
    for name, value in content.items():
        if value is not None and (not isinstance(value, int | float) or not math.isfinite(value)):
            raise UserError(f"{where}: {name}={value!r} is not a number; train or evaluate again with --force")
    return TrainingReport(**content)
