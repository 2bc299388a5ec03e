"""The Countdown task behind the interface of all tasks; the paper's mode."""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, ClassVar

from compositionality.errors import UserError, check_installed
from compositionality.tasks.countdown.clean import GROUP, CountdownOptions, owner, problems
from compositionality.tasks.countdown.solve import LEVELS, solve
from compositionality.tasks.countdown.wording import (
    compact_prompt,
    compact_trace,
    ground_truth,
    judge_countdown,
    read_ground_truth,
    short_name,
    text_answer,
    text_prompt,
)
from compositionality.tasks.draws import SEED_CLASSES
from compositionality.tasks.stream import check_count, check_levels
from compositionality.tasks.task import Column, Identity, Mode, Task
from compositionality.types import Problem

PAPER_SEED = 42
PAPER_NUMBERS, PAPER_TARGETS = (1, 100), (1, 999)
_LISTED = re.compile(r"\ACountdown: reach .*\n\nNumbers: (?P<numbers>\d{1,15}(?:, \d{1,15})*)\n")
_COMPACT = re.compile(r"[-+*/]+:(?P<numbers>\d{1,15}(?:\|\d{1,15})*)>\d+")


@dataclass(frozen=True)
class CountdownPaperOptions:
    """The paper's mode: 50,000 problems with two numbers to train on, 512 each with three to five to test."""

    levels: tuple[int, ...] = (2,)  # how many numbers


