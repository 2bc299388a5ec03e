"""Checkpoints of a run: complete or deleted, the last few and the best kept, and the model folders made from them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from compositionality.data.artefact import Recipe, file_hash, new_artefact, remove, write_text
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError
from compositionality.train.common.metrics import truncate_metrics
from compositionality.train.common.run_folder import TRACKER, latest_step, prune, saved_steps, take_run_folder
from compositionality.train.common.training_report import rl_report

HASHES = "sealed.json"  # the last file of a checkpoint to be written
SCORES = "validation.json"
HASHED_BYTES = 256 << 20  # larger files are checked by their size alone: hashing 100 GB would take minutes


def folder(steps: Path, step: int) -> Path:
    """Where verl keeps the checkpoint of ``step``."""
    return steps / f"global_step_{step}"


def mark_complete(steps: Path, step: int) -> None:
    """Record the hash of every file of the checkpoint, and name it as the latest."""
    path = folder(steps, step)
    files = {file.relative_to(path).as_posix(): fingerprint(file) for file in contents(path)}
    write_text(path / HASHES, json.dumps(files, indent=1, sort_keys=True) + "\n")
    write_text(steps / TRACKER, str(step))


def contents(path: Path) -> list[Path]:
    """The files of a checkpoint without their hashes."""
    return sorted(file for file in path.rglob("*") if file.is_file() and file.name != HASHES)


def fingerprint(file: Path) -> str:
    """Hash of a file, or its size if it is large."""
    size = file.stat().st_size
    return f"{size} bytes" if size > HASHED_BYTES else file_hash(file)


def verify_checkpoint(path: Path) -> None:
    """UserError that names the first file of a complete checkpoint which is missing or altered."""
    for name, expected in read_json_object(path / HASHES, f"delete {path} to go on from an earlier step").items():
        file = path / name
        if not file.is_file() or fingerprint(file) != expected:
            raise UserError(f"{file}: missing or altered; delete {path} to go on from an earlier step")


def resume(out: Path, recipe: Recipe, *, force: bool, repaired: bool = True) -> int:
    """The step to continue from in the run folder ``out`` (0: from the start), which belongs to ``recipe`` from now on.

    ``repaired=False`` for checkpoints that are not marked complete (verl's SFT). UserError for an unfinished run with
    another recipe and for files that are not a run's, unless ``force``, and for an altered checkpoint.
    """
    take_run_folder(out, recipe, force=force)
    if repaired:
        repair(out / "steps")
    first = latest_step(out / "steps")
    truncate_metrics(out / "metrics.jsonl", first, folder(out / "steps", first))
    if first:
        print(f"{out}: going on from step {first:,}", flush=True)
    return first


def repair(steps: Path) -> None:
    """After a crash: delete incomplete checkpoints and let the tracker name the last complete one."""
    complete = complete_steps(steps)
    for step in saved_steps(steps):
        if step not in complete:
            remove(folder(steps, step))
    if complete:
        verify_checkpoint(folder(steps, complete[-1]))
        write_text(steps / TRACKER, str(complete[-1]))
    else:
        remove(steps / TRACKER)


def complete_steps(steps: Path) -> list[int]:
    """Steps of the complete checkpoints, in order."""
    return [step for step in saved_steps(steps) if (folder(steps, step) / HASHES).is_file()]


def scores(steps: Path) -> dict[int, float]:
    """Validation score by step."""
    path = steps / SCORES
    found = read_json_object(path, "delete it: the next evaluation makes it again") if path.is_file() else {}
    return {int(step): score for step, score in found.items()}


def record_score(steps: Path, step: int, score: float) -> None:
    """Keep the validation score of ``step``."""
    steps.mkdir(parents=True, exist_ok=True)
    write_text(steps / SCORES, json.dumps(dict(sorted({**scores(steps), step: score}.items()))) + "\n")


def best_step(steps: Path) -> int | None:
    """The complete checkpoint with the highest validation score (the earliest of equals); None without one."""
    known = scores(steps)
    validated = [step for step in complete_steps(steps) if step in known]
    return max(validated, key=lambda step: (known[step], -step), default=None)


def prune_all_but_best(steps: Path, keep: int) -> None:
    """Delete all complete checkpoints but the last ``keep`` and the best by validation."""
    best = best_step(steps)
    prune(steps, keep, spare=frozenset([best] if best is not None else []))


def publish_models(
    out: Path, recipe: Recipe, write: Callable[[Path, Path], Mapping[str, Any]], *, keep_best: bool
) -> None:
    """Make best/ (by validation) and final/ (the last step), the latter last: it marks the run as finished.

    ``write(checkpoint, target)`` writes a model folder and returns figures for its manifest.
    """
    steps = out / "steps"
    best = best_step(steps) if keep_best else None
    wanted = {} if best is None else {"best": best}
    for name, step in {**wanted, "final": latest_step(steps)}.items():
        score = scores(steps).get(step)
        facts: dict[str, Any] = {"step": step, "validation": score, **rl_report(out / "metrics.jsonl", step)}
        with new_artefact(out / name, recipe, facts) as partial:
            facts |= write(folder(steps, step), partial)
        print(f"{out / name}: step {step}" + ("" if score is None else f", accuracy {score:.3f}"), flush=True)
