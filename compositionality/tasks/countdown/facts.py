"""What the audit finds out about Countdown problems: every row is solved again."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from compositionality.tasks.countdown.clean import owner
from compositionality.tasks.countdown.judge import Truth, judge_countdown, read_ground_truth
from compositionality.tasks.countdown.solve import solve
from compositionality.tasks.countdown.wording import compact_prompt, ground_truth, text_answer, text_prompt
from compositionality.tasks.draws import SEED_CLASSES
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
    """Solve a problem again and compare it with its row. UserError for one that is too large to solve."""
    truth = read_ground_truth(problem.ground_truth)
    solutions = solve(truth.numbers, truth.target, truth.operators, "any")
    level = len(truth.numbers)
    allowed = [solution for solution in solutions if truth.use == "any" or solution.operations == level - 1]
    gold = problem.metadata.get("expression")
    text_truth = ground_truth(truth.numbers, truth.target, "text", truth.use, truth.operators)
    return CountdownFacts(
        truth=truth,
        solutions=len(allowed),
        whole=any(solution.whole for solution in allowed),
        fewest=min([solution.operations + 1 for solution in solutions], default=level),
        wrong_gold=gold is not None and judge_countdown(text_answer(gold), text_truth).score < 1,
        wrong_stream=_in_wrong_stream(problem, truth),
    )


def level_figures(rows: Sequence[CountdownFacts]) -> dict[str, Any]:
    """Return figures of the problems of one level (numbers given); shares are of rows.

    fewer_numbers: trivial rows, whose target some of the numbers reach without the others; target_given: it is even one
    of them.
    """
    level = len(rows[0].truth.numbers)
    solutions = [row.solutions for row in rows]
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


def prompt_matches_truth(problem: Problem) -> bool | None:
    """Return whether the prompt asks for this target with these numbers; None where it writes no digits."""
    truth = read_ground_truth(problem.ground_truth)
    match = _LISTED.search(problem.prompt) if truth.style == "text" else _COMPACT.fullmatch(problem.prompt)
    if match is None:  # the words of others
        digits = Counter(map(int, re.findall(r"\d{1,15}", problem.prompt)))
        return Counter([*truth.numbers, truth.target]) <= digits if digits else None
    listed = [int(number) for number in re.findall(r"\d+", match["numbers"])]
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
