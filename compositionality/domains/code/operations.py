"""Operations on lists of whole numbers and on strings, and chains of them: the problems of ``code`` and ``simulation``."""
# ruff: noqa: E501 - one operation a line

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Any, ClassVar

from compositionality.errors import UserError
from compositionality.tasks.draws import SPLITS, Draws, check_split
from compositionality.tasks.stream import check_choice, check_levels
from compositionality.tasks.task import Identity, Task
from compositionality.types import Problem

SEED_CLASSES = 8
INPUTS = 8
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class CodeOperation:
    """In words and as a line of Python, both with {k} for the parameter from ``low`` to ``high``; ``apply(value, k)``."""

    name: str
    words: str
    line: str
    apply: Callable[[Any, int], Any]
    low: int = 0
    high: int = 0


LISTS = (
    CodeOperation("add", "add {k} to every number", "[value + {k} for value in x]", lambda x, k: [v + k for v in x], 1, 99),
    CodeOperation("times", "multiply every number by {k}", "[value * {k} for value in x]", lambda x, k: [v * k for v in x], 2, 9),
    CodeOperation("minus", "replace every number by {k} minus it", "[{k} - value for value in x]", lambda x, k: [k - v for v in x], 1, 99),
    CodeOperation("modulo", "replace every number by its remainder modulo {k} (Python's %)", "[value % {k} for value in x]", lambda x, k: [v % k for v in x], 3, 60),
    CodeOperation("at_least", "replace every number below {k} by {k}", "[max(value, {k}) for value in x]", lambda x, k: [max(v, k) for v in x], -30, 60),
    CodeOperation("keep_above", "keep only the numbers greater than {k}", "[value for value in x if value > {k}]", lambda x, k: [v for v in x if v > k], -30, 40),
    CodeOperation("keep_below", "keep only the numbers less than {k}", "[value for value in x if value < {k}]", lambda x, k: [v for v in x if v < k], -10, 60),
    CodeOperation("no_multiples", "remove the multiples of {k}", "[value for value in x if value % {k}]", lambda x, k: [v for v in x if v % k], 2, 9),
    CodeOperation("drop", "remove the first {k} elements", "x[{k}:]", lambda x, k: x[k:], 1, 3),
    CodeOperation("rotate", "rotate the list to the left by {k} places (an empty list stays empty)", "x and x[{k} % len(x):] + x[:{k} % len(x)]", lambda x, k: x and x[k % len(x) :] + x[: k % len(x)], 1, 5),
    CodeOperation("every", "keep every element whose index, from 0, is a multiple of {k}", "x[::{k}]", lambda x, k: x[::k], 2, 3),
    CodeOperation("reverse", "reverse the list", "x[::-1]", lambda x, _: x[::-1]),
    CodeOperation("sort", "sort the list in ascending order", "sorted(x)", lambda x, _: sorted(x)),
    CodeOperation("unique", "remove repeated numbers and keep the first of each", "list(dict.fromkeys(x))", lambda x, _: list(dict.fromkeys(x))),
    CodeOperation("sums", "replace every number by the sum of all numbers up to and including it", "[sum(x[: index + 1]) for index in range(len(x))]", lambda x, _: list(accumulate(x))),
    CodeOperation("differences", "replace the list by the differences of neighbours, the later minus the earlier", "[b - a for a, b in zip(x, x[1:])]", lambda x, _: [b - a for a, b in pairwise(x)]),
    CodeOperation("by_place", "multiply every number by its place, which counts from 1", "[place * value for place, value in enumerate(x, 1)]", lambda x, _: [p * v for p, v in enumerate(x, 1)]),
    CodeOperation("absolute", "replace every number by its absolute value", "[abs(value) for value in x]", lambda x, _: [abs(v) for v in x]),
)  # fmt: skip
STRINGS = (
    CodeOperation("shift", "replace every lower-case letter by the one {k} places later in the alphabet, going on from z to a", "''.join(chr((ord(c) - 97 + {k}) % 26 + 97) if c.islower() else c for c in x)", lambda x, k: "".join(chr((ord(c) - 97 + k) % 26 + 97) if c.islower() else c for c in x), 1, 25),
    CodeOperation("rotate_text", "rotate the text to the left by {k} characters (an empty text stays empty)", "x and x[{k} % len(x):] + x[:{k} % len(x)]", lambda x, k: x and x[k % len(x) :] + x[: k % len(x)], 1, 7),
    CodeOperation("stretch", "repeat every character {k} times", "''.join(c * {k} for c in x)", lambda x, k: "".join(c * k for c in x), 2, 4),
    CodeOperation("every_character", "keep every character whose index, from 0, is a multiple of {k}", "x[::{k}]", lambda x, k: x[::k], 2, 4),
    CodeOperation("cut", "remove the first {k} characters", "x[{k}:]", lambda x, k: x[k:], 1, 4),
    CodeOperation("append_number", "append the number {k}", "x + '{k}'", lambda x, k: f"{x}{k}", 10, 999),
    CodeOperation("append_length", "append the length of the text, written in digits", "x + str(len(x))", lambda x, _: f"{x}{len(x)}"),
    CodeOperation("capitals_at", "turn every character whose index, from 0, is a multiple of {k} into upper case", "''.join(c.upper() if i % {k} == 0 else c for i, c in enumerate(x))", lambda x, k: "".join(c.upper() if i % k == 0 else c for i, c in enumerate(x)), 2, 5),
    CodeOperation("reverse_text", "reverse the text", "x[::-1]", lambda x, _: x[::-1]),
    CodeOperation("sort_text", "sort the characters in ascending order of their code points", "''.join(sorted(x))", lambda x, _: "".join(sorted(x))),
    CodeOperation("no_vowels", "remove the vowels a, e, i, o, u (lower case only)", "''.join(c for c in x if c not in 'aeiou')", lambda x, _: "".join(c for c in x if c not in "aeiou")),
    CodeOperation("unique_text", "remove repeated characters and keep the first of each", "''.join(dict.fromkeys(x))", lambda x, _: "".join(dict.fromkeys(x))),
    CodeOperation("mirror", "append the reversed text to the text", "x + x[::-1]", lambda x, _: x + x[::-1]),
)  # fmt: skip
ALL = {operation.name: operation for operation in (*LISTS, *STRINGS)}


