"""Problems of any data set of reasoning-gym, judged by that data set's own scorer.

The scorers are not ours: some evaluate text, hang, or pay for answers that are not right. They run in the processes of
the judge pool only (``trusted_judge``), see answers in the form of their data set only, and for some of them a check of
ours must agree (forms.py). ``reasoning_gym/countdown`` belongs to our own Countdown task. A ground truth is an entry of
the library as JSON: question, answer, and metadata with ``source_dataset``.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from typing import Any, ClassVar

from compositionality.domains.reasoning_gym.forms import is_readable, is_solved
from compositionality.domains.reasoning_gym.library import entry_text
from compositionality.errors import UserError, check_installed
from compositionality.reward.judge import processor_time
from compositionality.tasks.answers import last_answer
from compositionality.tasks.draws import SPLITS, check_split, key_bits
from compositionality.tasks.task import Mode, Task
from compositionality.types import Problem, Reason, Verdict

SEED_CLASSES = 8
SECONDS = 5.0  # of CPU time for one answer: less than the pool's limit, whose processes end with what they judge
_READABLE = "[]"  # no scorer of a data set without a known answer fails on it
_SAMPLES = {"propositional_logic": "example_answer", "rubiks_cube": "example_correct_answer"}
_TUPLES = ("arc_agi", "rearc")
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
            hint = f"near it are {', '.join(near)}" if near else f"there are {', '.join(sorted(DATASETS))}"
            raise UserError(f"dataset={self.dataset}: reasoning-gym has no such data set; {hint}")
        keys = {key.name: key for key in fields(DATASETS[self.dataset][1]) if key.name not in ("seed", "size")}
        for key, value in self.parameters.items():
            if key not in keys:
                raise UserError(f"parameters.{key}: {self.dataset} has no such parameter; it has {', '.join(keys)}")
            default = keys[key].default
            if default is not MISSING and not _of_kind(value, default):
                raise UserError(f"parameters.{key}={value}: a value like the default is needed, {default!r}")

    @property
    def levels(self) -> tuple[int, ...]:
        return (self.level,)


class ReasoningGymTask(Task):
    """One file holds problems of one data set with one set of parameters."""

    name = "reasoning_gym"
    title = "reasoning-gym"
    data_sources = (r"reasoning_gym/(?!countdown$)\w+",)
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(ReasoningGymOptions)}
    trusted_judge = False
    libraries = ("reasoning_gym",)

    def problem(self, options: ReasoningGymOptions, split: str, seed: int, index: int) -> Problem:
        """Return what the library draws; the low bits of its seed name the split and the seed modulo 8."""
        check_split(split, SPLITS)
        name = repr((options.dataset, sorted(options.parameters.items()), split, seed, index))
        stream = SPLITS.index(split) * SEED_CLASSES + seed % SEED_CLASSES
        seed_of_problem = int(key_bits(name)) % 2**26 * len(SPLITS) * SEED_CLASSES + stream
        truth = entry_text(options.dataset, seed_of_problem, options.parameters)
        source, prompt = f"reasoning_gym/{options.dataset}", json.loads(truth)["question"] + _ASK
        return Problem(source, options.level, options.dataset, prompt, truth, index, {"seed": seed})

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """Return score the last closed ``<answer>`` 1 or 0; what the library pays for a part of an answer is dropped.

        A scorer that fails on the answer makes it MALFORMED if it does not fail on a readable one too.
        """
        entry = self.parse_truth(ground_truth)
        answer = last_answer(answer_text)
        if answer is None or (not answer and known_answer(entry) != ""):
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
        """Return the library's entry. Raise UserError if it is none, or the library is missing."""
        entry = super().parse_truth(ground_truth)
        metadata = entry.get("metadata") if isinstance(entry, dict) else None
        if not isinstance(metadata, dict) or "answer" not in entry or "source_dataset" not in metadata:
            raise UserError(f"ground_truth {ground_truth[:60]!r} has no answer or no metadata.source_dataset")
        check_installed("reasoning_gym", "reasoning-gym's problems")
        return dict(entry)

    def gold(self, problem: Problem) -> str:
        """Return the library's own answer. Raise UserError where it has none."""
        answer = known_answer(self.parse_truth(problem.ground_truth))
        if answer is None:
            raise UserError(f"{problem.data_source} gives no answer with its problems")
        return f"<answer>{answer}</answer>"

    def asks_its_truth(self, problem: Problem) -> bool | None:
        """Return whether the prompt holds the entry's question; None for an entry without one."""
        question = self.parse_truth(problem.ground_truth).get("question")
        return question in problem.prompt if isinstance(question, str) and question else None

    def facts(self, problem: Problem) -> dict[str, Any]:
        """Return whether the library gives an answer; it is not judged here, where its scorer must not run."""
        return {"with_answer": known_answer(self.parse_truth(problem.ground_truth)) is not None}


def _of_kind(value: Any, default: Any) -> bool:
    """Return whether a value has the type of a default; a whole number is a real one too, None allows anything."""
    kinds: dict[type, Any] = {bool: bool, int: int, float: (int, float), str: str}
    kind = kinds.get(type(default))
    return kind is None or (isinstance(value, kind) and isinstance(value, bool) == isinstance(default, bool))


# ---- scorers of the library, on entries that have been JSON; they run in processes of the judge pool only


def library_score(dataset: str, answer: str, entry: dict[str, Any]) -> float:
    """Return the score of the library's scorer. Raise whatever it raises, and TimeoutError after ``SECONDS``."""
    entry_copy = deepcopy(entry)  # some scorers change it
    if dataset in _TUPLES:  # the scorer compares with tuples, which are lists in JSON
        entry_copy["metadata"]["output"] = tuple(map(tuple, entry_copy["metadata"]["output"]))
    scorer = _scorer(dataset)
    with processor_time(SECONDS, TimeoutError):
        return float(scorer(answer, entry_copy))


def known_answer(entry: dict[str, Any]) -> str | None:
    """Return an answer that is right: the entry's, or the sample that its metadata hold; None if there is none.

    Where sympy found no antiderivative, the entry's answer repeats the question as ``Integral(…)``, which is none.
    """
    if entry["answer"] is not None:
        return None if "Integral(" in str(entry["answer"]) else str(entry["answer"])
    metadata = entry["metadata"]
    if "possible_answer" in metadata:
        return json.dumps(metadata["possible_answer"])
    sample = metadata.get(_SAMPLES.get(metadata["source_dataset"], ""))
    return None if sample is None else str(sample)


@cache
def _scorer(dataset: str) -> Any:
    import reasoning_gym

    return reasoning_gym.get_score_answer_fn(dataset)


TASK = ReasoningGymTask()
