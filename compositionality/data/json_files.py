"""Readers of our JSON files: a missing or damaged file is one line that names the file and the fix."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compositionality.errors import UserError

Shape = Mapping[str, Any]
"""Required keys of an object: key → a type, a shape (a list of such objects), or None (anything)."""
NUMBER = int | float


def read_text(path: Path, fix: str) -> str:
    """Return the text of ``path`` without its BOM; UserError, ending with ``fix``, if it is missing or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; {fix}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: damaged (not UTF-8 at byte {error.start}); {fix}") from error


def read_json_object(path: Path, fix: str, shape: Shape | None = None) -> dict[str, Any]:
    """Return the JSON object in ``path``. UserError, ending with ``fix``, if it is damaged or not of this ``shape``."""
    content = parse_json_object(read_text(path, fix), path, fix)
    check_shape(content, shape or {}, path, fix)
    return content


def parse_json_object(text: str, where: object, fix: str) -> dict[str, Any]:
    """Return the object in a text. UserError begins with ``where``: the file, for JSONL with the line."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UserError(f"{where}: damaged (no JSON{place}); {fix}") from error
    if not isinstance(content, dict):
        raise UserError(f"{where}: damaged (a JSON {type(content).__name__}, not an object); {fix}")
    return content


def check_shape(content: Any, shape: Shape, where: object, fix: str) -> None:
    """Raise UserError with ``where`` (the file) and the first key of ``content`` that is missing or of a wrong type."""
    if not isinstance(content, dict):
        raise UserError(f"{where}: not a JSON object; {fix}")
    for key, expected in shape.items():
        if key not in content:
            raise UserError(f"{where}: has no key {key!r}; {fix}")
        value: Any = content[key]
        kind = list if isinstance(expected, Mapping) else expected or object
        if not isinstance(value, kind):
            raise UserError(f"{where}: {key}: has the wrong type {type(value).__name__}; {fix}")
        if isinstance(expected, Mapping):
            for number, row in enumerate(content[key]):
                check_shape(row, expected, f"{where}: {key}[{number}]", fix)
