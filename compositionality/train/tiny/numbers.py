"""The Countdown part of the pretraining text: arithmetic, and the game with two numbers.

- *sums*: ``3*5+7`` is worked out from left to right in the steps of the compact style. Calculating, and doing so for
  several steps, is what an LLM brings along.
- *problems*: two numbers and a target (``3|5>15``). The game is never shown with more numbers than two, so any ability
  to play it with three comes from elsewhere.
- *echo*: copy a problem with any count of numbers, so that such prompts can be read at all.
"""

from collections.abc import Callable
from random import Random

from compositionality.tasks.countdown.prompts import compact_line, compact_prompt
from compositionality.train.tiny.draws import Exchange, between, pick

OPERATORS = "+-*/"
ECHO = 0.1
"""Share of echoes in this text."""
MOST_NUMBERS = 5

_CALCULATE: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b if b and a % b == 0 else 0,
}


class NumberText:
    """Draws exchanges in which every value is a whole number from 1 to ``largest``."""

    def __init__(self, largest: int, problems: float, deepest: int):
        self.largest, self.problems, self.deepest = largest, problems, deepest
        values = range(1, largest + 1)
        self._facts = {
            operator: [(a, b, c) for a in values for b in values if 1 <= (c := calculate(a, b)) <= largest]
            for operator, calculate in _CALCULATE.items()
        }
        self._next = {
            a: [(operator, b, c) for operator, facts in self._facts.items() for first, b, c in facts if first == a]
            for a in values
        }

    def exchange(self, rng: Random) -> Exchange:
        """One exchange, its kind drawn by the shares."""
        draw = rng.random()
        if draw < ECHO:
            return self.echo(rng)
        return self.problem(rng) if draw < ECHO + self.problems else self.sum(rng)

    def problem(self, rng: Random) -> Exchange:
        """Two numbers, in either order, and the result of an operator; every operator as often as the others."""
        operator = pick(rng, OPERATORS)
        a, b, c = pick(rng, self._facts[operator])
        numbers = (a, b) if rng.random() < 0.5 else (b, a)
        return compact_prompt(numbers, c), compact_line((), a, operator, b, c)

    def sum(self, rng: Random) -> Exchange:
        """One to ``deepest`` operators, from left to right: ``3*5+7`` → ``+7,3*5=15``, ``,15+7=22``."""
        operator = pick(rng, OPERATORS)
        a, b, c = pick(rng, self._facts[operator])
        steps = [(a, operator, b, c)]
        for _ in range(between(rng, 1, self.deepest) - 1):
            a = c
            operator, b, c = pick(rng, self._next[a])
            steps.append((a, operator, b, c))
        words = [f"{operator}{b}" for _, operator, b, _ in steps]
        lines = [f"{''.join(words[done:])},{a}{op}{b}={c}" for done, (a, op, b, c) in enumerate(steps, 1)]
        return f"{steps[0][0]}{''.join(words)}", "\n".join(lines)

    def echo(self, rng: Random) -> Exchange:
        """``"3|5|7>22`` asks for 3|5|7>22."""
        *numbers, target = (between(rng, 1, self.largest) for _ in range(between(rng, 2, MOST_NUMBERS) + 1))
        text = compact_prompt(numbers, target)
        return f'"{text}', text
