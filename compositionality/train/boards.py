"""Where rows go beside metrics.jsonl: TensorBoard, verl's loggers, and wandb, where it can be used without a login.

An artifact refers to files that stay where they are; wandb gets their manifest alone. Its metadata have the hashes of
the manifest and of the ``content``, and, as ``inputs``, those of the contents that it was made from: lineage can be
drawn from the metadata of offline runs too.
"""

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from compositionality.data.artefact import Recipe, combined_hash, file_hash, manifest_path, read_manifest
from compositionality.data.git import code_version
from compositionality.data.json_files import read_json_object
from compositionality.errors import without_secrets
from compositionality.train.log import TABLE, Completions, scalars, wandb_is_usable
from compositionality.train.metrics import FLOPS, read_metrics
from compositionality.train.run_folder import RUN, WANDB_ID, facts_at_start, flatten, models_in, run_path
from compositionality.train.settings import VERLS_LOGGERS

PROJECT = "compositionality"
"""In wandb, unless WANDB_PROJECT names another."""
OF_A_STUDY = ("claims", "report")
"""Jobs that read all its replicates; their results lie in its folder."""
SERVICE = "WANDB_SERVICE"
"""In the environment: wandb's process of the program that started this one. A killed run of the same id may still be
open in it, and would be gone on with there."""
ALIAS = 16
"""Digits of a manifest's hash by which its artifact is called."""
REPLICATE = re.compile(r"seed(\d+)(?:-split(\d+))?")
"""The name of a replicate's folder."""
TAGS = {"profile": "", "engine": "", "task": "", "arm": "", "seed": "seed", "split": "split"}
"""Facts of a run by which it can be found, some of several values, and what stands before these."""
LONGEST_TAG = 64
"""Characters that wandb takes."""


# ---- what a run is part of


def facts_of(result: Path) -> dict[str, str]:
    """Return study, seed, split and arm of a result by its place, and what its run folder kept of its start.

    What has no run folder is of the run that the environment says.
    """
    places = [folder / RUN for folder in (result, run_path(result.absolute()))]
    file = next(filter(Path.is_file, places), None)
    facts = read_json_object(file, "delete it: the run is then of what the environment says") if file else None
    facts = facts_at_start("", ()) if facts is None else facts
    *above, arm = place_of(result)
    if above and (match := REPLICATE.fullmatch(above[-1])):
        facts = {"study": above[0], **facts, "seed": match[1], "split": match[2] or "0"}
    return {name: value for name, value in {**facts, "arm": arm}.items() if value}


def place_of(result: Path) -> tuple[str, ...]:
    """Return the study and the replicate that a result lies in, else its folder, and after them the arm.

    That is the path below the replicate, without the name of the stage that the arms have in common.
    """
    *folders, name = result.absolute().parts
    parts = (*folders, name.removesuffix(".json"))
    place = next((number for number, part in enumerate(parts) if REPLICATE.fullmatch(part)), None)
    if place is None or place == len(parts) - 1:
        return parts[-2:]
    return parts[place - 1], parts[place], "-".join(parts[place + 1 :]).removeprefix("stage2-")


def tags_of(facts: Mapping[str, str]) -> list[str]:
    """Return the tags of a run with these facts, and those that WANDB_TAGS gives."""
    own = [before + tag for name, before in TAGS.items() for tag in facts.get(name, "").split(",") if tag]
    extra = os.environ["WANDB_TAGS"].split(",") if os.environ.get("WANDB_TAGS") else []
    return list(dict.fromkeys([*(tag[:LONGEST_TAG] for tag in own), *extra]))


# ---- its rows


def run_name(result: Path) -> str:
    """Return the name of a run in wandb: WANDB_NAME, or the arm and the replicate's folder, ``rl-level2/seed0``."""
    *_, place, arm = place_of(result)
    return os.environ.get("WANDB_NAME") or f"{arm}/{place}"


def open_wandb(
    result: Path,
    job: str,
    settings: Mapping[str, Any],
    identity: str,
    *,
    inside: bool = False,
    code: str = "",
    facts: Mapping[str, str] | None = None,
) -> Any:
    """Return the wandb run of this result; None, with a line, if wandb is not installed, refuses or does not answer.

    Its group is WANDB_RUN_GROUP, else the study whose folder it lies in. Its files lie beside the result, or
    ``inside``. ``code``: the version that made it, unless it is this one; ``facts``: more of them (``facts_of``).
    """
    try:
        import wandb
    except ImportError:
        print("wandb is left out: it is not installed (pip install wandb)", flush=True)
        return None
    files = result if inside else result.with_name(f"{result.name}.wandb")
    whole = {"study": place_of(result)[0]} if job in OF_A_STUDY else {}
    details = whole | facts_of(result) | {name: text for name, text in (facts or {}).items() if text}
    os.environ.pop(SERVICE, None)
    with or_left_out():
        files.mkdir(parents=True, exist_ok=True)
        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or PROJECT,
            name=run_name(result),
            group=os.environ.get("WANDB_RUN_GROUP") or details.get("study"),
            tags=tags_of(details),
            job_type=job,
            dir=str(files),
            id=identity,
            resume="allow",
            reinit="create_new" if wandb.run is not None and wandb.run.id != identity else None,  # not into another's
            config={**_public(settings), "facts": details | {"code": code or code_version()}},
            settings=wandb.Settings(quiet=True),
        )
        if job == "rl":
            define_validation_metrics(run)
        return run
    return None