@dataclass(frozen=True, slots=True)
class ProgramChain:
    """Operations with their parameters in the order of application, and inputs on which each of them matters."""

    steps: tuple[tuple[CodeOperation, int], ...]
    inputs: tuple[Any, ...]

    @property
    def on_lists(self) -> bool:
        """Return True for lists of whole numbers, False for strings."""
        return self.steps[0][0] in LISTS

    @property
    def outputs(self) -> list[Any]:
        return [apply_all(self.steps, value) for value in self.inputs]

    @property
    def name(self) -> str:
        """Return what two chains share if they do the same by their text."""
        return " ".join(f"{operation.name}({k})" for operation, k in self.steps)

    def words(self) -> str:
        """Return the steps in English, one a line."""
        return "\n".join(f"{n}. {step.words.format(k=k)}" for n, (step, k) in enumerate(self.steps, 1))

    def function(self, name: str) -> str:
        lines = [f"    x = {step.line.format(k=k)}" for step, k in self.steps]
        return "\n".join([f"def {name}(x):", *lines, "    return x"])


def apply_all(steps: Sequence[tuple[CodeOperation, int]], value: Any) -> Any:
    for operation, k in steps:
        value = operation.apply(value, k)
    return value


def draw_chain(
    task: str, split: str, seed: int, index: int, levels: Sequence[int], suits: Callable[[ProgramChain], bool]
) -> tuple[int, ProgramChain]:
    """Draw level and chain at ``index``, one that ``suits``.

    No two splits, nor seeds that differ modulo 8, share a chain, or one that does the same.
    """
    check_split(split, SPLITS)
    level = levels[index % len(levels)]
    draws = Draws(f"{task}/{split}/{seed}/{index}".encode())
    stream = SPLITS.index(split) * SEED_CLASSES + seed % SEED_CLASSES
    while True:
        table = draws.choice((LISTS, STRINGS))
        operations = [draws.choice(table) for _ in range(level)]
        steps = tuple((operation, draws.between(operation.low, operation.high)) for operation in operations)
        does = repr([apply_all(steps, value) for value in _PROBES[table is LISTS]])
        bits = int.from_bytes(blake2b(does.encode(), digest_size=8).digest(), "big")
        if bits % (len(SPLITS) * SEED_CLASSES) == stream:
            chain = ProgramChain(steps, tuple(_input(draws, table is LISTS) for _ in range(INPUTS)))
            if _all_matter(chain) and suits(chain):
                return level, chain


