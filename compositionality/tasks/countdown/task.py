"""The Countdown task behind the interface of all tasks."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from compositionality.errors import UserError
from compositionality.tasks.countdown.judge import judge_countdown
from compositionality.tasks.countdown.options import CountdownOptions, CountdownPaperOptions
from compositionality.tasks.countdown.prompts import compact_trace, short_name, text_answer
from compositionality.tasks.countdown.truth import Truth, read_ground_truth
from compositionality.tasks.task import Column, Identity, Mode, Task
from compositionality.types import Problem, Verdict

if TYPE_CHECKING:
    from compositionality.tasks.countdown.clean import CountdownGenerator
    from compositionality.tasks.countdown.facts import CountdownFacts


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
    seed_classes = 4
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
        """The problem at ``index``; mode=paper is one sequence, which has no random access (UserError)."""
        if isinstance(options, CountdownPaperOptions):
            raise UserError("mode=paper is one sequence; make its whole file")
        return _generator(options).problem(split, seed, index)

    def candidates(self, options: Any, split: str, seed: int, indices: range) -> list[tuple[Hashable, Problem]]:
        """The same numbers, in any order, with the same target are the same problem. A chunk is solved at once."""
        generator = _generator(options)
        items = generator.items(split, seed, indices)
        return [((item.target, *sorted(item.numbers)), generator.render(item, seed)) for item in items]

    def problems(self, options: Any, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
        """The problems of a file; in mode=paper those of reasoning-gym with the paper's parameters."""
        if isinstance(options, CountdownPaperOptions):
            from compositionality.tasks.countdown.library import paper_problems

            return paper_problems(options, count)
        return super().problems(options, split, seed, count, workers)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """The last closed ``<answer>``, or every step of the compact style."""
        return judge_countdown(answer_text, ground_truth)

    def parse_truth(self, ground_truth: str) -> Truth:
        """Target, numbers and rules."""
        return read_ground_truth(ground_truth)

    def gold(self, problem: Problem) -> str:
        """The row's own solution, else one that the solver finds. UserError if there is none."""
        truth, said = read_ground_truth(problem.ground_truth), problem.metadata
        if truth.style == "compact":
            return said.get("trace") or _solved_trace(problem, truth)
        return text_answer(said.get("expression") or _solved_expression(truth))

    def identity(self, problem: Problem) -> Identity:
        """Numbers, in any order, with the target."""
        truth = read_ground_truth(problem.ground_truth)
        return Identity(short_name(truth.numbers, truth.target))

    def level(self, problem: Problem) -> int:
        """How many numbers are given."""
        return len(read_ground_truth(problem.ground_truth).numbers)

    def asks_its_truth(self, problem: Problem) -> bool | None:
        """The prompt is rendered again; one in the words of others must hold the numbers and the target in digits."""
        from compositionality.tasks.countdown.facts import asks_its_truth

        return asks_its_truth(problem)

    def facts(self, problem: Problem) -> "CountdownFacts":
        """The problem is solved again."""
        from compositionality.tasks.countdown.facts import problem_facts

        return problem_facts(problem)

    def figures(self, facts: Sequence["CountdownFacts"]) -> dict[str, Any]:
        """Shares of rows, and how many solutions they have."""
        from compositionality.tasks.countdown.facts import level_figures

        return level_figures(facts)


TASK = CountdownTask()


@lru_cache(maxsize=64)
def _generator(options: CountdownOptions) -> "CountdownGenerator":
    from compositionality.tasks.countdown.clean import CountdownGenerator

    return CountdownGenerator(options)


def _solved_expression(truth: Truth) -> str:
    from compositionality.tasks.countdown.solver import solve

    for solution in solve(truth.numbers, truth.target, truth.operators, truth.use):
        return solution.expression
    raise UserError(f"{short_name(truth.numbers, truth.target)} has no solution")


def _solved_trace(problem: Problem, truth: Truth) -> str:
    from compositionality.tasks.countdown.solver import solve

    for solution in solve(truth.numbers, truth.target, truth.operators, truth.use):
        if solution.whole:
            return compact_trace(truth.numbers, solution.steps)
    raise UserError(f"{problem.prompt[:60]!r} has no solution in whole steps")
