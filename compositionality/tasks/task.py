"""The interface of a task: all that the rest of the project needs to know of one. README.md shows how to add one.

A task is one package whose ``TASK`` is an instance of a subclass of ``Task``. ``name``, ``title``, ``data_sources`` and
``judge`` are required, which is enough to train on rows made elsewhere; ``modes``, ``problem`` and ``gold`` make rows.
Importing the package must be cheap: heavy imports belong into the methods that make problems, as a judging
process imports the package too.
"""

import base64
import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any, ClassVar, NamedTuple, final

from compositionality.errors import UserError
from compositionality.tasks.answers import after_thought
from compositionality.tasks.diagnosis import NOT_READ, ROLES, Diagnosis, Failure, ReadChain, Span
from compositionality.tasks.stream import distinct_problems
from compositionality.types import LENGTH, Completion, Problem, Reason, Verdict

MAX_UNPACKED = 256 << 20  # bytes of a compressed cell once it is unpacked
_FAILURES = {
    Reason.CORRECT: Failure.CORRECT,
    Reason.OVERLONG: Failure.OVERLONG,
    Reason.NO_ANSWER: Failure.FORMAT,
    Reason.MALFORMED: Failure.FORMAT,
}
ANALYSIS_LEVELS = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.1, 0.4, 0.8, 1.0),
    (0.0, 0.1, 0.4, 0.8, 1.0, 1.0),
    (0.0, 0.4, 0.8, 1.0, 1.0, 1.0),
    (0.0, 1.0, 1.0, 1.0, 1.0, 1.0),
)
"""Chance of an analysis by how many terms a step has, a constant among them: levels 0 to 4 of the paper's code."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One way of a task to make problems: a frozen dataclass of options, and which of split and seed it looks at.

    The options have defaults for all fields, values that can be hashed, and (for the default ``Task.problems``) a tuple
    ``levels``. Those that make no sense raise UserError when they are made.
    """

    options: type[Any]
    uses: tuple[str, ...] = ("split", "seed")


class Identity(NamedTuple):
    """The identity of a problem in the split ledger: itself, and its composition by text and by behaviour."""

    problem: str
    composition: str | None = None
    behaviour: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the audit's table: its title, and its cell from the figures of a level."""

    title: str
    cell: Callable[[Mapping[str, Any]], str]


def line_spans(gold: str, mark: str) -> list[Span]:
    """Return the spans of a solution in lines NAME mark VALUES=RESULT, a step each; none if a line is no step."""
    spans: list[Span] = []
    start = 0
    for step, line in enumerate(gold.splitlines(keepends=True)):
        ends = (line.find(mark) + 1, line.rfind("=") + 1, len(line))
        if not 0 < ends[0] <= ends[1]:
            return []
        for role, end in zip(ROLES, ends, strict=False):
            spans.append(Span(spans[-1].end if spans else 0, start + end, step, role))
        start += len(line)
    return spans


@dataclass(frozen=True, slots=True)
class Behaviours:
    """Behaviours injected into a task's right solutions (*Behavior Injection*, arXiv 2505.18917); by default nothing.

    What each of them looks like is the task's; ``Task.solution`` writes it.

    *subgoals*: a step is worked out one operation at a time. *analysis*: what the problem says is repeated before a
    step, with a chance by the number of terms. *reflection*: the chance that something is tried that cannot be done
    yet, noticed, and left for later. *reordered*: the steps in another order that works. *padded*: nothing, but neutral
    text until the solution is as long as with ``BRIDGE``.
    """

    subgoals: bool = False
    analysis: tuple[float, ...] = ANALYSIS_LEVELS[0]
    reflection: float = 0.0
    reordered: bool = False
    padded: bool = False

    def __post_init__(self) -> None:
        for name, chances in (("analysis", self.analysis), ("reflection", (self.reflection,))):
            if not chances or not all(0 <= chance <= 1 for chance in chances):
                raise UserError(f"{name}={list(chances)}: give probabilities from 0 to 1")
        if self.padded and (self.subgoals or any(self.analysis) or self.reflection):
            raise UserError("padded=true: neutral text in place of behaviours; leave those out")

    def analysis_chance(self, terms: int) -> float:
        """Return the chance of an analysis of a step with so many terms."""
        return self.analysis[min(terms, len(self.analysis) - 1)]


PLAIN = Behaviours()
BRIDGE = Behaviours(subgoals=True, analysis=ANALYSIS_LEVELS[2], reflection=0.1)


