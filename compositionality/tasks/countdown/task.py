"""The Countdown task behind the interface of all tasks; the paper's mode."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from compositionality.errors import UserError, check_installed
from compositionality.tasks.countdown.clean import GROUP, CountdownOptions, check_levels, problems
from compositionality.tasks.countdown.facts import CountdownFacts, level_figures, problem_facts, prompt_matches_truth
from compositionality.tasks.countdown.judge import Truth, judge_countdown, read_ground_truth
from compositionality.tasks.countdown.solve import solve
from compositionality.tasks.countdown.wording import compact_trace, ground_truth, short_name, text_answer, text_prompt
from compositionality.tasks.draws import SEED_CLASSES
from compositionality.tasks.stream import check_count
from compositionality.tasks.task import Column, Identity, Mode, Task
from compositionality.types import Problem, Verdict

PAPER_SEED = 42
PAPER_NUMBERS, PAPER_TARGETS = (1, 100), (1, 999)


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

    def problem(self, options: Any, split: str, seed: int, index: int) -> Problem:
        """Return the problem at ``index``; mode=paper is one sequence, which has no random access (UserError)."""
        if isinstance(options, CountdownPaperOptions):
            raise UserError("mode=paper is one sequence; make its whole file")
        return next(problems(options, split, seed, [index]))

    def candidates(self, options: Any, split: str, seed: int, indices: range) -> list[tuple[Hashable, Problem]]:
        """Return the problems at ``indices`` by their identity. A chunk is solved at once."""
        return [(self.identity(problem).problem, problem) for problem in problems(options, split, seed, indices)]

    def problems(self, options: Any, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
        """Return the problems of a file; in mode=paper those of reasoning-gym with the paper's parameters."""
        if isinstance(options, CountdownPaperOptions):
            check_levels(options.levels)
            check_count(count, len(options.levels))
            check_installed("reasoning_gym", "mode=paper")
            return _paper_problems(options, count)
        return super().problems(options, split, seed, count, workers)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """Judge the last closed ``<answer>``, or every step of the compact style."""
        return judge_countdown(answer_text, ground_truth)

    def parse_truth(self, ground_truth: str) -> Truth:
        return read_ground_truth(ground_truth)

    def gold(self, problem: Problem) -> str:
        """Return the row's own solution, else one that the solver finds. UserError if there is none."""
        truth = read_ground_truth(problem.ground_truth)
        kept = problem.metadata.get("trace" if truth.style == "compact" else "expression")
        if kept:
            return str(kept) if truth.style == "compact" else text_answer(kept)
        for solution in solve(truth.numbers, truth.target, truth.operators, truth.use):
            if truth.style == "text":
                return text_answer(solution.expression)
            if solution.whole:
                return compact_trace(truth.numbers, solution.steps)
        if truth.style == "text":
            raise UserError(f"{short_name(truth.numbers, truth.target)} has no solution")
        raise UserError(f"{problem.prompt[:60]!r} has no solution in whole steps")

    def identity(self, problem: Problem) -> Identity:
        """Return numbers, in any order, with the target."""
        truth = read_ground_truth(problem.ground_truth)
        return Identity(short_name(truth.numbers, truth.target))

    def level(self, problem: Problem) -> int:
        """Return how many numbers are given."""
        return len(read_ground_truth(problem.ground_truth).numbers)

    def asks_its_truth(self, problem: Problem) -> bool | None:
        """Render the prompt again; one in the words of others must hold the numbers and the target in digits."""
        return prompt_matches_truth(problem)

    def facts(self, problem: Problem) -> CountdownFacts:
        """Solve the problem again."""
        return problem_facts(problem)

    def figures(self, facts: Sequence[CountdownFacts]) -> dict[str, Any]:
        """Return shares of rows, and how many solutions they have."""
        return level_figures(facts)


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
