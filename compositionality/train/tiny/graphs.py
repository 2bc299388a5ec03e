"""The iGSM part of the pretraining text, in the compact style.

Equations written out first and subgoals are each in half of the text, so the base model knows the forms that behaviours
inject; which of them a solution has is left to fine-tuning.
"""

from collections.abc import Sequence
from itertools import product
from random import Random

from compositionality.tasks.igsm.generate import IgsmOptions, draw_item
from compositionality.tasks.igsm.graph import (
    LAYERS,
    Equation,
    Expression,
    Quantity,
    evaluate,
    expression_of,
    numbers_in,
    read_quantity,
    steps_of,
)
from compositionality.tasks.igsm.solution import write_solution
from compositionality.tasks.igsm.wording import compact, compact_prompt
from compositionality.tasks.task import Behaviours
from compositionality.train.tiny.draws import Exchange, Kind, between, by_share

CALCULATIONS, LOOK_UPS, TOTALS, PROBLEMS = 0.06, 0.06, 0.06, 0.75
"""Shares of this text; steps by an equation are what they leave."""
OF_TOTALS = 0.06
"""The share of calculations that are sums of products, as in totals."""
MOST_FACTS = 10
DEEPEST = 7
"""Operations of a whole problem, at most."""
PROBLEM_SEED = 1_000_003
"""Seed of the stream of these problems, which is one of SFT's and RL's split."""
_SIZE = 4


