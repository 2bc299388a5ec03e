"""The task ``simulation``: predicting runs of programs; nothing that a model wrote is run outside the sandbox.

A prediction is judged by one side of a run of a program, or by the program itself.
"""

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from compositionality.domains.code.operations import ChainOptions, ChainTask, ProgramChain, apply_all
from compositionality.domains.code.task import CodeTruth, run_verdict
from compositionality.errors import UserError
from compositionality.tasks.answers import (
    MAX_LITERAL,
    last_object,
    last_program,
    literal_value,
    read_json,
    with_distinct_keys,
)
from compositionality.tasks.task import Mode, truth_text
from compositionality.types import Problem, Reason, Verdict

_JSON = """This is a Python function:

{program}

{question}

Work it out step by step, without running it. Then give a JSON object with the one key {side} as the last thing."""
_OUTPUT = "What does transform({value}) return?"
_INPUT = "Find an x for which transform(x) returns {result}."
_ASSERTION = """This is a Python function:

{program}

Complete this line, so that it holds, by replacing {mark} with a literal:

    assert {call} == {result}

Work it out step by step, without running it. Then give the completed line, and nothing else, in one fenced block that \
is marked as python."""
_MARK = "??"
_ASKED = re.compile(r"^assert (f\(.*\)) == (.*?)\s*$", re.MULTILINE)
_BOOLEANS = {"true": True, "false": False}
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


# ---- ground truths


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


def _given(prompt: Any) -> dict[str, str]:
    """Return the side of the last assertion in a prompt that is not asked for (``??``)."""
    assertions = _ASKED.findall(prompt) if isinstance(prompt, str) else []
    if not assertions:
        return {}
    call, result = assertions[-1]
    try:
        return {"call": ast.unparse(ast.parse(call))} if "??" in result else {"result": ast.unparse(ast.parse(result))}
    except _UNREADABLE:
        return {}


@lru_cache(maxsize=1024)
def read_truth(ground_truth: str) -> SimulationTruth:
    """Read the JSON text of a row. Raise UserError if it is damaged or of another format."""
    fields = _fields(ground_truth)
    if fields is None:
        raise UserError(f"ground_truth {ground_truth[:60]!r}: give an object with output, input or functional")
    if "functional" in fields:
        texts = [fields.get(name) or "" for name in ("functional", "call", "result")]
        if not all(isinstance(text, str) for text in texts):
            raise UserError("ground_truth: functional, call and result must be Python text")
        if not texts[1] and not texts[2]:  # any true assertion would be right
            fix = "put the prompt into extra_info.original_prompt, with ?? for what is asked"
            raise UserError(f"ground_truth {ground_truth[:60]!r} has neither call nor result: {fix}")
        return SimulationTruth("assertion", program=texts[0], call=texts[1], result=texts[2])
    side = "input" if "input" in fields else "output"
    if "program" in fields:
        return SimulationTruth(side, fields[side], str(fields["program"]), fields.get("output"))
    return SimulationTruth(side, fields[side])


def _fields(text: str) -> dict[str, Any] | None:
    for attempt in (text, f"{{{text}}}"):
        fields = read_json(attempt)
        if isinstance(fields, dict) and fields.keys() & {"output", "input", "functional"}:
            return fields
    return None


# ---- the task


@dataclass(frozen=True)
class SimulationOptions(ChainOptions):
    """Options of the task; the level of a problem is how many operations the shown program composes."""

    kinds: ClassVar[tuple[str, ...]] = ("codeio_output", "codeio_input", "cruxeval_output", "cruxeval_input")
    kind: str = "codeio_output"  # predict the output or an input, as JSON (codeio) or as an assertion (cruxeval)
    group: str = "simulation"  # name of this set of problems


class SimulationTask(ChainTask):
    """Predict the output, or an input, of a program; the level is how many operations it composes."""

    name = "simulation"
    title = "Runs of programs"
    data_sources = (r"simulation__codeio.*", r"simulation__cruxeval.*")
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(SimulationOptions)}
    kinds = SimulationOptions.kinds
    parse_truth = staticmethod(read_truth)

    def suits(self, kind: str, chain: ProgramChain) -> bool:
        """Return whether every step counts on the input that is asked about, and nothing shown is the answer."""
        value, result = chain.inputs[0], chain.outputs[0]
        steps = chain.steps
        fewer = (apply_all(steps[:n] + steps[n + 1 :], value) for n in range(len(steps)))
        shown = (result, result[:0]) if kind.endswith("_input") else ()
        return bool(result) and result not in fewer and result not in (apply_all(steps, x) for x in shown)

    def pose(self, chain: ProgramChain, kind: str) -> tuple[str, str, dict[str, Any], dict[str, str]]:
        """Show the chain as a program, and ask for one side of a run of it."""
        family, _, side = kind.partition("_")
        value, result = chain.inputs[0], chain.outputs[0]
        truth: dict[str, Any]
        if family == "codeio":
            program, asks_output = chain.function("transform"), side == "output"
            question = _OUTPUT.format(value=repr(value)) if asks_output else _INPUT.format(result=repr(result))
            prompt = _JSON.format(program=program, question=question, side=side)
            truth = {"output": result} if asks_output else {"input": value, "program": program, "output": result}
            answer = _json_answer(side, result if asks_output else value)
        else:
            program, sides = chain.function("f"), {"call": f"f({value!r})", "result": repr(result)}
            shown = {**sides, "result": _MARK} if side == "output" else {**sides, "call": f"f({_MARK})"}
            prompt = _ASSERTION.format(program=program, mark=_MARK, **shown)
            repeated = "call" if side == "output" else "result"
            truth = {"functional": program, repeated: sides[repeated]}
            answer = f"```python\nassert {sides['call']} == {sides['result']}\n```"
        return f"simulation__{family}_composed_{side}", prompt, truth, {"answer": answer}

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """Judge a prediction; ERROR where the sandbox cannot run."""
        truth = read_truth(ground_truth)
        return (judge_assertion if truth.side == "assertion" else judge_json)(answer_text, truth)

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """Return the judge's text of a row: an object with ``output``, ``input`` or ``functional``.

        Rows of others may leave out the braces. For an assertion the side that the prompt gives is read off
        ``extra_info.original_prompt``.
        """
        text = truth_text(ground_truth)
        fields = _fields(text)
        if fields is None:
            return text  # read_truth says what is wrong with it
        if "functional" in fields and not fields.keys() & {"call", "result"}:
            fields |= _given(extra_info.get("original_prompt"))
        return json.dumps(fields)

    def gold(self, problem: Problem) -> str:
        """Return the row's own answer, else its value. Raise UserError for an assertion of others, which has none."""
        answer = problem.metadata.get("answer")
        if isinstance(answer, str):
            return answer
        truth = read_truth(problem.ground_truth)
        if truth.side == "assertion":
            raise UserError(f"{problem.prompt[:60]!r}: the row holds no answer")
        return _json_answer(truth.side, truth.value)

    def facts(self, problem: Problem) -> dict[str, Any]:
        """Return which side is asked for; no program is run here."""
        return {"asks_input": read_truth(problem.ground_truth).side == "input"}


