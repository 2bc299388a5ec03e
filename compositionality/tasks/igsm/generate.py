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
from compositionality.tasks.draws import Draws, check_split
from compositionality.tasks.igsm.draw import draw_problem
from compositionality.tasks.igsm.graph import Quantity, QuantityGraph
from compositionality.tasks.igsm.solution import other_premises
from compositionality.tasks.igsm.wording import STYLES, Names, compact_prompt, draw_names, read_systems
from compositionality.tasks.stream import changed_options, check_choice, check_levels

OPERATIONS = range(1, 41)
WORDING = ("style", "process", "names", "levels", "group")
LAWS = ("equal", "min-of-two")
LARGEST = 1000  # answers that are whole numbers lie below it, and above its negative
# Which of the templates' hashes modulo 23 a split has; iGSM keeps 0 to 15 or 16 for training.
BINS = {"train": range(15), "validation": range(15, 18), "test": range(18, 22), "pretrain": range(22, 23)}
N_BINS = 23
SPLIT_BY_TEMPLATE = 4  # the least level whose templates are split
MAX_DRAWS = 2000  # for one problem
_SAMPLE = 300
# Measured shares of the answer 0, by law and level, for the default options: no other answer is too frequent there.
_SHARES_FROM_15 = {
    "min-of-two": (
        0.574468085106383, 0.3814943097476497, 0.36170212765957455, 0.28433268858800775, 0.29078014184397155,
        0.39209726443769,
    ),
    "equal": (
        0.4832826747720365, 0.6200607902735562, 0.35245143385753924, 0.3814943097476497, 0.34359438660027164,
        0.311639549436796, 0.22197523023181961, 0.2663242846661776, 0.24012158054711247, 0.19148936170212766,
        0.22197523023181961,
    ),
}  # fmt: skip
KNOWN_SHARES = {law: dict(enumerate(shares, 15)) for law, shares in _SHARES_FROM_15.items()}


@dataclass(frozen=True)
class IgsmOptions:
    """Options of the task; the level of a problem is how many operations its solution takes.

    law: how often each level comes; min-of-two is the paper's (the smaller of two, so that few are hard). modulus=23 is
    iGSM's. most_common: answers that would be right more often are thinned out until none is.
    """

    levels: tuple[int, ...] = (15, 16, 17, 18, 19, 20)  # operations
    law: str = "equal"  # how often each level comes: equal or min-of-two
    modulus: int = 0  # of all arithmetic; 0: plain whole numbers, answers from -999 to 999
    most_edges: int = 20  # instances at most, from which necessary and redundant premises are taken
    redundant: bool = True  # state what the question does not need too
    shuffled: bool = True  # the premises, else each after those it depends on
    most_common: float = 0.06  # share of problems at most with the same answer; 1: as they come
    group: str = "igsm"  # name of this set of problems: igsm, ood …
    names: str = ""  # YAML file of naming systems; empty: ours
    style: str = "text"  # of the prompt: text or compact
    process: bool = False  # judge the whole chain of a completion, not its answer alone

    def __post_init__(self) -> None:
        check_choice("style", self.style, STYLES)
        check_choice("law", self.law, LAWS)
        if not self.group.isidentifier():
            raise UserError(f"group={self.group}: give a word")
        levels = self.levels
        check_levels(levels, OPERATIONS, "operations")
        if self.law == "min-of-two" and sorted(levels) != list(range(min(levels), max(levels) + 1)):
            raise UserError(f"law=min-of-two levels={list(levels)}: give all levels from the least to the largest")
        if self.modulus != 0 and not 2 <= self.modulus <= LARGEST:
            raise UserError(f"modulus={self.modulus}: give 0 (plain whole numbers) or 2 to {LARGEST}")
        if not 2 <= self.most_edges <= 48:
            raise UserError(f"most_edges={self.most_edges}: give 2 to 48")
        least = 1.5 / self.modulus if self.modulus else 0.01
        if not least <= self.most_common <= 1:
            raise UserError(f"most_common={self.most_common}: give {least:.2g} to 1 (1: no thinning)")
        read_systems(self.names)


@dataclass(frozen=True)
class IgsmItem:
    """A problem before it is put into words."""

    level: int
    index: int
    problem: QuantityGraph
    names: Names
    template: str


