"""The interface of a task: all that the rest of the project needs to know of one. README.md shows how to add one.

A task is one package whose ``TASK`` is an instance of a subclass of ``Task``. ``name``, ``title``, ``data_sources`` and
``judge`` are required, which is enough to train on rows made elsewhere; ``modes``, ``problem`` and ``gold`` make rows.
Importing the package must be cheap: heavy imports belong into the methods that make problems, as a judging
process imports the package too.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, final

from compositionality.errors import UserError
from compositionality.tasks.answer_text import after_thought
from compositionality.tasks.behaviours import PLAIN, Behaviours
from compositionality.tasks.stream import distinct_problems
from compositionality.tasks.truth import truth_text
from compositionality.types import (
    LENGTH,
    NOT_READ,
    ROLES,
    Completion,
    Diagnosis,
    Failure,
    Problem,
    ReadChain,
    Reason,
    Span,
    Verdict,
)

_FAILURES = {
    Reason.CORRECT: Failure.CORRECT,
    Reason.OVERLONG: Failure.OVERLONG,
    Reason.NO_ANSWER: Failure.FORMAT,
    Reason.MALFORMED: Failure.FORMAT,
}


@dataclass(frozen=True, slots=True)
class Mode:
    """One way of a task to make problems: a frozen dataclass of options, and which of split and seed it looks at.

    The options have defaults for all fields, values that can be hashed, and (for the default ``Task.problems``) a tuple
    ``levels``. Those that make no sense raise UserError when they are made.
    """

    options: type[Any]
    uses: tuple[str, ...] = ("split", "seed")


@dataclass(frozen=True, slots=True)
class Identity:
    """What the split ledger recognises a problem by: itself, and its composition by text and by behaviour."""

    problem: str
    composition: str | None = None
    behaviour: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the audit's table: its title, and its cell from the figures of a level."""

    title: str
    cell: Callable[[Mapping[str, Any]], str]


def line_spans(gold: str, mark: str) -> list[Span]:
    """Return the spans of a solution with a step NAME mark VALUES=RESULT a line; none if a line is none."""
    spans, start = list[Span](), 0
    for step, line in enumerate(gold.splitlines(keepends=True)):
        ends = (line.find(mark) + 1, line.rfind("=") + 1, len(line))
        if not 0 < ends[0] <= ends[1]:
            return []
        for role, end in zip(ROLES, ends, strict=False):
            spans.append(Span(spans[-1].end if spans else 0, start + end, step, role))
        start += len(line)
    return spans


