"""Runs in wandb, where it can be used without a login: what each is called and says of itself."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from compositionality.data.artefact import beside
from compositionality.data.git import code_version
from compositionality.errors import UserError, without_secrets
from compositionality.tasks.registry import task_of

PROJECT = "compositionality"
"""In wandb, unless WANDB_PROJECT names another."""
RUN_VARIABLES = ("PROFILE", "STUDY", "SEED", "SPLIT", "TEST_SEED")
"""Of bash/env.sh, which say what run a script's command belongs to."""
REPLICATE = re.compile(r"seed(\d+)(?:-split(\d+))?")
"""The name of a replicate's folder."""
RUN = "run.json"
"""In a run folder, what ``facts_at_start`` returned at its start."""
TAGS = {"profile": "", "engine": "", "task": "", "arm": "", "seed": "seed", "split": "split"}
"""Facts of a run by which it can be found, and what stands before their values."""
OF_A_STUDY = ("claims", "report")
"""Jobs that read all its replicates; their results lie in its folder."""
LONGEST_TAG = 64
"""Characters that wandb takes."""


def wandb_is_usable(environment: Mapping[str, str]) -> bool:
    """Return whether wandb would not ask for a login."""
    mode = environment.get("WANDB_MODE", "")
    return mode == "offline" or (bool(environment.get("WANDB_API_KEY")) and mode != "disabled")


def facts_at_start(engine: str, files: Iterable[Path]) -> dict[str, str]:
    """Return what the environment says of a run, its engine and the task of the files that it reads, where known."""
    given = {name.lower(): os.environ[name] for name in RUN_VARIABLES if name in os.environ}
    return {**given, "engine": engine, **({"task": task} if (task := task_of_files(files)) else {})}


def task_of_files(files: Iterable[Path]) -> str:
    """Return the name of the task of the first row of the first parquet file that has one; empty if none has."""
    import pyarrow.parquet as pq

    for path in (path for path in files if path.suffix == ".parquet" and path.is_file()):
        with pq.ParquetFile(path) as table:
            if "data_source" in table.schema_arrow.names and table.metadata.num_rows:
                first = next(table.iter_batches(1, columns=["data_source"]))
                with suppress(UserError):  # of no task of ours: a reward function judges them
                    return task_of(str(first["data_source"][0])).name
    return ""


def facts_of(result: Path) -> dict[str, str]:
    """Return study, seed, split and arm of a result by its place, and what its run folder kept of its start.

    What has no run folder is of the run that the environment says.
    """
    kept = next((path for folder in (result, beside(result, "progress")) if (path := folder / RUN).is_file()), None)
    facts = json.loads(kept.read_text()) if kept else facts_at_start("", ())
    *above, arm = place_of(result)
    if above and (found := REPLICATE.fullmatch(above[-1])):
        facts = {"study": above[0], **facts, "seed": found[1], "split": found[2] or "0"}
    return {name: value for name, value in {**facts, "arm": arm}.items() if value}


def place_of(result: Path) -> tuple[str, ...]:
    """Return the study and the replicate that a result lies in, else its folder, and behind them the arm.

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
    own = [before + facts[name] for name, before in TAGS.items() if name in facts]
    given = os.environ["WANDB_TAGS"].split(",") if os.environ.get("WANDB_TAGS") else []
    return list(dict.fromkeys([*(tag[:LONGEST_TAG] for tag in own), *given]))


def run_name(result: Path) -> str:
    """Return the name of a run in wandb: WANDB_NAME, or the arm and the replicate's folder, ``rl-level2/seed0``."""
    *_, place, arm = place_of(result)
    return os.environ.get("WANDB_NAME") or f"{arm}/{place}"


def open_wandb(
    result: Path, job: str, settings: Mapping[str, Any], identity: str, *, inside: bool = False, code: str = ""
) -> Any:
    """Return the wandb run of this result; None, with a line, if wandb is not installed, refuses or does not answer.

    Its group is WANDB_RUN_GROUP, else the study whose folder it lies in. Its files lie beside the result, or
    ``inside``. ``code``: the version that made it, unless it is this one.
    """
    try:
        import wandb
    except ImportError:
        print("wandb is left out: it is not installed (pip install wandb)", flush=True)
        return None
    files = result if inside else result.with_name(f"{result.name}.wandb")
    facts, whole = facts_of(result), job in OF_A_STUDY
    with or_left_out():
        files.mkdir(parents=True, exist_ok=True)
        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or PROJECT,
            name=run_name(result),
            group=os.environ.get("WANDB_RUN_GROUP") or facts.get("study") or (place_of(result)[0] if whole else None),
            tags=tags_of(facts),
            job_type=job,
            dir=str(files),
            id=identity,
            resume="allow",
            config={**_public(settings), "run": facts | {"code": code or code_version()}},
            settings=wandb.Settings(quiet=True),
        )
        run.define_metric("val-core/*", step_metric="compute/flops" if job == "rl" else None, summary="last,max")
        return run
    return None


@contextmanager
def or_left_out() -> Iterator[None]:
    """Say in one line that a run goes on without wandb, if it fails here, and why: no training ends by it.

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
