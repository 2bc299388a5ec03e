"""The folder of a training run: what it was started with, its last complete checkpoint, which checkpoints to keep."""

import json
import os
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compositionality.data.artefact import (
    Recipe,
    check_place,
    is_done,
    is_to_be_checked,
    read_manifest,
    remove,
    write_text,
)
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError

RECIPE = "recipe.json"
WANDB_ID = "wandb.id"
TRACKER = "latest_checkpointed_iteration.txt"
FINISHED = "finished"
"""In ``steps/``: verl's trainer has come to its end."""
LENGTHS = ("trainer.steps", "trainer.epochs", "trainer.total_training_steps", "trainer.total_epochs")
BY_LENGTH = ("decay_power", "lr_warmup_steps_ratio")
"""Ends of settings with which, unless 0, the learning rate depends on the number of steps."""


def flatten(node: Any, prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with dotted keys."""
    if not isinstance(node, dict) or not node:
        return {prefix: node}
    items: dict[str, Any] = {}
    for key, value in node.items():
        items |= flatten(value, f"{prefix}.{key}" if prefix else str(key))
    return items


def is_finished(target: Path, recipe: Recipe, *, force: bool) -> bool:
    """True, with a line on the screen, if ``target`` was already made by this very recipe.

    UserError if it was made from something else, unless ``force``, or by a shorter run that can go on.
    """
    old = None if force else read_manifest(target)
    if old and old.step == recipe.step and is_lengthened(target.parent, old.settings, old.inputs, recipe):
        if not latest_step(target.parent / "steps"):
            raise UserError(f"{target}: no checkpoint is left in {target.parent / 'steps'} to go on from; add --force")
        return False
    done = is_done(target, recipe, force=force)
    if done:
        print(f"{target} is already there", flush=True)
    return done


def skips(target: Path, recipe: Recipe, *, force: bool) -> bool:
    """``is_finished`` before ranks are started, and torch imported; False on a rank, which checks itself."""
    return "RANK" not in os.environ and target.exists() and is_finished(target, recipe, force=force)


def take_run_folder(out: Path, recipe: Recipe, *, force: bool) -> None:
    """Record that ``out`` belongs to this recipe from now on.

    UserError if it holds an unfinished run with another recipe, or files that are not a run's, unless ``force``: then a
    run's files are deleted.
    """
    before, own = owner(out, recipe, force=force), _identity(recipe)
    if before == own:
        return
    left_over = ("steps/" + FINISHED,) if before else ("steps", "metrics.jsonl", "tensorboard", "train.log")
    for name in left_over:
        remove(out / name)
    out.mkdir(parents=True, exist_ok=True)
    if not before:
        write_text(out / WANDB_ID, uuid.uuid4().hex[:16] + "\n")
    write_text(out / RECIPE, json.dumps(own, indent=1, sort_keys=True) + "\n")


def owner(out: Path, recipe: Recipe, *, force: bool) -> dict[str, Any]:
    """What the run in ``out`` was started with, if this recipe may go on from it; else empty. Nothing is written.

    UserError as ``take_run_folder`` has it.
    """
    check_place(out, recipe)
    path = out / RECIPE
    if force:
        return {}
    if path.is_file():
        before, own = read_json_object(path, "add --force to start over"), _identity(recipe)
        if before == own or is_lengthened(out, before.get("settings", {}), before.get("inputs", {}), recipe):
            return before
        raise UserError(f"{out}: an unfinished run was started differently ({_changes(before, own)}); add --force")
    for found in out.glob("[!.]*"):
        if found.name != WANDB_ID:
            raise UserError(f"{found}: not of a training run; choose another folder than {out}, or add --force")
    return {}


def check_run(out: Path, recipe: Recipe, *, force: bool) -> None:
    """What a start refuses of ``out``, in a dry run whose inputs are there: of others nothing is known yet."""
    if is_to_be_checked(*recipe.inputs.values(), dry=True) and not is_finished(out / "final", recipe, force=force):
        owner(out, recipe, force=force)


def _identity(recipe: Recipe) -> dict[str, Any]:
    step, settings, inputs = recipe.identity()
    return {"step": step, "settings": json.loads(settings), "inputs": inputs}


def is_lengthened(out: Path, before: Mapping[str, Any], inputs: Mapping[str, str], recipe: Recipe) -> bool:
    """Whether ``recipe`` is that of the run in ``out`` (its settings ``before``, its ``inputs``), only longer.

    UserError if it is and the learning rate depends on the length.
    """
    _, text, hashes = recipe.identity()
    now = json.loads(text)
    changed = [key for key in before.keys() | now.keys() if before.get(key) != now.get(key)]
    longer = all(key in LENGTHS and (before.get(key) or now.get(key) or 0) < (now.get(key) or 0) for key in changed)
    if not changed or not longer or hashes != inputs:
        return False
    for key, value in now.items():
        if value != "constant" if key.endswith("lr_scheduler_type") else value and key.endswith(BY_LENGTH):
            raise UserError(
                f"{out}: cannot be lengthened, since with {key}={value} the learning rate depends on the number of "
                "steps; add --force to start over"
            )
    return True


def latest_step(steps: Path) -> int:
    """The last complete checkpoint: the one that verl's tracker names, or the newest before it; 0 if there is none."""
    tracker = steps / TRACKER
    if not tracker.is_file():
        return 0
    text = tracker.read_text(errors="replace").strip()
    if not text.isdecimal():
        raise UserError(f"{tracker}: damaged (not a number); write the step of a checkpoint into it, or add --force")
    limit = int(text)
    return max((step for step in saved_steps(steps) if step <= limit), default=0)


def saved_steps(steps: Path) -> list[int]:
    """Steps of all checkpoint folders, complete or not, in order."""
    names = (re.fullmatch(r"global_step_(\d+)", path.name) for path in steps.glob("global_step_*"))
    return sorted(int(name[1]) for name in names if name)


def prune(steps: Path, keep: int, *, spare: frozenset[int] = frozenset()) -> None:
    """Delete all but the last ``keep`` complete checkpoints (and those in ``spare``).

    Only called after the tracker names the newest, so that a crash at any moment leaves a good one.
    """
    complete = [step for step in saved_steps(steps) if step <= latest_step(steps)]
    for step in complete[: -max(keep, 1)]:
        if step not in spare:
            remove(steps / f"global_step_{step}")


def _changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    old, new = flatten(before), flatten(now)
    old |= {f"settings.{key}": value for key, value in before.get("settings", {}).items()}
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    changes = [
        f"{key.partition('.')[2] or key}: {old.get(key)!r} then, {new.get(key)!r} now"
        if key.startswith("settings.")
        else f"{key.partition('.')[2] or key} has changed"
        for key in keys
    ]
    return "; ".join(changes[:3])
