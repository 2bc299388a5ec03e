"""Programming problems behind the interface of all tasks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from compositionality.domains.code.judge import CodeTruth, judge_code, read_truth, row_text
from compositionality.domains.code.operations import SEED_CLASSES, ProgramChain, check_chains, draw_chain
from compositionality.errors import UserError
from compositionality.tasks.stream import check_choice
from compositionality.tasks.task import Identity, Mode, Task
from compositionality.types import Problem, Verdict

KINDS = ("functional", "stdio", "pytest")
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
class CodeOptions:
    """Options of the task; the level of a problem is how many operations its program composes."""

    levels: tuple[int, ...] = (2, 3, 4)  # operations; candidates take turns
    kind: str = "functional"  # of the tests: functional (a function), stdio (a program) or pytest
    group: str = "code"  # name of this set of problems

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_chains(self.levels, self.group)


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
        """Return the problem at ``index``: a chain of operations, eight tests, of which the prompt shows one."""
        level, chain = draw_chain("code", split, seed, index, options.levels)
        prompt, truth, program = _MAKERS[options.kind](chain)
        metadata = {"seed": seed, "skills": list(dict.fromkeys(chain.skills)), "chain": chain.name, "program": program}
        source = f"codegen__composed_{options.kind}"
        return Problem(source, level, options.group, prompt, json.dumps(truth), index, metadata)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        return judge_code(answer_text, ground_truth)

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        return row_text(ground_truth, extra_info)

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


# ---- prompt, truth and reference program of a chain, by kind


def _functional(chain: ProgramChain) -> tuple[str, dict[str, Any], str]:
    tests = "\n".join(["def check(candidate):", *_asserts(chain, "candidate"), "", "check(transform)"])
    return _function_prompt(chain), {"functional": tests}, chain.function("transform")


def _pytest(chain: ProgramChain) -> tuple[str, dict[str, Any], str]:
    tests = "\n".join(["from solution import transform", "", "def test_transform():", *_asserts(chain, "transform")])
    return _function_prompt(chain), {"pytest": tests}, chain.function("transform")


def _function_prompt(chain: ProgramChain) -> str:
    of, of_result = ("a list of whole numbers", "list") if chain.on_lists else ("a string of letters", "string")
    shown = {"given": chain.inputs[0], "result": chain.outputs[0]}
    return _FUNCTION.format(of=of, of_result=of_result, steps=chain.words(), **shown) + _ASK.format(what="function")


def _asserts(chain: ProgramChain, name: str) -> list[str]:
    pairs = zip(chain.inputs, chain.outputs, strict=True)
    return [f"    assert {name}({given!r}) == {result!r}" for given, result in pairs]


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


_MAKERS = {"functional": _functional, "stdio": _stdio, "pytest": _pytest}
TASK = CodeTask()
