"""What a program is judged by: the tests of our rows and of the formats of others."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.truth import truth_text

_CALLS = """import json
CASES = json.loads({cases!r})
try:
    from solution import {name} as tested
except ImportError:
    tested = Solution().{name}


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return {{str(key): plain(one) for key, one in value.items()}} if isinstance(value, dict) else value


for given, expected in CASES:
    got = plain(tested(*given))
    assert got == expected or [got] == expected, repr(given)[:200]
"""


@dataclass(frozen=True, slots=True)
class CodeTruth:
    """Either ``tests`` (a Python text; ``style`` assert or pytest) or ``inputs`` with their ``outputs``.

    ``prefix`` stands in front of the program: imports and classes that the problem gives.
    """

    tests: str = ""
    style: str = "assert"
    prefix: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


def row_text(ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
    """The judge's text of a row; a ``prefix`` of ``extra_info`` becomes part of it, once. UserError: ``truth_text``."""
    text, prefix = truth_text(ground_truth), extra_info.get("prefix")
    if not isinstance(prefix, str) or not prefix.strip():
        return text
    fields = _fields(text)
    if "functional" not in fields or fields.get("prefix") or prefix.strip() in str(fields["functional"]):
        return text
    return json.dumps({**fields, "prefix": prefix})


@lru_cache(maxsize=256)
def read_truth(ground_truth: str) -> CodeTruth:
    """From the JSON text of a row. UserError if it is damaged or of another format."""
    fields = _fields(ground_truth)
    prefix = fields.get("prefix") or ""
    if fields.get("functional"):
        return CodeTruth(_text(fields, "functional"), "assert", str(prefix))
    if fields.get("pytest"):
        return CodeTruth(_text(fields, "pytest"), "pytest", str(prefix))
    inputs, outputs = fields.get("inputs"), fields.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise UserError(
            f"ground_truth with {', '.join(fields) or 'nothing'}: give functional, pytest, or inputs and outputs"
        )
    if not inputs or len(inputs) != len(outputs):
        raise UserError(f"ground_truth with {len(inputs)} inputs and {len(outputs)} outputs: give as many, 1 or more")
    if fields.get("fn_name"):
        return CodeTruth(_calls(str(fields["fn_name"]), inputs, outputs))
    return CodeTruth(inputs=tuple(map(_lines, inputs)), outputs=tuple(map(_lines, outputs)))


def _fields(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"ground_truth {text[:60]!r} is no JSON; make the problem file again") from error
    if not isinstance(fields, dict):
        raise UserError(f"ground_truth {text[:60]!r} is no object; give functional, pytest, or inputs and outputs")
    return fields


def _text(fields: Mapping[str, Any], name: str) -> str:
    if not isinstance(fields[name], str):
        raise UserError(f"ground_truth: {name} is no text; give the tests as Python text")
    return str(fields[name])


def _lines(value: Any) -> str:
    """One input or output: text, or a list of lines."""
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def _calls(name: str, inputs: list[Any], outputs: list[Any]) -> str:
    """Tests of one function, as APPS and TACO write them: arguments as a list, or as JSON a line."""
    if not name.isidentifier():
        raise UserError(f"ground_truth: fn_name {name[:40]!r} is no name of a function")
    try:
        given = [[json.loads(line) for line in one.splitlines()] if isinstance(one, str) else one for one in inputs]
        expected = [json.loads(one) if isinstance(one, str) else one for one in outputs]
    except ValueError as error:
        raise UserError(f"ground_truth: arguments of {name} are no JSON; make the problem file again") from error
    return _CALLS.format(name=name, cases=json.dumps(list(zip(given, expected, strict=True))))
