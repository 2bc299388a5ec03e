"""The judge of predicted runs: JSON of CodeI/O, assertions of CRUXEval, rows of others, our own problems."""
# ruff: noqa: E501 - one case a line

import ast
import json
import re
from typing import Any

import pytest

from compositionality.domains.simulation.task import TASK, SimulationOptions
from compositionality.types import Reason

OUTPUT = json.dumps({"output": {"total": 3, "ok": True}})
INPUT = json.dumps({"input": {"n": 4}})
RIGHT = '{"output": {"total": 3, "ok": true}}'
PROGRAM = "def f(x):\n    return x + 1"
ASKS_OUTPUT = json.dumps({"functional": PROGRAM, "call": "f(16)"})
ASKS_INPUT = json.dumps({"functional": PROGRAM, "result": "17"})


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (f"```json\n{RIGHT}\n```", Reason.CORRECT),
        (f"The last is {RIGHT}.", Reason.CORRECT),
        (f'first {{"output": 1}} then {RIGHT}', Reason.CORRECT),
        (f'{RIGHT} no: {{"output": 1}}', Reason.WRONG),
        (f"an open {{ brace, then {RIGHT}", Reason.CORRECT),
        (f"{RIGHT} {{}}", Reason.CORRECT),
        (RIGHT.replace("true", '"True"'), Reason.CORRECT),
        (RIGHT.replace("true", '"false"'), Reason.WRONG),
        (json.dumps({"output": json.dumps({"total": 3, "ok": True})}), Reason.CORRECT),
        (RIGHT.replace("3", "3.0"), Reason.CORRECT),
        (RIGHT.replace("3", "[]").replace("true", "{}"), Reason.WRONG),
        (RIGHT.replace("true", '"TRUE"'), Reason.CORRECT),
        (RIGHT.replace("true", "1"), Reason.WRONG),
        (RIGHT.replace("3", "true"), Reason.WRONG),
        (RIGHT.replace("3", '"3"'), Reason.WRONG),
        (RIGHT.replace(', "ok": true', ""), Reason.WRONG),
        (RIGHT.replace("true}", 'true, "more": 1}'), Reason.WRONG),
        (RIGHT.replace('"output"', '"input"'), Reason.MALFORMED),
        ('{"total": 3, "ok": true}', Reason.MALFORMED),
        (RIGHT.replace('"', "'"), Reason.MALFORMED),
        (RIGHT[:-1], Reason.MALFORMED),
        (RIGHT.replace("{", '{"output": 1, ', 1), Reason.MALFORMED),
        (RIGHT.replace('"total"', '"total": 4, "total"'), Reason.MALFORMED),
        (json.dumps({"output": '{"total": 4, "total": 3, "ok": true}'}), Reason.WRONG),
        ("3", Reason.NO_ANSWER),
        ('{"output": null}', Reason.WRONG),
        (f"[{RIGHT}]", Reason.CORRECT),
        (RIGHT + "x" * 30_000, Reason.MALFORMED),
        ('{"a":' * 200_000, Reason.MALFORMED),
        ('{"output": ' + "[" * 700 + "]" * 700 + "}", Reason.MALFORMED),
        ('{"' * 500_000, Reason.MALFORMED),
    ],
)  # fmt: skip
def test_json_answers(response: str, reason: Reason) -> None:
    assert TASK.judge(response, OUTPUT).reason is reason


def test_an_input_must_be_the_rows_where_no_program_is_known() -> None:
    assert TASK.judge('{"input": {"n": 4}}', INPUT).score == 1
    assert TASK.judge('{"input": {"n": 5}}', INPUT).reason is Reason.WRONG
    assert TASK.judge('{"output": {"n": 4}}', INPUT).reason is Reason.MALFORMED


def test_any_input_that_gives_the_output_counts_where_the_program_is_known() -> None:
    program = "def transform(x):\n    return sorted(x)"
    truth = json.dumps({"input": [2, 1], "program": program, "output": [1, 2]})
    for value, reason in (
        ("[2, 1]", Reason.CORRECT),
        ("[1, 2]", Reason.CORRECT),
        ("[1]", Reason.WRONG),
        ("5", Reason.WRONG),
        ("[2, 1.0]", Reason.CORRECT),
        ("[2, true]", Reason.WRONG),
    ):
        assert TASK.judge(f'{{"input": {value}}}', truth).reason is reason, value


