"""Prompts, solutions and judges of string problems: JSON style (English around code), compact style (tiny models).

Behaviours that can be injected into compact solutions:

- *analysis*: the functions that are left and the string so far are written before the step (``func_3func_1:CBH``), the
  more often the more are left;
- *reflection*: a later function is tried although the string that it takes is not known (``func_3?func_1``).

A step is one call of a function: it has no subgoals.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.answers import last_value
from compositionality.tasks.draws import Draws
from compositionality.tasks.string.functions import ALIASES
from compositionality.tasks.string.program import Call, Program
from compositionality.tasks.task import BRIDGE, Behaviours
from compositionality.types import Reason, Verdict

_TASK = """Below is a Python program.

{code}

What does `main_solution` return for the input "{text}"? Work it out by reasoning, step by step; do not write code.
Close your answer with a JSON object that has one key, "output", and the returned string as its value."""

_MAIN = "def main_solution("
_CODE_BEGINS = re.compile(r"^(?:@\w|import \w|from \w+ import |class \w)|\bdef \w+\(", re.MULTILINE)
FILLER = "~"
_RESOLUTION = 1 << 30
_COMPACT_DEFINITION = re.compile(r"func_\d+=\w+;")


def main_solution(expression: str) -> str:
    return f"def main_solution(x):\n    return {expression}"


def json_prompt(code: str, text: str) -> str:
    """Return the JSON style's prompt. It holds no JSON object itself, so echoing it is not an answer."""
    return _TASK.format(code=code, text=text)


def ground_truth(x: str, output: str, code: str, style: str = "json") -> str:
    """Return the JSON text that the judge reads: the published keys, and the style unless it is "json"."""
    truth: dict[str, Any] = {"ref_input": {"x": x}, "ref_output": output, "ref_code": code, "funcname": "main_solution"}
    return json.dumps(truth if style == "json" else {**truth, "style": style}, ensure_ascii=False)


def compact_name(call: Call) -> str:
    """Return ``func_3``, with its parameter (which may stand as a literal) in brackets unless that is frozen."""
    parameter = call.parameter if len(call.sources) < 2 else call.sources[1]
    return call.operator if parameter is None or call.frozen else f"{call.operator}[{parameter}]"


def compact_definitions(calls: Iterable[Call]) -> str:
    """Return ``func_3=recursive_reverse;`` for each distinct function, in order of first use."""
    distinct = dict.fromkeys(call.function for call in calls)
    return "".join([f"{function.alias}={function.name};" for function in distinct])


def compact_prompt(chain: Program, text: str, *, show_definitions: bool = False) -> str:
    """Return the compact style's prompt: names, outermost first, a colon, the input."""
    calls = chain.calls[::-1]
    return (compact_definitions(calls) if show_definitions else "") + "".join(map(compact_name, calls)) + ":" + text


def compact_trace(chain: Program, text: str) -> str:
    return trace_of([*map(compact_name, chain.calls)], [text, *[step.value for step in chain.apply(text)]])


def trace_of(names: Sequence[str], strings: Sequence[str]) -> str:
    """Return a line ``REST,CALL:before=after`` per step: names in order of application, strings from the input on."""
    lines = []
    for step, name in enumerate(names):
        rest = "".join(reversed(names[step + 1 :]))
        lines.append(f"{rest},{name}:{strings[step]}={strings[step + 1]}")
    return "\n".join(lines)


def write_solution(names: Sequence[str], trace: str, behaviours: Behaviours, key: bytes) -> str:
    """Return the ``trace`` of steps with these ``names`` and behaviours injected, all choices drawn from ``key``.

    UserError for what such traces cannot hold.
    """
    if behaviours.subgoals or behaviours.reordered:
        raise UserError("the steps of string problems have no subgoals and no other order; leave both out")
    draws = Draws(key)
    lines: list[str] = []
    for number, line in enumerate(trace.split("\n")):
        remaining = names[number:]
        if len(remaining) > 1 and _happens(draws, behaviours.reflection):
            later = draws.between(1, len(remaining) - 1)
            lines.append(f"{remaining[later]}?{remaining[later - 1]}")
        if _happens(draws, behaviours.analysis_chance(len(remaining))):
            value = line.rpartition("=")[0].rpartition(":")[2]
            lines.append(f"{''.join(reversed(remaining))}:{value}")
        lines.append(line)
    text = "\n".join(lines)
    if not behaviours.padded:
        return text
    whole = Behaviours(analysis=BRIDGE.analysis, reflection=BRIDGE.reflection)
    missing = len(write_solution(names, trace, whole, key)) - len(text)
    return f"{FILLER * (missing - 1)}\n{text}" if missing > 1 else text