def draw_item(options: IgsmOptions, split: str, seed: int, index: int) -> IgsmItem:
    """Return the problem at ``index`` of the stream (split, seed). UserError where none is found in MAX_DRAWS."""
    check_split(split, BINS)
    content = changed_options(options, WORDING)
    draws = Draws(f"igsm/{content}/{split}/{seed}/{index}".encode())
    level = level_at(options, draws, index)
    shares = answer_shares(IgsmOptions(**dict(content)), level)  # the same for all wordings
    for _ in range(MAX_DRAWS):
        problem = _draw(draws, options, level)
        if problem is None or draws.unit() >= shares.get(problem.answer, 1.0):
            continue
        template = template_of(problem)
        if bin_of(problem, level, template) in BINS[split]:
            layers = 1 + max(quantity.owner.layer for quantity in problem.equations)
            names = draw_names(draws, read_systems(options.names), layers)
            return IgsmItem(level, index, problem, names, template)
    raise UserError(
        f"no problem of {level} operations found for {split}/{seed}/{index}; choose other levels, more most_edges "
        f"(now {options.most_edges}) or a larger most_common (now {options.most_common})"
    )


def level_at(options: IgsmOptions, draws: Draws, index: int) -> int:
    """Return the level by the law: the levels take turns, or the smaller of two draws."""
    if options.law == "equal":
        return options.levels[index % len(options.levels)]
    return min(draws.between(min(options.levels), max(options.levels)) for _ in range(2))


def _draw(draws: Draws, options: IgsmOptions, level: int) -> QuantityGraph | None:
    """Draw a problem with an answer in bounds, its premises in the order of the text; None where the draw fails."""
    problem = draw_problem(draws, level, options.most_edges, options.modulus, redundant=options.redundant)
    if problem is None or abs(problem.answer) >= LARGEST:
        return None
    return other_premises(problem, draws) if options.shuffled else problem


def bin_of(problem: QuantityGraph, level: int, template: str) -> int:
    """Return which of the 23 bins the problem is in."""
    text = template if level >= SPLIT_BY_TEMPLATE else sha256(compact_prompt(problem).encode()).hexdigest()
    return int(text, 16) % N_BINS


def template_of(problem: QuantityGraph) -> str:
    """Return the sha256 of the question's graph: kind and equation of each quantity, sums in any order, no numbers."""
    digests: dict[Quantity, str] = {}
    for quantity in problem.order:
        parents = [digests[parent] for parent in problem.parents(quantity)]
        if quantity.is_abstract:
            height = quantity.owner.layer - quantity.layer
            pairs = parents if height == 1 else [a + b for a, b in zip(parents[::2], parents[1::2], strict=True)]
            text = f"total{height}:{','.join(sorted(pairs))}"
        else:
            equation = problem.equations[quantity]
            constant = "" if equation.constant is None else "*" if equation.times else "+"
            terms = parents if equation.minus else sorted(parents)
            text = f"{constant}{'-' if equation.minus else ''}:{','.join(terms)}"
        digests[quantity] = sha256(text.encode()).hexdigest()
    return digests[problem.asked]


@lru_cache(maxsize=256)
def answer_shares(options: IgsmOptions, level: int) -> dict[int, float]:
    """Return the share of problems kept, by frequent answer: so that none is above ``most_common``."""
    share = KNOWN_SHARES[options.law].get(level) if options == IgsmOptions(law=options.law) else None
    return measure_shares(options, level) if share is None else {0: share}


def measure_shares(options: IgsmOptions, level: int) -> dict[int, float]:
    """Return ``answer_shares`` from 300 problems of a stream of their own."""
    if options.most_common >= 1:
        return {}
    draws = Draws(f"igsm/thinning/{changed_options(options, WORDING)}/{level}".encode())
    problems = (_draw(draws, options, level) for _ in range(MAX_DRAWS))
    counts = Counter(problem.answer for problem in islice(filter(None, problems), _SAMPLE))
    limit = float(max(counts.values(), default=0))
    for _ in range(60):  # what is left of all answers shrinks with the limit
        limit = min(limit, options.most_common * sum(min(count, limit) for count in counts.values()))
    return {answer: limit / count for answer, count in counts.items() if count > limit}