@pytest.mark.parametrize(
    ("truth", "line", "reason"),
    [
        (ASKS_OUTPUT, "assert f(16) == 17", Reason.CORRECT),
        (ASKS_OUTPUT, "assert f( 16 )==17", Reason.CORRECT),
        (ASKS_OUTPUT, "assert f(16) == 18", Reason.WRONG),
        (ASKS_OUTPUT, "assert f(15) == 16", Reason.WRONG),
        (ASKS_INPUT, "assert f(16) == 17", Reason.CORRECT),
        (ASKS_INPUT, "assert f(x=16) == 17", Reason.CORRECT),
        (ASKS_INPUT, "assert f(15) == 16", Reason.WRONG),
        (ASKS_INPUT, "assert f(f(15)) == 17", Reason.MALFORMED),
        (ASKS_OUTPUT, "assert f(16) == f(16)", Reason.MALFORMED),
        (ASKS_OUTPUT, "assert True", Reason.MALFORMED),
        (ASKS_INPUT, "assert f(x=1, x=1) == 17", Reason.MALFORMED),
        (ASKS_INPUT, "assert f({1: 2, 1: 2}) == 17", Reason.MALFORMED),
        (ASKS_OUTPUT, "assert f(16) == [{'a': 1, 'a': 17}]", Reason.MALFORMED),
        (ASKS_INPUT, "assert f(NaN) == 17", Reason.MALFORMED),
        (ASKS_INPUT, "assert f(__debug__=1) == 17", Reason.MALFORMED),
        (ASKS_OUTPUT, "pass", Reason.MALFORMED),
        (ASKS_OUTPUT, "f = lambda x: 18\nassert f(16) == 18", Reason.MALFORMED),
        (ASKS_OUTPUT, "assert f(16) == 17 or True", Reason.MALFORMED),
        (ASKS_OUTPUT, "assert f(16) == 18, exit()", Reason.MALFORMED),
        (ASKS_OUTPUT, "assert f(16) == __import__('os').getpid()", Reason.MALFORMED),
        (ASKS_OUTPUT, "assert f(16) <= 17", Reason.MALFORMED),
        *((json.dumps({"functional": f"def f(x):\n    return {given}", "call": "f(0)"}), f"assert f(0) == {said}", Reason.CORRECT if right else Reason.WRONG)
          for given, said, right in (("1", "True", False), ("True", "1", False), ("[(0, {1})]", "[(False, {1})]", False), ("{1: 0}", "{True: 0}", False),
                                     ("(1, True)", "(1.0, True)", True), ("{1: {True}}", "{1: {True}}", True), ("('bool', True)", "True", False))),
        (ASKS_OUTPUT, "assert g(16) == 17", Reason.MALFORMED),
        (ASKS_OUTPUT, "assert f(16) == ??", Reason.MALFORMED),
        (ASKS_OUTPUT, "assert f(" + "(" * 10_000, Reason.MALFORMED),
        (ASKS_OUTPUT, "assert f(" + "-" * 15_000 + "1) == 1", Reason.MALFORMED),
    ],
)  # fmt: skip
def test_assertions(truth: str, line: str, reason: Reason) -> None:
    assert TASK.judge(f"```python\n{line}\n```", truth).reason is reason


SHOWN = r"transform\((.*)\) return\?|returns (.*)\.$|f\((.*)\) == \?\?$|f\(\?\?\) == (.*)$"


@pytest.mark.parametrize("kind", SimulationOptions.kinds)
def test_p03_what_a_problem_shows_is_not_its_answer(kind: str) -> None:
    """Given back as the input it gives another output, and as the output it is that of another input."""
    for index in range(40):
        prompt = TASK.problem(SimulationOptions(kind=kind, levels=(1, 2)), "train", 0, index).prompt
        scope: dict[str, Any] = {}
        exec(re.search(r"def (?:transform|f)\(x\):\n(?:    .+\n)+", prompt)[0], scope)
        shown = re.search(SHOWN, prompt, re.MULTILINE)
        value = ast.literal_eval(next(filter(None, shown.groups())))
        assert scope["transform" if kind.startswith("codeio") else "f"](value) != value, prompt
