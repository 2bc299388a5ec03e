"""``compositionality wandb``: trainings and results that lie in folders, sent to wandb or written for TensorBoard."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from compositionality.config.cli import run
from compositionality.config.profile import with_key
from compositionality.data.artefact import MANIFEST, combined_hash, file_hash, read_manifest, verify
from compositionality.data.json_files import read_json_object
from compositionality.errors import MissingPackageError, UserError
from compositionality.evaluate.table import RESULTS
from compositionality.ranges import REQUIRED
from compositionality.report.dashboard import JOBS, TABLES, plain, send_result
from compositionality.train.boards import TensorBoard, place_of, run_name
from compositionality.train.log import RunLog, rows_with_completions, wandb_is_usable
from compositionality.train.run_folder import RECIPE, RUN_VARIABLES, WANDB_ID, models_in
from compositionality.train.tiny.settings import model_of


@dataclass
class SendSettings:
    """Settings of ``send_runs``; a word without = is one of the folders."""

    runs: list[str] = REQUIRED  # folders of trainings, of results, or folders that hold some
    tensorboard: Path | None = None  # write them below this folder, for TensorBoard; null: send them to wandb


def main(about: str) -> None:
    """Send what the folders on the command line hold; ``about``: the verb's help."""
    folders = [word for word in sys.argv[1:] if "=" not in word and not word.startswith("-")]
    words = [word for word in sys.argv[1:] if word not in folders]
    sys.argv[1:] = [*words, *([f"runs=[{','.join(folders)}]"] if folders else [])]
    run(SendSettings, send_runs, about, check=check)


def send_runs(settings: SendSettings) -> None:
    """Send trainings from their metrics.jsonl, and results as their verbs do, all with settings of their own.

    UserError where wandb cannot be used, or a folder holds neither.
    """
    trainings, results = check(settings)
    if settings.tensorboard:
        write_boards(settings.tensorboard, trainings, results)
        return
    for name in RUN_VARIABLES:  # the sender's, which say nothing of these runs
        os.environ.pop(name, None)
    places = {path for place in map(Path, settings.runs) for path in artefacts(place)}
    files_of = {path: made.files for path in sorted(places) if (made := read_manifest(path))}
    parts = [(hash_, path / name) for path, files in files_of.items() if path.is_dir() for name, hash_ in files.items()]
    count = Counter(hash_ for hash_, _ in parts)  # of files that several results hold, none is known to be the one
    by_hash = {hash_: part for hash_, part in parts if count[hash_] == 1}
    by_hash |= {combined_hash(path, files): path for path, files in files_of.items()}
    for folder in trainings:  # a fit has read their metrics
        by_hash |= {file_hash(folder / "metrics.jsonl"): model for model in models_in(folder)[:1]}
    for folder in trainings:
        recipe = recipe_of(folder)
        job = "pretrain" if recipe["step"] == "pretrain_tiny" else "rl" if "grpo" in recipe["step"] else "sft"
        result = model_of(folder) if job == "pretrain" else None
        models = [result] if result else models_in(folder)
        made = read_manifest(models[0]) if models else None
        log = RunLog(folder, [], job, nested(recipe["settings"]), result, made.code if made else "")
        log.send_artifacts(used_of(recipe["inputs"], by_hash), models)
        log.close()
        print(f"{folder}: sent as {run_name(result or folder)}")
    for path in results:
        made = read_manifest(path)
        if made and send_result(path, made.settings, used_of(made.inputs, by_hash)):
            print(f"{path}: sent")


def recipe_of(folder: Path) -> dict[str, Any]:
    """Return what a training run was started with. UserError if its file is damaged."""
    return read_json_object(folder / RECIPE, "train it again", {"step": str, "settings": dict, "inputs": dict})


