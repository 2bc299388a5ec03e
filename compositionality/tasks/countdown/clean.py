"""The clean mode: solvable problems by random access, with splits that cannot overlap.

A problem is a pure function of (options, split, seed, index).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from compositionality.errors import UserError
from compositionality.tasks.countdown.forms import Written, form_key, write
from compositionality.tasks.countdown.options import GROUP, CountdownOptions
from compositionality.tasks.countdown.plan import make_plan
from compositionality.tasks.countdown.prompts import (
    compact_prompt,
    compact_trace,
    ground_truth,
    text_prompt,
)
from compositionality.tasks.countdown.search import Found, Search
from compositionality.tasks.countdown.solver import labels_of
from compositionality.types import Problem


@dataclass(frozen=True, slots=True)
class CountdownItem:
    """One problem before it is put into words.

    solutions: how many there are, up to order, brackets and moved minus signs; operations: the fewest in any of them;
    fewest: how many of the numbers suffice, if it were allowed to leave some out; gold: one solution.
    """

    level: int
    index: int
    numbers: tuple[int, ...]
    target: int
    solutions: int
    operations: int
    fewest: int
    gold: Written


class CountdownGenerator:
    """Problems of the clean mode. Pure and picklable."""

    def __init__(self, options: CountdownOptions) -> None:
        self.options = options

    def level(self, index: int) -> int:
        """The level of the candidate at ``index``: the levels take turns."""
        return self.options.levels[index % len(self.options.levels)]

    def problem(self, split: str, seed: int, index: int) -> Problem:
        """The problem at ``index`` of the stream (split, seed)."""
        return self.render(next(self.items(split, seed, [index])), seed)

    def items(self, split: str, seed: int, indices: Iterable[int]) -> Iterator[CountdownItem]:
        """The problems at ``indices``, in order, not yet put into words; many at once are much faster."""
        wanted = list(indices)
        found: dict[int, CountdownItem] = {}
        for level in self.options.levels:
            mine = [index for index in wanted if self.level(index) == level]
            search = _search(self.options, level, split, seed)
            found.update((one.at, self._item(level, one)) for one in search.find(mine))
        for index in wanted:
            if index not in found:
                raise UserError(
                    f"no sound problem of level {self.level(index)} found for {split}/{seed}/{index}; "
                    f"widen numbers (now {list(self.options.numbers)}) or target (now {list(self.options.target)})"
                )
            yield found[index]

    def _item(self, level: int, found: Found) -> CountdownItem:
        """Count the solutions and pick a gold one: with whole steps if there is one, and few operations."""
        plan, ordered = make_plan(level, self.options.operators), sorted(found.numbers)
        count = len(found.solutions)
        if len(set(ordered)) < level:
            labels = labels_of(ordered)
            count = len({form_key(plan.form(mask, row), labels)[0] for mask, row, _ in found.solutions})
        best = [one for one in found.solutions if one[2]] or found.solutions
        least = best[0][0].bit_count()  # small blocks come first
        best = [one for one in best if one[0].bit_count() == least]
        mask, row, _ = best[found.word % len(best)]
        gold = write(plan.form(mask, row), ordered)
        operations = found.solutions[0][0].bit_count() - 1
        return CountdownItem(level, found.at, tuple(found.numbers), found.target, count, operations, found.fewest, gold)

    def render(self, item: CountdownItem, seed: int) -> Problem:
        """Put an item into words: its row."""
        options = self.options
        if options.style == "compact":
            prompt = compact_prompt(item.numbers, item.target, options.operators)
        else:
            prompt = text_prompt(item.numbers, item.target, options.operators, options.use)
        truth = ground_truth(item.numbers, item.target, options.style, options.use, options.operators)
        metadata = {
            "seed": seed,
            "solutions": item.solutions,
            "operations": item.operations,
            "fewest_numbers": item.fewest,
            "expression": item.gold.text,
            "trace": compact_trace(item.numbers, item.gold.steps),
        }
        return Problem(f"countdown-clean-level{item.level}", item.level, GROUP, prompt, truth, item.index, metadata)


@lru_cache(maxsize=64)
def _search(options: CountdownOptions, level: int, split: str, seed: int) -> Search:
    return Search(options, level, split, seed)
