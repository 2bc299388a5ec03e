"""Programming problems behind the interface of all tasks, and programs run in the sandbox on the tests of a row."""

import contextlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, ClassVar

from compositionality.domains.code.operations import ChainOptions, ChainTask, ProgramChain
from compositionality.domains.code.sandbox import Limits, SandboxError, run_script, run_tests
from compositionality.errors import UserError
from compositionality.tasks.answers import last_program, read_json
from compositionality.tasks.task import Identity, Mode, truth_text
from compositionality.types import Problem, Reason, Verdict

_LOG = logging.getLogger(__name__)
TOLERANCE, SMALLEST = Decimal("1e-6"), Decimal("1e-9")
"""Tolerance of a number: relative below 1 and absolute above, but never under the second."""
_WHOLE = re.compile(r"[+-]?(?:0|[1-9]\d*)", re.ASCII)
_REAL = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_CALLS = """import json
CASES = json.loads({cases!r})
try:
    from solution import {name} as tested
except ImportError:
    tested = Solution().{name}


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    fields = {{str(key): plain(one) for key, one in value.items()}}
    return fields if len(fields) == len(value) else value  # two keys that are one in JSON equal nothing of it


as_it_is = in_a_list = True  # how all results are written
for given, expected in CASES:
    got = plain(tested(*given))
    as_it_is, in_a_list = as_it_is and got == expected, in_a_list and [got] == expected
    assert as_it_is or in_a_list, repr(given)[:200]
"""


# ---- ground truths


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


@lru_cache(maxsize=256)
def read_truth(ground_truth: str) -> CodeTruth:
    """Read the JSON text of a row. Raise UserError if it is damaged or of another format."""
    fields = json_fields(ground_truth)
    for name, style in (("functional", "assert"), ("pytest", "pytest")):
        if tests := fields.get(name):
            if not isinstance(tests, str):
                raise UserError(f"ground_truth: {name} is no text; give the tests as Python text")
            return CodeTruth(tests, style, str(fields.get("prefix") or ""))
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


def json_fields(text: str) -> dict[str, Any]:
    """Return the object that a ground truth is. Raise UserError if it is none."""
    fields = read_json(text)
    if not isinstance(fields, dict):
        raise UserError(f"ground_truth {text[:60]!r} is no JSON object: give functional, pytest, or inputs and outputs")
    return fields


def _lines(value: Any) -> str:
    """Return one input or output, which is text or a list of lines, as text."""
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def _calls(name: str, inputs: list[Any], outputs: list[Any]) -> str:
    """Return tests of one function, as APPS and TACO write them: arguments as a list, or as JSON a line."""
    if not name.isidentifier():
        raise UserError(f"ground_truth: fn_name {name[:40]!r} is not the name of a function")
    try:
        arguments = [list(map(json.loads, text.splitlines())) if isinstance(text, str) else text for text in inputs]
        results = [json.loads(text) if isinstance(text, str) else text for text in outputs]
    except ValueError as error:
        raise UserError(f"ground_truth: arguments of {name} are no JSON; make the problem file again") from error
    return _CALLS.format(name=name, cases=json.dumps(list(zip(arguments, results, strict=True))))


# ---- verdicts


def run_verdict(program: str, truth: CodeTruth, answer: str) -> Verdict:
    """Return the verdict on a program that is run on the tests of ``truth``; ERROR where they cannot be run at all."""
    program = program.encode("utf-8", "replace").decode()
    try:
        if truth.tests:
            run = run_tests(program, truth.tests, truth.prefix, truth.style)
            if run.end == "broken":
                raise SandboxError(run.text)
            passed = run.end == "passed"
        else:
            passed = _passes_cases(program, truth)
    except SandboxError as error:
        _LOG.warning("the sandbox failed: %s", error)
        return Verdict(0.0, Reason.ERROR, answer)
    return Verdict(1.0, Reason.CORRECT, answer) if passed else Verdict(0.0, Reason.WRONG, answer)


def _passes_cases(program: str, truth: CodeTruth) -> bool:
    """Return whether every input gives its output; the first that does not ends the job."""
    longest = max(len(text) for text in truth.outputs)
    limits = Limits(output_mb=max(Limits().output_mb, 2 + (4 * longest >> 20)))
    runs = run_script(program, truth.inputs, truth.prefix, limits)
    with contextlib.closing(runs):
        for expected in truth.outputs:
            run = next(runs)
            if run.end or run.exit_code or not same_output(run.output, expected):
                return False
    return True


# ---- the output of a program


def same_output(printed: str, expected: str) -> bool:
    """Return whether the texts are equal, or have as many lines with as many words each, and the words match."""
    lines, right_lines = (text.replace("\r\n", "\n").strip().split("\n") for text in (printed, expected))
    if len(lines) != len(right_lines):
        return False
    for line, right_line in zip(lines, right_lines, strict=True):
        words, right_words = line.split(), right_line.split()
        if line != right_line and (len(words) != len(right_words) or not all(map(_same_word, words, right_words))):
            return False
    return True


def _same_word(word: str, expected: str) -> bool:
    """Compare yes and no in any case; whole numbers exactly, others within 1e-6, of the number itself below 1.

    Digits after a leading zero are text: ``0011`` is not ``11``.
    """
    if word == expected:
        return True
    if expected.lower() in ("yes", "no"):
        return word.lower() == expected.lower()
    if len(word) > 400 or len(expected) > 400 or not (_REAL.fullmatch(word) and _REAL.fullmatch(expected)):
        return False
    if _WHOLE.fullmatch(word) and _WHOLE.fullmatch(expected):
        return int(word) == int(expected)
    number = Decimal(expected)
    return abs(Decimal(word) - number) <= max(TOLERANCE * min(Decimal(1), abs(number)), SMALLEST)


