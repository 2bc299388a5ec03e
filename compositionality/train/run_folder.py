"""The folder of a training run: what it was started with and is part of, its checkpoints, the models made from them.

Checkpoints are complete or deleted; the last few and the best by validation are kept.
"""

import json
import os
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from compositionality.data.artefact import (
    Recipe,
    check_place,
    config_hash,
    file_hash,
    is_done,
    is_to_be_checked,
    new_artefact,
    read_manifest,
    remove,
    write_text,
)
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError
from compositionality.ranges import ALL, CountOrAll
from compositionality.train.metrics import truncate_metrics

RECIPE = "recipe.json"
WANDB_ID = "wandb.id"
STEPS_OF_VERL = ("train_grpo", "train_sft")  # in recipes
OF_A_RUN = ("best", "steps", "metrics.jsonl", "tensorboard", "train.log", "rollouts", "validation", "samples")
"""Files that a run which starts over writes again."""
TRACKER = "latest_checkpointed_iteration.txt"
FINISHED = "finished"
"""In ``steps/``: verl's trainer has come to its end."""
LENGTHS = ("trainer.steps", "trainer.epochs", "trainer.total_training_steps", "trainer.total_epochs")
BY_LENGTH = ("decay_power", "lr_warmup_steps_ratio")
"""Ends of settings with which, unless 0, the learning rate depends on the number of steps."""
RUN_VARIABLES = ("PROFILE", "STUDY", "SEED", "SPLIT", "TEST_SEED")
"""Variables of bash/env.sh that say which run a script's command belongs to."""
RUN = "run.json"
"""In a run folder, what ``facts_at_start`` returned at its start."""


def flatten(node: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested dictionaries as one, with dotted keys."""
    if not isinstance(node, dict) or not node:
        return {prefix: node}
    items: dict[str, Any] = {}
    for key, value in node.items():
        items |= flatten(value, f"{prefix}.{key}" if prefix else str(key))
    return items


def is_finished(target: Path, recipe: Recipe, *, force: bool) -> bool:
    """Return True, with a line on the screen, if ``target`` was already made by this very recipe.

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


def take_run_folder(out: Path, recipe: Recipe, *, force: bool) -> None:
    """Record that ``out`` belongs to this recipe from now on.

    UserError if it holds an unfinished run with another recipe, or files that are not a run's, unless ``force``: then a
    run's files are deleted.
    """
    before, own = owner(out, recipe, force=force), _identity(recipe)
    if before and not (out / WANDB_ID).is_file():  # deleted, so that wandb has what follows as another run
        write_text(out / WANDB_ID, new_wandb_id())
    if before == own:
        return
    left_over = ("steps/" + FINISHED,) if before else OF_A_RUN
    for name in left_over:
        remove(out / name)
    out.mkdir(parents=True, exist_ok=True)
    if not before:
        write_text(out / WANDB_ID, new_wandb_id())
        engine = "verl" if recipe.step in STEPS_OF_VERL else "single"
        write_text(out / RUN, json.dumps(facts_at_start(engine, recipe.inputs.values())) + "\n")
    write_text(out / RECIPE, json.dumps(own, indent=1, sort_keys=True) + "\n")


def new_wandb_id() -> str:
    return uuid.uuid4().hex[:16] + "\n"


def owner(out: Path, recipe: Recipe, *, force: bool) -> dict[str, Any]:
    """Return what the run in ``out`` was started with, if this recipe may go on from it; else empty. Writes nothing.

    UserError as ``take_run_folder`` has it.
    """
    check_place(out, recipe.inputs.values())
    path = out / RECIPE
    if force:
        return {}
    if path.is_file():
        before, own = read_json_object(path, "add --force to start over"), _identity(recipe)
        if before == own or is_lengthened(out, before.get("settings", {}), before.get("inputs", {}), recipe):
            return before
        raise UserError(f"{out}: an unfinished run was started differently ({_changes(before, own)}); add --force")
    refuse_strangers(out)
    return {}


def refuse_strangers(out: Path) -> None:
    for file in out.glob("[!.]*"):
        if file.name not in (WANDB_ID, RUN):
            raise UserError(f"{file}: not of a training run; choose another folder than {out}, or add --force")


def check_run(out: Path, recipe: Recipe, *, force: bool) -> None:
    """Refuse in a dry run what a start refuses of ``out``; while inputs are not there, only what is of no run."""
    recipe = replace(recipe, dry=True)
    if not is_to_be_checked(*recipe.inputs.values(), dry=True):
        check_place(out, recipe.inputs.values())
        if not force and not (out / RECIPE).is_file():
            refuse_strangers(out)
    elif not is_finished(out / "final", recipe, force=force):
        owner(out, recipe, force=force)


def _identity(recipe: Recipe) -> dict[str, Any]:
    step, settings, inputs = recipe.identity()
    return {"step": step, "settings": json.loads(settings), "inputs": inputs}


def is_lengthened(out: Path, before: Mapping[str, Any], inputs: Mapping[str, str], recipe: Recipe) -> bool:
    """Return whether ``recipe`` is that of the run in ``out`` (its settings ``before``, its ``inputs``), only longer.

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
    """Return the last complete checkpoint, which verl's tracker names, or the newest before it; 0 if there is none."""
    tracker = steps / TRACKER
    if not tracker.is_file():
        return 0
    text = tracker.read_text(errors="replace").strip()
    if not text.isdecimal():
        raise UserError(f"{tracker}: damaged (not a number); write the step of a checkpoint into it, or add --force")
    limit = int(text)
    return max((step for step in saved_steps(steps) if step <= limit), default=0)


def saved_steps(steps: Path) -> list[int]:
    """Return the steps of all checkpoint folders, complete or not, in order."""
    names = (re.fullmatch(r"global_step_(\d+)", path.name) for path in steps.glob("global_step_*"))
    return sorted(int(name[1]) for name in names if name)


def prune(steps: Path, keep: CountOrAll, *, keep_best: bool = False) -> None:
    """Delete all but the last ``keep`` complete checkpoints (and with ``keep_best`` the best by validation).

    Only called after the tracker names the newest, so that a crash at any moment leaves a good one.
    """
    if keep == ALL:
        return
    complete = [step for step in saved_steps(steps) if step <= latest_step(steps)]
    best = best_step(steps) if keep_best else None
    for step in complete[: -max(keep, 1)]:
        if step != best:
            remove(folder(steps, step))


def _changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    old, new = flatten(before), flatten(now)
    old |= {f"settings.{key}": value for key, value in before.get("settings", {}).items()}
    changes = []
    for key in sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key)):
        name = key.partition(".")[2] or key
        values = f": {old.get(key)!r} then, {new.get(key)!r} now"
        changes.append(f"{name}{values if key.startswith('settings.') else ' has changed'}")
    return "; ".join(changes[:3])


