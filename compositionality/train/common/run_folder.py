"""The folder of a training run: what it was started with, its last complete checkpoint, which checkpoints to keep."""

import json
import re
import uuid
from pathlib import Path
from typing import Any

from compositionality.data.artefact import Recipe, check_place, is_done, remove, write_text
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError

RECIPE = "recipe.json"
WANDB_ID = "wandb.id"
TRACKER = "latest_checkpointed_iteration.txt"


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

    UserError if it was made from something else, unless ``force``.
    """
    done = is_done(target, recipe, force=force)
    if done:
        print(f"{target} is already there", flush=True)
    return done


def take_run_folder(out: Path, recipe: Recipe, *, force: bool) -> None:
    """Record that ``out`` belongs to this recipe from now on.

    UserError if it holds an unfinished run with another recipe, or files that are not a run's, unless ``force``: then a
    run's files are deleted.
    """
    check_place(out, recipe)
    step, settings, inputs = recipe.identity()
    own = {"step": step, "settings": json.loads(settings), "inputs": inputs}
    path = out / RECIPE
    if not force:
        if path.is_file():
            before = read_json_object(path, "add --force to start over")
            if before == own:
                return
            raise UserError(f"{out}: an unfinished run was started differently ({_changes(before, own)}); add --force")
        for found in out.glob("[!.]*"):
            if found.name != WANDB_ID:
                raise UserError(f"{found}: not of a training run; choose another folder than {out}, or add --force")
    for name in ("steps", "metrics.jsonl", "tensorboard", "train.log"):
        remove(out / name)
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / WANDB_ID, uuid.uuid4().hex[:16] + "\n")
    write_text(path, json.dumps(own, indent=1, sort_keys=True) + "\n")


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
