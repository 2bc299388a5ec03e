"""A task in a package of its own: sort the digits of a number. The level is how many digits it has."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks import Column, Mode, Task
from compositionality.tasks.diagnosis import Diagnosis, Failure
from compositionality.tasks.draws import Draws
from compositionality.types import Completion, Problem, Reason, Verdict

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class DigitOptions:
    """How many digits the numbers have."""

    levels: tuple[int, ...] = (2, 3)


class DigitSorting(Task):
    """Prompt ``sort 3 0 2``, completion ``023``: the last word of a completion is its answer."""

    name = "digit_sorting"
    title = "Sorting digits"
    data_sources = (r"digits-level\d+",)
    modes = {"clean": Mode(DigitOptions)}  # noqa: RUF012
    columns = (Column("sorted", lambda level: f"{level['sorted']:.1%}"),)

    def problem(self, options: DigitOptions, split: str, seed: int, index: int) -> Problem:
        if split not in SPLITS:
            raise UserError(f"split={split}: no such split; known: {', '.join(SPLITS)}")
        level, draws = options.levels[index % len(options.levels)], Draws(f"{split}/{seed}/{index}".encode())
        digits = draws.text("0123456789", level)
        while int(digits) % len(SPLITS) != SPLITS.index(split):  # splits share no number
            digits = draws.text("0123456789", level)
        truth = f'"{"".join(sorted(digits))}"'
        metadata = {"skills": sorted(set(digits))}
        return Problem(f"digits-level{level}", level, "trained", f"sort {' '.join(digits)}", truth, index, metadata)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        found, gold = re.findall(r"\w+", answer_text), self.parse_truth(ground_truth)
        if not found:
            return Verdict(0.0, Reason.NO_ANSWER)
        right = found[-1] == gold
        return Verdict(float(right), Reason.CORRECT if right else Reason.WRONG, found[-1])

    def gold(self, problem: Problem) -> str:
        return str(self.parse_truth(problem.ground_truth))

    def facts(self, problem: Problem) -> dict[str, Any]:
        digits = problem.prompt.removeprefix("sort ").split()
        return {**super().facts(problem), "sorted": digits == sorted(digits)}

    def diagnose(self, problem: Problem, completion: Completion, verdict: Verdict) -> Diagnosis:
        if verdict.reason is Reason.WRONG and Counter(verdict.answer or "") == Counter(self.gold(problem)):
            return Diagnosis(Failure.ATOMIC, fault="wrong_order")
        return super().diagnose(problem, completion, verdict)


TASK = DigitSorting()
