"""The task ``math``: rows of guru, GSM8K, MATH, AIME and others with a final answer, and problems of our own.

Our own have exact answers: chains of fractions, linear equations, intervals, roots.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import isfinite
from typing import Any, ClassVar

from compositionality.domains.math.judge import judge_math, read_golds
from compositionality.errors import UserError
from compositionality.tasks.answers import last_box
from compositionality.tasks.draws import SEED_CLASSES, Draws, draw_owned
from compositionality.tasks.stream import check_choice, check_levels
from compositionality.tasks.task import Mode, Task, truth_text
from compositionality.types import Problem, Verdict

KINDS = ("fractions", "equation", "interval", "roots")


@dataclass(frozen=True)
class MathOptions:
    """The kinds of questions (``kind``), and their numbers of steps (``levels``, each from 1 to 8)."""

    levels: tuple[int, ...] = (1, 2)  # how many steps
    kind: str = KINDS[0]  # what is asked

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_levels(self.levels, range(1, 9))


class MathTask(Task):
    """One final answer in a box; a ground truth is the answer in LaTeX, or a JSON list of such texts."""

    name = "math"
    title = "Mathematics"
    data_sources = (
        r"math(?:_.*)?", r"openai/gsm8k", r"gsm8k", r"lighteval/MATH.*", r"DigitalLearningGmbH/MATH-lighteval",
        r"HuggingFaceH4/MATH-500", r"hiyouga/geometry3k", r"aime.*", r"amc.*", r"numina_.*",
    )  # fmt: skip
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(MathOptions)}
    kinds = KINDS
    trusted_judge = False
    seed_classes = SEED_CLASSES
    libraries = ("math_verify",)
    parse_truth = staticmethod(read_golds)

    def problem(self, options: MathOptions, split: str, seed: int, index: int) -> Problem:
        """Return the problem at ``index``; its characters, in whatever order, decide its split and seed."""
        level = options.levels[index % len(options.levels)]
        draw = partial(_MAKERS[options.kind], level=level)
        name = f"math/{options.kind}/{level}/{index}"
        (question, answer), _ = draw_owned(draw, split, seed, name, content=lambda drawn: "".join(sorted(drawn[0])))
        prompt = f"{question} Give the final answer in \\boxed{{}}."
        return Problem("math__generated", level, options.kind, prompt, answer, index, {"seed": seed})

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        return judge_math(answer_text, read_golds(ground_truth))

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """Return numbers as text; else the answer after GSM8K's ``####``, or in the box of a whole solution.

        Of a list, as JSON text, those of its parts, each of which is right.
        """
        value = ground_truth.tolist() if hasattr(ground_truth, "tolist") else ground_truth
        is_list = isinstance(value, list | tuple)
        if is_list and value and not any(isinstance(one, list | tuple) for one in value):
            return json.dumps([self.row_truth(one, extra_info) for one in value], ensure_ascii=False)
        if is_list or isinstance(value, bool) or (isinstance(value, float) and not isfinite(value)):
            raise UserError(f"ground_truth {str(value)[:60]} is no answer; give a number, text or a list of these")
        if isinstance(value, int | float):
            return str(value)
        text = truth_text(value).rpartition("####")[2].strip()
        return last_box(text) or text

    def gold(self, problem: Problem) -> str:
        return f"\\boxed{{{read_golds(problem.ground_truth)[0]}}}"


# ---- problems of our own: question and answer (LaTeX) of a level


def _fractions(draws: Draws, level: int) -> tuple[str, str]:
    """Draw ``level`` operations from left to right, brackets around what comes before each."""
    value = Fraction(draws.between(1, 60), draws.between(1, 12))
    text = str(value)
    for step in range(level):
        sign = draws.choice("+-*")
        operand = Fraction(draws.between(1, 60), draws.between(1, 12))
        text = f"({text}) {sign} {operand}" if step else f"{text} {sign} {operand}"
        value = value + operand if sign == "+" else value - operand if sign == "-" else value * operand
    return f"Compute {text} as a fraction.", _latex(value)


def _equation(draws: Draws, level: int) -> tuple[str, str]:
    """Draw a linear equation with ``level`` terms in x."""
    terms = [draws.between(2, 30) for _ in range(level)]
    shift, right = draws.between(-60, 60), draws.between(-60, 60)
    text = " + ".join(f"{term}x" for term in terms) + _shifted(shift)
    return f"Solve {text} = {right} for x.", _latex(Fraction(right - shift, sum(terms)))


def _interval(draws: Draws, level: int) -> tuple[str, str]:
    """Ask where ``level`` nested steps of scaling and shifting give values in an interval."""
    low = Fraction(draws.between(-40, 40))
    high = low + draws.between(1, 40)
    text = "x"
    ends = [low, high]
    for step in range(level):
        scale, shift = draws.between(2, 9), draws.between(-20, 20)
        text = (f"{scale}({text})" if step else f"{scale}x") + _shifted(shift)
        ends = [scale * end + shift for end in ends]
    low_sign, high_sign = draws.choice(["<", "\\le"]), draws.choice(["<", "\\le"])
    answer = f"{'(' if low_sign == '<' else '['}{low},{high}{')' if high_sign == '<' else ']'}"
    return f"For which x is {ends[0]} {low_sign} {text} {high_sign} {ends[1]}? Answer with an interval.", answer


def _roots(draws: Draws, level: int) -> tuple[str, str]:
    """Ask for all roots of a polynomial of degree ``level`` + 1 with whole, different roots."""
    roots: set[int] = set()
    while len(roots) <= level:
        roots.add(draws.between(-50, 50))
    coefficients = [1]
    for root in sorted(roots):
        coefficients = [a - root * b for a, b in zip([*coefficients, 0], [0, *coefficients], strict=True)]
    terms = [_term(value, len(roots) - place) for place, value in enumerate(coefficients) if value]
    text = " + ".join(terms).replace("+ -", "- ")
    return f"Find all real roots of {text}, separated by commas.", ",".join(map(str, sorted(roots)))


def _shifted(shift: int) -> str:
    return f" {'+' if shift >= 0 else '-'} {abs(shift)}"


def _term(value: int, power: int) -> str:
    factor = "" if value == 1 and power else "-" if value == -1 and power else str(value)
    return factor + ("" if not power else "x" if power == 1 else f"x^{power}")


def _latex(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


_MAKERS = {"fractions": _fractions, "equation": _equation, "interval": _interval, "roots": _roots}
TASK = MathTask()
