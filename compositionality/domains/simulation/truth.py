"""What a prediction is judged by: one side of a run of a program, or the program itself."""

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.truth import truth_text

SIDES = ("output", "input")
_ASKED = re.compile(r"^assert (f\(.*\)) == (.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SimulationTruth:
    """``side`` output or input with its ``value``; or, for ``side`` assertion, what the answer must repeat.

    ``program``: for an input, any that gives ``output`` is right; for an assertion, what it is run on. ``call`` and
    ``result``: Python text of the side that the prompt gives, where it is known.
    """

    side: str
    value: Any = None
    program: str = ""
    output: Any = None
    call: str = ""
    result: str = ""


def row_text(ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
    """The judge's text of a row: an object with ``output``, ``input`` or ``functional``. UserError as ``truth_text``.

    Rows of others may leave out the braces. For an assertion the side that the prompt gives is read off
    ``extra_info.original_prompt``.
    """
    text = truth_text(ground_truth)
    fields = _object(text)
    if fields is None:
        return text  # parse_truth says what is wrong with it
    if "functional" in fields and not fields.keys() & {"call", "result"}:
        fields |= _given(extra_info.get("original_prompt"))
    return json.dumps(fields)


@lru_cache(maxsize=1024)
def read_truth(ground_truth: str) -> SimulationTruth:
    """From the JSON text of a row. UserError if it is damaged or of another format."""
    fields = _object(ground_truth)
    if fields is None:
        raise UserError(f"ground_truth {ground_truth[:60]!r}: give an object with output, input or functional")
    if "functional" in fields:
        texts = [fields.get(name) or "" for name in ("functional", "call", "result")]
        if not all(isinstance(text, str) for text in texts):
            raise UserError("ground_truth: functional, call and result must be Python text")
        return SimulationTruth("assertion", program=texts[0], call=texts[1], result=texts[2])
    side = "input" if "input" in fields else "output"
    if "program" in fields:
        return SimulationTruth(side, fields[side], str(fields["program"]), fields.get("output"))
    return SimulationTruth(side, fields[side])


def _object(text: str) -> dict[str, Any] | None:
    for attempt in (text, f"{{{text}}}"):
        try:
            fields = json.loads(attempt)
        except (ValueError, RecursionError):
            continue
        if isinstance(fields, dict) and fields.keys() & {*SIDES, "functional"}:
            return fields
    return None


def _given(prompt: Any) -> dict[str, str]:
    """The side of the last assertion in a prompt that is not asked for (``??``)."""
    found = _ASKED.findall(prompt) if isinstance(prompt, str) else []
    if not found:
        return {}
    call, result = found[-1]
    try:
        return {"call": ast.unparse(ast.parse(call))} if "??" in result else {"result": ast.unparse(ast.parse(result))}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
