"""The iGSM part of the pretraining text: arithmetic and single steps in the compact style, never a whole problem.

- *calculations*: ``%10;3*(4+5)?`` → ``3*(4+5)=3*9=7``, or the value at once.
- *look-ups*: ``%10;b1a0=3;c0b1=7;c0b1?`` → ``c0b1=7``.
- *steps*: an equation, or a total, of quantities whose numbers stand beside it:
  ``%10;b0a1=4;b1a0=3*(b0a1+b2a0);b2a0=5;b1a0?`` → ``b1a0=3*(4+5)=7``, or with the equation written out first.

What a problem of several steps needs beyond that, finding out which quantities come first, is left to fine-tuning.
"""

from collections.abc import Sequence
from random import Random

from compositionality.tasks.igsm.graph import (
    LAYERS,
    Equation,
    Expression,
    Quantity,
    evaluate,
    expression_of,
    numbers_in,
    quantity,
    steps_of,
)
from compositionality.tasks.igsm.wording import compact
from compositionality.train.tiny.draws import Exchange, Kind, between, by_share, pick

CALCULATIONS, LOOK_UPS, TOTALS = 0.35, 0.1, 0.15
"""Shares of this text; steps by an equation are what they leave."""
MOST_FACTS = 10
_SIZE = 4


class GraphText:
    """Draws exchanges about whole numbers modulo ``modulus``."""

    def __init__(self, modulus: int) -> None:
        self.modulus = modulus
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
            (1.0, self.step),
        )

    def exchange(self, rng: Random) -> Exchange:
        """One exchange, its kind drawn by the shares."""
        return by_share(rng, self.shares)

    def calculation(self, rng: Random) -> Exchange:
        """An expression of one to four numbers, as equations and totals have it."""
        if rng.random() < TOTALS:
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
        """One of several numbers."""
        facts = {code: self._number(rng) for code in rng.sample(self.codes, between(rng, 1, MOST_FACTS))}
        asked = pick(rng, list(facts))
        return self._prompt(rng, [f"{code}={value}" for code, value in facts.items()], asked), f"{asked}={facts[asked]}"

    def step(self, rng: Random) -> Exchange:
        """An equation, the numbers that it needs, and some that it does not."""
        asked, *others = rng.sample(self.codes, between(rng, 2, MOST_FACTS))
        values = {self._quantity(code): self._number(rng) for code in others}
        expression = expression_of(self._equation(rng, others))
        facts = [f"{one.code}={value}" for one, value in values.items()]
        prompt = self._prompt(rng, [*facts, f"{asked}={compact(expression)}"], asked)
        before = [expression] if rng.random() < 0.5 else []
        return prompt, f"{asked}={self._worked_out(rng, before, numbers_in(expression, values))}"

    def total(self, rng: Random) -> Exchange:
        """All that one owner holds, and some numbers of others."""
        layer, owner = between(rng, 0, len(LAYERS) - 2), between(rng, 0, _SIZE - 1)
        head = f"{LAYERS[layer + 1]}{owner}{LAYERS[layer]}"
        held = [f"{head}{item}" for item in sorted(rng.sample(range(_SIZE), between(rng, 1, _SIZE)))]
        beside = [code for code in rng.sample(self.codes, between(rng, 0, MOST_FACTS - _SIZE)) if code[:2] != head[:2]]
        values = {self._quantity(code): self._number(rng) for code in (*held, *beside)}
        parts = [part for code in held for part in ("+", self._quantity(code))][1:]
        prompt = self._prompt(rng, [f"{one.code}={value}" for one, value in values.items()], head)
        return prompt, f"{head}={self._worked_out(rng, [], numbers_in(tuple(parts), values))}"

    def _equation(self, rng: Random, codes: Sequence[str]) -> Equation:
        """Of one to three quantities, with a constant or without; or of two, their difference."""
        parents = [self._quantity(code) for code in rng.sample(codes, between(rng, 1, min(3, len(codes))))]
        constant = self._number(rng) if rng.random() < 0.5 else None
        times = constant is not None and rng.random() < 0.5
        if times:
            constant = between(rng, 1, self.modulus - 1)
        return Equation(constant, tuple(parents), times, minus=len(parents) == 2 and rng.random() < 0.5)

    def _worked_out(self, rng: Random, before: Sequence[Expression], numbers: Expression) -> str:
        """The expression, then after each operation or at once its value."""
        after = steps_of(numbers, self.modulus) or [numbers]
        if len(numbers) == 1:
            return "=".join(map(compact, [*before, numbers]))
        forms = after if rng.random() < 0.5 else [(evaluate(numbers, self.modulus),)]
        return "=".join(map(compact, [*before, numbers, *forms]))

    def _prompt(self, rng: Random, facts: list[str], asked: str) -> str:
        rng.shuffle(facts)
        return f"%{self.modulus};{';'.join(facts)};{asked}?"

    def _number(self, rng: Random) -> int:
        return between(rng, 0, self.modulus - 1)

    @staticmethod
    def _quantity(code: str) -> Quantity:
        found = quantity(code)
        assert found is not None
        return found
