"""What a step of the check tells about its speed: tokens per second and MFU, from its metrics and its output."""

import re
from pathlib import Path
from statistics import median
from typing import Any

from compositionality.report.gpu_check.plan import CheckStep
from compositionality.report.gpu_check.speed import FlopShape, mfu, shape_of
from compositionality.train.common.metrics import read_metrics

ALLOCATED = "perf/max_memory_allocated_gb"
SAMPLED = re.compile(r"(\d+) completions, (\d+) tokens, ([\d,]+) tok/s")
Rows = list[dict[str, Any]]


def figures_of(step: CheckStep, log: str, gpus: list[str]) -> dict[str, float]:
    """Tokens/s of generation and update, their MFU where the GPUs' peak is known, and torch's own peak memory."""
    if step.kind == "rollouts":
        return _of_rollouts(step, log, gpus)
    rows = _rows(step)
    held = [row[ALLOCATED] for row in rows if row.get(ALLOCATED)]  # on a CPU verl says 0
    found = {"allocated_gb": round(max(held) * 2**30 / 1e9, 2)} if held else {}
    if step.kind == "grpo":
        return found | _of_grpo(step, rows, gpus)
    if step.kind in ("pretrain", "sft") and _has(rows, "perf/tokens_per_second") and step.output is not None:
        speed = _typical(rows, "perf/tokens_per_second")
        final = step.output if step.kind == "pretrain" else step.output / "final"
        return found | _update(speed, shape_of(final), 0, gpus)  # how long the rows are is not in the metrics
    return found


def _of_rollouts(step: CheckStep, log: str, gpus: list[str]) -> dict[str, float]:
    said = SAMPLED.search(log)
    if said is None or step.model is None:
        return {}
    completions, tokens, speed = (float(word.replace(",", "")) for word in said.groups())
    return _generation(speed, shape_of(step.model), tokens / completions / 2, gpus)


def _of_grpo(step: CheckStep, rows: Rows, gpus: list[str]) -> dict[str, float]:
    """Both engines name seconds and lengths alike; tokens are counted by each in its own words."""
    rows = [row for row in rows if "timing_s/update_actor" in row and "timing_s/gen" in row]
    if not rows or step.model is None:
        return {}
    shape, completions = shape_of(step.model), _completions(step)
    length = _typical(rows, "response_length/mean")
    trained_key = "perf/trained_tokens" if _has(rows, "perf/trained_tokens") else "perf/total_num_tokens"
    trained = _typical(rows, trained_key)
    sampled = length * completions
    generated = _generation(sampled / max(_typical(rows, "timing_s/gen"), 1e-9), shape, length / 2, gpus)
    speed = trained / max(_typical(rows, "timing_s/update_actor"), 1e-9)
    return {**generated, **_update(speed, shape, trained / completions, gpus)}


def _generation(speed: float, shape: FlopShape, context: float, gpus: list[str]) -> dict[str, float]:
    return {"generated_tok_s": round(speed)} | _mfu("generation_mfu", shape.flops(speed, context, update=False), gpus)


def _update(speed: float, shape: FlopShape, context: float, gpus: list[str]) -> dict[str, float]:
    return {"updated_tok_s": round(speed)} | _mfu("update_mfu", shape.flops(speed, context, update=True), gpus)


def _mfu(name: str, flops: float, gpus: list[str]) -> dict[str, float]:
    share = mfu(flops, gpus)
    return {} if share is None else {name: round(share, 4)}


def _rows(step: CheckStep) -> Rows:
    return read_metrics(step.output / "metrics.jsonl") if step.output is not None else []


def _completions(step: CheckStep) -> int:
    given = dict(word.split("=", 1) for word in step.words if "=" in word)
    return int(given["data.prompts_per_step"]) * int(given["rollout.n"])


def _has(rows: Rows, key: str) -> bool:
    return any(key in row for row in rows)


def _typical(rows: Rows, key: str) -> float:
    """The median over the steps, without the first where there are more: it warms up."""
    values = [float(row[key]) for row in rows if row.get(key) is not None]
    return median(values[1:] or values or [0.0])


def problem_in(log: Path, code: int) -> str:
    """One line on why a command failed: its ``error:``, else its last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    said = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (said or lines or [f"exit code {code}"])[-1][:300]
