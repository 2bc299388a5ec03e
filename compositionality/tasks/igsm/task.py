"""iGSM behind the interface of all tasks."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from compositionality.errors import UserError
from compositionality.tasks.diagnosis import NOT_READ, Diagnosis, Failure, ReadChain
from compositionality.tasks.draws import Draws
from compositionality.tasks.igsm.generate import IgsmOptions, draw_item
from compositionality.tasks.igsm.graph import QuantityGraph
from compositionality.tasks.igsm.judge import (
    ChainFault,
    check_chain,
    graph_of,
    ground_truth,
    judge_igsm,
    read_graph,
    read_ground_truth,
)
from compositionality.tasks.igsm.solution import other_premises, write_solution
from compositionality.tasks.igsm.wording import Names, compact_prompt, text_prompt
from compositionality.tasks.stream import distinct_problems
from compositionality.tasks.task import PLAIN, Behaviours, Column, Identity, Mode, Task
from compositionality.types import Completion, Problem, Reason, Verdict

MAX_LENGTH = 64_000  # characters of a response whose chain is judged
_REASONS = {
    ChainFault.UNREADABLE: Reason.MALFORMED,
    ChainFault.ARITHMETIC: Reason.WRONG_VALUE,
    ChainFault.DEPENDENCIES: Reason.WRONG_NUMBERS,
    ChainFault.UNFINISHED: Reason.WRONG,
}
_FAILURES = {
    ChainFault.UNREADABLE: Failure.FORMAT,
    ChainFault.ARITHMETIC: Failure.ATOMIC,
    ChainFault.UNFINISHED: Failure.INCOMPLETE,
}


class IgsmTask(Task):
    """Word problems over a graph of quantities; the level is how many operations the question needs."""

    name = "igsm"
    title = "iGSM"
    data_sources = (r"igsm-level\d+",)
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(IgsmOptions)}
    styles = ("text", "compact")
    gold_mark = "="
    too_few = "ask for fewer rows, more levels or more most_edges"
    columns = (
        Column("premises", lambda level: f"{level['premises']:.1f}"),
        Column("steps", lambda level: f"{level['steps']:.1f}"),
        Column("answer 0", lambda level: f"{level['zero']:.1%}"),
    )
    judge = staticmethod(judge_igsm)
    parse_truth = staticmethod(read_ground_truth)

    def problem(self, options: Any, split: str, seed: int, index: int) -> Problem:
        item = draw_item(options, split, seed, index)
        names = item.names if options.style == "text" else None
        truth = ground_truth(item.problem, names, process=options.process)
        metadata = {"seed": seed, "template": item.template, "graph": json.dumps(graph_of(item.problem, names))}
        prompt = prompt_of(item.problem, names)
        return Problem(f"igsm-level{item.level}", item.level, options.group, prompt, truth, index, metadata)

    def problems(self, options: Any, split: str, seed: int, count: int, workers: int = 1) -> Iterator[Problem]:
        """Return problems with levels evenly filled; with law=min-of-two as often as the law has it."""
        make = partial(self.candidates, options, split, seed)
        return distinct_problems(make, options.levels, count, workers, self.too_few, evenly=options.law == "equal")

    def judge_chain(self, response: str, ground_truth: str, verdict: Verdict) -> Verdict:
        truth = read_ground_truth(ground_truth)
        if truth.problem is None:
            return verdict
        if len(response) > MAX_LENGTH:
            return Verdict(0.0, Reason.MALFORMED, verdict.answer)
        fault = check_chain(response, truth.problem, truth.names).fault
        return Verdict(0.0, _REASONS.get(fault, Reason.ILLEGAL), verdict.answer) if fault else verdict

    def gold(self, problem: Problem) -> str:
        return self.solution(problem, PLAIN, 0)

    def solution(self, problem: Problem, behaviours: Behaviours, seed: int) -> str:
        """Return a right completion with behaviours injected; all behaviours share the choices that they share."""
        graph, names = graph_in(problem)
        return write_solution(graph, names, behaviours, f"igsm/solution/{seed}/{problem.prompt}".encode())

    def reworded(self, problem: Problem, seed: int) -> Problem:
        """Return the problem with its premises in another order, which may be the same where there are few."""
        graph, names = graph_in(problem)
        other = other_premises(graph, Draws(f"igsm/premises/{seed}/{problem.prompt}".encode()))
        metadata = {**problem.metadata, "graph": json.dumps(graph_of(other, names))}
        return replace(problem, prompt=prompt_of(other, names), metadata=metadata)

    def identity(self, problem: Problem) -> Identity:
        """Return the prompt; its template, which no two splits share, is the composition."""
        return Identity(problem.prompt, str(problem.metadata.get("template", "")) or None)

    def asks_its_truth(self, problem: Problem) -> bool | None:
        """Render the prompt again from the row's graph, and work out its answer."""
        graph, names = graph_in(problem)
        answer = read_ground_truth(problem.ground_truth).answer
        return problem.prompt == prompt_of(graph, names) and graph.answer == answer

    def facts(self, problem: Problem) -> dict[str, Any]:
        graph, _ = graph_in(problem)
        return {
            **super().facts(problem),
            "wrong_level": graph.level != problem.level,
            "premises": len(graph.equations),
            "steps": len(graph.order),
            "zero": graph.answer == 0,
        }

    def diagnose(self, problem: Problem, completion: Completion, verdict: Verdict) -> Diagnosis:
        """Return the first fault of the chain; a right answer is right whatever its chain."""
        general = super().diagnose(problem, completion, verdict)
        if general.failure not in (Failure.UNPARSED, Failure.CORRECT) or verdict.reason is Reason.ERROR:
            return general
        graph, names = graph_in(problem)
        finding = check_chain(completion.text, graph, names)
        if finding.fault is None:
            return replace(general, chain=ReadChain(right_chain=True))
        is_right = general.failure is Failure.CORRECT
        failure = Failure.CORRECT if is_right else _FAILURES.get(finding.fault, Failure.INCORRECT)
        code = finding.quantity and finding.quantity.code
        return Diagnosis(failure, finding.line, code, finding.fault, chain=ReadChain(right_chain=False))

    def read_chain(self, problem: Problem, text: str) -> ReadChain:
        """Return whether every step is right; nothing can be told of a row that does not hold its graph."""
        try:
            graph, names = graph_in(problem)
        except UserError:
            return NOT_READ
        return ReadChain(right_chain=check_chain(text, graph, names).fault is None)


TASK = IgsmTask()


def graph_in(problem: Problem) -> tuple[QuantityGraph, Names | None]:
    """Return the graph that a row keeps in its metadata. UserError for a row of another task."""
    try:
        graph, names = read_graph(json.loads(problem.metadata["graph"]))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UserError(f"{problem.prompt[:60]!r}: its metadata hold no graph ({error!r})") from error
    if graph is None:
        raise UserError(f"{problem.prompt[:60]!r}: its metadata hold no graph; make the problem file again")
    return graph, names


def prompt_of(graph: QuantityGraph, names: Names | None) -> str:
    return text_prompt(graph, names) if names else compact_prompt(graph)