# ---- the task

MAX_PROGRAM = 200_000
_ASK = "\n\nThink first. Then give the whole {what} in one fenced block that is marked as python."
_FUNCTION = """Write a Python function `transform(x)`. It takes {takes} and returns the {returns} that these steps \
give, each applied to the result of the step before it:

{steps}

For example, transform({example!r}) returns {result!r}."""
_PROGRAM = """Write a Python program that reads one line from standard input, {of_line}. It applies these steps, each \
to the result of the step before it, and prints {returns}:

{steps}

For example, the input

    {example}

gives the output

    {result}"""


@dataclass(frozen=True)
class CodeOptions(ChainOptions):
    """Options of the task; the level of a problem is how many operations its program composes."""

    kinds: ClassVar[tuple[str, ...]] = ("functional", "stdio", "pytest")
    kind: str = "functional"  # of the tests: functional (a function), stdio (a program) or pytest
    group: str = "code"  # name of this set of problems


class CodeTask(ChainTask):
    """Write a program that passes tests; the level of our own problems is how many operations it composes."""

    name = "code"
    title = "Programs"
    data_sources = (r"codegen__\w.*", r"codecontests|apps|codeforces|taco")
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(CodeOptions)}
    kinds = CodeOptions.kinds
    parse_truth = staticmethod(read_truth)

    def pose(self, chain: ProgramChain, kind: str) -> tuple[str, str, dict[str, Any], dict[str, str]]:
        """Ask for the program; of its eight tests the prompt shows one."""
        prompt, truth, program = _stdio(chain) if kind == "stdio" else _function(chain, kind)
        return f"codegen__composed_{kind}", prompt, truth, {"program": program}

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """Run the program of a response on the tests. ERROR where the sandbox or the tests cannot run."""
        truth = read_truth(ground_truth)
        program = last_program(answer_text, called=bool(truth.tests))
        if program is None:
            return Verdict(0.0, Reason.NO_ANSWER)
        if len(program) > MAX_PROGRAM or "\0" in program:
            return Verdict(0.0, Reason.MALFORMED, program[:100])
        return run_verdict(program, truth, program)

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """Return the judge's text of a row; a ``prefix`` of ``extra_info`` becomes part of it, once."""
        text, prefix = truth_text(ground_truth), extra_info.get("prefix")
        if not isinstance(prefix, str) or not prefix.strip():
            return text
        fields = json_fields(text)
        if "functional" not in fields or fields.get("prefix") or prefix.strip() in str(fields["functional"]):
            return text
        return json.dumps({**fields, "prefix": prefix})

    def gold(self, problem: Problem) -> str:
        """Return the row's reference program. Raise UserError for a row without one."""
        program = problem.metadata.get("program") or problem.metadata.get("reference")
        if not isinstance(program, str):
            raise UserError(f"{problem.prompt[:60]!r}: the row holds no reference program")
        return f"```python\n{program}\n```"

    def identity(self, problem: Problem) -> Identity:
        """Return the chain with its parameters; the operations in their order are the composition."""
        chain = str(problem.metadata.get("chain", ""))
        if not chain:
            return Identity(problem.prompt)
        return Identity(chain, " ".join(step.partition("(")[0] for step in chain.split()))

    def facts(self, problem: Problem) -> dict[str, Any]:
        """Return how many tests there are; the reference program is not run here."""
        truth = read_truth(problem.ground_truth)
        return {"cases": len(truth.inputs) or truth.tests.count("assert")}


# ---- prompt, ground truth and reference program of a chain

_TESTS = {
    "functional": (["def check(candidate):"], "candidate", ["", "check(transform)"]),
    "pytest": (["from solution import transform", "", "def test_transform():"], "transform", []),
}
"""By kind what stands before the assertions, what they call, and what stands after them."""


def _function(chain: ProgramChain, kind: str) -> tuple[str, dict[str, Any], str]:
    takes, returns = ("a list of whole numbers", "list") if chain.on_lists else ("a string of letters", "string")
    shown = {"example": chain.inputs[0], "result": chain.outputs[0]}
    prompt = _FUNCTION.format(takes=takes, returns=returns, steps=chain.words(), **shown) + _ASK.format(what="function")
    start, name, end = _TESTS[kind]
    pairs = zip(chain.inputs, chain.outputs, strict=True)
    asserts = [f"    assert {name}({given!r}) == {result!r}" for given, result in pairs]
    return prompt, {kind: "\n".join([*start, *asserts, *end])}, chain.function("transform")


def _stdio(chain: ProgramChain) -> tuple[str, dict[str, Any], str]:
    numbers = chain.on_lists
    inputs = [_line(value) for value in chain.inputs]
    outputs = [_line(value) for value in chain.outputs]
    prompt = _PROGRAM.format(
        of_line="whole numbers with a blank between them" if numbers else "a string of letters",
        returns="the resulting numbers on one line, with a blank between them" if numbers else "the resulting text",
        steps=chain.words(),
        example=inputs[0],
        result=outputs[0],
    )
    read = "[int(word) for word in input().split()]" if numbers else "input().strip()"
    show = "*transform(data)" if numbers else "transform(data)"
    program = f"{chain.function('transform')}\n\n\ndata = {read}\nprint({show})"
    truth = {"inputs": [f"{line}\n" for line in inputs], "outputs": [f"{line}\n" for line in outputs]}
    return prompt + _ASK.format(what="program"), truth, program


def _line(value: Any) -> str:
    """Return an input or a result as a program reads or prints it."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


TASK = CodeTask()
