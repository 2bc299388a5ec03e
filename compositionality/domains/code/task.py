"""Programming problems behind the interface of all tasks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from compositionality.domains.code.judge import CodeTruth, json_fields, read_truth, run_verdict
from compositionality.domains.code.operations import ChainOptions, ChainTask, ProgramChain
from compositionality.errors import UserError
from compositionality.tasks.answers import last_program
from compositionality.tasks.task import Identity, Mode, truth_text
from compositionality.types import Problem, Reason, Verdict

MAX_PROGRAM = 200_000
_ASK = "\n\nThink first. Then give the whole {what} in one fenced block that is marked as python."
_FUNCTION = """Write a Python function `transform(x)`. It takes {of} and returns the {of_result} that these steps \
give, each applied to the result of the step before it:

{steps}

For example, transform({given!r}) returns {result!r}."""
_PROGRAM = """Write a Python program that reads one line from standard input, {of_line}. It applies these steps, each \
to the result of the step before it, and prints {of_result}:

{steps}

For example, the input

    {given}

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

    def parse_truth(self, ground_truth: str) -> CodeTruth:
        return read_truth(ground_truth)

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
    of, of_result = ("a list of whole numbers", "list") if chain.on_lists else ("a string of letters", "string")
    shown = {"given": chain.inputs[0], "result": chain.outputs[0]}
    prompt = _FUNCTION.format(of=of, of_result=of_result, steps=chain.words(), **shown) + _ASK.format(what="function")
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
        of_result="the resulting numbers on one line, with a blank between them" if numbers else "the resulting text",
        steps=chain.words(),
        given=inputs[0],
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