class GraphText:
    """Draws exchanges about whole numbers modulo ``modulus``."""

    def __init__(self, modulus: int) -> None:
        self.modulus = modulus
        levels = tuple(range(1, DEEPEST + 1))
        self.options = IgsmOptions(
            levels=levels, modulus=modulus, most_edges=8, redundant=False, most_common=1.0, style="compact"
        )
        self.codes = [
            f"{LAYERS[layer + 1]}{owner}{LAYERS[layer]}{item}"
            for layer in range(len(LAYERS) - 1)
            for owner in range(_SIZE)
            for item in range(_SIZE)
        ]
        self.shares: tuple[tuple[float, Kind], ...] = (
            (CALCULATIONS, self.calculation),
            (LOOK_UPS, self.look_up),
            (TOTALS, self.total),
            (PROBLEMS, self.problem),
            (1.0, self.step),
        )

    def exchange(self, rng: Random) -> Exchange:
        return by_share(rng, self.shares)

    def calculation(self, rng: Random) -> Exchange:
        """Return an expression as equations and totals have it: ``%10;3*(4+5)?`` → ``3*(4+5)=3*9=7``, or at once 7."""
        if rng.random() < OF_TOTALS:
            pairs = [f"{self._number(rng)}*{self._number(rng)}" for _ in range(between(rng, 1, 3))]
            parts = [part for pair in pairs for part in ("+", *pair.partition("*"))][1:]
            expression: Expression = tuple(int(part) if part.isdigit() else part for part in parts)
        else:
            numbers = {code: self._number(rng) for code in rng.sample(self.codes, 4)}
            equation = self._equation(rng, list(numbers))
            values = {self._quantity(code): value for code, value in numbers.items()}
            expression = numbers_in(expression_of(equation), values)
        return f"%{self.modulus};{compact(expression)}?", self._worked_out(rng, [], expression)

    def look_up(self, rng: Random) -> Exchange:
        """Return some of several numbers: ``%10;b1a0=3;c0b1=7;b2a1=0;c0b1;b1a0?`` → ``c0b1=7`` and ``b1a0=3``."""
        facts = {code: self._number(rng) for code in rng.sample(self.codes, between(rng, 1, MOST_FACTS))}
        asked = rng.sample(list(facts), between(rng, 1, len(facts)))
        prompt = self._prompt(rng, [f"{code}={value}" for code, value in facts.items()], ";".join(asked))
        return prompt, "\n".join(f"{code}={facts[code]}" for code in asked)

    def problem(self, rng: Random) -> Exchange:
        """Return a whole problem, without premises that it does not need."""
        graph = draw_item(self.options, "train", PROBLEM_SEED, rng.randrange(2**40)).problem
        behaviours = Behaviours(subgoals=rng.random() < 0.5)
        return compact_prompt(graph), write_solution(graph, None, behaviours, rng.randbytes(8))

    def step(self, rng: Random) -> Exchange:
        """Return an equation, the numbers that it needs, and some that it does not.

        ``%10;b0a1=4;b1a0=3*(b0a1+b2a0);b2a0=5;b1a0?`` → ``b1a0=3*(4+5)=7``, or with the equation written out first.
        """
        asked, *others = rng.sample(self.codes, between(rng, 2, MOST_FACTS))
        values = {self._quantity(code): self._number(rng) for code in others}
        expression = expression_of(self._equation(rng, others))
        facts = [f"{quantity.code}={value}" for quantity, value in values.items()]
        prompt = self._prompt(rng, [*facts, f"{asked}={compact(expression)}"], asked)
        before = [expression] if rng.random() < 0.5 else []
        return prompt, f"{asked}={self._worked_out(rng, before, numbers_in(expression, values))}"

    def total(self, rng: Random) -> Exchange:
        """Return all that one owner holds, and some numbers of others."""
        layer, owner = between(rng, 0, len(LAYERS) - 2), between(rng, 0, _SIZE - 1)
        head = f"{LAYERS[layer + 1]}{owner}{LAYERS[layer]}"
        held = [f"{head}{item}" for item in sorted(rng.sample(range(_SIZE), between(rng, 1, _SIZE)))]
        beside = [code for code in rng.sample(self.codes, between(rng, 0, MOST_FACTS - _SIZE)) if code[:2] != head[:2]]
        values = {self._quantity(code): self._number(rng) for code in (*held, *beside)}
        parts = [part for code in held for part in ("+", self._quantity(code))][1:]
        prompt = self._prompt(rng, [f"{quantity.code}={value}" for quantity, value in values.items()], head)
        return prompt, f"{head}={self._worked_out(rng, [], numbers_in(tuple(parts), values))}"

    def _equation(self, rng: Random, codes: Sequence[str]) -> Equation:
        """Return an equation of one to three quantities, with or without a constant; or of two, their difference."""
        parents = [self._quantity(code) for code in rng.sample(codes, between(rng, 1, min(3, len(codes))))]
        constant = self._number(rng) if rng.random() < 0.5 else None
        times = constant is not None and rng.random() < 0.5
        if times:
            constant = between(rng, 1, self.modulus - 1)
        return Equation(constant, tuple(parents), times, minus=len(parents) == 2 and rng.random() < 0.5)

    def _worked_out(self, rng: Random, before: Sequence[Expression], numbers: Expression) -> str:
        """Return the expression, then after each operation or at once its value."""
        results: Sequence[Expression] = []
        if len(numbers) > 1:
            results = steps_of(numbers, self.modulus) if rng.random() < 0.5 else [(evaluate(numbers, self.modulus),)]
        return "=".join(map(compact, [*before, numbers, *results]))

    def _prompt(self, rng: Random, facts: list[str], asked: str) -> str:
        rng.shuffle(facts)
        return f"%{self.modulus};{';'.join(facts)};{asked}?"

    def _number(self, rng: Random) -> int:
        return between(rng, 0, self.modulus - 1)

    @staticmethod
    def _quantity(code: str) -> Quantity:
        quantity = read_quantity(code)
        assert quantity is not None
        return quantity


def quantity_tokens() -> list[str]:
    """Return the codes of all instances and totals, alone and with ``=``: what tokens of a tokenizer for this text are.

    A number stands right after the token that names it, so looking it up takes two layers of attention and is learnt
    in a thousand updates; with the sign as a token between them it was not in five thousand.
    """
    codes = list[str]()
    for upper, owner, lower in product(range(len(LAYERS)), range(_SIZE), range(len(LAYERS))):
        head = f"{LAYERS[upper]}{owner}{LAYERS[lower]}"
        codes += [head] if lower < upper else []
        codes += [f"{head}{item}" for item in range(_SIZE)] if lower == upper - 1 else []
    return [*codes, *(f"{code}=" for code in codes)]
