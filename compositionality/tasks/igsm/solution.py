"""A solution in words, from its steps: one line for each quantity."""

from collections.abc import Mapping, Sequence
from string import ascii_letters

from compositionality.tasks.behaviours import BRIDGE, Behaviours
from compositionality.tasks.draws import Draws
from compositionality.tasks.igsm.behaviours import SolutionStep, other_order, plan_steps, values_along
from compositionality.tasks.igsm.graph import Expression, Quantity, QuantityGraph, numbers_in, steps_of
from compositionality.tasks.igsm.names import Names
from compositionality.tasks.igsm.process import FILLER
from compositionality.tasks.igsm.wording import capital, compact, phrase, premise

_BEGIN = (
    "- Let {letter} be {phrase}.",
    "- Next is {phrase}: call it {letter}.",
    "- {Phrase} is called {letter}.",
)
_AGAIN = ("- Back to {letter}, {phrase}.", "- Now for {letter}, {phrase}.", "- Again {letter}, {phrase}.")
_LOCKED = (
    "It depends on {missing}, not known yet. I leave it for later.",
    "For that I need {missing} first, so it has to wait.",
    "That cannot be worked out before {missing}. I go back.",
)
_FILLER_WORDS = "so far so good, "
_LEAST_FILLER = 3
_SAYS = ("It is said that {premise}.", "According to the facts {premise}.")


def write_solution(problem: QuantityGraph, names: Names | None, behaviours: Behaviours, key: bytes) -> str:
    """A whole right completion with these behaviours, all choices drawn from ``key``; in codes without names."""
    draws = Draws(key)
    if behaviours.reordered:
        problem = other_order(problem, draws)
    steps = plan_steps(problem, behaviours, draws)
    if names is None:
        text = compact_solution(problem, steps, subgoals=behaviours.subgoals)
    else:
        text = text_solution(problem, names, steps, draws, subgoals=behaviours.subgoals)
    if not behaviours.padded:
        return text
    length = len(write_solution(problem, names, BRIDGE, key))
    return _padded(text, length, FILLER if names is None else _FILLER_WORDS)


def _padded(text: str, length: int, filler: str) -> str:
    """With lines of neutral text between the steps, as long as ``length`` characters if it is shorter."""
    lines, missing = text.split("\n"), length - len(text)
    slots = min(len(lines) - 1, missing // (1 + _LEAST_FILLER)) or int(missing > 1)
    sizes = [missing * (slot + 1) // slots - missing * slot // slots for slot in range(slots)]
    fillers = [(filler * size)[: size - 1] for size in sizes]
    between = [part for line, one in zip(lines, fillers, strict=False) for part in (line, one)]
    if len(lines) == 1 and fillers:
        return f"{fillers[0]}\n{text}"
    return "\n".join([*between, *lines[len(fillers) :]])


def compact_solution(problem: QuantityGraph, steps: Sequence[SolutionStep], *, subgoals: bool) -> str:
    """``b1a0=3*(4+5)=27``, analysed ``b1a0=3*(b0a1+b2a0)=3*(4+5)=27``, tried in vain ``b1a0?b2a0``."""
    values, lines = values_along(problem, steps), []
    for step in steps:
        code = step.quantity.code
        if step.missing:
            lines.append(f"{code}?{','.join([one.code for one in step.missing])}")
            continue
        forms = _forms(problem, step.quantity, values, subgoals=subgoals)
        if step.analysed:
            forms.insert(0, problem.expression(step.quantity))
        lines.append("=".join([code, *map(compact, forms)]))
    return "\n".join(lines)


def text_solution(
    problem: QuantityGraph, names: Names, steps: Sequence[SolutionStep], draws: Draws, *, subgoals: bool
) -> str:
    """One paragraph for each step, with a letter for each quantity, then the answer in a box."""
    values = values_along(problem, steps)
    letters = _letters(draws, [step.quantity for step in steps])
    lines = [_line(problem, names, step, letters, values, draws, subgoals=subgoals) for step in steps]
    asked = problem.asked
    return "\n".join([*lines, f"So {phrase(asked, names)} is \\boxed{{{values[asked]}}}."])


def _letters(draws: Draws, quantities: Sequence[Quantity]) -> dict[Quantity, str]:
    """A letter for each, no two the same."""
    left = list(ascii_letters)
    return {one: left.pop(draws.below(len(left))) for one in dict.fromkeys(quantities)}


def _line(
    problem: QuantityGraph,
    names: Names,
    step: SolutionStep,
    letters: Mapping[Quantity, str],
    values: Mapping[Quantity, int],
    draws: Draws,
    *,
    subgoals: bool,
) -> str:
    one, letter = step.quantity, letters[step.quantity]
    said = phrase(one, names)
    parts = [draws.choice(_AGAIN if step.again else _BEGIN).format(letter=letter, phrase=said, Phrase=capital(said))]
    if step.analysed:
        parts.append(draws.choice(_SAYS).format(premise=premise(one, problem, names)))
    if step.missing:
        missing = [phrase(other, names) for other in step.missing]
        parts.append(draws.choice(_LOCKED).format(missing=" and ".join(missing)))
    else:
        forms = _forms(problem, one, values, subgoals=subgoals)
        if problem.parents(one):
            forms.insert(0, problem.expression(one))
        parts.append(" = ".join([letter, *[_spaced(form, letters) for form in forms]]) + ".")
    return " ".join(parts)


def _forms(
    problem: QuantityGraph, one: Quantity, values: Mapping[Quantity, int], *, subgoals: bool
) -> list[Expression]:
    """The equation with numbers, after each operation (only the last without ``subgoals``), down to the value."""
    numbers = numbers_in(problem.expression(one), values)
    after = steps_of(numbers, problem.modulus)
    return [numbers, *(after if subgoals else after[-1:])]


def _spaced(expression: Expression, letters: Mapping[Quantity, str]) -> str:
    """``3 * (p + q)``."""
    words = [letters[part] if isinstance(part, Quantity) else str(part) for part in expression]
    return " ".join(words).replace("( ", "(").replace(" )", ")")
