"""The synthetic text that the tiny model is pretrained on: what an LLM would know before Stage 1.

Exchanges of four kinds, all in the compact style of the string task:

- *prior*: chains of prior functions (``func_30`` and up) by name alone, levels 1 to ``deepest``. The model learns to
  know functions by their names and to compose what it knows.
- *visible*: one definition, one call (``func_17=mirror_str;func_17:abc``). The name is drawn afresh each time from
  the target names, so that it says nothing: only the definition does. This is reading code.
- *echo*: copy a chain of any names, so that the target names can be written at all.
- *target_single*: one target under its own name, definition hidden, in a small share of the text.

No target is ever composed with anything, under any name.

The last kind is a concession. With ``target_single=0`` the base model knows no target by name (level 1: 0 %), and
Stage 1 teaches the names, but on its own circuit: after it compositions of targets stay at 0 %, so RL has no signal.
A small share joins the names to the circuit that composes prior functions: level 1 then starts part-way, Stage 1 lifts
it to about nine tenths, and level 2 reaches the few percent that RL needs. So Stage 1 starts higher here than in the
paper; show the base model's accuracy at level 1 beside it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from compositionality.tasks.string.functions import ATOMS, Chain, Operation, frozen_operation, select_functions
from compositionality.tasks.string.prior import PRIOR
from compositionality.tasks.string.prompts import compact_prompt, compact_trace, run_steps

Exchange = tuple[str, str]
"""A prompt and its response."""

Item = TypeVar("Item")


@dataclass
class Mix:
    """Shares of the exchanges (the rest shows a target's definition), and the strings they are about."""

    echo: float = 0.06
    prior_chain: float = 0.22
    prior_single: float = 0.10
    prior_visible: float = 0.04
    target_single: float = 0.05
    deepest: int = 6
    letters: str = "abcdefghij"
    shortest_input: int = 3
    longest_input: int = 6
    max_length: int = 10

    def total(self) -> float:
        """The sum of the shares."""
        return self.echo + self.prior_chain + self.prior_single + self.prior_visible + self.target_single


class Corpus:
    """Draws exchanges about target functions (the clean preset ``all`` without ``drop``) and all prior functions."""

    def __init__(self, mix: Mix, drop: Iterable[int] = ()):
        self.targets = [frozen_operation(function) for function in select_functions("all", drop=drop)]
        self.mix = mix
        self.priors = [frozen_operation(function) for function in PRIOR.values()]
        self.bound_targets = [renamed(operation, number) for operation in self.targets for number in ATOMS]
        self.bound_priors = [renamed(operation, number) for operation in self.priors for number in ATOMS]
        self._all = self.targets + self.priors
        self._names = [function.alias for function in (*ATOMS.values(), *PRIOR.values())]
        self._characters = sorted(set(mix.letters + mix.letters.upper() + "123-«»"))

    def exchange(self, rng: Random) -> Exchange:
        """One exchange, its kind drawn by the mix."""
        draw = rng.random()
        for share, kind in self._kinds():
            if draw < share:
                return kind(rng)
            draw -= share
        return self.single(rng, self.bound_targets, show_definitions=True)

    def _kinds(self) -> tuple[tuple[float, Callable[[Random], Exchange]], ...]:
        mix = self.mix
        return (
            (mix.echo, self.echo),
            (mix.prior_chain, self.prior_chain),
            (mix.prior_single, lambda rng: self.single(rng, self.priors)),
            (mix.target_single, lambda rng: self.single(rng, self.targets)),
            (mix.prior_visible, lambda rng: self.single(rng, self.bound_priors, show_definitions=True)),
        )

    def echo(self, rng: Random) -> Exchange:
        """``"CHAIN:string`` asks for CHAIN:string."""
        names = [_pick(rng, self._names) for _ in range(_between(rng, 1, self.mix.deepest))]
        text = f"{''.join(names)}:{self.any_string(rng)}"
        return f'"{text}', text

    def prior_chain(self, rng: Random) -> Exchange:
        """Two or more prior functions by name."""
        while True:
            chain = tuple(_pick(rng, self.priors) for _ in range(_between(rng, 2, self.mix.deepest)))
            text = self.input_string(rng)
            if self._fits(chain, text):
                return compact_prompt(chain, text), compact_trace(chain, text)

    def single(self, rng: Random, operations: Sequence[Operation], *, show_definitions: bool = False) -> Exchange:
        """One of ``operations`` on any string."""
        while True:
            chain, text = (_pick(rng, operations),), self.any_string(rng)
            if self._fits(chain, text):
                return compact_prompt(chain, text, show_definitions=show_definitions), compact_trace(chain, text)

    def input_string(self, rng: Random) -> str:
        """What problems take as input."""
        return _letters(rng, self.mix.letters, _between(rng, self.mix.shortest_input, self.mix.longest_input))

    def any_string(self, rng: Random) -> str:
        """A string like those met on the way through a composition, without a word on how it came about."""
        draw = rng.random()
        if draw < 0.35:
            return self.input_string(rng)
        if draw < 0.5:
            return _letters(rng, self._characters, _between(rng, 1, self.mix.max_length))
        text = self.input_string(rng)
        for _ in range(_between(rng, 1, 3)):
            after = _pick(rng, self._all)(text)
            text = after if 1 <= len(after) <= self.mix.max_length else text
        return text

    def _fits(self, chain: Chain, text: str) -> bool:
        return all(1 <= len(result) <= self.mix.max_length for result in run_steps(chain, text))


def definition_names() -> list[str]:
    """Names of all definitions, each one token: the 25 functions, then the prior ones."""
    return [function.name for function in (*ATOMS.values(), *PRIOR.values())]


def renamed(operation: Operation, number: int) -> Operation:
    """The same operation, called ``func_{number}``."""
    return replace(operation, function=replace(operation.function, id=number))


def _pick(rng: Random, items: Sequence[Item]) -> Item:
    return items[int(rng.random() * len(items))]


def _between(rng: Random, low: int, high: int) -> int:
    return low + int(rng.random() * (high - low + 1))


def _letters(rng: Random, letters: Sequence[str], count: int) -> str:
    return "".join([_pick(rng, letters) for _ in range(count)])