class Task(ABC):
    """Makes problems and judges completions; every method is pure and deterministic.

    ``data_sources`` are regular expressions that match whole names; ``modes`` begins with the default mode. ``styles``
    are the values that an option ``style`` can have, ``kinds`` those of an option ``kind``. ``gold_mark``: what ends
    the name in a step of ``gold``, a line NAME mark VALUES=RESULT (empty: it is written in no steps).
    ``trusted_judge``: False if judging text of a model may run into code that is not safe on it, so that only the
    processes of the judge pool may do it. ``seed_classes``: seeds from 0 up to this one share no problem of a split,
    and larger ones do with those that are equal modulo it; 0: not known.
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

    # ---- problems

    def problem(self, options: Any, split: str, seed: int, index: int) -> Problem:
        """The problem at ``index`` of the stream (options, split, seed). UserError for a split that there is not."""
        del options, split, seed, index
        raise UserError(f"task {self.name} makes no problems; give rows made elsewhere")

    def candidates(self, options: Any, split: str, seed: int, indices: range) -> list[tuple[Hashable, Problem]]:
        """The problems at ``indices``, each with a key that is equal for two that count as the same problem."""
        made = [self.problem(options, split, seed, index) for index in indices]
        return [(self.identity(problem).problem, problem) for problem in made]

    def problems(self, options: Any, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
        """``count`` problems of one file, the same number at every level, none twice; ``workers`` processes.

        A problem keeps the index of its candidate, so that ``problem`` gives it again.
        """
        make = partial(self.candidates, options, split, seed)
        return distinct_problems(make, options.levels, count, workers, self.too_few)

    # ---- judging

    @final
    def verdict(self, response: str, ground_truth: str) -> Verdict:
        """The verdict on a whole response; here alone its thought is cut off, so that no task pays one.

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
        """The verdict on a right answer, after its chain of steps in the whole response; by default none is read."""
        del response, ground_truth
        return verdict

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        """The text that the judge reads, out of a row's ground truth, and its ``extra_info`` where that holds a part.

        ``ground_truth`` is that text already, or what files of others hold: a struct, or text without that part.
        UserError if it is neither.
        """
        del extra_info
        return truth_text(ground_truth)

    def parse_truth(self, ground_truth: str) -> Any:
        """What the judge reads out of a row's ground truth; any text if the task makes no rows. UserError if bad."""
        if not self.modes:
            return ground_truth
        try:
            return json.loads(ground_truth)
        except (ValueError, RecursionError) as error:
            raise UserError(f"ground_truth {ground_truth[:60]!r} is no JSON; make the problem file again") from error

    def gold(self, problem: Problem) -> str:
        """A right completion, in the style that the problem asks for. UserError for a row or a task that has none."""
        raise UserError(f"task {self.name} knows no right completion of {problem.prompt[:60]!r}")

    def gold_spans(self, problem: Problem) -> Sequence[Span]:
        """Step and role of every character of ``gold``, in order: by ``gold_mark``; none if it is not written so."""
        return line_spans(self.gold(problem), self.gold_mark) if self.gold_mark else ()

    def solution(self, problem: Problem, behaviours: Behaviours, seed: int) -> str:
        """A right completion with behaviours injected, another one for each ``seed``.

        UserError for behaviours that the task does not know; by default it knows none.
        """
        del seed
        if behaviours != PLAIN:
            raise UserError(f"task {self.name} has no behaviours to inject into its solutions")
        return self.gold(problem)

    def reworded(self, problem: Problem, seed: int) -> Problem:
        """The same problem in other words or another order, another one for each ``seed``. UserError if it has none."""
        del problem, seed
        raise UserError(f"task {self.name} has no other form of its problems")

    # ---- what data and evaluation ask

    def identity(self, problem: Problem) -> Identity:
        """What the ledger recognises the problem by. UserError for a row that is none of this task."""
        return Identity(problem.prompt)

    def cluster(self, problem: Problem) -> str:
        """Equal for problems that are hard for the same reason: the composition, or the problem itself if it has none.

        Intervals over problems count clusters. Never raises.
        """
        try:
            return self.identity(problem).composition or problem.prompt
        except UserError:
            return problem.prompt

    def level(self, problem: Problem) -> int:
        """The level that a problem really has, as far as it can be read off the problem."""
        return problem.level

    def asks_its_truth(self, problem: Problem) -> bool | None:
        """Whether the prompt asks what the ground truth answers; None where that cannot be told, as by default.

        UserError for a row that is none of this task.
        """
        del problem
        return None

    def facts(self, problem: Problem) -> Any:
        """What the audit finds out about one problem. UserError for a row that is none of this task."""
        return {"wrong_gold": self.verdict(self.gold(problem), problem.ground_truth).score < 1}

    def figures(self, facts: Sequence[Any]) -> dict[str, Any]:
        """The facts of all problems of one level in figures: by default sums of ``wrong_…``, which count rows that are
        not what they say, and means of the rest."""
        sums = {name: sum(fact[name] for fact in facts) for name in facts[0]}
        return {name: total if name.startswith("wrong_") else total / len(facts) for name, total in sums.items()}

    def skills(self, problem: Problem) -> Sequence[str]:
        """Named functions that the problem asks for: accuracy is broken down by them. Default: metadata ``skills``."""
        return tuple(problem.metadata.get("skills") or ())

    def hide_definitions(self, prompt: str) -> str:
        """The prompt without the definitions that it may show (Stage 1 trains without them)."""
        return prompt

    def diagnose(self, problem: Problem, completion: Completion, verdict: Verdict) -> Diagnosis:
        """The class of a judged completion; by default only what the verdict says, and *unparsed* for the rest."""
        del problem
        if verdict.reason is not Reason.CORRECT and completion.finish_reason == LENGTH:
            return Diagnosis(Failure.OVERLONG)
        return Diagnosis(_FAILURES.get(verdict.reason, Failure.UNPARSED))

    def read_chain(self, problem: Problem, text: str) -> ReadChain:
        """``Diagnosis.chain`` alone: what holds of the steps of a completion; by default nothing can be told."""
        del problem, text
        return NOT_READ

    def reference(self, problem: Problem) -> str | None:
        """The true steps in words, as a model that judges completions sees them; None if there are none to show."""
        del problem
        return None
