"""The judge of programs: which program counts, formats of ground truths, output compared, our own problems."""
# ruff: noqa: E501 - one case a line

import json
import random
from typing import Any

import pytest

from compositionality.domains.code import sandbox, task
from compositionality.domains.code.operations import ALL, INPUTS, LISTS, ProgramChain, apply_all, draw_chain
from compositionality.domains.code.task import TASK, CodeOptions, same_output
from compositionality.reward.judge import judge_response
from compositionality.tasks.answers import last_program
from compositionality.types import Reason

SQUARE = "def f(x):\n    return x * x"
CHECK = "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 9\n\n"
FUNCTIONAL = json.dumps({"functional": CHECK + "check(f)"})
STDIO = json.dumps({"inputs": ["2\n", "3\n"], "outputs": ["4\n", "9\n"]})
READS = "x = int(input())\nprint(x * x)"


def fenced(program: str, mark: str = "python") -> str:
    return f"Here it is.\n```{mark}\n{program}\n```\nDone."


@pytest.mark.parametrize(
    ("response", "program"),
    [
        (fenced("a"), "a"),
        (fenced("a") + fenced("b"), "b"),
        (fenced("a") + fenced("b", "text"), "a"),
        (fenced("a") + fenced("out", ""), "a"),
        (fenced("a", ""), "a"),
        (fenced("a", "py"), "a"),
        (fenced("a", "Python3"), "a"),
        ("```python\na", "a"),
        ("````python\na\n```\nb\n````", "a\n```\nb"),
        ("~~~python\na\n~~~", "a"),
        ('```python title="x.py"\na\n```', "a"),
        ("1. so:\n   ```python\n   if a:\n       b\n   ```", "if a:\n    b"),
        ('```python\ndef f():\n    """\n    ```\n    f()\n    ```\n    """\n```', 'def f():\n    """\n    ```\n    f()\n    ```\n    """'),
        ("```python\na\n```python\nb\n```", "b"),
        (fenced("a") + "```python\nnever closed", "a"),
        ("```python\n\n```", None),
        ("def f(x): return 1", None),
        ("`a`", None),
        ("``` ``` ```", None),
        ("```\n" * 100_000, None),
    ],
)  # fmt: skip
def test_which_program_counts(response: str, program: str | None) -> None:
    assert last_program(response) == program


def test_an_example_behind_a_function_is_not_the_program() -> None:
    response = f"{fenced('def f(x): return x + 1')}{fenced(SQUARE)} Example usage: {fenced('print(f(2))')}"
    assert last_program(response, called=True) == SQUARE
    assert last_program(response) == "print(f(2))"
    assert TASK.judge(response, FUNCTIONAL).reason is Reason.CORRECT


