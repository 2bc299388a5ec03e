"""Solutions: which steps they take, plain or with behaviours injected, and their words.

- *subgoals*: an equation is worked out one operation at a time;
- *analysis*: what the problem says of a quantity is repeated before it is worked out;
- *reflection*: now and then a quantity is tried that cannot be known yet, noticed, and left for later.

No step states a wrong value. Mechanics are those of the paper's released code (README.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_letters

from compositionality.tasks.draws import Draws
from compositionality.tasks.igsm.graph import Expression, Quantity, QuantityGraph, evaluate, numbers_in, steps_of
from compositionality.tasks.igsm.wording import FILLER, Names, capital, compact, phrase, premise
from compositionality.tasks.task import BRIDGE, Behaviours

Forms = Mapping[Quantity, Sequence[Expression]]
"""The expressions after each quantity of a solution: its equation with numbers, then what operations leave of it."""
_TO_REDUNDANT = 0.3
_BEGIN = ("- Let {letter} be {phrase}.", "- Next is {phrase}: call it {letter}.", "- {Phrase} is called {letter}.")
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
    """Return a whole right completion with these behaviours, all choices drawn from ``key``; in codes without names."""
    draws = Draws(key)
    if behaviours.reordered:
        problem = other_order(problem, draws)
    steps = plan_steps(problem, behaviours, draws)
    values: dict[Quantity, int] = {}
    forms: dict[Quantity, list[Expression]] = {}  # of the equation with numbers, after each operation or only the last
    for quantity in [step.quantity for step in steps if not step.missing]:
        numbers = numbers_in(problem.expression(quantity), values)
        after = steps_of(numbers, problem.modulus)
        values[quantity] = evaluate(numbers, problem.modulus)
        forms[quantity] = [numbers, *(after if behaviours.subgoals else after[-1:])]
    if names is None:
        text = compact_solution(problem, steps, forms)
    else:
        text = text_solution(problem, names, steps, draws, forms)
    if not behaviours.padded:
        return text
    length = len(write_solution(problem, names, BRIDGE, key))
    return _padded(text, length, FILLER if names is None else _FILLER_WORDS)


def _padded(text: str, length: int, filler: str) -> str:
    """Put lines of neutral text between the steps, up to ``length`` characters if it is shorter."""
    lines = text.split("\n")
    missing = length - len(text)
    slots = min(len(lines) - 1, missing // (1 + _LEAST_FILLER)) or int(missing > 1)
    sizes = [missing * (slot + 1) // slots - missing * slot // slots for slot in range(slots)]
    fillers = [(filler * size)[: size - 1] for size in sizes]
    between = [part for pair in zip(lines, fillers, strict=False) for part in pair]
    if len(lines) == 1 and fillers:
        return f"{fillers[0]}\n{text}"
    return "\n".join([*between, *lines[len(fillers) :]])


def compact_solution(problem: QuantityGraph, steps: Sequence["SolutionStep"], forms: Forms) -> str:
    """Write ``b1a0=3*(4+5)=27``, analysed ``b1a0=3*(b0a1+b2a0)=3*(4+5)=27``, tried in vain ``b1a0?b2a0``."""
    lines = []
    for step in steps:
        code = step.quantity.code
        if step.missing:
            lines.append(f"{code}?{','.join([quantity.code for quantity in step.missing])}")
            continue
        analysis = [problem.expression(step.quantity)] if step.analysed else []
        lines.append("=".join([code, *map(compact, [*analysis, *forms[step.quantity]])]))
    return "\n".join(lines)


def text_solution(
    problem: QuantityGraph, names: Names, steps: Sequence["SolutionStep"], draws: Draws, forms: Forms
) -> str:
    """Write one paragraph for each step, with a letter for each quantity, then the answer in a box."""
    unused = list(ascii_letters)
    quantities = dict.fromkeys(step.quantity for step in steps)
    letters = {quantity: unused.pop(draws.below(len(unused))) for quantity in quantities}
    lines = []
    for step in steps:
        quantity, letter = step.quantity, letters[step.quantity]
        words = phrase(quantity, names)
        begin = draws.choice(_AGAIN if step.again else _BEGIN)
        parts = [begin.format(letter=letter, phrase=words, Phrase=capital(words))]
        if step.analysed:
            parts.append(draws.choice(_SAYS).format(premise=premise(quantity, problem, names)))
        if step.missing:
            missing = " and ".join([phrase(other, names) for other in step.missing])
            parts.append(draws.choice(_LOCKED).format(missing=missing))
        else:
            named = [problem.expression(quantity)] if problem.parents(quantity) else []
            parts.append(" = ".join([letter, *[_spaced(form, letters) for form in [*named, *forms[quantity]]]]) + ".")
        lines.append(" ".join(parts))
    return "\n".join([*lines, f"So {phrase(problem.asked, names)} is \\boxed{{{problem.answer}}}."])


def _spaced(expression: Expression, letters: Mapping[Quantity, str]) -> str:
    """Write ``3 * (p + q)``."""
    words = [letters[part] if isinstance(part, Quantity) else str(part) for part in expression]
    return " ".join(words).replace("( ", "(").replace(" )", ")")


# ---- which steps


@dataclass(frozen=True, slots=True)
class SolutionStep:
    """One line of a solution: a quantity worked out, or (``missing``) tried though these are not known yet."""

    quantity: Quantity
    analysed: bool = False
    missing: tuple[Quantity, ...] = ()
    again: bool = False  # it was tried before


def plan_steps(problem: QuantityGraph, behaviours: Behaviours, draws: Draws) -> list[SolutionStep]:
    """Return the lines of a solution, the question's last; no line in vain follows another."""
    steps: list[SolutionStep] = []
    solved: set[Quantity] = set()
    for place, quantity in enumerate(problem.order):
        while quantity not in solved:
            target = quantity
            inside = 0 < place < len(problem.order) - 1
            if inside and not steps[-1].missing and draws.unit() < behaviours.reflection:
                later = [other for other in problem.order[place + 1 : -1] if other not in solved]
                beside = [other for other in problem.equations if other not in problem.order and other not in solved]
                if beside and (not later or draws.unit() < _TO_REDUNDANT):
                    target = draws.choice(beside)
                elif later:
                    target = draws.choice(later)
            parents = problem.parents(target)
            missing = tuple([parent for parent in dict.fromkeys(parents) if parent not in solved])
            terms = sum(not isinstance(part, str) for part in problem.expression(target))
            eligible = bool(parents) and not target.is_abstract
            analysed = eligible and draws.unit() < behaviours.analysis_chance(terms)
            again = any(step.quantity == target for step in steps)
            steps.append(SolutionStep(target, analysed, missing, again))
            if not missing:
                solved.add(target)
    return steps


def other_order(problem: QuantityGraph, draws: Draws) -> QuantityGraph:
    """Return the same problem, worked out in another order (random topological, the question last)."""
    remaining = list(problem.order[:-1])
    order: list[Quantity] = []
    while remaining:
        free = [quantity for quantity in remaining if not {*remaining}.intersection(problem.parents(quantity))]
        order.append(draws.choice(free))
        remaining.remove(order[-1])
    return replace(problem, order=(*order, problem.asked))


def other_premises(problem: QuantityGraph, draws: Draws) -> QuantityGraph:
    order = draws.shuffled(problem.equations)
    return replace(problem, equations={quantity: problem.equations[quantity] for quantity in order})