def write_boards(place: Path, trainings: Iterable[Path], results: Iterable[Path]) -> None:
    """Write each run as TensorBoard reads it, below ``place``; one that is there is replaced."""
    for folder in trainings:
        recipe = recipe_of(folder)
        result = model_of(folder) if recipe["step"] == "pretrain_tiny" else folder
        with new_board(place, result, recipe["settings"]) as board:
            for row, completions in rows_with_completions(folder):
                board.write(row, completions)
    for path in results:
        if made := read_manifest(path):
            content = JOBS[made.step][1](path, made)
            with new_board(place, path.parent if path.name == RESULTS else path, made.settings) as board:
                for name, png in content.figures.items():
                    board.write_figure(f"figures/{name}", png)
                tables = {**content.tables, "summary": [content.summary] if content.summary else []}
                for name, rows in tables.items():
                    if records := plain(rows).to_dict("records"):
                        board.write_table(f"tables/{name}", records)


@contextmanager
def new_board(place: Path, result: Path, settings: Mapping[str, Any]) -> Iterator[TensorBoard]:
    """Yield the folder of a run, below that of its study, with its settings and nothing else."""
    *study, replicate, arm = place_of(result)
    folder = place.joinpath(*study, arm, replicate)
    for old in folder.glob("events.out.tfevents.*"):
        old.unlink()
    board = TensorBoard(folder, nested(settings))
    try:
        yield board
    finally:
        board.close()
    print(f"{folder}: written")


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by dotted names as mappings in each other."""
    settings: dict[str, Any] = {}
    for key, value in flat.items():
        settings = with_key(settings, key, value)
    return settings


def check(settings: SendSettings) -> tuple[list[Path], list[Path]]:
    """Return the folders of trainings and the results that the given folders hold.

    UserError as ``send_runs``, and for a damaged recipe or an altered result: nothing is sent then.
    """
    logger = "tensorboard" if settings.tensorboard else "wandb"
    if find_spec(logger) is None:
        raise MissingPackageError(f"{logger} is not installed; run: pip install {logger}")
    if logger == "wandb" and not wandb_is_usable(os.environ):
        raise UserError("wandb cannot be used: set WANDB_API_KEY, or WANDB_MODE=offline; or give tensorboard=FOLDER")
    places = [*map(Path, settings.runs)]
    folders = [path.parent for place in places for path in [place / RECIPE, *sorted(place.rglob(RECIPE))]]
    trainings = [run for run in folders if (run / "metrics.jsonl").is_file() and (run / WANDB_ID).is_file()]
    results = [path for place in places for path in artefacts(place) if is_result(path)]
    if not trainings and not results:
        where = ", ".join(settings.runs)
        files = ", ".join((RECIPE, "metrics.jsonl", WANDB_ID))
        raise UserError(f"{where}: holds no training run ({files}) and no result; give one")
    for folder in trainings:
        recipe_of(folder)
    for path in results:
        verify(path)
    return [*dict.fromkeys(trainings)], [*dict.fromkeys(results)]


def artefacts(place: Path) -> list[Path]:
    """Return the files and folders with a manifest in a folder, itself included, sorted."""
    folders = [path.parent for path in place.rglob(MANIFEST)]
    files = [path.with_name(path.name[1:].removesuffix(f".{MANIFEST}")) for path in place.rglob(f".*.{MANIFEST}")]
    return sorted(path for path in [*folders, *files, *([place] if place.is_file() else [])] if path.exists())


def is_result(path: Path) -> bool:
    """Return whether a run is made of an artefact: not of rollouts of an evaluation, nor of files beside its table."""
    made = read_manifest(path)
    job = JOBS[made.step][0] if made and made.step in JOBS else ""
    if job in ("claims", "report", "rollouts"):
        return not any((folder / RESULTS).is_file() for folder in [*path.absolute().parents][2:3])
    return bool(job) and path.name in TABLES


def used_of(inputs: Mapping[str, str], known: Mapping[str, Path]) -> Sequence[Path]:
    """Return the artefacts with these hashes, of those that are ``known`` by theirs."""
    return [known[content] for content in inputs.values() if content in known]
