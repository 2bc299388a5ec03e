"""The string task behind the interface of all tasks."""

import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from compositionality.errors import UserError
from compositionality.tasks.behaviours import Behaviours
from compositionality.tasks.string.judge import judge_string, read_ground_truth
from compositionality.tasks.string.options import StringOptions, StringPaperOptions
from compositionality.tasks.task import Column, Identity, Mode, Task
from compositionality.types import Completion, Diagnosis, Problem, ReadChain, Verdict

if TYPE_CHECKING:
    from compositionality.tasks.string.clean import StringGenerator
    from compositionality.tasks.string.facts import StringFacts

_FUNCTION = re.compile(r"func_\d+")


class StringTask(Task):
    """Nested functions on short strings; the level is how many are nested."""

    name = "string"
    title = "String transformations"
    data_sources = (r"codeio-forward-incomplete-depth\d+", r"string-[a-z_]+-level\d+")
    modes: ClassVar[Mapping[str, Mode]] = {
        "clean": Mode(StringOptions),
        "paper": Mode(StringPaperOptions, uses=("split",)),
    }
    styles = ("json", "compact")
    gold_mark = ":"
    too_few = "ask for fewer rows, longer inputs or more functions"
    seed_classes = 8
    columns = (
        Column("x matters", lambda level: f"{level['input_matters']:.1%}"),
        Column("no-op", lambda level: f"{level['with_no_op']:.1%}"),
        Column("constant", lambda level: f"{level['with_constant']:.1%}"),
        Column("real depth", lambda level: f"{level['real_depth']:.1%}"),
        Column("reducible", lambda level: f"{level['reducible']:.1%}"),
        Column("other order", lambda level: "–" if level["other_order"] is None else f"{level['other_order']:.1%}"),
        Column("len med/p90/max", lambda level: "{length_median:.0f}/{length_p90:.0f}/{length_max}".format(**level)),
        Column("functions", lambda level: f"{level['functions_mean']:.2f}"),
        Column("balance", lambda level: f"{level['balance']:.2f}"),
    )

    def problem(self, options: Any, split: str, seed: int, index: int) -> Problem:
        """The problem at ``index``; mode=paper is one sequence, which has no random access (UserError)."""
        if isinstance(options, StringPaperOptions):
            raise UserError("mode=paper is one sequence; make its whole file")
        return _generator(options).problem(split, seed, index)

    def candidates(self, options: Any, split: str, seed: int, indices: range) -> list[tuple[Hashable, Problem]]:
        """Two candidates of a level with the same input and the same answer count as the same problem."""
        generator = _generator(options)
        items = [generator.item(split, seed, index) for index in indices]
        return [((item.level, item.input, item.output), generator.render(item, seed)) for item in items]

    def problems(self, options: Any, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
        """The problems of a file; in mode=paper those of the original, in its order."""
        if isinstance(options, StringPaperOptions):
            from compositionality.tasks.string.paper import PaperFile, paper_problems

            file = PaperFile(options.stage, split, options.min_level, options.max_level, count)
            return paper_problems(file)
        return super().problems(options, split, seed, count, workers)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """The last JSON object with an ``output``, or the text after the last ``=``."""
        return judge_string(answer_text, ground_truth)

    def parse_truth(self, ground_truth: str) -> tuple[str, str]:
        """Gold answer and style."""
        return read_ground_truth(ground_truth)

    def gold(self, problem: Problem) -> str:
        """The JSON object with the answer, or the trace of the compact style."""
        answer, style = read_ground_truth(problem.ground_truth)
        if style == "json":
            return json.dumps({"output": answer}, ensure_ascii=False)
        from compositionality.tasks.string.diagnosis.program import read_program

        return read_program(problem.ground_truth, problem.prompt).gold_trace()

    def solution(self, problem: Problem, behaviours: Behaviours, seed: int) -> str:
        """The compact trace with behaviours injected; in the JSON style the gold answer alone."""
        _, style = read_ground_truth(problem.ground_truth)
        if style == "json":
            return super().solution(problem, behaviours, seed)
        from compositionality.tasks.string.diagnosis.program import read_program
        from compositionality.tasks.string.solution import write_solution

        program = read_program(problem.ground_truth, problem.prompt)
        return write_solution(program, behaviours, f"string/solution/{seed}/{problem.prompt}".encode())

    def identity(self, problem: Problem) -> Identity:
        """Expression and input; the composition's text and its behaviour."""
        from compositionality.tasks.string.identity import string_identity

        return string_identity(problem)

    def level(self, problem: Problem) -> int:
        """How many operators the program nests."""
        from compositionality.tasks.string.asked import program_level

        return program_level(problem)

    def asks_its_truth(self, problem: Problem) -> bool:
        """The prompt is rendered again; one in the words of others must hold program and input."""
        from compositionality.tasks.string.asked import asks_its_truth

        return asks_its_truth(problem)

    def facts(self, problem: Problem) -> "StringFacts":
        """The problem is evaluated again, operator by operator."""
        from compositionality.tasks.string.facts import problem_facts

        return problem_facts(problem)

    def figures(self, facts: Sequence["StringFacts"]) -> dict[str, Any]:
        """Shares of rows, lengths, and how evenly the functions are used."""
        from compositionality.tasks.string.facts import level_figures

        return level_figures(facts)

    def skills(self, problem: Problem) -> Sequence[str]:
        """Distinct functions: the row's own list, else the names in the program (of rows made elsewhere)."""
        named = problem.metadata.get("functions")
        return tuple(dict.fromkeys(_FUNCTION.findall(_program(problem)) if named is None else named))

    def hide_definitions(self, prompt: str) -> str:
        """The prompt without the functions' definitions."""
        from compositionality.tasks.string.prompts import hide_definitions

        return hide_definitions(prompt)

    def diagnose(self, problem: Problem, completion: Completion, verdict: Verdict) -> Diagnosis:
        """The first fault of the trace, found by executing the problem's operators on the strings that it states."""
        from compositionality.tasks.string.diagnosis.classify import diagnose

        return diagnose(problem, completion, verdict)

    def read_chain(self, problem: Problem, text: str) -> ReadChain:
        """By the names and strings in the trace; nothing is told of a row that does not hold its program."""
        from compositionality.tasks.string.diagnosis.classify import read_chain

        return read_chain(problem, text)

    def reference(self, problem: Problem) -> str | None:
        """Definitions, input, and the true string after every operator."""
        from compositionality.tasks.string.diagnosis.program import reference

        return reference(problem)


TASK = StringTask()


@lru_cache(maxsize=64)
def _generator(options: StringOptions) -> "StringGenerator":
    from compositionality.tasks.string.clean import StringGenerator

    return StringGenerator(options)


def _program(problem: Problem) -> str:
    """The expression that is asked for, without the definitions before it: from the gold answer, else the prompt."""
    code = json.loads(problem.ground_truth).get("ref_code")
    before, main, after = (code if isinstance(code, str) else problem.prompt).partition("def main_solution")
    return after if main else before
