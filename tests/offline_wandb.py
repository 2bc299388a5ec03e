"""Reads what wandb would send of an offline run from the file that it keeps."""

import json
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

TABLES = "files/media/table/tables/*.table.json"
"""Their names end with the step at which they were logged, and a hash."""


def records(run: Path) -> list[Any]:
    """Return what one offline run holds; wandb's own process may write the end only after ``finish`` has returned."""
    ends = time.monotonic() + 60
    while not (found := list(read(run))) or not found[-1].HasField("exit"):
        if time.monotonic() > ends:
            break
        time.sleep(0.1)
    return found


def read(run: Path) -> Iterator[Any]:
    """Yield what its file holds by now: protocol buffers in the frames of a LevelDB log, after a header of 7 bytes.

    wandb's own process may not have made the file, or be in the middle of a frame; only whole ones are read.
    """
    from wandb.proto import wandb_internal_pb2

    data = b"".join(file.read_bytes() for file in run.glob("*.wandb"))
    place, block, whole = 7, 32768, b""
    while place + 7 <= len(data):
        if block - place % block < 7:  # no room for a frame's head
            place += block - place % block
        _, size, kind = struct.unpack_from("<IHB", data, place)
        if place + 7 + size > len(data):
            return
        whole += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # a whole record, the last part of one
            yield wandb_internal_pb2.Record.FromString(whole)  # type: ignore[attr-defined]
            whole = b""


def artifacts(run: Path) -> list[Any]:
    """Return the artifacts that one offline run made or used, without those that wandb makes of its tables."""
    made = [record.artifact for record in records(run) if record.HasField("artifact")]
    return [artifact for artifact in made if artifact.metadata]


def history(run: Path) -> list[dict[str, Any]]:
    """Return the rows of one offline run."""
    rows = [record.history.item for record in records(run) if record.HasField("history")]
    return [{item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in row} for row in rows]


def about(run: Path) -> Any:
    """Return what one offline run says of itself: project, group, name, job type, tags."""
    (found,) = [record.run for record in records(run) if record.HasField("run")]
    return found


def config(run: Path) -> dict[str, Any]:
    """Return the configuration of one offline run."""
    return {item.key: json.loads(item.value_json) for item in about(run).config.update}


def summary(run: Path) -> dict[str, Any]:
    """Return the summary of one offline run."""
    return {item.key: json.loads(item.value_json) for record in records(run) for item in record.summary.update}


def tables(run: Path) -> dict[str, pd.DataFrame]:
    """Return the tables that one offline run logged below ``tables``; of one that grew its last part."""
    named = [(re.fullmatch(r"(.+)_(\d+)_\w+\.table\.json", path.name), path) for path in sorted(run.glob(TABLES))]
    parts = sorted((int(match[2]), match[1], path) for match, path in named if match)
    content = {name: json.loads(path.read_text()) for _, name, path in parts}
    return {name: pd.DataFrame(table["data"], columns=table["columns"]) for name, table in content.items()}
