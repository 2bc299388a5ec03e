"""Logic puzzles behind the interface of all tasks."""

from collections.abc import Mapping
from typing import Any, ClassVar

from compositionality.domains.logic.judge import LogicTruth, judge_logic, read_truth
from compositionality.domains.logic.puzzles import KINDS, MAKERS, LogicOptions
from compositionality.tasks.draws import SEED_CLASSES, draw_owned
from compositionality.tasks.task import Mode, Task, truth_text
from compositionality.types import Problem, Verdict

SOURCES = {
    "zebra": "logic__zebra_puzzle_generated",
    "ordering": "logic__ordering_puzzle_generated",
    "graph": "logic__graph_generated",
    "arc": "logic__arcagi_generated",
}


class LogicTask(Task):
    """Zebra, ordering, graph and grid puzzles; the level is the size of the puzzle."""

    name = "logic"
    title = "Logic puzzles"
    data_sources = (
        r"(logic__)?zebra_puzzle.*",
        r"(logic__)?ordering_puzzle.*",
        r"(logic__graph|graph_logical).*",
        r"(simulation|logic)__(arcagi|barc).*",
    )
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(LogicOptions)}
    kinds = KINDS
    seed_classes = SEED_CLASSES
    too_few = "ask for fewer rows or larger levels"

    def problem(self, options: LogicOptions, split: str, seed: int, index: int) -> Problem:
        """Return the puzzle at ``index``; its solution decides which split and seed it belongs to."""
        level = options.levels[index % len(options.levels)]
        draw, ask = MAKERS[options.kind]
        drawn, draws = draw_owned(
            lambda draws: draw(options, level, draws), lambda drawn: drawn, split, seed, f"logic/{options!r}/{index}"
        )
        puzzle = ask(drawn, options, draws)
        metadata = {"seed": seed, "skills": list(puzzle.skills)}
        return Problem(SOURCES[options.kind], level, options.kind, puzzle.prompt, puzzle.truth, index, metadata)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        return judge_logic(answer_text, read_truth(ground_truth))

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """Return the solution as JSON text, out of JSON, a Python literal, a bare word, a struct or numpy's arrays."""
        del extra_info
        is_number = ground_truth is None or isinstance(ground_truth, bool | int | float)
        truth = read_truth(ground_truth if is_number else truth_text(ground_truth))
        if truth.kind != "zebra":
            return truth_text(truth.value)
        return truth_text({**({"header": truth.header} if truth.header else {}), "rows": truth.value})

    def parse_truth(self, ground_truth: str) -> LogicTruth:
        return read_truth(ground_truth)

    def gold(self, problem: Problem) -> str:
        truth = read_truth(problem.ground_truth)
        return f"<answer>{truth.value if truth.kind == 'graph' else problem.ground_truth}</answer>"


TASK = LogicTask()
