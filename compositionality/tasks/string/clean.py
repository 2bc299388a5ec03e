"""The clean mode: problems of real depth, by random access, with splits that cannot overlap.

A problem is a pure function of (options, split, seed, index). Candidates are drawn until one is sound: no shorter
subsequence of its functions gives the answer, lengths stay in bounds, and the answer depends on the input.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from compositionality.errors import UserError
from compositionality.tasks.draws import Draws
from compositionality.tasks.string.expression import Expression, chain_text, evaluate, function_names, render
from compositionality.tasks.string.functions import (
    PRESETS,
    TEXT_LENGTHS,
    Chain,
    Function,
    Operation,
    frozen_operation,
    select_functions,
    side,
)
from compositionality.tasks.string.irreducible import Walk, is_reducible
from compositionality.tasks.string.options import StringOptions
from compositionality.tasks.string.orders import another_order
from compositionality.tasks.string.partition import draw_input, last_pairs, owned_checksum
from compositionality.tasks.string.prompts import compact_prompt, ground_truth, json_prompt, main_solution, sources
from compositionality.tasks.string.tree import draw_tree, evaluate_soundly
from compositionality.types import Problem

CHAINS_PER_PROBLEM = 5_000
"""Draws before none is thought possible. Of some divisions of the functions one chain of eight in 130 is sound."""
OPERATIONS_PER_STEP = 24
INPUTS_PER_STEP = 32
"""For the first function of a chain; half as many for each one more."""
ORDERED = "-ordered"
"""After the name of the functions: the group of order-sensitive problems."""
CONTRASTS = ("b", "Zoa2", "ktbdgqmwe7")
"""Inputs that a sound problem must not map all to its own answer."""


@dataclass(frozen=True, slots=True)
class StringItem:
    """One problem before it is put into words; ``chain`` is empty for trees."""

    level: int
    index: int
    chain: Chain
    expression: Expression | None
    input: str
    output: str


class Path(NamedTuple):
    """A chain, innermost first, that is sound on an input."""

    input: str
    steps: Chain
    walk: Walk


class StringGenerator:
    """Problems of the clean mode. Pure and picklable; ``functions`` replaces the options' choice."""

    def __init__(self, options: StringOptions, functions: Sequence[Function] = ()) -> None:
        self.options = options
        self.functions = tuple(functions) or select_functions(
            options.functions, options.ids, options.drop, options.function_split, options.always_trained
        )
        self.set_name = _set_name(self.functions, options)
        self.group = options.group or self.set_name + ORDERED * options.order_sensitive
        self._frozen = {function.id: frozen_operation(function) for function in self.functions}
        self._pairs = last_pairs(options.alphabet)
        self._salt = blake2b(
            repr((options.content(), [f.id for f in self.functions])).encode(), digest_size=16
        ).digest()

    def level(self, index: int) -> int:
        """The level of the candidate at ``index``: the levels take turns."""
        return self.options.levels[index % len(self.options.levels)]

    def problem(self, split: str, seed: int, index: int) -> Problem:
        """The problem at ``index`` of the stream (split, seed)."""
        return self.render(self.item(split, seed, index), seed)

    def item(self, split: str, seed: int, index: int) -> StringItem:
        """The problem at ``index``, not yet put into words."""
        level, owned = self.level(index), owned_checksum(split, seed)
        draws = Draws(self._salt + f"{split}/{seed}/{index}".encode())
        attempt = self._chain_item if self.options.shape == "chain" else self._tree_item
        for _ in range(CHAINS_PER_PROBLEM):
            item = attempt(draws, level, index, owned)
            if item is not None:
                return item
        raise UserError(
            f"no sound problem of level {level} found for {split}/{seed}/{index}; "
            f"raise max_length (now {self.options.max_length}) or allow more functions"
        )

    def _chain_item(self, draws: Draws, level: int, index: int, owned: int) -> StringItem | None:
        path: Path | None = None
        for _ in range(level):
            path = self._extended(draws, path, owned)
            if path is None:
                return None
        assert path is not None
        chain, answer = path.steps[::-1], path.walk.value
        if all(_run(chain, other) == answer for other in CONTRASTS):
            return None
        return StringItem(level, index, chain, None, path.input, answer)

    def _extended(self, draws: Draws, path: Path | None, owned: int) -> Path | None:
        """The path with one operation more: on its own input or, where that is not sound, on another one."""
        steps = path.steps if path else ()
        for _ in range(OPERATIONS_PER_STEP):
            operation = self._operation(draws)
            walk = path.walk.step(operation, self.options.max_length) if path else None
            longer = Path(path.input, (*steps, operation), walk) if path and walk else None
            if longer and self._has_its_order(longer):
                return longer
            for _ in range(INPUTS_PER_STEP >> len(steps)):
                text = self._input(draws, owned)
                walk = self._walk((*steps, operation), text)
                longer = Path(text, (*steps, operation), walk) if walk else None
                if longer and self._has_its_order(longer):
                    return longer
        return None

    def _has_its_order(self, path: Path) -> bool:
        """Where the order is to matter, it does in each beginning of a chain."""
        return not self.options.order_sensitive or not another_order(path.steps, path.input, path.walk.value)

    def _walk(self, steps: Chain, text: str) -> Walk | None:
        walk: Walk | None = Walk(text)
        for operation in steps:
            walk = walk and walk.step(operation, self.options.max_length)
        return walk

    def _input(self, draws: Draws, owned: int) -> str:
        return draw_input(draws, self.options.alphabet, self.options.input_length, self._pairs, owned)

    def _tree_item(self, draws: Draws, level: int, index: int, owned: int) -> StringItem | None:
        expression = draw_tree(draws, level, self.functions, self._parameter, self.options.alphabet)
        if not function_names(expression):
            return None
        for _ in range(INPUTS_PER_STEP):
            text = self._input(draws, owned)
            output = evaluate_soundly(expression, text, self.options.max_length)
            if output is None or all(evaluate(expression, other) == output for other in CONTRASTS):
                continue
            if not is_reducible(expression, text):
                return StringItem(level, index, (), expression, text, output)
        return None

    def _operation(self, draws: Draws) -> Operation:
        function = draws.choice(self.functions)
        if self.options.frozen_parameters or not function.parametrised:
            return self._frozen[function.id]
        return Operation(function, self._parameter(draws, function))

    def _parameter(self, draws: Draws, function: Function) -> int | str | None:
        if self.options.frozen_parameters or not function.parametrised:
            return function.frozen
        if function.takes_text:
            return draws.text(self.options.alphabet, draws.between(*TEXT_LENGTHS))
        return draws.choice(function.choices)

    def render(self, item: StringItem, seed: int) -> Problem:
        """Put an item into words: its row."""
        options = self.options
        if item.expression is None:
            code, names = main_solution(chain_text(item.chain)), [step.function.alias for step in item.chain]
        else:
            code, names = main_solution(render(item.expression)), function_names(item.expression)
        if options.style == "compact":
            prompt = compact_prompt(item.chain, item.input, show_definitions=options.show_definitions)
        else:
            code = sources(names) + code if options.show_definitions else code
            prompt = json_prompt(code, item.input)
        truth = ground_truth(item.input, item.output, code, options.style)
        source = f"string-{self.set_name}-level{item.level}"
        metadata = {"seed": seed, "functions": names}
        return Problem(source, item.level, self.group, prompt, truth, item.index, metadata)


def _run(chain: Chain, text: str) -> str:
    for operation in reversed(chain):
        text = operation(text)
    return text


def _set_name(functions: Sequence[Function], options: StringOptions) -> str:
    ids = {function.id for function in functions}
    for name in PRESETS:
        if ids <= side(name, options.function_split, options.drop, options.always_trained):
            return name
    return "mixed" if ids <= set(range(25)) else "prior"
