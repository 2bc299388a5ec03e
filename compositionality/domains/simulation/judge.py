"""From a prediction to a verdict; nothing that a model wrote is run outside the sandbox."""

import ast
import json
import re
from typing import Any

from compositionality.domains.code.judge import last_program, run_verdict
from compositionality.domains.code.truth import CodeTruth
from compositionality.domains.simulation.truth import SimulationTruth, read_truth
from compositionality.types import Reason, Verdict

READ = 20_000
"""Characters at the end of a response in which the answer is looked for."""
_BOOLEANS = {"true": True, "false": False}
_OBJECT = re.compile(r'\{\s*"')
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def judge_simulation(response: str, ground_truth: str) -> Verdict:
    """Judge a response; never raises on what a model wrote. ERROR where the sandbox cannot run."""
    truth = read_truth(ground_truth)
    return _judge_assertion(response, truth) if truth.side == "assertion" else _judge_json(response, truth)


def _judge_json(response: str, truth: SimulationTruth) -> Verdict:
    found = last_object(response)
    if found is None:
        tried = "{" in response
        return Verdict(0.0, Reason.MALFORMED if tried else Reason.NO_ANSWER)
    if truth.side not in found:
        return Verdict(0.0, Reason.MALFORMED, json.dumps(found)[:100])
    value, answer = found[truth.side], json.dumps(found[truth.side])
    try:
        if same(normal(value), normal(truth.value)):
            return Verdict(1.0, Reason.CORRECT, answer)
    except RecursionError:
        return Verdict(0.0, Reason.MALFORMED, answer[:100])
    if not truth.program:
        return Verdict(0.0, Reason.WRONG, answer)
    call = f"assert transform({value!r}) == {truth.output!r}"
    if not _compiles(call):
        return Verdict(0.0, Reason.MALFORMED, answer[:100])
    return run_verdict(truth.program, CodeTruth(call), answer)


def last_object(response: str) -> dict[str, Any] | None:
    """The last well-formed JSON object, fenced or not; one inside another does not count."""
    text = response[-READ:]
    found, position, decoder = None, 0, json.JSONDecoder()
    while start := _OBJECT.search(text, position):
        try:
            found, position = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position = start.start() + 1
    return found


def normal(value: Any, depth: int = 20) -> Any:
    """Texts that are true or false become booleans, those that are JSON objects or lists are read, at any depth."""
    if isinstance(value, list):
        return [normal(one, depth) for one in value]
    if isinstance(value, dict):
        return {key: normal(one, depth) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    text = value.strip()
    if depth and (text[:1] + text[-1:]) in ("{}", "[]"):
        try:
            return normal(json.loads(text), depth - 1)
        except (ValueError, RecursionError):
            return value
    return _BOOLEANS.get(text.lower(), value)


def same(value: Any, wanted: Any) -> bool:
    """Equal, where true is no 1; 1.0 is 1."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(same, value, wanted))
    if isinstance(value, dict) and isinstance(wanted, dict):
        return value.keys() == wanted.keys() and all(same(value[key], wanted[key]) for key in value)
    return bool(value == wanted)


def _judge_assertion(response: str, truth: SimulationTruth) -> Verdict:
    """The last Python block must be one assertion that a call with literal arguments equals a literal."""
    block = last_program(response)
    if block is None:
        return Verdict(0.0, Reason.NO_ANSWER)
    answer = block.strip()
    sides = _sides(answer) if len(answer) <= READ else None
    if sides is None:
        return Verdict(0.0, Reason.MALFORMED, answer[:100])
    call, result = sides
    if not _compiles(f"assert {call} == {result}"):
        return Verdict(0.0, Reason.MALFORMED, answer[:100])
    if (truth.call and not _same_text(truth.call, call)) or (truth.result and not _same_text(truth.result, result)):
        return Verdict(0.0, Reason.WRONG, answer)
    return run_verdict(truth.program, CodeTruth(f"assert {call} == {result}"), answer)


def _compiles(text: str) -> bool:
    """Whether these tests compile; a parser alone takes arguments that are named twice, and any depth."""
    try:
        compile(text, "answer", "exec", dont_inherit=True)
    except _UNREADABLE:
        return False
    return True


def _sides(text: str) -> tuple[str, str] | None:
    """Both sides of an assertion as Python text; None if it is none or holds more than literals."""
    try:
        match ast.parse(text).body:
            case [ast.Assert(ast.Compare(ast.Call(ast.Name("f")) as call, [ast.Eq()], [result]), None)]:
                for part in [*call.args, *(keyword.value for keyword in call.keywords), result]:
                    ast.literal_eval(part)
                return ast.unparse(call), ast.unparse(result)
    except (*_UNREADABLE, TypeError):
        return None
    return None


def _same_text(one: str, other: str) -> bool:
    try:
        return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))
    except _UNREADABLE:
        return False
