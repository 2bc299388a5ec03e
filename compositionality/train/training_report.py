"""The report on the training of a model, from its manifest or from the metrics of its run."""

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from compositionality.data.artefact import manifest_path, read_manifest
from compositionality.errors import UserError
from compositionality.train.metrics import (
    ENTROPY,
    FLOPS,
    GROUPS,
    NO_SIGNAL,
    SAMPLED,
    SIGNAL,
    TOKENS,
    TRAINED,
    UPDATES,
    Row,
    is_update,
    read_metrics,
)

KEY = "training"


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """Facts of an arm's training; None: not known, or without meaning for its method.

    A group is one problem with all its completions in one step.
    """

    updates: int | None = None  # also those without signal
    updates_without_signal: int | None = None  # of steps with all advantages 0
    groups: int | None = None
    groups_with_signal: int | None = None  # some completions are correct and some are not (control: rewards differ)
    completions: int | None = None  # sampled for training
    tokens: int | None = None  # that the loss was taken on, as often as it was
    rows: int | None = None  # of supervised fine-tuning, each once
    first_entropy: float | None = None  # of the policy in the first update, in nats a token
    last_entropy: float | None = None  # in the last update

    @property
    def updates_with_signal(self) -> int | None:
        """All but those without signal."""
        return None if self.updates is None else self.updates - (self.updates_without_signal or 0)

    @property
    def not_testable(self) -> bool:
        """No group of a run of RL had signal: what its model can do says nothing of what it was to learn."""
        return bool(self.groups) and self.groups_with_signal == 0


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


def rl_report(metrics: Path, last: int) -> dict[str, Any]:
    """Return totals of a run of RL up to step ``last``, of either engine; None for what a step does not say."""
    rows = [row for row in read_metrics(metrics) if is_update(row) and row["step"] <= last]
    entropies = [round(row[ENTROPY], 4) for row in rows if row.get(ENTROPY) is not None]
    report = TrainingReport(
        updates=total(rows, UPDATES),
        updates_without_signal=total(rows, UPDATES, NO_SIGNAL),
        groups=total(rows, GROUPS),
        groups_with_signal=total(rows, SIGNAL),
        completions=total(rows, SAMPLED),
        tokens=total(rows, TOKENS),
        first_entropy=entropies[0] if entropies else None,
        last_entropy=entropies[-1] if entropies else None,
    )
    return {KEY: asdict(report)}


def total(rows: Sequence[Row], *names: str) -> int | None:
    """Sum over the rows of a count, or of the product of several; None if a row lacks one, or there is no row."""
    if not rows or any(row.get(name) is None for row in rows for name in names):
        return None
    return sum(round(float(math.prod(row[name] for name in names))) for row in rows)


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
