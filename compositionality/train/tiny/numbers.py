"""The Countdown part of the pretraining text: arithmetic, the game with two numbers, and other games like it.

With more than two numbers Countdown is never shown. Playing on until no number is left is learned in other games: the
analogue, for numbers, of the functions that the string part composes and the study never asks about.
"""

from collections.abc import Callable
from random import Random

from compositionality.tasks.countdown.wording import OPERATORS, compact_line, compact_prompt
from compositionality.train.tiny.draws import Exchange, between, by_share, pick

ECHO = 0.05
"""Share of echoes in this text; sums are what the other shares leave."""
OTHER_OPERATORS = "^_"
"""The larger, the smaller."""
MOST_NUMBERS = 5

_CALCULATE: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b if a % b == 0 else 0,
    "^": max,
    "_": min,
}


class NumberText:
    """Draws exchanges in which every value is a whole number from 1 to ``largest``."""

    def __init__(self, largest: int, two_numbers: float, other_games: float, deepest: int):
        self.largest, self.deepest = largest, deepest
        self.shares = ((ECHO, self.echo), (two_numbers, self.problem), (other_games, self.other_game), (1.0, self.sum))
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
        return by_share(rng, self.shares)

    def problem(self, rng: Random) -> Exchange:
        """Return two numbers, in either order, and the result of an operator: ``+-*/:3|5>15``.

        Each operator as often as the others.
        """
        operator = pick(rng, OPERATORS)
        a, b, c = pick(rng, self._facts[operator])
        numbers = (a, b) if rng.random() < 0.5 else (b, a)
        allowed = OPERATORS
        if rng.random() < 0.5:
            allowed = "".join(sign for sign in OPERATORS if sign == operator or rng.random() < 0.5)
        return compact_prompt(numbers, c, allowed), compact_line((), a, operator, b, c)

    def other_game(self, rng: Random) -> Exchange:
        """Return two to five numbers and what one to four operators make of some, not all of them Countdown's.

        ``*^:3|5|7>15``.
        """
        others = rng.sample(OTHER_OPERATORS, between(rng, 1, 2))
        allowed = [*rng.sample(OPERATORS, between(rng, 0, 3)), *others]
        numbers = [between(rng, 1, self.largest) for _ in range(between(rng, 2, MOST_NUMBERS))]
        values, lines = list(numbers), []
        while len(values) > 1:
            a, b = (values.pop(int(rng.random() * len(values))) for _ in range(2))
            possible = [(o, c) for o in allowed if 1 <= (c := _CALCULATE[o](a, b)) <= self.largest]
            if not possible:
                return self.other_game(rng)
            operator, c = pick(rng, possible)
            lines.append(compact_line(values, a, operator, b, c))
            values.append(c)
        return compact_prompt(numbers, values[0], "".join(allowed)), "\n".join(lines)

    def sum(self, rng: Random) -> Exchange:
        """Return a sum of one to ``deepest`` operators, from left to right: ``3*5+7`` → ``+7,3*5=15``, ``,15+7=22``."""
        operator = pick(rng, tuple(_CALCULATE))
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
        """Return a question ``"+-*/:3|5|7>22`` for what stands after the mark, so that such prompts can be read."""
        *numbers, target = (between(rng, 1, self.largest) for _ in range(between(rng, 2, MOST_NUMBERS) + 1))
        text = compact_prompt(numbers, target)
        return f'"{text}', text