HASHES = "sealed.json"  # the last file of a checkpoint to be written
OR = " or "  # between the hashes of two contents, of which either is good
SCORES, VALIDATED_ON = "validation.json", "validated_on.txt"
HASHED_BYTES = 256 << 20  # larger files are checked by their size alone: hashing 100 GB would take minutes


def folder(steps: Path, step: int) -> Path:
    """Return where verl keeps the checkpoint of ``step``."""
    return steps / f"global_step_{step}"


def mark_complete(steps: Path, step: int) -> None:
    """Record the hash of every file of the checkpoint, and name it as the latest."""
    path = folder(steps, step)
    contents = (file for file in path.rglob("*") if file.is_file() and file.name != HASHES)
    write_seal(path, {file.relative_to(path).as_posix(): fingerprint(file) for file in contents})
    write_text(steps / TRACKER, str(step))


def write_seal(path: Path, fingerprints: Mapping[str, str]) -> None:
    write_text(path / HASHES, json.dumps(fingerprints, indent=1, sort_keys=True) + "\n")


def fingerprint(file: Path) -> str:
    """Return the hash of a file, or its size if it is large."""
    size = file.stat().st_size
    return f"{size} bytes" if size > HASHED_BYTES else file_hash(file)


def verify_checkpoint(path: Path) -> None:
    """Raise UserError that names the first file of a complete checkpoint which is missing or altered."""
    for name, expected in read_json_object(path / HASHES, f"delete {path} to go on from an earlier step").items():
        file = path / name
        if not file.is_file() or fingerprint(file) not in str(expected).split(OR):
            raise UserError(f"{file}: missing or altered; delete {path} to go on from an earlier step")


