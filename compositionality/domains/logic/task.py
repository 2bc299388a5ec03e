"""Logic puzzles behind the interface of all tasks."""

from collections.abc import Mapping
from typing import Any, ClassVar

from compositionality.domains.logic.graphs import draw_graph, graph_puzzle
from compositionality.domains.logic.grids import arc_puzzle, draw_grids
from compositionality.domains.logic.judge import LogicTruth, judge_logic, read_truth
from compositionality.domains.logic.options import KINDS, LogicOptions
from compositionality.domains.logic.rows import Puzzle, draw_ordering, draw_zebra, ordering_puzzle, zebra_puzzle
from compositionality.tasks.owners import SEED_CLASSES, draw_owned
from compositionality.tasks.task import Mode, Task
from compositionality.tasks.truth import truth_text
from compositionality.types import Problem, Verdict

SOURCES = {
    "zebra": "logic__zebra_puzzle_generated",
    "ordering": "logic__ordering_puzzle_generated",
    "graph": "logic__graph_generated",
    "arc": "logic__arcagi_generated",
}
_DRAW: Mapping[str, Any] = {"zebra": draw_zebra, "ordering": draw_ordering, "graph": draw_graph, "arc": draw_grids}


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
        """The puzzle at ``index``; its solution decides which split and seed it belongs to."""
        level = options.levels[index % len(options.levels)]
        name = f"logic/{options!r}/{index}"
        drawn, draws = draw_owned(
            lambda draws: _DRAW[options.kind](options, level, draws), lambda drawn: drawn, split, seed, name
        )
        puzzle = _worded(options, drawn, draws)
        metadata = {"seed": seed, "skills": list(puzzle.skills)}
        return Problem(SOURCES[options.kind], level, options.kind, puzzle.prompt, puzzle.truth, index, metadata)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """The last closed ``<answer>``; a zebra puzzle gives the share of right cells, the others 0 or 1."""
        return judge_logic(answer_text, read_truth(ground_truth))

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """The solution as JSON text, out of JSON, a Python literal, a bare word, a struct or numpy's arrays."""
        del extra_info
        is_number = ground_truth is None or isinstance(ground_truth, bool | int | float)
        truth = read_truth(ground_truth if is_number else truth_text(ground_truth))
        if truth.kind != "zebra":
            return truth_text(truth.value)
        return truth_text({**({"header": truth.header} if truth.header else {}), "rows": truth.value})

    def parse_truth(self, ground_truth: str) -> LogicTruth:
        """The solution with the kind of the puzzle."""
        return read_truth(ground_truth)

    def gold(self, problem: Problem) -> str:
        """The solution in its tag."""
        truth = read_truth(problem.ground_truth)
        return f"<answer>{truth.value if truth.kind == 'graph' else problem.ground_truth}</answer>"


TASK = LogicTask()


def _worded(options: LogicOptions, drawn: Any, draws: Any) -> Puzzle:
    if options.kind == "arc":
        return arc_puzzle(drawn, options, draws)
    worded: Mapping[str, Any] = {"zebra": zebra_puzzle, "ordering": ordering_puzzle, "graph": graph_puzzle}
    puzzle: Puzzle = worded[options.kind](drawn, draws)
    return puzzle