class WandbLog:
    """The rows of a run in wandb, those first that a killed process did not send; it ends where wandb fails."""

    def __init__(self, run: Any, completions: Completions) -> None:
        self.run, self.completions = run, completions
        for row, generations in completions.so_far:
            if self.run is not None and row["step"] >= self.run.step:
                self.write(row, generations)

    def write(self, row: Mapping[str, Any], generations: Sequence[Mapping[str, Any]]) -> None:
        run, self.run = self.run, None
        if run is not None:
            with or_left_out():
                run.log(scalars(row) | self.completions.grown(row["step"], generations), step=row["step"])
                self.run = run

    def send_artifacts(self, used: Iterable[Path], made: Iterable[Path]) -> None:
        if self.run is not None:
            with or_left_out():
                send_artifacts(self.run, used, made)

    def close(self) -> None:
        if self.run is not None:
            with or_left_out():
                self.run.finish()


def define_validation_metrics(run: Any) -> None:
    """Make FLOPs the x-axis of a run's validation metrics, and last and largest value their summary."""
    for names in ("val-core/*", "val-aux/*"):
        run.define_metric(names, step_metric=FLOPS, summary="last,max")


@contextmanager
def or_left_out() -> Iterator[None]:
    """Say in one line that a run continues without wandb, if it fails here, and why: it ends no training.

    What it raises is of many kinds: of its settings, its process, the network, the file system.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001
        print(f"wandb is left out: {' '.join(without_secrets(str(error)).split())[:200]}", flush=True)


def _public(settings: Any) -> Any:
    """Return the settings without the secrets that they may hold, such as a password in the URL of a server."""
    if isinstance(settings, Mapping):
        return {name: _public(value) for name, value in settings.items()}
    if isinstance(settings, list | tuple):
        return [_public(value) for value in settings]
    return without_secrets(str(settings)) if isinstance(settings, str | Path) else settings


# ---- artifacts


def send_models(out: Path, job: str, recipe: Recipe) -> None:
    """Send the models of a finished run to its wandb run, if it has one, which ended in another process (verl's)."""
    identity = out / WANDB_ID
    if wandb_is_usable(os.environ) and identity.is_file():
        run = open_wandb(out, job, {}, identity.read_text().strip(), inside=True)
        if run is not None:
            with or_left_out():
                send_artifacts(run, used=recipe.inputs.values(), made=models_in(out))
                run.finish()


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


# ---- other loggers than wandb: TensorBoard; console, mlflow, swanlab and trackio as verl has them


class TensorBoard:
    """A run in a folder for TensorBoard: scalars, tables as text, figures, and the settings as hyperparameters.

    ``done``: the last step that is kept of a run that goes on there.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], done: int | None = None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder), purge_step=None if done is None else done + 1)
        self.writer.add_hparams(public_settings(settings), {}, run_name=".")

    def write(self, row: Mapping[str, Any], generations: Sequence[Mapping[str, Any]]) -> None:
        for name, value in scalars(row).items():
            self.writer.add_scalar(name, value, row["step"])
        if generations:
            self.write_table(TABLE, generations, row["step"])

    def write_table(self, name: str, rows: Sequence[Mapping[str, Any]], step: int = 0) -> None:
        """Add rows as a table in Markdown."""
        self.writer.add_text(name, markdown(rows), step)

    def write_figure(self, name: str, png: bytes) -> None:
        import numpy as np
        from PIL import Image

        with Image.open(io.BytesIO(png)) as picture:
            self.writer.add_image(name, np.asarray(picture.convert("RGB")), dataformats="HWC")

    def close(self) -> None:
        self.writer.close()


class VerlLoggers:
    """Scalars in verl's own loggers of these names; what they raise ends the run, as it does with verl."""

    def __init__(self, names: Sequence[str], result: Path, settings: Mapping[str, Any]) -> None:
        from verl.utils.tracking import Tracking

        project = os.environ.get("WANDB_PROJECT") or PROJECT
        self.tracking = Tracking(project, run_name(result), [*names], public_settings(settings))

    def write(self, row: Mapping[str, Any], _: Sequence[Mapping[str, Any]]) -> None:
        self.tracking.log(scalars(row), row["step"])

    def close(self) -> None:
        self.tracking.finish()


Board = TensorBoard | VerlLoggers


def open_boards(names: Sequence[str], out: Path, result: Path, settings: Mapping[str, Any]) -> list[Board]:
    """Return the loggers of these names, for a run in the folder ``out`` that is called as its ``result``."""
    opened: list[Board] = []
    if "tensorboard" in names:
        rows = read_metrics(out / "metrics.jsonl")  # what a killed run wrote beyond them goes
        opened.append(TensorBoard(out / "tensorboard", settings, rows[-1]["step"] if rows else None))
    if of_verl := [name for name in names if name in VERLS_LOGGERS]:
        opened.append(VerlLoggers(of_verl, result, settings))
    return opened


def public_settings(settings: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    """Return the settings by dotted name, as a table has them, without secrets such as a password in a URL."""
    return {
        name: value if isinstance(value, bool | int | float) else without_secrets(str(value))
        for name, value in flatten(settings).items()
    }


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table in Markdown, with a column for each key that one of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, ["---"] * len(names), *([row.get(name, "") for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", "<br>")
