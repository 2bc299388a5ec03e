"""The task ``simulation``: predicting runs of programs, behind the interface of all tasks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from compositionality.domains.code.operations import ChainOptions, ChainTask, ProgramChain
from compositionality.domains.simulation.judge import SimulationTruth, judge_assertion, judge_json, read_truth, row_text
from compositionality.errors import UserError
from compositionality.tasks.task import Mode
from compositionality.types import Problem, Verdict

_JSON = """This is a Python function:

{program}

{question}

Work it out step by step, without running it. Then give a JSON object with the one key {side} as the last thing."""
_OUTPUT = "What does transform({given}) return?"
_INPUT = "Find an x for which transform(x) returns {result}."
_ASSERTION = """This is a Python function:

{program}

Complete this line, so that it holds, by replacing {mark} with a literal:

    assert {call} == {result}

Work it out step by step, without running it. Then give the completed line, and nothing else, in one fenced block that \
is marked as python."""
_MARK = "??"


@dataclass(frozen=True)
class SimulationOptions(ChainOptions):
    """Options of the task; the level of a problem is how many operations the shown program composes."""

    kinds: ClassVar[tuple[str, ...]] = ("codeio_output", "codeio_input", "cruxeval_output", "cruxeval_input")
    kind: str = "codeio_output"  # predict the output or an input, as JSON (codeio) or as an assertion (cruxeval)
    group: str = "simulation"  # name of this set of problems


class SimulationTask(ChainTask):
    """Predict the output, or an input, of a program; the level is how many operations it composes."""

    name = "simulation"
    title = "Runs of programs"
    data_sources = (r"simulation__codeio.*", r"simulation__cruxeval.*")
    modes: ClassVar[Mapping[str, Mode]] = {"clean": Mode(SimulationOptions)}
    kinds = SimulationOptions.kinds

    def pose(self, chain: ProgramChain, kind: str) -> tuple[str, str, dict[str, Any], dict[str, str]]:
        """Show the chain as a program, and ask for one side of a run of it."""
        family, _, side = kind.partition("_")
        prompt, truth, answer = (_json_problem if family == "codeio" else _assertion_problem)(chain, side)
        return f"simulation__{family}_composed_{side}", prompt, truth, {"answer": answer}

    def judge(self, answer_text: str, ground_truth: str) -> Verdict:
        """Judge a prediction; ERROR where the sandbox cannot run."""
        truth = read_truth(ground_truth)
        return (judge_assertion if truth.side == "assertion" else judge_json)(answer_text, truth)

    def row_truth(self, ground_truth: Any, extra_info: Mapping[str, Any]) -> str:
        return row_text(ground_truth, extra_info)

    def parse_truth(self, ground_truth: str) -> SimulationTruth:
        return read_truth(ground_truth)

    def gold(self, problem: Problem) -> str:
        """Return the row's own answer, else its value. Raise UserError for an assertion of others, which has none."""
        answer = problem.metadata.get("answer")
        if isinstance(answer, str):
            return answer
        truth = read_truth(problem.ground_truth)
        if truth.side == "assertion":
            raise UserError(f"{problem.prompt[:60]!r}: the row holds no answer")
        return _json_answer(truth.side, truth.value)

    def facts(self, problem: Problem) -> dict[str, Any]:
        """Return which side is asked for; no program is run here."""
        return {"asks_input": read_truth(problem.ground_truth).side == "input"}


def _json_problem(chain: ProgramChain, side: str) -> tuple[str, dict[str, Any], str]:
    given, result, program = chain.inputs[0], chain.outputs[0], chain.function("transform")
    question = _OUTPUT.format(given=repr(given)) if side == "output" else _INPUT.format(result=repr(result))
    prompt = _JSON.format(program=program, question=question, side=side)
    if side == "output":
        return prompt, {"output": result}, _json_answer(side, result)
    return prompt, {"input": given, "program": program, "output": result}, _json_answer(side, given)


def _json_answer(side: str, value: Any) -> str:
    return f"```json\n{json.dumps({side: value})}\n```"


def _assertion_problem(chain: ProgramChain, side: str) -> tuple[str, dict[str, Any], str]:
    call, result, program = f"f({chain.inputs[0]!r})", repr(chain.outputs[0]), chain.function("f")
    shown = {"call": call, "result": _MARK} if side == "output" else {"call": f"f({_MARK})", "result": result}
    prompt = _ASSERTION.format(program=program, mark=_MARK, **shown)
    pinned = {"call": call} if side == "output" else {"result": result}
    return prompt, {"functional": program, **pinned}, f"```python\nassert {call} == {result}\n```"


TASK = SimulationTask()