@pytest.mark.parametrize(
    ("program", "truth", "reason"),
    [
        (SQUARE, FUNCTIONAL, Reason.CORRECT),
        (SQUARE.replace("*", "+"), FUNCTIONAL, Reason.WRONG),
        ("import sys\nsys.exit(0)", FUNCTIONAL, Reason.WRONG),
        ("def g(x): return x * x", FUNCTIONAL, Reason.WRONG),
        ("def f(x:", FUNCTIONAL, Reason.WRONG),
        (SQUARE, json.dumps({"functional": "assert f(2) == 4\nassert f(-1) == 1"}), Reason.CORRECT),
        ("class Solution:\n    def f(self, x): return x * x", json.dumps({"functional": CHECK + "check(Solution().f)"}), Reason.CORRECT),
        (SQUARE, json.dumps({"pytest": "from solution import f\n\ndef test_f():\n    assert f(2) == 4"}), Reason.CORRECT),
        (SQUARE, json.dumps({"pytest": "from solution import f\n\ndef test_f():\n    assert f(2) == 5"}), Reason.WRONG),
        (READS, STDIO, Reason.CORRECT),
        (READS.replace("* x", "* 2"), STDIO, Reason.WRONG),
        (READS + "\nraise ValueError", STDIO, Reason.WRONG),
        (READS + "\nexit()", STDIO, Reason.CORRECT),
        ("print(4)\nprint(9)", STDIO, Reason.WRONG),
        ("import sys\nprint(int(sys.stdin.readline()) ** 2.0)", STDIO, Reason.CORRECT),
        (READS, json.dumps({"inputs": [["2"], ["3"]], "outputs": [["4"], ["9"]]}), Reason.CORRECT),
        (SQUARE, json.dumps({"fn_name": "f", "inputs": [[2], [3]], "outputs": [4, 9]}), Reason.CORRECT),
        (SQUARE, json.dumps({"fn_name": "f", "inputs": [[2], [3]], "outputs": [[4], [9]]}), Reason.CORRECT),
        (SQUARE, json.dumps({"fn_name": "f", "inputs": [[2], [3]], "outputs": [4, [9]]}), Reason.WRONG),
        ("def f(x): return x", json.dumps({"fn_name": "f", "inputs": [[[5]], [[1, 2]]], "outputs": [[5], [1, 2]]}), Reason.CORRECT),
        ("def f(x): return x if x[1:] else x[0]", json.dumps({"fn_name": "f", "inputs": [[[5]], [[1, 2]]], "outputs": [[5], [1, 2]]}), Reason.WRONG),
        (SQUARE, json.dumps({"fn_name": "f", "inputs": ["2", "3"], "outputs": ["4", "8"]}), Reason.WRONG),
        *((f"def f(x): return {given}", json.dumps({"fn_name": "f", "inputs": [[2]], "outputs": [result]}), Reason.CORRECT if right else Reason.WRONG)
          for given, result, right in (("True", 1, False), ("1", True, False), ("[[True]]", [[1]], False), ("True", True, True), ("1.0", 1, True),
                                       ("{1: False}", {"1": 0}, False), ("{1: 2}", {"1": 2}, True), ("{1: 3, '1': 2}", {"1": 2}, False))),
        ("class Solution:\n    def f(self, x): return (x, [1])", json.dumps({"fn_name": "f", "inputs": [[2]], "outputs": [[2, [1]]]}), Reason.CORRECT),
        ("def sum(x): return 6", json.dumps({"fn_name": "sum", "inputs": [[[1, 2]]], "outputs": [6]}), Reason.CORRECT),
        ("x = 1", json.dumps({"fn_name": "sum", "inputs": [[[1, 2]]], "outputs": [3]}), Reason.WRONG),
        ("def f(x): return math.floor(x)", json.dumps({"functional": "assert f(2.5) == 2", "prefix": "import math"}), Reason.CORRECT),
        ("x = 1\0", FUNCTIONAL, Reason.MALFORMED), ("x = 1\n" * 100_000, FUNCTIONAL, Reason.MALFORMED),
        ("x = '\ud800'", FUNCTIONAL, Reason.WRONG), ("def f(x):\n    import numpy_is_not_here", FUNCTIONAL, Reason.WRONG),
        *((SQUARE, json.dumps({"functional": tests}), Reason.ERROR)
          for tests in ("def broken(", "assert sum([1, 2]) == 3", f"import numpy_is_not_here\n{CHECK}check(f)")),
    ],
)  # fmt: skip
def test_verdicts(program: str, truth: str, reason: Reason) -> None:
    verdict = TASK.judge(fenced(program), truth)
    assert (verdict.reason, verdict.score) == (reason, float(reason is Reason.CORRECT))


@pytest.mark.parametrize(
    ("printed", "expected", "equal"),
    [
        ("a b\n", "a b", True), ("a  b", "a b", True), ("a\r\nb", "a\nb", True), ("a \nb", "a\nb", True),
        ("a\nb", "a b", False), ("a", "a b", False), ("A", "a", False), ("", "", True), ("", "a", False),
        ("YES", "yes", True), ("yes", "No", False), ("Maybe", "maybe", False),
        ("1.0000001", "1", True), ("0.30000000000000004", "0.3", True), ("1.00001", "1", False), ("1e3", "1000", True),
        ("3", "3.0", True), ("+3", "3", True), ("1_0", "10", False), ("nan", "NaN", False), ("inf", "Infinity", False),
        ("10000000000000001", "10000000000000000", False), ("9" * 5000, "9" * 4999 + "8", False), ("1e999", "2e999", False),
        ("a\n\nb", "a\nb", False), ("١", "1", False),
        ("4.0", "4", True), ("3.9999", "4", False), ("1e16", "10000000000000001", False), ("0", "1e-7", False),
        ("11", "0011", False), ("0011", "11", False), ("00", "0", False), ("0", "00", False), ("5.0", "05", False),
        ("0011", "0011", True), ("0.50", "0.5", True), (".5", "0.5", True), ("-0", "0", True), ("5.", "5", True),
        ("0.3333333", "0.33333333", True), ("1e99999999", "4", False), ("-0.0", "0.0", True),
    ],
)  # fmt: skip
def test_output_compared(printed: str, expected: str, equal: bool) -> None:
    assert same_output(printed, expected) is equal


