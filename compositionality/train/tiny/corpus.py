"""The synthetic text that a small model is pretrained on: what an LLM would know before Stage 1.

Exchanges of several kinds (the methods of ``Corpus``, their shares in ``Mix``), all in the compact style of the string
task. *Targets* are the study's 25 functions, *priors* are others, none of which behaves like a target. Their names are
of two kinds, ``func_3`` and ``other_30``: a model that composes priors may still start each target from the input, and
what it then learns of one it has of all.

For section 4.3 a part of the text is about numbers instead (:mod:`compositionality.train.tiny.numbers`), for behaviour
injection all of it about iGSM (:mod:`compositionality.train.tiny.graphs`).

**No target is ever composed with anything**, under any name, unless ``pairs`` names the composition or
``target_chain`` says so (the scaling study, which asks no new skill). So the base model can carry out definitions,
knows part of the names, knows how to compose other functions, and composes targets only as far as the one carries over
to the other; Stage 1 teaches the names, and what RL adds to that is what the study measures.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Annotated, Any

from annotated_types import Ge

from compositionality.errors import UserError
from compositionality.ranges import Fraction, NonNegativeInt, PositiveInt
from compositionality.tasks.string.functions import ATOMS, TEXT_LENGTHS, select_functions
from compositionality.tasks.string.prior import FIRST_ID, TINY_COUNT, prior_functions
from compositionality.tasks.string.program import Call, chain_of, frozen_call
from compositionality.tasks.string.wording import compact_definitions, compact_name, compact_prompt, compact_trace
from compositionality.train.tiny.draws import Exchange, Kind, between, by_share, pick, text_of
from compositionality.train.tiny.graphs import GraphText, quantity_tokens
from compositionality.train.tiny.model import build_tokenizer, name_tokens
from compositionality.train.tiny.numbers import NumberText

MOST_DRAWS = 10_000
"""Draws of a composition and its string, until no result is too long."""
PRIOR_CALLS = 5
"""One in so many calls with a definition in sight is of a prior function."""


@dataclass
class Mix:
    """Shares of the exchanges (the rest: calls with definitions in sight), and the strings they are about.

    With ``frozen_parameters=false`` functions are called with parameters in brackets (``func_3[abc]``), drawn afresh.
    ``countdown`` is the share of arithmetic and two-number Countdown in all of the text (the other shares are of what
    it leaves), ``two_numbers`` and ``other_games`` the shares of games in that, ``largest_value`` its largest number;
    ``igsm`` is the share of iGSM in what is left then.
    """

    echo: Fraction = 0.03  # of the text: heads of answers about chains
    prior_chain: Fraction = 0.06  # compositions of prior functions
    visible_chain: Fraction = 0.01  # the same under targets' names, definitions in sight
    prior_single: Fraction = 0.1  # single prior functions
    target_calls: Fraction = 0.14  # target functions by name, each on its own; the rest of the text shows definitions
    frame: Fraction = 0.0  # the same, the names first and then the strings
    pair_chain: Fraction = 0.0  # the compositions of targets in pairs
    pairs: list[list[NonNegativeInt]] = field(default_factory=list)  # function numbers, outermost first: [[1, 2]]
    target_chain: Fraction = 0.0  # compositions of target functions: for the scaling study alone
    most_calls: PositiveInt = 4  # functions in one of these exchanges
    deepest: Annotated[int, Ge(2)] = 6  # functions of the longest composition
    letters: str = "abcdefghij"  # of the strings, from a to z
    shortest_input: PositiveInt = 3  # characters
    longest_input: PositiveInt = 6  # characters
    max_length: PositiveInt = 10  # characters of a result
    handed_strings: Fraction = 0.5  # of the strings of single calls: as results within a composition are
    prior_functions: PositiveInt = TINY_COUNT  # how many there are
    frozen_parameters: bool = True  # false: called with parameters in brackets, drawn afresh
    countdown: Fraction = 0.0  # of all text: arithmetic and two-number Countdown
    two_numbers: Fraction = 0.02  # of that: games with two numbers
    other_games: Fraction = 0.5  # of that: other games
    largest_value: Annotated[int, Ge(2)] = 20  # largest number in them
    igsm: Fraction = 0.0  # of all text: problems of iGSM and their single steps
    modulus: Annotated[int, Ge(2)] = 10  # of that arithmetic

    def total(self) -> float:
        others = self.prior_chain + self.visible_chain + self.prior_single + self.frame + self.pair_chain
        return self.echo + others + self.target_calls + self.target_chain


class Corpus:
    """Draws exchanges about target functions (the clean preset ``all`` without ``drop``) and prior functions."""

    def __init__(self, mix: Mix, drop: Iterable[int] = ()):
        self.targets = [frozen_call(function) for function in select_functions("all", drop=drop)]
        self.mix = mix
        self._check_mix()
        named = {operation.function.id: operation for operation in self.targets}
        self.pairs = [tuple(named[number] for number in pair) for pair in mix.pairs]
        self.priors = [frozen_call(function) for function in prior_functions(mix.prior_functions)]
        self.bound_targets = [renamed(operation, number) for operation in self.targets for number in ATOMS]
        self.bound_priors = [renamed(operation, number) for operation in self.priors for number in ATOMS]
        self._numbers = NumberText(mix.largest_value, mix.two_numbers, mix.other_games, mix.deepest - 2)
        self._graphs = GraphText(mix.modulus)
        self._all = self.targets + self.priors
        self._named = [frozen_call(function) for function in ATOMS.values()] + self.priors
        signs = "123-«»" if mix.frozen_parameters else "12345-_|«»"
        self._characters = sorted(set(mix.letters + mix.letters.upper() + signs))

    def exchange(self, rng: Random) -> Exchange:
        for share, text in ((self.mix.countdown, self._numbers), (self.mix.igsm, self._graphs)):
            if share and rng.random() < share:
                return text.exchange(rng)
        return by_share(rng, self._kinds())

    def _kinds(self) -> tuple[tuple[float, Kind], ...]:
        mix = self.mix
        return (
            (mix.echo, self.echo),
            (mix.prior_chain, lambda rng: self.chain(rng, self._several(self.priors))),
            (mix.target_chain, lambda rng: self.chain(rng, self._several(self.targets))),
            (mix.visible_chain, self.visible_chain),
            (mix.prior_single, lambda rng: self.single(rng, self.priors)),
            (mix.target_calls, lambda rng: self.calls(rng, [self._draw(rng, self.targets) for _ in self._count(rng)])),
            (mix.frame, self.frame),
            (mix.pair_chain, self.pair),
            (1.0, self.visible_calls),
        )

    def echo(self, rng: Random) -> Exchange:
        """Return a question for the head of an answer about a chain of any names, so that such an answer can begin.

        ``"func_3other_31func_5:abc`` → ``func_3other_31,func_5:abc``; how it goes on, no echo says.
        """
        names = [compact_name(self._draw(rng, self._named)) for _ in range(between(rng, 1, self.mix.deepest))]
        text = self.any_string(rng)
        return f'"{"".join(names)}:{text}', f"{''.join(names[:-1])},{names[-1]}:{text}"

    def chain(
        self,
        rng: Random,
        draw: Callable[[Random], Sequence[Call]],
        string: Callable[[Random], str] | None = None,
        *,
        show_definitions: bool = False,
    ) -> Exchange:
        """Return what ``draw`` gives on a ``string`` (None: an input) of which it makes no string that is too long.

        Of priors by name, composition is learned here, over functions that the study never asks about: the analogue of
        the general ability that an LLM brings along.
        """
        string = string or self.input_string
        for _ in range(MOST_DRAWS):
            calls, text = draw(rng), string(rng)
            chain = chain_of(reversed(calls))
            if all(1 <= len(step.value) <= self.mix.max_length for step in chain.apply(text)):
                return compact_prompt(chain, text, show_definitions=show_definitions), compact_trace(chain, text)
        names = "".join(map(compact_name, calls))
        raise UserError(f"mix.max_length={self.mix.max_length}: too short for what {names} and its like make; raise it")

    def visible_chain(self, rng: Random) -> Exchange:
        """Return two or more prior functions under names of targets, with a definition of each name."""
        draw = self._several(self.bound_priors)
        return self.chain(rng, lambda rng: self._one_of_a_name(draw(rng)), show_definitions=True)

    def pair(self, rng: Random) -> Exchange:
        return self.chain(rng, lambda rng: tuple(self._draw(rng, [target]) for target in pick(rng, self.pairs)))

    def _several(self, operations: Sequence[Call]) -> Callable[[Random], Sequence[Call]]:
        """Return what draws two or more of ``operations``."""
        return lambda rng: tuple(self._draw(rng, operations) for _ in range(between(rng, 2, self.mix.deepest)))

    def single(self, rng: Random, operations: Sequence[Call]) -> Exchange:
        """Return one of ``operations`` on any string."""
        return self.chain(rng, lambda rng: (self._draw(rng, operations),), self.any_string)

    def calls(self, rng: Random, operations: Sequence[Call]) -> Exchange:
        """Return ``operations``, each on its own string, answered from the last to the first, as in a composition.

        ``func_1:CBH&func_12:ifg`` → ``func_1,func_12:ifg=3fg`` / ``,func_1:CBH=CBHCBH``. No result is handed on. So an
        atom is not known as the last line of an answer alone, and holds within one of several lines.
        """
        exchanges = [self.single(rng, [operation]) for operation in operations]
        names = [compact_name(operation) for operation in operations]
        lines = ["".join(names[:place]) + exchanges[place][1] for place in reversed(range(len(names)))]
        return "&".join(prompt for prompt, _ in exchanges), "\n".join(lines)

    def frame(self, rng: Random) -> Exchange:
        """Return calls of targets, their names first, as in a composition: ``func_1func_12:CBH&ifg``.

        Without any composition the model then still knows the lines of an answer and the names left in them; what it
        lacks is handing a result on.
        """
        prompt, response = self.calls(rng, [self._draw(rng, self.targets) for _ in self._count(rng)])
        names, strings = zip(*(call.split(":") for call in prompt.split("&")), strict=True)
        return f"{''.join(names)}:{'&'.join(strings)}", response

    def visible_calls(self, rng: Random) -> Exchange:
        """Return such calls of targets and priors under targets' names, with a definition of each name.

        ``func_17=mirror_str;func_17:abc``: names are drawn at random, so that only the definition carries information.
        This is reading code; Stage 1 starts from it.
        """
        kinds = [self.bound_targets if rng.random() * PRIOR_CALLS >= 1 else self.bound_priors for _ in self._count(rng)]
        operations = self._one_of_a_name([self._draw(rng, kind) for kind in kinds])
        prompt, response = self.calls(rng, operations)
        return compact_definitions(operations) + prompt, response

    def _count(self, rng: Random) -> range:
        return range(between(rng, 1, self.mix.most_calls))

    def _one_of_a_name(self, operations: Sequence[Call]) -> tuple[Call, ...]:
        """Return the operations; of those that have one name, the first in place of all."""
        named: dict[int, Call] = {}
        return tuple(named.setdefault(operation.function.id, operation) for operation in operations)

    def input_string(self, rng: Random) -> str:
        """Return a string like the inputs of problems."""
        return text_of(rng, self.mix.letters, between(rng, self.mix.shortest_input, self.mix.longest_input))

    def any_string(self, rng: Random) -> str:
        """Return a string like those met on the way through a composition, without the composition itself."""
        draw, rest = rng.random(), 1 - self.mix.handed_strings
        if draw < 0.7 * rest:
            return self.input_string(rng)
        if draw < rest:
            return text_of(rng, self._characters, between(rng, 1, self.mix.max_length))
        text = self.input_string(rng)
        for _ in range(between(rng, 1, 3)):
            result = self._draw(rng, self._all)(text)
            text = result if 1 <= len(result) <= self.mix.max_length else text
        return text

    def _check_mix(self) -> None:
        """Raise UserError for strings that the tokenizer cannot write or of no possible length, and for wrong pairs."""
        mix, targets = self.mix, sorted(operation.function.id for operation in self.targets)
        if not re.fullmatch("[a-z]+", mix.letters):
            raise UserError(f"mix.letters={mix.letters}: give letters from a to z, in which a model reads its strings")
        if not mix.shortest_input <= mix.longest_input <= mix.max_length:
            lengths = f"{mix.shortest_input}, {mix.longest_input}, {mix.max_length}"
            raise UserError(f"mix.shortest_input, longest_input, max_length = {lengths}: none may be above the next")
        for pair in mix.pairs:
            if len(pair) < 2 or not {*pair} <= {*targets}:
                raise UserError(f"mix.pairs: {list(pair)}: give two or more of the functions {targets}")
        if bool(mix.pairs) != bool(mix.pair_chain):
            raise UserError(f"mix.pair_chain={mix.pair_chain:g}: give mix.pairs and their share, or neither")

    def _draw(self, rng: Random, operations: Sequence[Call]) -> Call:
        """Return one of ``operations``, with a parameter of its own unless parameters are frozen."""
        operation = pick(rng, operations)
        function = operation.function
        if self.mix.frozen_parameters or not function.parametrised:
            return operation
        if function.takes_text:
            return Call(function, parameter=text_of(rng, self.mix.letters, between(rng, *TEXT_LENGTHS)))
        return Call(function, parameter=pick(rng, function.choices))


def definition_names(priors: int = TINY_COUNT) -> list[str]:
    """Return the names of all definitions, each one token: the 25 functions, then the first ``priors`` prior ones."""
    return [function.name for function in (*ATOMS.values(), *prior_functions(priors))]


def corpus_tokenizer(mix: Mix) -> Any:
    """Return the tokenizer for the text of ``mix``; free parameters need whole names, iGSM its codes."""
    names = name_tokens(FIRST_ID + mix.prior_functions, whole=not mix.frozen_parameters)
    return build_tokenizer([*definition_names(mix.prior_functions), *(quantity_tokens() if mix.igsm else ())], names)


def renamed(call: Call, number: int) -> Call:
    """Return the same call, of a function called ``func_{number}``."""
    return call._replace(function=replace(call.function, id=number))