def _input(draws: Draws, numbers: bool) -> Any:
    if numbers:
        return [draws.between(-40, 90) for _ in range(draws.between(5, 9))]
    return draws.text(_LETTERS, draws.between(5, 10))


_PROBES = {numbers: [_input(Draws(f"probe {n}".encode()), numbers) for n in range(INPUTS)] for numbers in (True, False)}
"""Chains that do the same to all of these count as one."""


def _all_matter(chain: ProgramChain) -> bool:
    """Return whether leaving out any step is seen on the inputs; results differ, and most are not empty."""
    outputs, steps = chain.outputs, chain.steps
    shorter = [steps[:n] + steps[n + 1 :] for n in range(len(steps))]
    if any([apply_all(fewer, value) for value in chain.inputs] == outputs for fewer in shorter):
        return False
    return len({repr(output) for output in outputs}) > INPUTS // 2 and sum(map(bool, outputs)) > INPUTS // 2


# ---- what the two tasks have in common


@dataclass(frozen=True)
class ChainOptions:
    """The level of a problem is how many operations its program composes; a task adds its kinds."""

    kinds: ClassVar[tuple[str, ...]] = ()
    levels: tuple[int, ...] = (2, 3, 4)  # operations; candidates take turns
    kind: str = ""
    group: str = ""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, self.kinds)
        check_levels(self.levels, range(1, 13), "how many operations")
        if not self.group.isidentifier():
            raise UserError(f"group={self.group}: give a word")


class ChainTask(Task):
    """Asks about a program that composes operations; the level is their number."""

    trusted_judge = False
    seed_classes = SEED_CLASSES
    too_few = "ask for fewer rows or higher levels"

    def problem(self, options: ChainOptions, split: str, seed: int, index: int) -> Problem:
        """Return the problem at ``index``: a chain of operations, and what ``pose`` asks about it."""
        level, chain = draw_chain(self.name, split, seed, index, options.levels, partial(self.suits, options.kind))
        source, prompt, truth, answers = self.pose(chain, options.kind)
        skills = list(dict.fromkeys(operation.name for operation, _ in chain.steps))
        metadata = {"seed": seed, "skills": skills, "chain": chain.name, **answers}
        return Problem(source, level, options.group, prompt, json.dumps(truth), index, metadata)

    @abstractmethod
    def pose(self, chain: ProgramChain, kind: str) -> tuple[str, str, dict[str, Any], dict[str, str]]:
        """Return the data source, the prompt, the ground truth, and what the gold answer is made of."""

    def suits(self, kind: str, chain: ProgramChain) -> bool:
        del kind, chain
        return True

    def identity(self, problem: Problem) -> Identity:
        """Return the chain, which no two splits share, as the composition of the prompt."""
        return Identity(problem.prompt, str(problem.metadata.get("chain", "")) or None)
