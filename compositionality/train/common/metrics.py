"""The metrics of a run on disk: one JSON line for each step, which a resumed run continues."""

import contextlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compositionality.data.artefact import write_text
from compositionality.data.json_files import check_shape, parse_json_object, read_json_object
from compositionality.errors import UserError

SAMPLED = "training/sampled_completions"
"""Completions that a step of RL has sampled, those of groups that were dropped included; with either engine."""
GROUPS, SIGNAL = "training/filter_groups/generated_prompts", "training/filter_groups/with_signal"
"""Their groups, and those of them with signal."""
UPDATES, NO_SIGNAL = "training/updates", "training/no_signal"
"""Updates of a step; 1 for a step that has no signal (every advantage is 0), else 0."""
TOKENS, ENTROPY = "training/loss_tokens", "actor/entropy"
"""Tokens that the loss was taken on since the row before, RL or supervised; mean entropy of the policy."""

TRAINED = "perf/trained_tokens"
"""Tokens in a step's updates, with their prompts. By engine=single only."""
ROLLOUT_ENTROPY = "rollout/entropy"
"""Entropy of the policy, nats a token, over all that a step has sampled: mean of -log p. By engine=single only."""


def entropies(path: Path, steps: int) -> list[float]:
    """Entropy of the policy at each of the first ``steps`` steps of the run of RL with this metrics.jsonl.

    UserError where it does not say.
    """
    found = {row["step"]: row[ROLLOUT_ENTROPY] for row in read_metrics(path) if ROLLOUT_ENTROPY in row}
    if missing := [step for step in range(1, steps + 1) if step not in found]:
        raise UserError(
            f"{path}: no {ROLLOUT_ENTROPY} of step {missing[0]}: a finished run of engine=single is needed "
            f"with at least trainer.steps={steps} steps; run it first"
        )
    return [float(found[step]) for step in range(1, steps + 1)]


def sampled_completions(path: Path) -> int | None:
    """Completions that the run of RL with this metrics.jsonl has sampled in all; None if its steps do not say."""
    rows = [row for row in read_metrics(path) if is_update(row)]
    counts = [int(count) for row in rows if isinstance(count := row.get(SAMPLED), int | float)]
    return sum(counts) if counts and len(counts) == len(rows) else None


def trained(path: Path) -> dict[str, int]:
    """``updates`` of the run with this metrics.jsonl, one for every step (of RL with signal), ``tokens`` in them, and
    those of them that the loss was taken on.

    UserError where its steps do not say.
    """
    rows = [row for row in read_metrics(path) if is_update(row)]
    if not rows or any(TRAINED not in row for row in rows):
        raise UserError(f"{path}: no {TRAINED} of every step; a finished run of engine=single is needed")
    updates = sum(not row.get(NO_SIGNAL) for row in rows)
    tokens, loss_tokens = (sum(int(row.get(name, 0)) for row in rows) for name in (TRAINED, TOKENS))
    return {"updates": updates, "tokens": tokens, "loss_tokens": loss_tokens}


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics file: ``{"step": 3, "train/loss": 0.7, …}``; a last line cut off by a crash is left out.

    UserError that names any other line that is no such row.
    """
    *lines, last = path.read_bytes().split(b"\n") if path.is_file() else [b""]
    rows = [_row(line, f"{path}: line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    with contextlib.suppress(UserError):  # a line that is whole ends with a line break
        rows += [_row(last, str(path))] if last else []
    return rows


def _row(line: bytes, where: str) -> dict[str, Any]:
    fix = "delete that line, or move the run's folder away and train again"
    row = parse_json_object(line.decode(errors="replace"), where, fix)
    check_shape(row, {"step": int}, where, fix)
    return row


DAMAGED = "delete this checkpoint; an earlier one is taken"
STEP_ROW = "metrics.json"
"""The row of the step, kept in a checkpoint's folder."""


def truncate_metrics(path: Path, step: int, checkpoint: Path | None = None) -> None:
    """Keep the rows up to ``step``: a run that resumes there writes the later ones again.

    If the run was killed before it wrote the row of ``step`` itself, that is taken from ``checkpoint``.
    """
    rows = [row for row in read_metrics(path) if row["step"] <= step]
    saved = checkpoint / STEP_ROW if checkpoint else None
    if saved and saved.is_file() and not any(row["step"] == step and is_update(row) for row in rows):
        rows.append(read_json_object(saved, DAMAGED))
    if path.is_file() or rows:
        write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


def is_update(row: Mapping[str, Any]) -> bool:
    """True for the row of a training step (a validation may have one of its own)."""
    return any(key.endswith("/grad_norm") for key in row)


def numbers(data: Mapping[str, Any]) -> dict[str, str | int | float | None]:
    """The entries of ``data`` that are numbers or strings, as JSON has them."""
    return {key: plain(value) for key, value in data.items() if is_plain(value)}


def is_plain(value: object) -> bool:
    """True for numbers (numpy's and torch's scalars too) and strings."""
    return isinstance(value, str | int | float) or (hasattr(value, "item") and getattr(value, "ndim", 0) == 0)


def plain(value: Any) -> str | int | float | None:
    """A scalar as JSON has it; None for nan and infinity."""
    scalar: str | int | float = value if isinstance(value, str | int | float) else value.item()
    return None if isinstance(scalar, float) and not math.isfinite(scalar) else scalar
