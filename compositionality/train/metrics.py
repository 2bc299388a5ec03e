"""The metrics of a run on disk, a JSON line for each step, and the FLOPs that follow from them.

FLOPs by two counts. A pass forward of a token takes 2 N, forward and backward 6 N (4 N where all of these weights are
frozen, with LoRA); N: parameters without embeddings. (Attention over the context and adapters, a few per cent, are in
neither count.) *Paper*: 6 N for every token of the prompts and responses of a step, as arXiv 2509.25300 counts.
*Full*: what is done: sampling, updates on the tokens that enter them, log-probs of the old and of the reference policy,
evaluation.
"""

import contextlib
import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compositionality.data.artefact import write_text
from compositionality.data.json_files import check_shape, parse_json_object, read_json_object
from compositionality.errors import UserError

Row = Mapping[str, Any]
SAMPLED = "training/sampled_completions"
"""Completions that a step of RL has sampled, those of groups that were dropped included; with either engine."""
GROUPS, SIGNAL = "training/filter_groups/generated_prompts", "training/filter_groups/with_signal"
"""Their groups, and those of them with signal."""
UPDATES, NO_SIGNAL = "training/updates", "training/no_signal"
"""Updates of a step; 1 for a step that has no signal (every advantage is 0), else 0."""
SMALLEST_ADVANTAGE = 1e-6
"""Smaller ones count as zero: a step without others is one without signal."""
TOKENS, ENTROPY = "training/loss_tokens", "actor/entropy"
"""Tokens that the loss was taken on since the row before, RL or supervised; mean entropy of the policy."""

ACCURACY = re.compile(r"val-core/(.+)/acc/mean@\d+")
"""Mean accuracy in a validation, with its data source."""
TRAINED = "perf/trained_tokens"
"""Tokens in a step's updates, with their prompts. By engine=single only."""
ROLLOUT_ENTROPY = "rollout/entropy"
"""Entropy of the policy, nats a token, over all that a step has sampled: mean of -log p. By engine=single only."""


def entropies(path: Path, steps: int) -> list[float]:
    """Return the entropy of the policy at each of the first ``steps`` steps of the run of RL with this metrics.jsonl.

    UserError where it does not say.
    """
    by_step = {row["step"]: value for row in read_metrics(path) if (value := row.get(ROLLOUT_ENTROPY)) is not None}
    if missing := [step for step in range(1, steps + 1) if step not in by_step]:
        raise UserError(
            f"{path}: no {ROLLOUT_ENTROPY} of step {missing[0]}: a finished run of engine=single is needed "
            f"with at least trainer.steps={steps} steps; run it first"
        )
    return [float(by_step[step]) for step in range(1, steps + 1)]


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a metrics file, ``{"step": 3, "train/loss": 0.7, …}``, without a line cut off by a crash.

    Nan, infinity and integers that no float holds are None. UserError that names any other line that is no such row.
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
    return {name: finite(value) for name, value in row.items()}


def finite(value: Any) -> Any:
    """Return a value; None for nan, infinity and integers that no float holds."""
    return None if isinstance(value, int | float) and not abs(value) <= sys.float_info.max else value


DAMAGED = "delete this checkpoint; an earlier one is taken"
STEP_ROW = "metrics.json"
"""The row of the step, kept in a checkpoint's folder."""


def accuracies(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean accuracies of a validation by data source; nothing of a row without one."""
    return {match[1]: value for name, value in row.items() if (match := ACCURACY.fullmatch(name))}


def truncate_metrics(path: Path, step: int, checkpoint: Path | None = None) -> None:
    """Keep the rows up to ``step``: a run that resumes there writes the later ones again.

    If the run was killed before it wrote the row of ``step`` itself, that is taken from ``checkpoint``.
    """
    rows = [row for row in read_metrics(path) if row["step"] <= step]
    saved = checkpoint is not None and (checkpoint / STEP_ROW).is_file()
    if checkpoint is not None and saved and not any(row["step"] == step and is_update(row) for row in rows):
        rows.append(step_row(checkpoint))
    if path.is_file() or rows:
        write_text(path, "".join(json.dumps(row) + "\n" for row in rows))


def step_row(checkpoint: Path) -> dict[str, Any]:
    """Return the row of metrics that a checkpoint keeps. UserError if it is damaged."""
    return read_json_object(checkpoint / STEP_ROW, DAMAGED)


def is_update(row: Mapping[str, Any]) -> bool:
    """Return True for the row of a training step, with samples or without; a validation may have a row of its own."""
    return UPDATES in row or any(key.endswith("/grad_norm") for key in row)


def numbers(data: Mapping[str, Any]) -> dict[str, str | int | float | None]:
    """Return the numbers (numpy's and torch's scalars too) and strings of ``data``; None for what is not finite."""
    values = {key: value.item() if getattr(value, "ndim", None) == 0 else value for key, value in data.items()}
    return {key: finite(value) for key, value in values.items() if isinstance(value, str | int | float)}


FORWARD, FORWARD_AND_BACKWARD, THROUGH_FROZEN = 2, 6, 4
SAMPLED_TOKENS = "perf/sampled_tokens_with_prompts"
"""Prompts and responses that a step has sampled, those of groups that were dropped included."""
EVALUATED_TOKENS = "perf/evaluated_tokens"
"""Prompts and responses of an evaluation."""
FLOPS, PAPER_FLOPS = "compute/flops", "compute/flops_paper"
"""Sums since the start of the run, by the full and by the paper's count."""
COMPLETIONS = "compute/sampled_completions"
"""Completions that training has sampled since the start of the run."""
NOT_COUNTED = ("embed_tokens", "lm_head", "lora_")
"""In the names of weights: embeddings, the head, adapters."""


def non_embedding_parameters(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Return N, from the shapes of the weights by name."""
    return sum(math.prod(shape) for name, shape in shapes.items() if not any(part in name for part in NOT_COUNTED))


class ComputeMeter:
    """Adds up the FLOPs and the sampled completions of a run, row by row of its metrics.

    ``old``, ``reference``: whether updates need a pass of its own for the log-probs of these policies; ``frozen``: they
    move adapters alone; ``critic``: one of the policy's size is asked for its values and trained on the same tokens.
    """

    def __init__(
        self, n_parameters: int, *, old: bool, reference: bool, frozen: bool = False, critic: bool = False
    ) -> None:
        self.n_parameters = n_parameters
        self.per_trained_token = THROUGH_FROZEN if frozen else FORWARD_AND_BACKWARD
        self.per_trained_token += FORWARD * (old + reference) + (FORWARD + FORWARD_AND_BACKWARD) * critic
        self.full = self.paper = 0.0
        self.completions = 0

    def add(self, row: Row) -> dict[str, Any]:
        """Return the row with the sums until and with it."""
        sampled, trained, evaluated = (int(row.get(name, 0)) for name in (SAMPLED_TOKENS, TRAINED, EVALUATED_TOKENS))
        self.full += self.n_parameters * (FORWARD * (sampled + evaluated) + self.per_trained_token * trained)
        self.paper += FORWARD_AND_BACKWARD * self.n_parameters * sampled
        self.completions += int(row.get(SAMPLED, 0))
        return {**row, FLOPS: self.full, PAPER_FLOPS: self.paper, COMPLETIONS: self.completions}

    def restore(self, row: Row) -> None:
        """Go on after a row; one of an earlier version has no sums, and they begin at 0."""
        self.full, self.paper = (float(row.get(name, 0.0)) for name in (FLOPS, PAPER_FLOPS))
        self.completions = int(row.get(COMPLETIONS, 0))
