"""Problems of any data set of reasoning-gym, judged by that data set's own scorer.

The scorers are not ours and some can be fooled or hang, so they run in the processes of the judge pool only
(``trusted_judge``). ``reasoning_gym/countdown`` belongs to our own Countdown task. A ground truth is an entry of the
library as JSON: question, answer, and metadata with ``source_dataset``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar

from compositionality.errors import UserError
from compositionality.tasks.task import Mode, Task
from compositionality.types import Problem, Reason, Verdict

SPLITS = ("train", "validation", "test", "pretrain")
SEED_CLASSES = 8
_OPEN, _CLOSE = "<answer>", "</answer>"
_ASK = "\n\nGive the final answer, and nothing else, between an opening <answer> tag and its closing tag."


@dataclass(frozen=True)
class ReasoningGymOptions:
    """A data set of the library by name, its own parameters, and the level that its problems count as."""

    dataset: str = "spell_backward"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    level: int = 1

    @property
    def levels(self) -> tuple[int, ...]:
        """The one level of a file."""
        return (self.level,)


class ReasoningGymTask(Task):
    """One file holds problems of one data set with one set of parameters."""

    name = "reasoning_gym"
    title = "reasoning-gym"
    data_sources = (r"reasoning_gym/(?!countdown$)\w+",)
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(ReasoningGymOptions)}
    trusted_judge = False

    def problem(self, options: ReasoningGymOptions, split: str, seed: int, index: int) -> Problem:
        """The entry that the library draws from a seed of its own, which no other split and seed modulo 8 use."""
        entry = _entry(options, _library_seed(options, split, seed, index))
        truth = json.dumps({key: entry[key] for key in ("question", "answer", "metadata")}, default=str)
        source, prompt = f"reasoning_gym/{options.dataset}", entry["question"] + _ASK
        return Problem(source, options.level, options.dataset, prompt, truth, index, {"seed": seed})

    def judge(self, response: str, ground_truth: str) -> Verdict:
        """The scorer's score of the last closed ``<answer>``; correct is a score of 1, part of it may be given."""
        entry = self.parse_truth(ground_truth)
        end = response.rfind(_CLOSE)
        start = response.rfind(_OPEN, 0, end) if end >= 0 else -1
        if start < 0:
            return Verdict(0.0, Reason.NO_ANSWER)
        answer = response[start + len(_OPEN) : response.find(_CLOSE, start)].strip()
        score = min(1.0, max(0.0, float(_scorer(entry["metadata"]["source_dataset"])(answer, entry))))
        return Verdict(score, Reason.CORRECT if score == 1 else Reason.WRONG, answer)

    def parse_truth(self, ground_truth: str) -> dict[str, Any]:
        """The library's entry. UserError if it is none, or the library is missing."""
        entry = super().parse_truth(ground_truth)
        metadata = entry.get("metadata") if isinstance(entry, dict) else None
        if not isinstance(metadata, dict) or "answer" not in entry or "source_dataset" not in metadata:
            raise UserError(f"ground_truth {ground_truth[:60]!r} has no answer or no metadata.source_dataset")
        _check_library()
        return dict(entry)

    def gold(self, problem: Problem) -> str:
        """The library's own answer. UserError where it has none."""
        answer = self.parse_truth(problem.ground_truth)["answer"]
        if answer is None:
            raise UserError(f"{problem.data_source} gives no answer with its problems")
        return f"{_OPEN}{answer}{_CLOSE}"

    def facts(self, problem: Problem) -> dict[str, Any]:
        """Whether the library gives an answer; it is not judged here, where its scorer must not run."""
        return {"with_answer": self.parse_truth(problem.ground_truth)["answer"] is not None}


TASK = ReasoningGymTask()


def _library_seed(options: ReasoningGymOptions, split: str, seed: int, index: int) -> int:
    """The low bits name the split and the seed modulo 8, the high ones are drawn."""
    from compositionality.tasks.draws import key_word

    if split not in SPLITS:
        raise UserError(f"split={split}: no such split; known: {', '.join(SPLITS)}")
    drawn = int(key_word(repr((options.dataset, sorted(options.parameters.items()), split, seed, index)))) % 2**26
    return drawn * len(SPLITS) * SEED_CLASSES + SPLITS.index(split) * SEED_CLASSES + seed % SEED_CLASSES


def _entry(options: ReasoningGymOptions, library_seed: int) -> dict[str, Any]:
    _check_library()
    import reasoning_gym

    try:
        dataset = reasoning_gym.create_dataset(options.dataset, seed=library_seed, size=1, **options.parameters)
    except (ValueError, TypeError, AssertionError) as error:
        raise UserError(f"dataset={options.dataset} parameters={dict(options.parameters)}: {error}") from error
    entry: dict[str, Any] = dataset[0]
    entry["metadata"].setdefault("source_dataset", options.dataset)
    return entry


@cache
def _scorer(dataset: str) -> Any:
    import reasoning_gym

    return reasoning_gym.get_score_answer_fn(dataset)


def _check_library() -> None:
    if find_spec("reasoning_gym") is None:
        raise UserError("this task needs reasoning-gym; run: bash bash/setup.sh --full")