def test_a_prefix_of_extra_info_stands_before_the_program() -> None:
    prefix = "import math\nfrom typing import *"
    response = fenced("def f(x: float) -> List[int]:\n    return math.floor(x)")
    struct: Any = {"functional": "assert f(2.5) == 2"}
    assert judge_response("codegen__leetcode2k", response, struct, extra_info={"prefix": prefix}).score == 1


def test_p05_a_failure_of_the_sandbox_is_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stopped(*_: object) -> None:
        raise sandbox.SandboxError("no process can be started")

    monkeypatch.setattr(task, "run_tests", stopped)
    verdict = TASK.judge(fenced(SQUARE), FUNCTIONAL)
    assert (verdict.reason, verdict.score) == (Reason.ERROR, 0.0)
    assert "no process can be started" in caplog.text


def test_p05_time_is_the_programs_fault_and_ends_before_the_pools_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sandbox.Limits().wall_s + sandbox.GRACE_S < 10
    short = sandbox.Limits(wall_s=0.5)
    monkeypatch.setattr(task, "run_tests", lambda *args: sandbox.run_tests(*args, limits=short))
    assert TASK.judge(fenced("def f(x):\n    while True: pass"), FUNCTIONAL).reason is Reason.WRONG


def test_the_first_wrong_case_ends_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = list[sandbox.Run]()

    def run_script(*arguments: Any) -> Any:
        for run in sandbox.run_script(*arguments):
            runs.append(run)
            yield run

    monkeypatch.setattr(task, "run_script", run_script)
    assert TASK.judge(fenced("print(0)"), STDIO).reason is Reason.WRONG
    assert [run.output for run in runs] == ["0\n"]


# ---- our own problems


@pytest.mark.parametrize("kind", TASK.kinds)
def test_p04_every_reference_passes_and_every_mutant_fails(kind: str) -> None:
    """A mutant leaves out one step, or changes its parameter by one."""
    options = CodeOptions(levels=(1, 3), kind=kind)
    for index in range(3):
        problem = TASK.problem(options, "test", 4, index)
        program = str(problem.metadata["program"])
        assert TASK.judge(TASK.gold(problem), problem.ground_truth).reason is Reason.CORRECT
        lines = program.splitlines()
        for place in [n for n, line in enumerate(lines) if line.startswith("    x = ")][:2]:
            mutant = "\n".join([*lines[:place], "    x = x", *lines[place + 1 :]])
            assert TASK.judge(fenced(mutant), problem.ground_truth).reason is Reason.WRONG, mutant


def test_every_operation_does_what_its_line_says() -> None:
    """The table's functions against its Python text, in the sandbox."""
    texts, lists = ("abcab", "hello", "zzq"), ([3, -5, 60, 3, 12, 0], [1], [-40, 90])
    seen = {
        name: ProgramChain(((one, (one.low + one.high) // 2),), lists if one in LISTS else texts)
        for name, one in ALL.items()
    }
    program = "\n".join(chain.function(name) for name, chain in seen.items())
    tests = "\n".join(
        f"assert {name}({value!r}) == {apply_all(chain.steps, value)!r}"
        for name, chain in seen.items()
        for value in (*chain.inputs, [] if chain.on_lists else "")
    )
    found = sandbox.run_tests(program, tests)
    assert found.end == "passed", found.text


def test_p03_every_step_matters() -> None:
    for index in range(30):
        level, chain = draw_chain("code", "train", 2, index, (2, 3, 4), lambda _: True)
        assert len(chain.steps) == level
        assert len(chain.inputs) == INPUTS
        for place in range(level):
            rest = chain.steps[:place] + chain.steps[place + 1 :]
            assert [apply_all(rest, value) for value in chain.inputs] != chain.outputs


def test_p03_no_two_splits_have_a_chain_that_does_the_same() -> None:
    rng = random.Random(1)
    lists = [rng.choices(range(-40, 91), k=rng.randint(5, 9)) for _ in range(100)]
    texts = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(5, 10))) for _ in range(100)]

    def does(split: str) -> set[str]:
        chains = (draw_chain("code", split, 1, index, (1, 2), lambda _: True)[1] for index in range(400))
        return {repr([apply_all(chain.steps, x) for x in (lists if chain.on_lists else texts)]) for chain in chains}

    assert not does("train") & does("test")
