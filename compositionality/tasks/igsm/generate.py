"""Problems by random access: a pure function of (options, split, seed, index).

A problem's *template* is its graph of dependencies with what its equations do, without names and constants. From four
operations on every template belongs to one split by its hash, so that no solution seen in training is asked for with
other numbers. With fewer there are too few templates (1, 4 and 27 or so): there the problem itself belongs to a split.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import islice

from compositionality.errors import UserError
from compositionality.tasks.draws import Draws
from compositionality.tasks.igsm.behaviours import other_premises
from compositionality.tasks.igsm.dependency import draw_problem
from compositionality.tasks.igsm.graph import Quantity, QuantityGraph
from compositionality.tasks.igsm.names import Names, draw_names, read_systems
from compositionality.tasks.igsm.options import LARGEST, IgsmOptions
from compositionality.tasks.igsm.structure import unit
from compositionality.tasks.igsm.wording import compact_prompt

BINS = {"train": range(15), "validation": range(15, 18), "test": range(18, 22), "pretrain": range(22, 23)}
"""Of the templates' hashes modulo 23, which a split has; iGSM keeps 0 to 15 or 16 for training."""
N_BINS = 23
SPLIT_BY_TEMPLATE = 4
"""The least level whose templates are split."""
PATIENCE = 2000
_SAMPLE = 300


@dataclass(frozen=True)
class IgsmItem:
    """A problem before it is put into words."""

    level: int
    index: int
    problem: QuantityGraph
    names: Names
    template: str


class IgsmGenerator:
    """Problems of one set of options. Pure and picklable."""

    def __init__(self, options: IgsmOptions) -> None:
        self.options = options

    def item(self, split: str, seed: int, index: int) -> IgsmItem:
        """The problem at ``index`` of the stream (split, seed). UserError where none is found in bounded time."""
        if split not in BINS:
            raise UserError(f"split={split}: no such split; known: {', '.join(BINS)}")
        options = self.options
        draws = Draws(f"igsm/{options.content()}/{split}/{seed}/{index}".encode())
        level = self.level(draws, index)
        kept = answer_shares(options, level)
        for _ in range(PATIENCE):
            problem = _draw(draws, options, level)
            if problem is None or unit(draws) >= kept.get(problem.answer, 1.0):
                continue
            template = template_of(problem)
            if bin_of(problem, level, template) in BINS[split]:
                names = draw_names(draws, read_systems(options.names), 1 + _coarsest(problem))
                return IgsmItem(level, index, problem, names, template)
        raise UserError(
            f"no problem of {level} operations found for {split}/{seed}/{index}; choose other levels, more most_edges "
            f"(now {options.most_edges}) or a larger most_common (now {options.most_common})"
        )

    def level(self, draws: Draws, index: int) -> int:
        """By the law: the levels take turns, or the smaller of two draws."""
        levels = self.options.levels
        if self.options.law == "equal":
            return levels[index % len(levels)]
        return min(draws.between(min(levels), max(levels)) for _ in range(2))


def _draw(draws: Draws, options: IgsmOptions, level: int) -> QuantityGraph | None:
    """One problem with an answer in bounds, its premises in the order of the text; None where the draw fails."""
    found = draw_problem(draws, level, options.most_edges, options.modulus, redundant=options.redundant)
    if found is None or abs(found.answer) >= LARGEST:
        return None
    if not options.shuffled:
        return found
    return other_premises(found, draws)


def bin_of(problem: QuantityGraph, level: int, template: str) -> int:
    """Which of the 23 bins the problem is in."""
    text = template if level >= SPLIT_BY_TEMPLATE else sha256(compact_prompt(problem).encode()).hexdigest()
    return int(text, 16) % N_BINS


def _coarsest(problem: QuantityGraph) -> int:
    return max(one.owner.layer for one in problem.equations)


def template_of(problem: QuantityGraph) -> str:
    """sha256 of the question's graph: kind and equation of each quantity, terms of a sum in any order, no numbers."""
    known: dict[Quantity, str] = {}
    for one in problem.order:
        parents = [known[parent] for parent in problem.parents(one)]
        if one.is_abstract:
            height = one.owner.layer - one.layer
            pairs = parents if height == 1 else [a + b for a, b in zip(parents[::2], parents[1::2], strict=True)]
            text = f"total{height}:{','.join(sorted(pairs))}"
        else:
            equation = problem.equations[one]
            constant = "" if equation.constant is None else "*" if equation.times else "+"
            terms = parents if equation.minus else sorted(parents)
            text = f"{constant}{'-' if equation.minus else ''}:{','.join(terms)}"
        known[one] = sha256(text.encode()).hexdigest()
    return known[problem.asked]


@lru_cache(maxsize=256)
def answer_shares(options: IgsmOptions, level: int) -> dict[int, float]:
    """How many of the problems with an answer are kept, of the frequent ones: so that none is above ``most_common``.

    From 300 problems of a stream of its own.
    """
    if options.most_common >= 1:
        return {}
    draws = Draws(f"igsm/thinning/{options.content()}/{level}".encode())
    found = (_draw(draws, options, level) for _ in range(PATIENCE))
    counts = Counter(problem.answer for problem in islice(filter(None, found), _SAMPLE))
    limit = float(max(counts.values(), default=0))
    for _ in range(60):  # what is left of all answers shrinks with the limit
        limit = min(limit, options.most_common * sum(min(count, limit) for count in counts.values()))
    return {answer: limit / count for answer, count in counts.items() if count > limit}
