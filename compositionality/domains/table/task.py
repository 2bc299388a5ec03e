"""Questions about tables behind the interface of all tasks."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from compositionality.domains.table.generate import TableOptions, ask, draw_table
from compositionality.domains.table.judge import MAX_ANSWERS, MAX_LENGTH, judge_table
from compositionality.errors import UserError
from compositionality.tasks.owners import SEED_CLASSES, draw_owned
from compositionality.tasks.task import Mode, Task
from compositionality.tasks.truth import truth_text
from compositionality.types import Problem, Verdict

_ASK = "Give the answer alone in \\boxed{}; if there are several, put | between them."


class TableTask(Task):
    """A table, a question, short answers in a box; the level is how many operations they take."""

    name = "table"
    title = "Tables"
    data_sources = (r"table.*",)
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(TableOptions)}
    seed_classes = SEED_CLASSES

    def problem(self, options: TableOptions, split: str, seed: int, index: int) -> Problem:
        """The question at ``index``; its table decides which split and seed it belongs to."""
        level = options.levels[index % len(options.levels)]
        table, draws = draw_owned(
            lambda draws: draw_table(options, draws), lambda table: table, split, seed, f"table/{options!r}/{index}"
        )
        question = ask(table, level, draws)
        prompt = f"{table.written()}\n\n{question.text}\n{_ASK}"
        metadata = {"seed": seed, "skills": list(question.skills)}
        truth = json.dumps({"answers": question.answers})
        return Problem("table__generated", level, "table", prompt, truth, index, metadata)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """The last closed box against all answers."""
        return judge_table(answer_text, self.parse_truth(ground_truth))

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """``{"answers": […]}`` out of text with ``|`` between answers, a number, a list of these, or itself."""
        del extra_info
        value = ground_truth
        if isinstance(value, str):
            value = _parsed(value)
        elif value is not None:
            value = json.loads(truth_text(value))
        if isinstance(value, dict):
            value = value.get("answers")
        several = value if isinstance(value, list) else [value]
        answers = [part.strip() for one in several for part in _text(one, ground_truth).split("|")]
        text = json.dumps({"answers": answers}, ensure_ascii=False)
        self.parse_truth(text)
        return text

    def parse_truth(self, ground_truth: str) -> tuple[str, ...]:
        """The answers."""
        fields = super().parse_truth(ground_truth)
        answers = fields.get("answers") if isinstance(fields, dict) else None
        if not isinstance(answers, list) or not 1 <= len(answers) <= MAX_ANSWERS:
            raise _damaged(ground_truth)
        if not all(isinstance(one, str) and 0 < len(one) <= MAX_LENGTH for one in answers):
            raise _damaged(ground_truth)
        return tuple(answers)

    def gold(self, problem: Problem) -> str:
        """The answers in a box."""
        return f"\\boxed{{{'|'.join(self.parse_truth(problem.ground_truth))}}}"


TASK = TableTask()


def _parsed(text: str) -> Any:
    """A JSON list or object; any other text is the answer itself."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, list | dict) else text


def _text(answer: Any, ground_truth: Any) -> str:
    if isinstance(answer, bool) or not isinstance(answer, str | int | float) or answer != answer:
        raise _damaged(ground_truth)
    return str(answer)


def _damaged(ground_truth: Any) -> UserError:
    return UserError(
        f"ground_truth {str(ground_truth)[:60]!r} holds no short answers: give text with | between them, or a list"
    )