class CountdownTask(Task):
    """Reach a target from given numbers; the level is how many there are."""

    name = "countdown"
    title = "Countdown"
    data_sources = (
        r"countdown-clean-level\d+",
        r"reasoning-gym-countdown-depth\d+",
        r"reasoning_gym/countdown",
        r"countdown",
    )
    modes: ClassVar[Mapping[str, Mode]] = {
        "clean": Mode(CountdownOptions),
        "paper": Mode(CountdownPaperOptions, uses=()),
    }
    styles = ("text", "compact")
    gold_mark = ","
    too_few = "ask for fewer rows, or widen numbers or target"
    seed_classes = SEED_CLASSES
    columns = (
        Column("solvable", lambda level: f"{level['solvable']:.1%}"),
        Column("whole", lambda level: f"{level['whole']:.1%}"),
        Column(
            "solutions mean/med/max",
            lambda level: "{solutions_mean:.2f}/{solutions_median:.0f}/{solutions_max}".format(**level),
        ),
        Column("fewer do", lambda level: f"{level['fewer_numbers']:.1%}"),
        Column("target given", lambda level: f"{level['target_given']:.1%}"),
        Column("equal", lambda level: f"{level['equal_numbers']:.1%}"),
        Column("targets", lambda level: "{target_lowest}-{target_highest}".format(**level)),
    )
    judge = staticmethod(judge_countdown)
    parse_truth = staticmethod(read_ground_truth)

    def problem(self, options: Any, split: str, seed: int, index: int) -> Problem:
        if isinstance(options, CountdownPaperOptions):
            raise UserError("mode=paper is one sequence; make its whole file")
        return next(problems(options, split, seed, [index]))

    def candidates(self, options: Any, split: str, seed: int, indices: range) -> list[tuple[Hashable, Problem]]:
        """Return (identity, problem) for each of ``indices``, a chunk that is solved at once."""
        return [(self.identity(problem).problem, problem) for problem in problems(options, split, seed, indices)]

    def problems(self, options: Any, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
        """Return the problems of a file; in mode=paper those of reasoning-gym with the paper's parameters."""
        if isinstance(options, CountdownPaperOptions):
            check_levels(options.levels, LEVELS, "how many numbers to give")
            check_count(count, len(options.levels))
            check_installed("reasoning_gym", "mode=paper")
            return _paper_problems(options, count)
        return super().problems(options, split, seed, count, workers)

    def gold(self, problem: Problem) -> str:
        """Return the row's own solution, else one that the solver finds. UserError if there is none."""
        truth = read_ground_truth(problem.ground_truth)
        solution_in_row = problem.metadata.get("trace" if truth.style == "compact" else "expression")
        if solution_in_row:
            return str(solution_in_row) if truth.style == "compact" else text_answer(solution_in_row)
        for solution in solve(truth.numbers, truth.target, truth.operators, truth.use):
            if truth.style == "text":
                return text_answer(solution.expression)
            if solution.whole:
                return compact_trace(truth.numbers, solution.steps)
        if truth.style == "text":
            raise UserError(f"{short_name(truth.numbers, truth.target)} has no solution")
        raise UserError(f"{problem.prompt[:60]!r} has no solution in whole steps")

    def identity(self, problem: Problem) -> Identity:
        truth = read_ground_truth(problem.ground_truth)
        return Identity(short_name(truth.numbers, truth.target))

    def level(self, problem: Problem) -> int:
        return len(read_ground_truth(problem.ground_truth).numbers)

    def asks_its_truth(self, problem: Problem) -> bool | None:
        """Return whether the prompt asks for this truth; None for others' words without any digits."""
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

    def facts(self, problem: Problem) -> dict[str, Any]:
        """Solve the problem again and compare it with its row. UserError for one that is too large to solve.

        fewest: how many of the numbers reach the target without the others.
        """
        truth = read_ground_truth(problem.ground_truth)
        solutions = solve(truth.numbers, truth.target, truth.operators, "any")
        level = len(truth.numbers)
        allowed = [solution for solution in solutions if truth.use == "any" or solution.operations == level - 1]
        gold, wrong_stream = problem.metadata.get("expression"), False
        if problem.data_source.startswith("countdown-clean-"):
            stream = problem.metadata["split"], problem.metadata["seed"] % SEED_CLASSES
            wrong_stream = owner(truth.numbers, truth.target) != stream
        text_truth = ground_truth(truth.numbers, truth.target, "text", truth.use, truth.operators)
        return {
            "truth": truth,
            "solutions": len(allowed),
            "whole": any(solution.whole for solution in allowed),
            "fewest": min([solution.operations + 1 for solution in solutions], default=level),
            "wrong_gold": gold is not None and judge_countdown(text_answer(gold), text_truth).score < 1,
            "wrong_stream": wrong_stream,
        }

    def figures(self, facts: Sequence[Any]) -> dict[str, Any]:
        """Return shares of rows, and how many solutions they have.

        fewer_numbers: trivial rows, whose target some of the numbers reach without the others; target_given: it is even
        one of them.
        """
        level = len(facts[0]["truth"].numbers)
        solutions = [row["solutions"] for row in facts]
        targets = [row["truth"].target for row in facts]
        return {
            "wrong_gold": sum(row["wrong_gold"] for row in facts),
            "wrong_stream": sum(row["wrong_stream"] for row in facts),
            "solvable": fmean(count > 0 for count in solutions),
            "whole": fmean(row["whole"] for row in facts),
            "solutions_mean": fmean(solutions),
            "solutions_median": median(solutions),
            "solutions_max": max(solutions),
            "fewer_numbers": fmean(row["fewest"] < level for row in facts),
            "target_given": fmean(row["fewest"] == 1 for row in facts),
            "equal_numbers": fmean(len(set(row["truth"].numbers)) < level for row in facts),
            "target_lowest": min(targets),
            "target_highest": max(targets),
        }


TASK = CountdownTask()


def _paper_problems(options: CountdownPaperOptions, count: int) -> Iterator[Problem]:
    """Yield ``count`` problems of reasoning-gym with the paper's parameters, level after level; its answers as gold.

    Its flaws are kept on purpose (50,000 problems with two numbers are about 12,000 different ones; neighbouring seeds
    share nearly all rows); ``clean.py`` is the mode without them. The wording is our own.
    """
    from reasoning_gym.games.countdown import CountdownConfig, CountdownDataset

    size = count // len(options.levels)
    for level in options.levels:
        config = CountdownConfig(level, level, *PAPER_NUMBERS, *PAPER_TARGETS, seed=PAPER_SEED, size=size)
        for index, entry in enumerate(CountdownDataset(config)):
            row = entry["metadata"]
            prompt, truth = text_prompt(row["numbers"], row["target"]), ground_truth(row["numbers"], row["target"])
            metadata = {"split": "train", "expression": row["expression"]}
            yield Problem(f"reasoning-gym-countdown-depth{level}", level, GROUP, prompt, truth, index, metadata)