def _happens(draws: Draws, chance: float) -> bool:
    return chance > 0 and draws.below(_RESOLUTION) < chance * _RESOLUTION


def sources(names: Iterable[str]) -> str:
    """Return definitions of the named functions, once each, in order of first use, to stand before the program."""
    return "".join([ALIASES[name].source() + "\n\n" for name in dict.fromkeys(names)])


def hide_definitions(prompt: str) -> str:
    """Return a prompt of either style without the definitions that it shows (as the paper does before Stage-1 SFT).

    Imports and definitions before ``main_solution`` go, the words before the code stay; so the paper's published
    prompts are served too. A prompt that shows no definition stays as it is.
    """
    program = prompt.find(_MAIN)
    if program < 0:
        return prompt.rpartition(";")[2] if _COMPACT_DEFINITION.match(prompt) else prompt
    code = _CODE_BEGINS.search(prompt, 0, program)
    return prompt if code is None else prompt[: code.start()] + prompt[program:]


# ---- answers
#
# JSON style: the last well-formed JSON object with the key ``output`` counts, wherever it stands; fences, prose,
# unmatched braces and end-of-turn marks around it do not matter. The value must be a string equal to the gold one.
# Decisions: extra keys are fine and of a repeated key the last counts; a raw line break inside the string is part of
# it (hence wrong); a number, null, list or object as value is wrong; the Python words True, False and None are read
# like their JSON forms; single quotes, trailing commas and \boxed{...} without an object are malformed; an object
# inside another well-formed object does not count. Compact style: the answer is the text after the last ``=``.
# No answer at all is ``no_answer``; an attempt that cannot be read (there is a brace) is ``malformed``.

_NOT_IN_STRINGS = re.compile(r"[:,;\s]")


def judge_string(answer_text: str, ground_truth: str) -> Verdict:
    """Judge a response of the string task; linear in its length, never raises on what a model wrote."""
    gold, style = read_ground_truth(ground_truth)
    return _judge_compact(answer_text, gold) if style == "compact" else _judge_json(answer_text, gold)


@lru_cache(maxsize=4096)
def read_ground_truth(ground_truth: str) -> tuple[str, str]:
    """Return gold answer and style ("json" or "compact") in the JSON text of a row."""
    try:
        fields = json.loads(ground_truth)
        gold, style = fields["ref_output"], fields.get("style", "json")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"ground_truth {ground_truth[:60]!r} has no ref_output; make the problem file again") from error
    if not isinstance(gold, str) or style not in ("json", "compact"):
        raise UserError(f"ground_truth {ground_truth[:60]!r}: ref_output must be text, style json or compact")
    return gold, style


def _judge_json(response: str, gold: str) -> Verdict:
    value = last_value(response, "output")
    if value is None:
        return Verdict(0.0, Reason.MALFORMED if "{" in response else Reason.NO_ANSWER)
    if value[0] != '"':
        return Verdict(0.0, Reason.WRONG, value)
    return _compare(value[1:-1] if "\\" not in value else json.loads(value, strict=False), gold)


def _judge_compact(response: str, gold: str) -> Verdict:
    _, equals, answer = response.rpartition("=")
    if not equals or not answer or _NOT_IN_STRINGS.search(answer):
        return Verdict(0.0, Reason.MALFORMED if equals else Reason.NO_ANSWER)
    return _compare(answer, gold)


def _compare(answer: str, gold: str) -> Verdict:
    return Verdict(1.0, Reason.CORRECT, answer) if answer == gold else Verdict(0.0, Reason.WRONG, answer)
