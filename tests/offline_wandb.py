"""Reads what wandb would send of an offline run from the file that it keeps."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def records(run: Path) -> Iterator[Any]:
    """Yield what one offline run holds: protocol buffers in the frames of a LevelDB log, after a header of 7 bytes."""
    from wandb.proto import wandb_internal_pb2

    (file,) = run.glob("*.wandb")
    data, place, block, whole = file.read_bytes(), 7, 32768, b""
    while place + 7 <= len(data):
        if block - place % block < 7:  # no room for a frame's head
            place += block - place % block
        _, size, kind = struct.unpack_from("<IHB", data, place)
        whole += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # a whole record, the last part of one
            yield wandb_internal_pb2.Record.FromString(whole)  # type: ignore[attr-defined]
            whole = b""


def history(run: Path) -> list[dict[str, Any]]:
    """Return the rows of one offline run."""
    rows = [record.history.item for record in records(run) if record.HasField("history")]
    return [{item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in row} for row in rows]
