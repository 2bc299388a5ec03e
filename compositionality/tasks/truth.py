"""Ground truths and extra information of foreign rows, brought to the text and the fields that tasks read."""

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

from compositionality.errors import UserError

LARGEST = 256 << 20
"""Bytes that a compressed cell may have when it is unpacked."""


def truth_text(ground_truth: Any) -> str:
    """``ground_truth`` as JSON text: itself if it is text already, else the struct that other libraries write.

    numpy's arrays and numbers inside it count as lists and numbers; guru's ``{compressed: …}`` is unpacked.
    UserError for anything else.
    """
    if isinstance(ground_truth, str):
        return ground_truth
    if isinstance(ground_truth, Mapping) and list(ground_truth) == ["compressed"]:
        unpacked = _unpacked(ground_truth["compressed"], "ground_truth")
        return unpacked if isinstance(unpacked, str) else json.dumps(unpacked)
    try:
        return json.dumps(ground_truth, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"ground_truth of type {type(ground_truth).__name__}: give JSON text or a struct") from error


def row_info(extra_info: Any) -> Mapping[str, Any]:
    """A row's ``extra_info``: a struct, or guru's compressed form of one, ``{part_1: …, part_2: …}``.

    Empty for anything else. UserError for parts that cannot be unpacked.
    """
    if not isinstance(extra_info, Mapping):
        return {}
    if "part_1" not in extra_info:
        return extra_info
    names = [f"part_{number}" for number in range(1, len(extra_info) + 1)]
    unpacked = _unpacked("".join(extra_info.get(name) or "" for name in names), "extra_info")
    return unpacked if isinstance(unpacked, Mapping) else {}


def _unpacked(packed: Any, name: str) -> Any:
    """What guru packs as gzip in base64: any JSON value."""
    try:
        raw = base64.b64decode(str(packed).strip() + "===")
        opened = zlib.decompressobj(zlib.MAX_WBITS | 16)
        text = opened.decompress(raw, LARGEST)
        if not opened.eof:
            raise ValueError("cut short, or too large")
        return json.loads(text)
    except (ValueError, zlib.error, RecursionError) as error:
        raise UserError(f"{name}: its compressed text cannot be unpacked ({error}); download the file again") from error


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")
