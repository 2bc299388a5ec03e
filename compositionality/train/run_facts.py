"""Of which study, replicate and arm a run is, with which engine and on which task."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from compositionality.data.artefact import beside
from compositionality.errors import UserError
from compositionality.tasks.registry import task_of

RUN_VARIABLES = ("PROFILE", "STUDY", "SEED", "SPLIT", "TEST_SEED")
"""Of bash/env.sh, which say what run a script's command belongs to."""
REPLICATE = re.compile(r"seed(\d+)(?:-split(\d+))?")
"""The name of a replicate's folder."""
RUN = "run.json"
"""In a run folder, what ``facts_at_start`` returned at its start."""
TAGS = {"profile": "", "engine": "", "task": "", "arm": "", "seed": "seed", "split": "split"}
"""Facts of a run by which it can be found, some of several values, and what stands before these."""
LONGEST_TAG = 64
"""Characters that wandb takes."""


def facts_at_start(engine: str, files: Iterable[Path]) -> dict[str, str]:
    """Return what the environment says of a run, its engine and the task of the files that it reads, where known."""
    variables = {name.lower(): os.environ[name] for name in RUN_VARIABLES if name in os.environ}
    return {**variables, "engine": engine, **({"task": task} if (task := task_of_files(files)) else {})}


def task_of_files(files: Iterable[Path]) -> str:
    """Return the name of the task of the first row of the first parquet file that has one; empty if none has."""
    import pyarrow.parquet as pq

    for path in (path for path in files if path.suffix == ".parquet" and path.is_file()):
        with suppress(UserError, ValueError, OSError), pq.ParquetFile(path) as table:  # no task of ours; damaged
            if "data_source" in table.schema_arrow.names and table.metadata.num_rows:
                first = next(table.iter_batches(1, columns=["data_source"]))
                return task_of(str(first["data_source"][0])).name
    return ""


def facts_of(result: Path) -> dict[str, str]:
    """Return study, seed, split and arm of a result by its place, and what its run folder kept of its start.

    What has no run folder is of the run that the environment says.
    """
    file = next((path for folder in (result, beside(result, "progress")) if (path := folder / RUN).is_file()), None)
    facts = json.loads(file.read_text()) if file else facts_at_start("", ())
    *above, arm = place_of(result)
    if above and (match := REPLICATE.fullmatch(above[-1])):
        facts = {"study": above[0], **facts, "seed": match[1], "split": match[2] or "0"}
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
    own = [before + tag for name, before in TAGS.items() for tag in facts.get(name, "").split(",") if tag]
    given = os.environ["WANDB_TAGS"].split(",") if os.environ.get("WANDB_TAGS") else []
    return list(dict.fromkeys([*(tag[:LONGEST_TAG] for tag in own), *given]))
