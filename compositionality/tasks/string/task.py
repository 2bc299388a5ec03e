"""The string task behind the interface of all tasks."""

import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from compositionality.errors import UserError
from compositionality.tasks.behaviours import Behaviours
from compositionality.tasks.string.clean import SEED_CLASSES, StringGenerator, StringOptions
from compositionality.tasks.string.diagnose import diagnose, read_chain
from compositionality.tasks.string.facts import (
    StringFacts,
    level_figures,
    problem_facts,
    prompt_matches_truth,
    read_row,
    string_identity,
)
from compositionality.tasks.string.judge import judge_string, read_ground_truth
from compositionality.tasks.string.paper import StringPaperOptions, paper_problems
from compositionality.tasks.string.reference import read_reference, reference
from compositionality.tasks.string.wording import hide_definitions, write_solution
from compositionality.tasks.task import Column, Identity, Mode, Task
from compositionality.types import Completion, Diagnosis, Problem, ReadChain, Verdict

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
    seed_classes = SEED_CLASSES
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
        """Return the problem at ``index``; mode=paper is one sequence, which has no random access (UserError)."""
        if isinstance(options, StringPaperOptions):
            raise UserError("mode=paper is one sequence; make its whole file")
        return _generator(options).problem(split, seed, index)

    def candidates(self, options: Any, split: str, seed: int, indices: range) -> list[tuple[Hashable, Problem]]:
        """Return the problems at ``indices``; those of a level with the same input and answer count as the same."""
        generator = _generator(options)
        items = [generator.item(split, seed, index) for index in indices]
        return [((item.level, item.input, item.output), generator.render(item, seed)) for item in items]

    def problems(self, options: Any, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
        """Return the problems of a file; in mode=paper those of the original, in its order."""
        if isinstance(options, StringPaperOptions):
            return paper_problems(options, split, count)
        return super().problems(options, split, seed, count, workers)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """Judge the last JSON object with an ``output``, or the text after the last ``=``."""
        return judge_string(answer_text, ground_truth)

    def parse_truth(self, ground_truth: str) -> tuple[str, str]:
        """Return gold answer and style."""
        return read_ground_truth(ground_truth)

    def gold(self, problem: Problem) -> str:
        """Return the JSON object with the answer, or the trace of the compact style."""
        answer, style = read_ground_truth(problem.ground_truth)
        if style == "json":
            return json.dumps({"output": answer}, ensure_ascii=False)
        return read_reference(problem.ground_truth, problem.prompt).gold_trace()

    def solution(self, problem: Problem, behaviours: Behaviours, seed: int) -> str:
        """Return the compact trace with behaviours injected; in the JSON style the gold answer alone."""
        _, style = read_ground_truth(problem.ground_truth)
        if style == "json":
            return super().solution(problem, behaviours, seed)
        program = read_reference(problem.ground_truth, problem.prompt)
        key = f"string/solution/{seed}/{problem.prompt}".encode()
        return write_solution(program.names, program.gold_trace(), behaviours, key)

    def identity(self, problem: Problem) -> Identity:
        """Return expression and input; the composition's text and its behaviour."""
        return string_identity(problem)

    def level(self, problem: Problem) -> int:
        """Return how many operators the program nests."""
        return read_row(problem)[0].depth

    def asks_its_truth(self, problem: Problem) -> bool:
        """Render the prompt again; one in the words of others must hold program and input."""
        return prompt_matches_truth(problem)

    def facts(self, problem: Problem) -> StringFacts:
        """Evaluate the problem again, operator by operator."""
        return problem_facts(problem)

    def figures(self, facts: Sequence[StringFacts]) -> dict[str, Any]:
        """Return shares of rows, lengths, and how evenly the functions are used."""
        return level_figures(facts)

    def skills(self, problem: Problem) -> Sequence[str]:
        """Return the distinct functions: the row's own list, else the names in the program (of rows made elsewhere)."""
        named = problem.metadata.get("functions")
        return tuple(dict.fromkeys(_FUNCTION.findall(_program(problem)) if named is None else named))

    def hide_definitions(self, prompt: str) -> str:
        """Return the prompt without the functions' definitions."""
        return hide_definitions(prompt)

    def diagnose(self, problem: Problem, completion: Completion, verdict: Verdict) -> Diagnosis:
        """Return the first fault of the trace, by executing the problem's operators on the strings that it states."""
        return diagnose(problem, completion, verdict)

    def read_chain(self, problem: Problem, text: str) -> ReadChain:
        """Read names and strings of the trace; nothing can be told of a row that does not hold its program."""
        return read_chain(problem, text)

    def reference(self, problem: Problem) -> str | None:
        """Return definitions, input, and the true string after every operator."""
        return reference(problem)


TASK = StringTask()


@lru_cache(maxsize=64)
def _generator(options: StringOptions) -> StringGenerator:
    return StringGenerator(options)


def _program(problem: Problem) -> str:
    """Return the expression that is asked for, without definitions before it: from the gold answer, else the prompt."""
    code = json.loads(problem.ground_truth).get("ref_code")
    before, main, after = (code if isinstance(code, str) else problem.prompt).partition("def main_solution")
    return after if main else before