def resume(out: Path, recipe: Recipe, *, force: bool, repaired: bool = True, validation: str = "") -> int:
    """Return the step to continue from in the run folder ``out`` (0: from the start), now ``recipe``'s own.

    ``repaired=False`` for checkpoints that are not marked complete (verl's SFT). ``validation``: what scores stand on
    (``validated_on``); those on something else are dropped, since ``best/`` compares them. UserError for an unfinished
    run with another recipe and for files that are not a run's, unless ``force``, and for an altered checkpoint.
    """
    take_run_folder(out, recipe, force=force)
    steps = out / "steps"
    if repaired:
        repair(steps)
    if validation:
        if scores(steps) and not scores(steps, validation):
            print(f"{steps}: other validation problems than before; their scores are dropped", flush=True)
            (steps / SCORES).unlink()
        steps.mkdir(exist_ok=True)
        write_text(steps / VALIDATED_ON, validation)
    first = latest_step(steps)
    truncate_metrics(out / "metrics.jsonl", first, folder(steps, first))
    if first:
        print(f"{out}: going on from step {first:,}", flush=True)
    return first


def repair(steps: Path) -> None:
    """Repair after a crash: delete incomplete checkpoints and let the tracker name the last complete one."""
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
    """Return the steps of the complete checkpoints, in order."""
    return [step for step in saved_steps(steps) if (folder(steps, step) / HASHES).is_file()]


def validated_on(files: Sequence[str], *numbers: int | None) -> str:
    """Return a hash of the validation files and of how many of their problems are asked, and how often."""
    return config_hash({"files": [file_hash(Path(file)) for file in files], "numbers": numbers})


def scores(steps: Path, validation: str = "") -> dict[int, float]:
    """Return the scores by step; none if they stand on other problems than ``validation`` (``validated_on``)."""
    path, basis = steps / SCORES, steps / VALIDATED_ON
    if validation and basis.is_file() and basis.read_text() != validation:
        return {}
    content = read_json_object(path, "delete it: the next evaluation makes it again") if path.is_file() else {}
    return {int(step): score for step, score in content.items()}


def record_score(steps: Path, step: int, score: float) -> None:
    steps.mkdir(parents=True, exist_ok=True)
    write_text(steps / SCORES, json.dumps(dict(sorted({**scores(steps), step: score}.items()))) + "\n")


def best_step(steps: Path) -> int | None:
    """Return the complete checkpoint with the highest validation score (the earliest of equals); None without one."""
    by_step = scores(steps)
    validated = [step for step in complete_steps(steps) if step in by_step]
    return max(validated, key=lambda step: (by_step[step], -step), default=None)


def publish_models(
    out: Path, recipe: Recipe, write: Callable[[Path, Path], Mapping[str, Any]], *, keep_best: bool
) -> None:
    """Make best/ (by validation) and final/ (the last step), the latter last: it marks the run as finished.

    ``write(checkpoint, target)`` writes a model folder and returns figures for its manifest.
    """
    from compositionality.train.training_report import rl_report

    steps = out / "steps"
    best = best_step(steps) if keep_best else None
    models = {} if best is None else {"best": best}
    for name, step in {**models, "final": latest_step(steps)}.items():
        score = scores(steps).get(step)
        facts: dict[str, Any] = {"step": step, "validation": score, **rl_report(out / "metrics.jsonl", step)}
        with new_artefact(out / name, recipe, facts) as partial:
            facts |= write(folder(steps, step), partial)
        print(f"{out / name}: step {step}" + ("" if score is None else f", accuracy {score:.3f}"), flush=True)


def models_in(out: Path) -> list[Path]:
    """Return the models of a run folder: the last, and the best where it is kept."""
    return [folder for folder in (out / "final", out / "best") if folder.is_dir()]


def facts_at_start(engine: str, files: Iterable[Path]) -> dict[str, str]:
    """Return what the environment says of a run, its engine and the task of the files that it reads, where known."""
    variables = {name.lower(): os.environ[name] for name in RUN_VARIABLES if name in os.environ}
    return {**variables, "engine": engine, **({"task": task} if (task := task_of_files(files)) else {})}


def task_of_files(files: Iterable[Path]) -> str:
    """Return the name of the task of the first row of the first parquet file that has one; empty if none has."""
    import pyarrow.parquet as pq

    from compositionality.tasks.registry import task_of

    for path in (path for path in files if path.suffix == ".parquet" and path.is_file()):
        with suppress(UserError, ValueError, OSError), pq.ParquetFile(path) as table:  # no task of ours; damaged
            if "data_source" in table.schema_arrow.names and table.metadata.num_rows:
                first = next(table.iter_batches(1, columns=["data_source"]))
                return task_of(str(first["data_source"][0])).name
    return ""


def run_path(model: Path) -> Path:
    """Return the folder of the run that makes a ``model`` of ours: metrics, settings; until it ends, checkpoints."""
    return model.with_name(f"{model.name}.run")
