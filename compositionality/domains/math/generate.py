"""Problems of our own with exact answers: chains of fractions, linear equations, intervals, roots."""

from fractions import Fraction
from functools import partial
from operator import itemgetter

from compositionality.tasks.draws import Draws
from compositionality.tasks.owners import draw_owned

KINDS = ("fractions", "equation", "interval", "roots")


def make(kind: str, level: int, split: str, seed: int, index: int) -> tuple[str, str]:
    """Question and answer (LaTeX) of the problem named by the arguments. UserError for an unknown split."""
    maker = {"fractions": _fractions, "equation": _equation, "interval": _interval, "roots": _roots}[kind]
    made, _ = draw_owned(partial(maker, level=level), itemgetter(0), split, seed, f"math/{kind}/{level}/{index}")
    return made


def latex(value: Fraction) -> str:
    """A number as LaTeX, in lowest terms."""
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def _fraction(draws: Draws) -> Fraction:
    return Fraction(draws.between(1, 60), draws.between(1, 12))


def _fractions(draws: Draws, level: int) -> tuple[str, str]:
    """``level`` operations from left to right, brackets around what comes before each."""
    value = _fraction(draws)
    text = str(value)
    for step in range(level):
        sign, other = draws.choice("+-*"), _fraction(draws)
        text = f"({text}) {sign} {other}" if step else f"{text} {sign} {other}"
        value = value + other if sign == "+" else value - other if sign == "-" else value * other
    return f"Compute {text} as a fraction in lowest terms.", latex(value)


def _equation(draws: Draws, level: int) -> tuple[str, str]:
    """A linear equation; ``level`` terms in x."""
    terms = [draws.between(2, 30) for _ in range(level)]
    shift, right = draws.between(-60, 60), draws.between(-60, 60)
    text = " + ".join(f"{term}x" for term in terms) + (f" {'+' if shift >= 0 else '-'} {abs(shift)}")
    return f"Solve {text} = {right} for x.", latex(Fraction(right - shift, sum(terms)))


def _interval(draws: Draws, level: int) -> tuple[str, str]:
    """Where ``level`` nested steps of scaling and shifting give values in an interval."""
    low = Fraction(draws.between(-40, 40))
    high = low + draws.between(1, 40)
    text = "x"
    ends = [low, high]
    for step in range(level):
        scale, shift = draws.between(2, 9), draws.between(-20, 20)
        text = (
            f"{scale}({text}) {'+' if shift >= 0 else '-'} {abs(shift)}"
            if step
            else (f"{scale}x {'+' if shift >= 0 else '-'} {abs(shift)}")
        )
        ends = [scale * end + shift for end in ends]
    left, right = draws.choice(["<", "\\le"]), draws.choice(["<", "\\le"])
    answer = f"{'(' if left == '<' else '['}{low},{high}{')' if right == '<' else ']'}"
    return f"For which x is {ends[0]} {left} {text} {right} {ends[1]}? Answer with an interval.", answer


def _roots(draws: Draws, level: int) -> tuple[str, str]:
    """All roots of a polynomial of degree ``level`` + 1 with whole, different roots."""
    roots: set[int] = set()
    while len(roots) <= level:
        roots.add(draws.between(-50, 50))
    coefficients = [1]
    for root in sorted(roots):
        coefficients = [a - root * b for a, b in zip([*coefficients, 0], [0, *coefficients], strict=True)]
    terms = [_term(value, len(roots) - place) for place, value in enumerate(coefficients) if value]
    text = " + ".join(terms).replace("+ -", "- ")
    answer = ",".join(map(str, sorted(roots)))
    return f"Find all real roots of {text}, separated by commas.", answer


def _term(value: int, power: int) -> str:
    factor = "" if value == 1 and power else "-" if value == -1 and power else str(value)
    return factor + ("" if not power else "x" if power == 1 else f"x^{power}")
