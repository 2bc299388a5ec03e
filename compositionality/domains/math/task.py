"""The task ``math``: rows of guru, GSM8K, MATH, AIME and others with a final answer, and problems of our own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from compositionality.domains.math.generate import KINDS, make
from compositionality.domains.math.judge import judge_math, read_golds
from compositionality.errors import UserError
from compositionality.tasks.answer_text import last_box
from compositionality.tasks.owners import SEED_CLASSES
from compositionality.tasks.task import Mode, Task
from compositionality.tasks.truth import truth_text
from compositionality.types import Problem, Verdict


@dataclass(frozen=True)
class MathOptions:
    """What is asked (``kind``), and in how many steps (``levels``, each from 1 to 8)."""

    levels: tuple[int, ...] = (1, 2)  # how many steps
    kind: str = KINDS[0]  # what is asked

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UserError(f"kind={self.kind}: no such kind; known: {', '.join(KINDS)}")
        if not self.levels or not all(1 <= level <= 8 for level in self.levels):
            raise UserError(f"levels={list(self.levels)}: give whole numbers from 1 to 8")


class MathTask(Task):
    """One final answer in a box; a ground truth is the answer in LaTeX, or a JSON list of such texts."""

    name = "math"
    title = "Mathematics"
    data_sources = (
        r"math(?:_.*)?", r"openai/gsm8k", r"gsm8k", r"lighteval/MATH.*", r"DigitalLearningGmbH/MATH-lighteval",
        r"HuggingFaceH4/MATH-500", r"hiyouga/geometry3k", r"aime.*", r"amc.*", r"numina_.*",
    )  # fmt: skip
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(MathOptions)}
    kinds = KINDS
    trusted_judge = False
    seed_classes = SEED_CLASSES

    def problem(self, options: MathOptions, split: str, seed: int, index: int) -> Problem:
        """The problem at ``index``; no other split, and no other seed modulo 4, has it."""
        level = options.levels[index % len(options.levels)]
        question, answer = make(options.kind, level, split, seed, index)
        prompt = f"{question} Give the final answer in \\boxed{{}}."
        return Problem("math__generated", level, options.kind, prompt, answer, index, {"seed": seed})

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """The last box, or a marked last line, against the gold answers; see the README for what counts as equal."""
        return judge_math(answer_text, read_golds(ground_truth))

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """Numbers as text; the answer behind GSM8K's ``####``, or in the box of a whole solution."""
        del extra_info
        if isinstance(ground_truth, int | float) and not isinstance(ground_truth, bool):
            return str(ground_truth)
        text = truth_text(ground_truth).rpartition("####")[2].strip()
        return last_box(text) or text

    def parse_truth(self, ground_truth: str) -> list[str]:
        """The gold answers. UserError for an empty or damaged one."""
        return read_golds(ground_truth)

    def gold(self, problem: Problem) -> str:
        """The gold answer in a box."""
        return f"\\boxed{{{read_golds(problem.ground_truth)[0]}}}"
