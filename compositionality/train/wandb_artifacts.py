"""Results as artifacts in wandb, by reference: their files stay where they are, and what they were made from is told.

The metadata of an artifact has two hashes of the result, of its manifest and of its ``content``, and ``inputs``, those
of the contents that it was made from: who holds the metadata alone can draw what follows from what.
"""

import os
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from compositionality.data.artefact import Recipe, combined_hash, file_hash, manifest_path, read_manifest
from compositionality.train.run_folder import WANDB_ID
from compositionality.train.wandb_runs import open_wandb, or_left_out, wandb_is_usable

ALIAS = 16
"""Digits of a manifest's hash by which its artifact is called."""


def send_models(out: Path, job: str, recipe: Recipe) -> None:
    """Send the models of a finished run to its wandb run, if it has one, which ended in another process (verl's)."""
    identity = out / WANDB_ID
    if wandb_is_usable(os.environ) and identity.is_file():
        run = open_wandb(out, job, {}, identity.read_text().strip(), inside=True)
        if run is not None:
            with or_left_out():
                send_artifacts(run, used=recipe.inputs.values(), made=models_in(out))
                run.finish()


def models_in(out: Path) -> list[Path]:
    """Return the models of a run folder: the last, and the best where it is kept."""
    return [folder for folder in (out / "final", out / "best") if folder.is_dir()]


def send_artifacts(run: Any, used: Iterable[Path], made: Iterable[Path]) -> None:
    """Send what a run used and what it made, those of it that have a manifest."""
    for places, send in ((used, partial(use, run)), (made, run.log_artifact)):
        for artifact in map(artifact_of, places):
            if artifact is not None:
                send(artifact, aliases=[artifact.metadata["manifest"][:ALIAS]])


def use(run: Any, artifact: Any, aliases: list[str]) -> None:
    """Send what a run used. Offline, wandb refuses that of an artifact that its server may not have.

    Then what its ``use_artifact`` does is done here, without its waiting for the server.
    """
    if run.offline:
        run._log_artifact(artifact, aliases=aliases, is_user_created=True, use_after_commit=True)
    else:
        run.use_artifact(artifact, aliases=aliases)


def artifact_of(target: Path) -> Any:
    """Return a result, or a file of one, as a wandb artifact that refers to its files; None if it has no manifest.

    wandb reads the manifest alone, which has the hashes of the others: a model may take a hundred gigabytes.
    """
    import wandb

    target = target.absolute()
    manifest, place = read_manifest(target), manifest_path(target)
    if manifest is None and target.is_file() and (whole := read_manifest(target.parent)) and target.name in whole.files:
        files = {target.name: whole.files[target.name]}
        manifest, place = whole.model_copy(update={"files": files}), manifest_path(target.parent)
    if manifest is None:
        return None
    hashes = {"manifest": file_hash(place), "content": combined_hash(target, manifest.files)}
    made = {"step": manifest.step, "inputs": manifest.inputs, "code": manifest.code, **hashes}
    kind = "model" if "config.json" in manifest.files else manifest.step
    artifact = wandb.Artifact(artifact_name(target), kind, metadata=made)
    artifact.add_reference(place.as_uri())
    for name in manifest.files:
        artifact.add_reference((target.parent / name if target.is_file() else target / name).as_uri(), name, False)
    return artifact


def artifact_name(target: Path) -> str:
    """Return ``composition-seed0-rl-level2-final``: study, replicate, arm, step; outside of a study the last two."""
    parts = target.parts
    place = next((number for number, part in enumerate(parts) if re.match(r"seed\d", part)), len(parts) - 1)
    return re.sub(r"[^\w.-]", "_", "-".join(parts[max(place - 1, 1) :]), flags=re.ASCII)[-128:]