def _json_answer(side: str, value: Any) -> str:
    return f"```json\n{json.dumps({side: value})}\n```"


# ---- verdicts


def judge_json(response: str, truth: SimulationTruth) -> Verdict:
    """Judge the last JSON object, which must have the side that is asked for as a key."""
    fields = last_object(response)
    if fields is None:
        return Verdict(0.0, Reason.MALFORMED if "{" in response else Reason.NO_ANSWER)
    if truth.side not in fields:
        return Verdict(0.0, Reason.MALFORMED, json.dumps(fields)[:100])
    value, answer = fields[truth.side], json.dumps(fields[truth.side])
    try:
        if same(normal(value), normal(truth.value)):
            return Verdict(1.0, Reason.CORRECT, answer)
    except RecursionError:
        return Verdict(0.0, Reason.MALFORMED, answer[:100])
    if not truth.program:
        return Verdict(0.0, Reason.WRONG, answer)
    test = CodeTruth(f"assert transform({value!r}) == {truth.output!r}")
    if not _compiles(test.tests):
        return Verdict(0.0, Reason.MALFORMED, answer[:100])
    return run_verdict(truth.program, test, answer)


def normal(value: Any, depth: int = 20) -> Any:
    """Read texts that are true or false as booleans, and those that are JSON objects or lists, at any depth."""
    if isinstance(value, list):
        return [normal(item, depth) for item in value]
    if isinstance(value, dict):
        return {key: normal(item, depth) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    text = value.strip()
    if depth and (text[:1] + text[-1:]) in ("{}", "[]"):
        try:
            return normal(json.loads(text, object_pairs_hook=with_distinct_keys), depth - 1)
        except (ValueError, RecursionError):
            return value
    return _BOOLEANS.get(text.lower(), value)


def same(value: Any, right: Any) -> bool:
    """Return whether two values are equal, where true is no 1; 1.0 is 1."""
    if isinstance(value, bool) or isinstance(right, bool):
        return value is right
    if isinstance(value, list) and isinstance(right, list):
        return len(value) == len(right) and all(map(same, value, right))
    if isinstance(value, dict) and isinstance(right, dict):
        return value.keys() == right.keys() and all(same(value[key], right[key]) for key in value)
    return bool(value == right)


def judge_assertion(response: str, truth: SimulationTruth) -> Verdict:
    """Judge the last Python block, which must be one assertion that a call with literals equals a literal."""
    block = last_program(response)
    if block is None:
        return Verdict(0.0, Reason.NO_ANSWER)
    answer = block.strip()
    sides = _sides(answer) if len(answer) <= MAX_LITERAL else None
    if sides is None:
        return Verdict(0.0, Reason.MALFORMED, answer[:100])
    call, result = sides
    test = CodeTruth(f"assert {call} == {result}")
    if not _compiles(test.tests):
        return Verdict(0.0, Reason.MALFORMED, answer[:100])
    if (truth.call and not _same_text(truth.call, call)) or (truth.result and not _same_text(truth.result, result)):
        return Verdict(0.0, Reason.WRONG, answer)
    return run_verdict(truth.program, test, answer)


def _sides(text: str) -> tuple[str, str] | None:
    """Return both sides of an assertion as Python text; None if it is none, holds more than literals or a key twice."""
    try:
        match ast.parse(text).body:
            case [ast.Assert(ast.Compare(ast.Call(ast.Name("f")) as call, [ast.Eq()], [result]), None)]:
                for part in [*call.args, *(keyword.value for keyword in call.keywords), result]:
                    literal_value(part)
                return ast.unparse(call), ast.unparse(result)
    except (*_UNREADABLE, TypeError):
        return None
    return None


def _compiles(text: str) -> bool:
    """Return whether these tests compile; a parser alone takes arguments that are named twice, and any depth."""
    with suppress(*_UNREADABLE):
        return compile(text, "answer", "exec", dont_inherit=True) is not None
    return False


def _same_text(text: str, other: str) -> bool:
    with suppress(*_UNREADABLE):
        return ast.dump(ast.parse(text)) == ast.dump(ast.parse(other))
    return False


TASK = SimulationTask()
