"""What Countdown problems really hold: every row is solved again."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from compositionality.tasks.countdown.judge import judge_countdown
from compositionality.tasks.countdown.partition import SEED_CLASSES, owner
from compositionality.tasks.countdown.prompts import compact_prompt, ground_truth, text_answer, text_prompt
from compositionality.tasks.countdown.solver import solve
from compositionality.tasks.countdown.truth import Truth, read_ground_truth
from compositionality.types import Problem

_LISTED = re.compile(r"\ACountdown: reach .*\n\nNumbers: (?P<numbers>\d{1,15}(?:, \d{1,15})*)\n")
_COMPACT = re.compile(r"[-+*/]+:(?P<numbers>\d{1,15}(?:\|\d{1,15})*)>\d+")


@dataclass(frozen=True, slots=True)
class CountdownFacts:
    """One problem, solved again; ``fewest``: how many of the numbers reach the target without the others."""

    truth: Truth
    solutions: int
    whole: bool
    fewest: int
    wrong_gold: bool
    wrong_stream: bool


def problem_facts(problem: Problem) -> CountdownFacts:
    """Solve a problem again and see what its row says of it. UserError for one that is too large to solve."""
    truth = read_ground_truth(problem.ground_truth)
    found = solve(truth.numbers, truth.target, truth.operators, "any")
    level, gold = len(truth.numbers), problem.metadata.get("expression")
    allowed = [one for one in found if truth.use == "any" or one.operations == level - 1]
    said = ground_truth(truth.numbers, truth.target, "text", truth.use, truth.operators)
    return CountdownFacts(
        truth=truth,
        solutions=len(allowed),
        whole=any(one.whole for one in allowed),
        fewest=min([one.operations + 1 for one in found], default=level),
        wrong_gold=gold is not None and judge_countdown(text_answer(gold), said).score < 1,
        wrong_stream=_in_wrong_stream(problem, truth),
    )


def level_figures(rows: Sequence[CountdownFacts]) -> dict[str, Any]:
    """Figures of the problems of one level (numbers given); shares are of rows.

    fewer_numbers: trivial rows, whose target some of the numbers reach without the others; target_given: it is even one
    of them.
    """
    level, solutions = len(rows[0].truth.numbers), [row.solutions for row in rows]
    targets = [row.truth.target for row in rows]
    return {
        "wrong_gold": sum(row.wrong_gold for row in rows),
        "wrong_stream": sum(row.wrong_stream for row in rows),
        "solvable": fmean(count > 0 for count in solutions),
        "whole": fmean(row.whole for row in rows),
        "solutions_mean": fmean(solutions),
        "solutions_median": median(solutions),
        "solutions_max": max(solutions),
        "fewer_numbers": fmean(row.fewest < level for row in rows),
        "target_given": fmean(row.fewest == 1 for row in rows),
        "equal_numbers": fmean(len(set(row.truth.numbers)) < level for row in rows),
        "target_lowest": min(targets),
        "target_highest": max(targets),
    }


def asks_its_truth(problem: Problem) -> bool | None:
    """Whether the prompt asks for this target with these numbers; None where it writes no digits."""
    truth = read_ground_truth(problem.ground_truth)
    found = _LISTED.search(problem.prompt) if truth.style == "text" else _COMPACT.fullmatch(problem.prompt)
    if found is None:  # the words of others
        digits = Counter(map(int, re.findall(r"\d{1,15}", problem.prompt)))
        return Counter([*truth.numbers, truth.target]) <= digits if digits else None
    listed = [int(number) for number in re.findall(r"\d+", found["numbers"])]
    rendered = (
        text_prompt(listed, truth.target, truth.operators, truth.use)
        if truth.style == "text"
        else compact_prompt(listed, truth.target, truth.operators)
    )
    return tuple(sorted(listed)) == truth.numbers and problem.prompt == rendered


def _in_wrong_stream(problem: Problem, truth: Truth) -> bool:
    if not problem.data_source.startswith("countdown-clean-"):
        return False
    split, seed = problem.metadata["split"], problem.metadata["seed"]
    return owner(truth.numbers, truth.target) != (split, seed % SEED_CLASSES)
