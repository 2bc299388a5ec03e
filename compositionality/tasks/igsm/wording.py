"""A problem in words, in two styles: English (*text*), and codes for tiny models (*compact*).

``b1a0=3*(b0a1+b2a0);…;b1a?``: each b1 has 3 times as many a0 as …; how many a in all has each b1?
"""

from collections.abc import Sequence

from compositionality.tasks.igsm.graph import Equation, Quantity, QuantityGraph, expression_of
from compositionality.tasks.igsm.names import Names

STYLES = ("text", "compact")
FILLER = "~"  # a line of these is neutral: no step of a compact completion
_INTRO = """Here is what is known of some {things}. What is not mentioned is not there.{arithmetic}

"""
_MODULUS = " All arithmetic is done modulo {}, from 0 to {}."
_TASK = """

{question} Work it out step by step, one quantity at a time. Close your answer with the number in \\boxed{{}}."""


def phrase(quantity: Quantity, names: Names) -> str:
    """Return ``the number of Oak Crates in each Red Ship`` or ``the total number of Crates in each Red Ship``."""
    if quantity.is_abstract:
        counted = f"total number of {names.layers[quantity.layer].plural}"
    else:
        counted = f"number of {names.many(quantity.item)}"
    return f"the {counted} in each {names.one(quantity.owner)}"


def text_prompt(problem: QuantityGraph, names: Names) -> str:
    """Return the whole prompt in English."""
    things = names.layers[-1].plural
    arithmetic = _MODULUS.format(problem.modulus, problem.modulus - 1) if problem.modulus else ""
    facts = "\n".join([f"{capital(premise(quantity, problem, names))}." for quantity in problem.equations])
    question = f"What is {phrase(problem.asked, names)}?"
    return _INTRO.format(things=things, arithmetic=arithmetic) + facts + _TASK.format(question=question)


def premise(quantity: Quantity, problem: QuantityGraph, names: Names) -> str:
    """Return what the text says of an instance, without its full stop."""
    return f"{phrase(quantity, names)} equals {_said(problem.equations[quantity], names)}"


def capital(text: str) -> str:
    """Return the text with a capital at its start."""
    return text[:1].upper() + text[1:]


def _said(equation: Equation, names: Names) -> str:
    """Return ``3 times the sum of … and …``."""
    parents = [phrase(parent, names) for parent in equation.parents]
    if len(parents) > 1:
        listed = f"{', '.join(parents[:-1])} and {parents[-1]}"
        parents = [
            f"the difference between {parents[0]} and {parents[1]}" if equation.minus else f"the sum of {listed}"
        ]
    if equation.constant is None:
        return parents[0]
    if not parents:
        return str(equation.constant)
    return f"{equation.constant} {'times' if equation.times else 'more than'} {parents[0]}"


def compact_prompt(problem: QuantityGraph) -> str:
    """Return ``%MODULUS`` if there is one, the equations, the quantity in question."""
    modulus = f"%{problem.modulus};" if problem.modulus else ""
    return f"{modulus}{''.join(f'{line};' for line in compact_equations(problem))}{problem.asked.code}?"


def compact_equations(problem: QuantityGraph) -> list[str]:
    """Return ``b1a0=3*(b0a1+b2a0)`` for each instance, in the order of the text."""
    return [f"{quantity.code}={compact(expression_of(equation))}" for quantity, equation in problem.equations.items()]


def compact(expression: Sequence[str | int | Quantity]) -> str:
    """Return an expression without blanks."""
    return "".join([part.code if isinstance(part, Quantity) else str(part) for part in expression])
