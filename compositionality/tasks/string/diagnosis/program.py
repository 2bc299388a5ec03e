"""What a problem asks for, step by step: operators with their true strings, innermost first."""

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from compositionality.errors import UserError
from compositionality.tasks.string.expression import (
    Apply,
    Expression,
    Text,
    apply_bounded,
    apply_operator,
    parse_program,
)
from compositionality.tasks.string.functions import ALIASES
from compositionality.tasks.string.prompts import hide_definitions
from compositionality.types import Problem

COMPACT_NAME = r"func_\d{1,3}(?:\[[^\]\s]{0,16}\])?"
INPUT = -1
"""Where a step takes the input x instead of an earlier step's value."""


@dataclass(frozen=True, slots=True)
class ProgramStep:
    """One operator. ``name`` as traces write it ("" for ``+`` and methods, which have none); ``value`` is the truth.

    ``sources`` has an entry per argument: the number of an earlier step, INPUT, or a literal string.
    """

    name: str
    node: Apply
    sources: tuple[int | str, ...]
    value: str

    @property
    def open_slots(self) -> tuple[int, ...]:
        """Which arguments are not literals."""
        return tuple(slot for slot, source in enumerate(self.sources) if isinstance(source, int))

    def apply(self, given: tuple[str, ...]) -> str:
        """The operator on ``given``, one string per open slot."""
        strings = iter(given)
        return apply_operator(self.node, [s if isinstance(s, str) else next(strings) for s in self.sources])


@dataclass(frozen=True, slots=True)
class Program:
    """A problem's operators in the order in which they are applied; ``compact`` is the style of its answers."""

    compact: bool
    input: str
    steps: tuple[ProgramStep, ...]

    @property
    def named(self) -> tuple[int, ...]:
        """Numbers of the steps that have a name."""
        return tuple(number for number, step in enumerate(self.steps) if step.name)

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(step.name for step in self.steps if step.name)

    @property
    def operators(self) -> tuple[str, ...]:
        """The functions in the order of application; empty if an operator among them has no name."""
        names = tuple(step.node.operator for step in self.steps if step.name)
        return names if len(names) == len(self.steps) else ()

    def gold_trace(self) -> str:
        """The compact style's right completion: a line ``REST,CALL:before=after`` per step."""
        before, lines = self.input, []
        for number, step in enumerate(self.steps, 1):
            lines.append(f"{''.join(self.names[: number - 1 : -1])},{step.name}:{before}={step.value}")
            before = step.value
        return "\n".join(lines)

    def given(self, number: int, known: dict[int, str]) -> tuple[str, ...]:
        """The strings that go into a step, where ``known`` holds the values stated so far."""
        step, found = self.steps[number], []
        for source in step.sources:
            if isinstance(source, int):
                found.append(self.input if source == INPUT else self.value(source, known))
        return tuple(found)

    def value(self, number: int, known: dict[int, str]) -> str:
        """The value of a step: as stated, else what follows from the stated ones."""
        return known[number] if number in known else self.steps[number].apply(self.given(number, known))


@lru_cache(maxsize=16384)
def read_program(ground_truth: str, prompt: str) -> Program:
    """The program of a problem row. UserError if the row does not hold it."""
    try:
        truth = json.loads(ground_truth)
        code, x, compact = truth["ref_code"], truth["ref_input"]["x"], truth.get("style") == "compact"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError("ground_truth holds no ref_code and ref_input; make the problem file again") from error
    steps: list[ProgramStep] = []
    _add(parse_program(code), x, steps)
    if compact:
        steps = _with_compact_names(steps, prompt)
    return Program(compact, x, tuple(steps))


def _add(expression: Expression, x: str, steps: list[ProgramStep]) -> int | str:
    """Append the steps of an expression, arguments first; where its value is: step, INPUT or literal."""
    if isinstance(expression, Text):
        return expression.text
    if not isinstance(expression, Apply):
        return INPUT
    sources = tuple([_add(argument, x, steps) for argument in expression.arguments])
    values = [s if isinstance(s, str) else x if s == INPUT else steps[s].value for s in sources]
    name = expression.operator if expression.operator in ALIASES else ""
    steps.append(ProgramStep(name, expression, sources, apply_bounded(expression, values)))
    return len(steps) - 1


def _with_compact_names(steps: list[ProgramStep], prompt: str) -> list[ProgramStep]:
    """The names that the compact prompt shows: with a parameter in brackets unless that is frozen."""
    request = hide_definitions(prompt).partition(":")[0]
    names = re.findall(COMPACT_NAME, request)[::-1]
    if [name.partition("[")[0] for name in names] != [step.name for step in steps]:
        raise UserError(f"prompt {request[:60]!r} does not name the functions of its ref_code")
    return [ProgramStep(name, step.node, step.sources, step.value) for name, step in zip(names, steps, strict=True)]


def reference(problem: Problem) -> str:
    """A problem for a model that judges completions: definitions, input, and the true value after every operator."""
    program = read_program(problem.ground_truth, problem.prompt)
    names = dict.fromkeys(step.node.operator for step in program.steps if step.name)
    sources = "\n\n".join(ALIASES[name].source() for name in names)
    steps = "\n".join(f"{number}. {_in_words(program, number - 1)}" for number in range(1, len(program.steps) + 1))
    return f"Definitions:\n\n{sources}\n\nInput: {json.dumps(program.input)}\nTrue steps, in order:\n{steps}"


def _in_words(program: Program, number: int) -> str:
    step = program.steps[number]
    given = ", ".join(
        json.dumps(source if isinstance(source, str) else program.input if source < 0 else program.steps[source].value)
        for source in step.sources
    )
    parameter = "" if step.node.parameter is None else f", {step.node.parameter!r}"
    return f"{step.node.operator}({given}{parameter}) = {json.dumps(step.value)}"
