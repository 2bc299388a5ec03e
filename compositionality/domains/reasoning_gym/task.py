"""Problems of any data set of reasoning-gym, judged by that data set's own scorer.

The scorers are not ours: some evaluate text, hang, or pay for answers that are not right. They run in the processes of
the judge pool only (``trusted_judge``), see answers in the form of their data set only, and for some of them a check of
ours must agree (forms.py). ``reasoning_gym/countdown`` belongs to our own Countdown task. A ground truth is an entry of
the library as JSON: question, answer, and metadata with ``source_dataset``.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from typing import Any, ClassVar

from compositionality.domains.reasoning_gym.forms import is_readable, is_solved
from compositionality.domains.reasoning_gym.scorer import known_answer, library_score
from compositionality.errors import UserError, check_installed
from compositionality.tasks.task import Mode, Task
from compositionality.types import Problem, Reason, Verdict

SPLITS = ("train", "validation", "test", "pretrain")
SEED_CLASSES = 8
_OPEN, _CLOSE = "<answer>", "</answer>"
_READABLE = "[]"  # no scorer of a data set without a known answer fails on it
_ASK = "\n\nGive the final answer, and nothing else, between an opening <answer> tag and its closing tag."


@dataclass(frozen=True)
class ReasoningGymOptions:
    """A data set of the library by name, its own parameters, and the level that its problems count as."""

    dataset: str = "spell_backward"  # name in reasoning_gym.factory.DATASETS
    parameters: Mapping[str, Any] = field(default_factory=dict)  # its own, parameters.NAME=VALUE
    level: int = 1  # that its problems count as

    def __post_init__(self) -> None:
        if self.level < 1:
            raise UserError(f"level={self.level}: give a whole number from 1 on")
        check_installed("reasoning_gym", "reasoning-gym's problems")
        from reasoning_gym.factory import DATASETS

        if self.dataset not in DATASETS:
            near = get_close_matches(self.dataset, DATASETS)
            known = f"near it are {', '.join(near)}" if near else f"there are {', '.join(sorted(DATASETS))}"
            raise UserError(f"dataset={self.dataset}: reasoning-gym has no such data set; {known}")
        own = {entry.name: entry for entry in fields(DATASETS[self.dataset][1]) if entry.name not in ("seed", "size")}
        for key, value in self.parameters.items():
            if key not in own:
                raise UserError(f"parameters.{key}: {self.dataset} has no such parameter; it has {', '.join(own)}")
            default = own[key].default
            if default is not MISSING and not _of_kind(value, default):
                raise UserError(f"parameters.{key}={value}: a value like the default is needed, {default!r}")

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

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """Score 1 or 0 of the last closed ``<answer>``; what the library pays for a part of an answer is dropped.

        A scorer that fails on the answer makes it MALFORMED if it does not fail on a readable one too.
        """
        entry = self.parse_truth(ground_truth)
        end = answer_text.rfind(_CLOSE)
        start = answer_text.rfind(_OPEN, 0, end) if end >= 0 else -1
        if start < 0:
            return Verdict(0.0, Reason.NO_ANSWER)
        answer = answer_text[start + len(_OPEN) : answer_text.find(_CLOSE, start)].strip()
        if not answer and known_answer(entry) != "":
            return Verdict(0.0, Reason.NO_ANSWER)
        dataset = entry["metadata"]["source_dataset"]
        if not is_readable(dataset, answer, entry):
            return Verdict(0.0, Reason.MALFORMED, answer)
        try:
            solved = is_solved(dataset, library_score(dataset, answer, entry), answer, entry)
        except Exception:  # noqa: BLE001 - whatever a scorer of the library dies of
            library_score(dataset, known_answer(self.parse_truth(ground_truth)) or _READABLE, entry)
            return Verdict(0.0, Reason.MALFORMED, answer)
        return Verdict(float(solved), Reason.CORRECT if solved else Reason.WRONG, answer)

    def parse_truth(self, ground_truth: str) -> dict[str, Any]:
        """The library's entry. UserError if it is none, or the library is missing."""
        entry = super().parse_truth(ground_truth)
        metadata = entry.get("metadata") if isinstance(entry, dict) else None
        if not isinstance(metadata, dict) or "answer" not in entry or "source_dataset" not in metadata:
            raise UserError(f"ground_truth {ground_truth[:60]!r} has no answer or no metadata.source_dataset")
        check_installed("reasoning_gym", "reasoning-gym's problems")
        return dict(entry)

    def gold(self, problem: Problem) -> str:
        """The library's own answer. UserError where it has none."""
        answer = known_answer(self.parse_truth(problem.ground_truth))
        if answer is None:
            raise UserError(f"{problem.data_source} gives no answer with its problems")
        return f"{_OPEN}{answer}{_CLOSE}"

    def asks_its_truth(self, problem: Problem) -> bool | None:
        """Whether the prompt holds the entry's question; None for an entry without one."""
        question = self.parse_truth(problem.ground_truth).get("question")
        return question in problem.prompt if isinstance(question, str) and question else None

    def facts(self, problem: Problem) -> dict[str, Any]:
        """Whether the library gives an answer; it is not judged here, where its scorer must not run."""
        return {"with_answer": known_answer(self.parse_truth(problem.ground_truth)) is not None}


TASK = ReasoningGymTask()


def _library_seed(options: ReasoningGymOptions, split: str, seed: int, index: int) -> int:
    """The low bits name the split and the seed modulo 8, the high ones are drawn."""
    from compositionality.tasks.draws import key_word

    if split not in SPLITS:
        raise UserError(f"split={split}: no such split; known: {', '.join(SPLITS)}")
    drawn = int(key_word(repr((options.dataset, sorted(options.parameters.items()), split, seed, index)))) % 2**26
    return drawn * len(SPLITS) * SEED_CLASSES + SPLITS.index(split) * SEED_CLASSES + seed % SEED_CLASSES


def _entry(options: ReasoningGymOptions, library_seed: int) -> dict[str, Any]:
    check_installed("reasoning_gym", "reasoning-gym's problems")
    import reasoning_gym

    try:
        dataset = reasoning_gym.create_dataset(options.dataset, seed=library_seed, size=1, **options.parameters)
        entry: dict[str, Any] = dataset[0]
    except (ValueError, TypeError, AssertionError, ArithmeticError, LookupError, RuntimeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"dataset={options.dataset} parameters={dict(options.parameters)}: {reason}") from error
    entry["metadata"].setdefault("source_dataset", options.dataset)
    return entry


def _of_kind(value: Any, default: Any) -> bool:
    """Whether a value has the type of a default; a whole number is a real one too, and None says nothing."""
    kinds: dict[type, Any] = {bool: bool, int: int, float: (int, float), str: str}
    kind = kinds.get(type(default))
    return kind is None or (isinstance(value, kind) and isinstance(value, bool) == isinstance(default, bool))
