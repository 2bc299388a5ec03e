"""Programming problems behind the interface of all tasks."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from compositionality.domains.code.operations import SEED_CLASSES, ProgramChain, draw_chain
from compositionality.domains.code.options import KINDS, CodeOptions
from compositionality.domains.code.truth import CodeTruth, read_truth, row_text
from compositionality.errors import UserError
from compositionality.tasks.task import Identity, Mode, Task
from compositionality.types import Problem, Verdict

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


class CodeTask(Task):
    """Write a program that passes tests; the level of our own problems is how many operations it composes."""

    name = "code"
    title = "Programs"
    data_sources = (r"codegen__\w.*", r"codecontests|apps|codeforces|taco")
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(CodeOptions)}
    kinds = KINDS
    trusted_judge = False
    seed_classes = SEED_CLASSES
    too_few = "ask for fewer rows or higher levels"

    def problem(self, options: CodeOptions, split: str, seed: int, index: int) -> Problem:
        """The problem at ``index``: a chain of operations, eight tests, of which the prompt shows one."""
        level, chain = draw_chain("code", split, seed, index, options.levels)
        prompt, truth, program = _MAKERS[options.kind](chain)
        metadata = {"seed": seed, "skills": list(dict.fromkeys(chain.skills)), "chain": chain.name, "program": program}
        source = f"codegen__composed_{options.kind}"
        return Problem(source, level, options.group, prompt, json.dumps(truth), index, metadata)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """The last Python block, run on all tests in the sandbox."""
        from compositionality.domains.code.judge import judge_code

        return judge_code(answer_text, ground_truth)

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """The tests, with the prefix that ``extra_info`` may hold."""
        return row_text(ground_truth, extra_info)

    def parse_truth(self, ground_truth: str) -> CodeTruth:
        """The tests."""
        return read_truth(ground_truth)

    def gold(self, problem: Problem) -> str:
        """The row's reference program. UserError for a row without one."""
        program = problem.metadata.get("program") or problem.metadata.get("reference")
        if not isinstance(program, str):
            raise UserError(f"{problem.prompt[:60]!r}: the row holds no reference program")
        return f"```python\n{program}\n```"

    def identity(self, problem: Problem) -> Identity:
        """The chain with its parameters; the operations in their order are the composition."""
        chain = str(problem.metadata.get("chain", ""))
        if not chain:
            return Identity(problem.prompt)
        return Identity(chain, " ".join(step.partition("(")[0] for step in chain.split()))

    def facts(self, problem: Problem) -> dict[str, Any]:
        """How many tests of a program there are; the reference program is not run here."""
        truth = read_truth(problem.ground_truth)
        return {"cases": len(truth.inputs) or truth.tests.count("assert")}


def _line(value: Any) -> str:
    """An input or a result as a program reads or prints it."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _function_prompt(chain: ProgramChain) -> str:
    of, of_result = ("a list of whole numbers", "list") if chain.on_lists else ("a string of letters", "string")
    shown = {"given": chain.inputs[0], "result": chain.outputs[0]}
    asked = _FUNCTION.format(of=of, of_result=of_result, steps=chain.words(), **shown)
    return asked + _ASK.format(what="function")


def _asserts(chain: ProgramChain, name: str) -> list[str]:
    pairs = zip(chain.inputs, chain.outputs, strict=True)
    return [f"    assert {name}({given!r}) == {result!r}" for given, result in pairs]


def _functional(chain: ProgramChain) -> tuple[str, dict[str, Any], str]:
    tests = "\n".join(["def check(candidate):", *_asserts(chain, "candidate"), "", "check(transform)"])
    return _function_prompt(chain), {"functional": tests}, chain.function("transform")


def _pytest(chain: ProgramChain) -> tuple[str, dict[str, Any], str]:
    tests = "\n".join(["from solution import transform", "", "def test_transform():", *_asserts(chain, "transform")])
    return _function_prompt(chain), {"pytest": tests}, chain.function("transform")


def _stdio(chain: ProgramChain) -> tuple[str, dict[str, Any], str]:
    numbers = chain.on_lists
    prompt = _PROGRAM.format(
        of_line="whole numbers with a blank between them" if numbers else "a string of letters",
        of_result="the resulting numbers on one line, with a blank between them" if numbers else "the resulting text",
        steps=chain.words(),
        given=_line(chain.inputs[0]),
        result=_line(chain.outputs[0]),
    )
    read = "[int(word) for word in input().split()]" if numbers else "input().strip()"
    show = "*transform(data)" if numbers else "transform(data)"
    program = f"{chain.function('transform')}\n\n\ndata = {read}\nprint({show})"
    truth = {
        "inputs": [_line(value) + "\n" for value in chain.inputs],
        "outputs": [_line(v) + "\n" for v in chain.outputs],
    }
    return prompt + _ASK.format(what="program"), truth, program


_MAKERS = {"functional": _functional, "stdio": _stdio, "pytest": _pytest}
TASK = CodeTask()
