"""Questions of science behind the interface of all tasks."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from compositionality.domains.stem.generate import (
    KINDS,
    OPTIONS,
    StemOptions,
    ask_item,
    draw_choices,
    draw_item,
    solve_item,
)
from compositionality.domains.stem.judge import LETTERS, ChoiceTruth, FreeTruth, judge_choice, judge_free
from compositionality.errors import UserError
from compositionality.tasks.owners import SEED_CLASSES, draw_owned
from compositionality.tasks.task import Mode, Task
from compositionality.tasks.truth import truth_text
from compositionality.types import Problem, Verdict

SOURCES = {"choice": "stem__supergpqa_generated", "free": "stem_web_generated"}
MAX_REFERENCE = 2000
_CHOICE = re.compile(r"\(?([A-Ja-j])[).]?")


class StemTask(Task):
    """Multiple choice and free answers; the level is how many formulas an answer takes."""

    name = "stem"
    title = "Science questions"
    data_sources = (r"stem__supergpqa.*", r"stem__gpqa.*", r"stem_web.*", r"stem__web.*")
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(StemOptions)}
    kinds = KINDS
    seed_classes = SEED_CLASSES
    trusted_judge = False  # it may wait for an endpoint

    def problem(self, options: StemOptions, split: str, seed: int, index: int) -> Problem:
        """The question at ``index``; its values decide which split and seed it belongs to."""
        level = options.levels[index % len(options.levels)]
        item, draws = draw_owned(
            lambda draws: draw_item(level, draws), lambda item: item, split, seed, f"stem/{options!r}/{index}"
        )
        text, wanted, skills = ask_item(item)
        right = solve_item(item)[-1]
        if options.kind == "choice":
            letter, choices = draw_choices(right, item.values, draws)
            listed = "\n".join(
                f"{at}) {value} {wanted.unit}".rstrip() for at, value in zip(OPTIONS, choices, strict=True)
            )
            prompt = f"{text}\n{listed}\nGive the letter of the right option alone in \\boxed{{}}."
            truth: dict[str, Any] = {"letter": letter, "options": len(choices)}
        else:
            prompt = f"{text}\nGive the number alone in \\boxed{{}}."
            truth = {"question": text, "answer": str(right), "unit": wanted.unit, "exact": True}
        metadata = {"seed": seed, "skills": list(skills)}
        source = SOURCES[options.kind]
        return Problem(source, level, options.kind, prompt, json.dumps(truth), index, metadata)

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """The letter, or the free answer; a model is asked only where that is not the reference answer itself."""
        truth = self.parse_truth(ground_truth)
        return judge_choice(answer_text, truth) if isinstance(truth, ChoiceTruth) else judge_free(answer_text, truth)

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """The truth as JSON text: a letter is multiple choice, unless ``extra_info`` has an ``answer_type``.

        Any other text is a free answer, to ``extra_info.question``. UserError where that is missing.
        """
        if (
            isinstance(ground_truth, int | float)
            and not isinstance(ground_truth, bool)
            and ground_truth == ground_truth
        ):
            ground_truth = str(ground_truth)
        text = truth_text(ground_truth).strip()
        if _is_truth(text):
            return text
        if not isinstance(ground_truth, str):
            raise _damaged(text)
        letter = _CHOICE.fullmatch(text)
        if letter and not extra_info.get("answer_type"):
            right = letter[1].upper()
            return json.dumps({"letter": right, "options": _number_of_options(extra_info, right)})
        question = extra_info.get("question")
        if not isinstance(question, str) or not question.strip():
            raise UserError(f"ground_truth {text[:60]!r} is a free answer: put its question into extra_info.question")
        truth = json.dumps({"question": question, "answer": text}, ensure_ascii=False)
        self.parse_truth(truth)
        return truth

    def parse_truth(self, ground_truth: str) -> ChoiceTruth | FreeTruth:
        """Letter and number of options, or question and reference answer."""
        fields = super().parse_truth(ground_truth)
        if not isinstance(fields, dict):
            raise _damaged(ground_truth)
        letter, options = fields.get("letter"), fields.get("options", len(LETTERS))
        if letter is not None:
            if type(options) is int and 2 <= options <= len(LETTERS) and letter in tuple(LETTERS[:options]):
                return ChoiceTruth(letter, options)
            raise _damaged(ground_truth)
        question, answer, unit = fields.get("question"), fields.get("answer"), fields.get("unit") or ""
        if not all(isinstance(one, str) for one in (question, answer, unit)) or not question or not answer:
            raise _damaged(ground_truth)
        if len(answer) > MAX_REFERENCE:
            raise _damaged(ground_truth)
        return FreeTruth(question, answer, unit, fields.get("exact") is True)

    def gold(self, problem: Problem) -> str:
        """The letter or the reference answer in a box."""
        truth = self.parse_truth(problem.ground_truth)
        return f"\\boxed{{{truth.letter if isinstance(truth, ChoiceTruth) else truth.answer}}}"

    def asks_its_truth(self, problem: Problem) -> bool | None:
        """Whether the prompt holds the question of a free answer of ours; None for other rows."""
        truth = self.parse_truth(problem.ground_truth)
        return truth.question in problem.prompt if isinstance(truth, FreeTruth) and truth.exact else None


TASK = StemTask()


def _is_truth(text: str) -> bool:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and ("letter" in fields or {"question", "answer"} <= set(fields))


def _number_of_options(extra_info: Mapping[str, Any], letter: str) -> int:
    """How many options the row shows, where it says so; else as many as there are letters."""
    for key in ("options", "choices"):
        shown = extra_info.get(key)
        if shown is not None and (isinstance(shown, Sequence | Mapping) or hasattr(shown, "tolist")):
            count = len(shown)
            if 2 <= count <= len(LETTERS) and letter in LETTERS[:count] and not isinstance(shown, str):
                return count
    return len(LETTERS)


def _damaged(ground_truth: str) -> UserError:
    return UserError(
        f"ground_truth {ground_truth[:60]!r}: give a letter from A to {LETTERS[-1]}, or text with extra_info.question"
    )