class Task(ABC):
    """Makes problems and judges completions; every method is pure and deterministic.

    ``data_sources`` are regular expressions that match whole names; ``modes`` begins with the default mode. ``styles``
    are the values that an option ``style`` can have, ``kinds`` those of an option ``kind``. ``gold_mark``: what ends
    the name in a step of ``gold``, a line NAME mark VALUES=RESULT (empty: it is written in no steps).
    ``trusted_judge``: False if judging text of a model may run into code that is not safe on it, so that only the
    processes of the judge pool may do it. ``seed_classes``: seeds from 0 up to this one share no problem of a split,
    and larger ones do with those that are equal modulo it; 0: not known. ``libraries``: what ``judge`` imports, in
    seconds; the judge pool imports it before an answer's time begins.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    data_sources: ClassVar[tuple[str, ...]]
    modes: ClassVar[Mapping[str, Mode]] = {}
    styles: ClassVar[tuple[str, ...]] = ()
    gold_mark: ClassVar[str] = ""
    kinds: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[Column, ...]] = ()
    trusted_judge: ClassVar[bool] = True
    too_few: ClassVar[str] = "ask for fewer problems or widen the options"
    seed_classes: ClassVar[int] = 0
    libraries: ClassVar[tuple[str, ...]] = ()

    # ---- problems

    def problem(self, options: Any, split: str, seed: int, index: int) -> Problem:
        """Return the problem at ``index`` of the stream (options, split, seed). UserError for an unknown split."""
        del options, split, seed, index
        raise UserError(f"task {self.name} makes no problems; give rows made elsewhere")

    def candidates(self, options: Any, split: str, seed: int, indices: range) -> list[tuple[Hashable, Problem]]:
        """Return the problems at ``indices``, each with a key that is equal for two that count as the same problem."""
        made = [self.problem(options, split, seed, index) for index in indices]
        return [(self.identity(problem).problem, problem) for problem in made]

    def problems(self, options: Any, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
        """Return ``count`` problems of one file, the same number at every level, none twice; ``workers`` processes.

        A problem keeps the index of its candidate, so that ``problem`` gives it again.
        """
        make = partial(self.candidates, options, split, seed)
        return distinct_problems(make, options.levels, count, workers, self.too_few)

    # ---- judging

    @final
    def verdict(self, response: str, ground_truth: str) -> Verdict:
        """Return the verdict on a whole response; here alone its thought is cut off, so that no task pays one.

        A thought is what stands before the last ``</think>``. A response that opens one and never closes it has no
        answer; one without either tag is judged whole, as the prompt may have opened the thought.
        """
        answer_text = after_thought(response)
        if answer_text is None:
            return Verdict(0.0, Reason.NO_ANSWER)
        verdict = self.judge(answer_text, ground_truth)
        return self.judge_chain(response, ground_truth, verdict) if verdict.reason is Reason.CORRECT else verdict

    @abstractmethod
    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """Judge the answer in a response, of which this is what follows the thought; asked by ``verdict`` alone.

        Never raises on what a model wrote; linear in its length.
        """

    def judge_chain(self, response: str, ground_truth: str, verdict: Verdict) -> Verdict:
        """Return the verdict on a right answer once the steps in the whole response are read; by default unchanged."""
        del response, ground_truth
        return verdict

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """Return the text that the judge reads, from a row's ground truth, and ``extra_info`` where it holds a part.

        ``ground_truth`` is that text already, or what files of others hold: a struct, or text without that part.
        UserError if it is neither.
        """
        del extra_info
        return truth_text(ground_truth)

    def parse_truth(self, ground_truth: str) -> Any:
        """Return what the judge reads out of a ground truth; any text if the task makes no rows. UserError if bad."""
        if not self.modes:
            return ground_truth
        try:
            return json.loads(ground_truth)
        except (ValueError, RecursionError) as error:
            raise UserError(f"ground_truth {ground_truth[:60]!r} is no JSON; make the problem file again") from error

    def gold(self, problem: Problem) -> str:
        """Return a right completion in the style that the problem asks for. UserError for a row or task without one."""
        raise UserError(f"task {self.name} knows no right completion of {problem.prompt[:60]!r}")

    def gold_spans(self, problem: Problem) -> Sequence[Span]:
        """Return step and role of every character of ``gold``, in order: by ``gold_mark``; none if not written so."""
        return line_spans(self.gold(problem), self.gold_mark) if self.gold_mark else ()

    def solution(self, problem: Problem, behaviours: Behaviours, seed: int) -> str:
        """Return a right completion with behaviours injected, another one for each ``seed``.

        UserError for behaviours that the task does not know; by default it knows none.
        """
        del seed
        if behaviours != PLAIN:
            raise UserError(f"task {self.name} has no behaviours to inject into its solutions")
        return self.gold(problem)

    def reworded(self, problem: Problem, seed: int) -> Problem:
        """Return the problem in other words or another order, by ``seed``. UserError for a task without such forms."""
        del problem, seed
        raise UserError(f"task {self.name} has no other form of its problems")

    # ---- what data and evaluation ask

    def identity(self, problem: Problem) -> Identity:
        """Return what the ledger recognises the problem by. UserError for a row of another task."""
        return Identity(problem.prompt)

    def cluster(self, problem: Problem) -> str:
        """Return a name that problems hard for the same reason share: the composition, or else the problem itself.

        Intervals over problems count clusters. Never raises.
        """
        try:
            return self.identity(problem).composition or problem.prompt
        except UserError:
            return problem.prompt

    def level(self, problem: Problem) -> int:
        """Return the level that can be read off the problem."""
        return problem.level

    def asks_its_truth(self, problem: Problem) -> bool | None:
        """Return whether the prompt asks what the ground truth answers; None where that cannot be told, as by default.

        UserError for a row of another task.
        """
        del problem
        return None

    def facts(self, problem: Problem) -> Any:
        """Return what the audit finds out about one problem. UserError for a row of another task."""
        return {"wrong_gold": self.verdict(self.gold(problem), problem.ground_truth).score < 1}

    def figures(self, facts: Sequence[Any]) -> dict[str, Any]:
        """Return the facts of all problems of one level in figures: sums of ``wrong_…``, which count rows that are not
        what they say, and means of the rest."""
        sums = {name: sum(fact[name] for fact in facts) for name in facts[0]}
        return {name: total if name.startswith("wrong_") else total / len(facts) for name, total in sums.items()}

    def skills(self, problem: Problem) -> Sequence[str]:
        """Return named functions that the problem asks for, to break accuracy down. Default: metadata ``skills``."""
        return tuple(problem.metadata.get("skills") or ())

    def hide_definitions(self, prompt: str) -> str:
        """Return the prompt without the definitions that it may show (Stage 1 trains without them)."""
        return prompt

    def diagnose(self, problem: Problem, completion: Completion, verdict: Verdict) -> Diagnosis:
        """Return the class of a judged completion; by default what the verdict says, and *unparsed* for the rest."""
        del problem
        if verdict.reason is not Reason.CORRECT and completion.finish_reason == LENGTH:
            return Diagnosis(Failure.OVERLONG)
        return Diagnosis(_FAILURES.get(verdict.reason, Failure.UNPARSED))

    def read_chain(self, problem: Problem, text: str) -> ReadChain:
        """Return ``Diagnosis.chain``, what holds of the steps of a completion; by default nothing can be told."""
        del problem, text
        return NOT_READ

    def reference(self, problem: Problem) -> str | None:
        """Return the true steps in words, as a model that judges completions sees them; None if there are none."""
        del problem
        return None


# ---- ground truths and extra information of foreign rows


def truth_text(ground_truth: Any) -> str:
    """Return ``ground_truth`` as JSON text: itself if it is text already, else the struct that other libraries write.

    numpy's arrays and numbers inside it count as lists and numbers; guru's ``{compressed: …}`` is unpacked.
    UserError for anything else.
    """
    if ground_truth is None:
        raise UserError("there is no ground_truth; drop the row")
    if isinstance(ground_truth, str):
        return ground_truth
    if isinstance(ground_truth, Mapping) and list(ground_truth) == ["compressed"]:
        unpacked = _unpacked(ground_truth["compressed"], "ground_truth")
        return unpacked if isinstance(unpacked, str) else json.dumps(unpacked)
    try:
        return json.dumps(ground_truth, default=methodcaller("tolist"))
    except (TypeError, ValueError, RecursionError, AttributeError) as error:
        raise UserError(f"ground_truth of type {type(ground_truth).__name__}: give JSON text or a struct") from error


def row_info(extra_info: Any) -> Mapping[str, Any]:
    """Return a row's ``extra_info``: a struct, or guru's compressed form of one, ``{part_1: …, part_2: …}``.

    Empty for anything else. UserError for parts that cannot be unpacked.
    """
    if not isinstance(extra_info, Mapping):
        return {}
    if "part_1" not in extra_info:
        return extra_info
    names = [f"part_{number}" for number in range(1, len(extra_info) + 1)]
    unpacked = _unpacked("".join(str(extra_info.get(name) or "") for name in names), "extra_info")
    return unpacked if isinstance(unpacked, Mapping) else {}


def _unpacked(packed: Any, name: str) -> Any:
    """Return the JSON value that guru packs as gzip in base64."""
    try:
        raw = base64.b64decode(str(packed).strip() + "===")
        opened = zlib.decompressobj(zlib.MAX_WBITS | 16)
        text = opened.decompress(raw, MAX_UNPACKED)
        if not opened.eof:
            raise ValueError("cut short, or too large")
        return json.loads(text)
    except (ValueError, zlib.error, RecursionError) as error:
        raise UserError(f"{name}: its compressed text cannot be unpacked ({error}); download the file again") from error
