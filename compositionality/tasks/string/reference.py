"""The steps that a problem asks for and those that a completion states, innermost operator first."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from compositionality.errors import UserError
from compositionality.tasks.string.program import INPUT, Applied, parse_program
from compositionality.tasks.string.wording import hide_definitions, trace_of

COMPACT_NAME = r"func_\d{1,3}(?:\[[^\]\s]{0,16}\])?"
MAX_LINES, LONGEST_LINE = 64, 2000
_LINE = re.compile(rf"(?:{COMPACT_NAME})*+,({COMPACT_NAME}):([^:=,;\s]*+)=([^:=,;\s]*+)")
_NOTE = re.compile(rf"(?:{COMPACT_NAME})++:[^:=,;\s]*+|{COMPACT_NAME}\?{COMPACT_NAME}|~++")


# ---- what a problem asks for


@dataclass(frozen=True, slots=True)
class Reference:
    """A problem's operators in the order in which they are applied; ``compact`` is the style of its answers."""

    compact: bool
    input: str
    steps: tuple[Applied, ...]

    @property
    def named(self) -> tuple[int, ...]:
        return tuple(number for number, step in enumerate(self.steps) if step.name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.steps if step.name)

    @property
    def operators(self) -> tuple[str, ...]:
        """Return the functions in the order of application; empty if an operator among them has no name."""
        names = tuple(step.call.operator for step in self.steps if step.name)
        return names if len(names) == len(self.steps) else ()

    def gold_trace(self) -> str:
        return trace_of(self.names, [self.input, *(step.value for step in self.steps)])

    def strings(self, number: int, known: dict[int, str]) -> tuple[str, ...]:
        """Return the strings that go into a step, where ``known`` holds the values stated so far."""
        sources = [source for source in self.steps[number].call.sources if isinstance(source, int)]
        return tuple([self.input if source == INPUT else self.value(source, known) for source in sources])

    def value(self, number: int, known: dict[int, str]) -> str:
        """Return the value of a step: as stated, else what follows from the stated ones."""
        if number in known:
            return known[number]
        return self.steps[number].call(*self.strings(number, known))


@lru_cache(maxsize=16384)
def read_reference(ground_truth: str, prompt: str) -> Reference:
    """Return the reference of a problem row. UserError if the row does not hold it."""
    try:
        truth = json.loads(ground_truth)
        code, x, compact = truth["ref_code"], truth["ref_input"]["x"], truth.get("style") == "compact"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError("ground_truth holds no ref_code and ref_input; make the problem file again") from error
    steps = list(parse_program(code).apply(x))
    names = [step.call.operator if step.call.function.id >= 0 else "" for step in steps]
    if compact:  # as the prompt shows them: with a parameter in brackets unless that is frozen
        request = hide_definitions(prompt).partition(":")[0]
        aliases, names = names, re.findall(COMPACT_NAME, request)[::-1]
        if [name.partition("[")[0] for name in names] != aliases:
            raise UserError(f"prompt {request[:60]!r} does not name the functions of its ref_code")
    return Reference(compact, x, tuple([step._replace(name=name) for step, name in zip(steps, names, strict=True)]))


# ---- what a completion states


class Fault(StrEnum):
    """Kinds of a trace's first fault: of three classes, the last six of incorrect composition."""

    RESULT = "result"  # the function was applied to the stated string, and its result is another one
    MISCOPIED = "miscopied"  # the string that goes in is not the one that came out before
    ANSWER = "answer"  # every step is right, the final answer is another string
    INPUT_AGAIN = "input_again"  # a step starts from the problem's input, not from what came out before
    WRONG_ORDER = "wrong_order"
    MISSING = "missing"
    EXTRA = "extra"
    OTHER_FUNCTION = "other_function"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class StatedStep:
    """One step as a response states it: ``strings`` go in (None: not stated)."""

    name: str
    strings: tuple[str, ...] | None
    result: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps of a response in its order; ``broken``: how many of them come before the first unreadable line."""

    steps: tuple[StatedStep, ...]
    broken: int | None = None


def read_compact(response: str) -> Trace:
    """Read compact steps ``REST,CALL:before=after`` up to the first other line, or one over the limits.

    REST is the model's own note and not judged. Nor are lines of injected behaviours: the functions left with the
    string so far (``func_3func_1:CBH``), a function tried too early (``func_3?func_1``), neutral text (``~~~``).
    """
    steps: list[StatedStep] = []
    for line in response.rstrip("\n").split("\n", MAX_LINES)[: MAX_LINES + 1]:
        match = _LINE.fullmatch(line) if len(line) <= LONGEST_LINE else None
        if match:
            steps.append(StatedStep(match[1], (match[2],), match[3]))
        elif len(line) > LONGEST_LINE or not _NOTE.fullmatch(line):
            return Trace(tuple(steps), broken=len(steps))
    return Trace(tuple(steps))
