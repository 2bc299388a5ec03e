"""What holds of the judges of all domains: truths of others in every form, answers that are none, hostile ones."""

import json
import time
from string import ascii_letters
from typing import Any

import numpy as np
import pytest

from compositionality.domains.code.task import CodeTruth
from compositionality.domains.simulation.task import SimulationTruth
from compositionality.domains.stem.judge import LETTERS
from compositionality.errors import UserError
from compositionality.tasks import find_task
from compositionality.tasks.answers import last_box
from compositionality.tasks.registry import task_of
from compositionality.types import Reason

HEADER = ["House", "Name", "Drink"]
ROWS = [["1", "Eric", "tea"], ["2", "Anna", "milk"]]
ZEBRA = {"header": HEADER, "rows": ROWS}
ARRAYS = {"header": np.array(HEADER), "rows": np.array([np.array(row, dtype=object) for row in ROWS], dtype=object)}
QUESTION = "How fast does a stone fall after 2 s?"
FREE = {"question": QUESTION, "answer": "19.6 m/s"}
PROGRAM = "def f(x):\n    return x + 1"
ASKED = {"original_prompt": f"{PROGRAM}\nassert f(16) == ??\n"}, {"original_prompt": f"{PROGRAM}\nassert f(??) == 17\n"}
PREFIX = "import math\nfrom typing import *"
TESTS = "assert f(2.5) == 2"


def logic(kind: str, value: Any, *texts: Any) -> list[tuple[Any, ...]]:
    return [("logic", text, {}, (kind, value, tuple(HEADER) if kind == "zebra" else None)) for text in texts]


READ = [
    *logic("zebra", tuple(map(tuple, ROWS)), ZEBRA, json.dumps(ZEBRA), repr(ZEBRA), ARRAYS),
    *logic("ordering", ("bus", "car"), ["bus", "car"], '["bus", "car"]', "['bus', 'car']", np.array(["bus", "car"])),
    *logic("graph", "K", "K", '"K"', "'K'", np.str_("K")),
    *logic(
        "arc", ((1, 2), (3, 0)), [[1, 2], [3, 0]], "[[1, 2], [3, 0]]", [[1.0, 2.0], [3.0, 0.0]],
        np.array([[1, 2], [3, 0]]), np.array([np.array([1, 2]), np.array([3, 0])]),
    ),
    *(("stem", letter, {}, ("C", 10)) for letter in ("C", "(C)", "c")),
    ("stem", "C", {"options": ["a", "b", "c", "d"]}, ("C", 4)),
    ("stem", "C", {"question": "?", "choices": ["a", "b"]}, ("C", 10)),
    ("stem", "C", {"question": "Which?", "answer_type": None}, ("C", 10)),
    ("stem", "C", {"question": "Element?", "answer_type": "String"}, ("Element?", "C", "", False)),
    *(("stem", text, {"question": QUESTION}, (QUESTION, str(text), "", False))
      for text in ("19.6 m/s", 19.6, "12", '{"x": 1}', np.float64(19.6))),
    ("stem", FREE, {}, (QUESTION, "19.6 m/s", "", False)),
    *(("table", text, {}, ("a", "b")) for text in ("a|b", "a | b", ["a", "b"])),
    *(("table", text, {}, ("12",)) for text in ("12", 12)),
    ("table", 1.5, {}, ("1.5",)), ("table", '["a", 2]', {}, ("a", "2")), ("table", "['a', 2]", {}, ("a", "2")),
    ("table", "(1, 2)", {}, ("(1, 2)",)), ("table", np.array(["a"]), {}, ("a",)),
    ("table", np.float64(2.5), {}, ("2.5",)), ("table", {"answers": ["a"]}, {}, ("a",)),
    ("table", "{broken", {}, ("{broken",)),
    ("simulation", '"output": {"a": 1}', {}, SimulationTruth("output", {"a": 1})),
    ("simulation", '"input": {"n": "[97]"}', {}, SimulationTruth("input", {"n": "[97]"})),
    ("simulation", {"output": [1, 2]}, {}, SimulationTruth("output", [1, 2])),
    ("simulation", '{"output": 3}', {}, SimulationTruth("output", 3)),
    ("simulation", {"functional": PROGRAM}, ASKED[0], SimulationTruth("assertion", program=PROGRAM, call="f(16)")),
    ("simulation", {"functional": PROGRAM}, ASKED[1], SimulationTruth("assertion", program=PROGRAM, result="17")),
    ("code", json.dumps({"functional": TESTS}), {"prefix": PREFIX}, CodeTruth(TESTS, prefix=PREFIX)),
    ("code", {"functional": f"{PREFIX}\n{TESTS}"}, {"prefix": PREFIX}, CodeTruth(f"{PREFIX}\n{TESTS}")),
    ("code", {"inputs": ["1"], "outputs": ["2"]}, {"prefix": PREFIX}, CodeTruth(inputs=("1",), outputs=("2",))),
    ("math", "so 3*4=12 #### 12", {}, ["12"]), ("math", 34, {}, ["34"]), ("math", ["a", "b"], {}, ["a", "b"]),
    *(("math", one, {}, ["34", "0.5"]) for one in ([34, 0.5], np.array(["34", "0.5"]), ["so #### 34", "\\boxed{0.5}"])),
    ("math", np.int64(34), {}, ["34"]), ("math", np.array([34]), {}, ["34"]), ("math", "[34]", {}, ["[34]"]),
    ("math", "So it is \\boxed{\\frac{1}{2}}.", {}, ["\\frac{1}{2}"]),
]  # fmt: skip
"""Task, ground truth and extra_info of a row, and what the judge reads out of it."""
NO_TRUTHS = {
    "logic": [
        None, np.nan, 5.5, True, [], {}, "", "{broken", [[]], [[1.5]], {"rows": [[None]]}, "a, b", b"K", 1j,
    ],
    "stem": [None, "", float("nan"), ["C"], True],
    "table": [None, "", "a|", np.nan, [], [None], {"x": 1}, "x" * 3000, True, 1j],
    "simulation": [
        "{broken", "3", "[]", "{}", '{"functional": 3}', json.dumps({"functional": PROGRAM}), '"text"',
    ],
    "code": [
        "{}", "[]", "1", "", '{"inputs": ["1"]}', '{"inputs": [], "outputs": []}', '{"inputs": ["1"], "outputs": []}',
        '{"fn_name": "a b", "inputs": [[1]], "outputs": [1]}', '{"fn_name": "f", "inputs": ["x"], "outputs": ["1"]}',
        '{"functional": 3}', '{"solution_file": "def f(): pass"}',
    ],
    "math": [
        "", " ", "{", "\\frac{1}{2", "1" * 500, '["a", 3', None, True, float("nan"), float("-inf"), [], [[1]], [None],
        np.array([]), [True],
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value", "info", "read"), READ)
def test_truths_of_others_are_read_in_every_form(name: str, value: Any, info: dict[str, Any], read: Any) -> None:
    task = find_task(name)
    truth = task.row_truth(value, info)
    assert task.parse_truth(truth) == read
    assert task.row_truth(truth, info) == task.row_truth(truth, {}) == truth


@pytest.mark.parametrize(
    ("name", "value", "info"),
    [
        *((name, value, {"question": "?"}) for name, values in NO_TRUTHS.items() for value in values),
        *(("stem", "19.6", info) for info in ({}, {"question": " "})),
    ],
)
def test_p05_a_truth_that_cannot_be_read_is_refused(name: str, value: Any, info: dict[str, str]) -> None:
    task = find_task(name)
    with pytest.raises(UserError, match="ground_truth"):
        task.parse_truth(task.row_truth(value, info))


CHOICE, NUMBER = json.dumps({"letter": "C", "options": 10}), '{"answers": ["12"]}'
NO_ANSWERS = {
    ("logic__graph", '"K"'): (
        "K", "<answer>K", "K</answer>", "\\boxed{K}", "<Answer>K</Answer>", "</answer><answer>",
    ),
    ("table", NUMBER): ("12", "<answer>12</answer>", "\\boxed{}", "\\boxed{12", "\\boxed 12", "Answer: 12"),
    ("stem__gpqa", CHOICE): ("", "C", "\\boxed{}", "\\boxed{C", "C) 5 m\nis the answer"),
    ("stem_web", json.dumps(FREE)): (
        "", "19.6 m/s", "\\boxed{}", "\\boxed{19.6 m/s", "<answer>19.6 m/s</answer>",
    ),
    ("codegen__x", '{"functional": "assert f(2) == 4"}'): ("", "def f(x): return x * x", "```python\n\n```"),
    ("simulation__codeio", '{"output": 3}'): ("3", "output: 3", ""),
    ("simulation__cruxeval", json.dumps({"functional": PROGRAM, "call": "f(16)"})): ("assert f(16) == 17", "", "`f`"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "truth"), NO_ANSWERS)
def test_an_answer_needs_its_tag_box_or_block(source: str, truth: str) -> None:
    for text in NO_ANSWERS[source, truth]:
        assert task_of(source).verdict(text, truth).reason is Reason.NO_ANSWER, text


NESTED = {
    "\\boxed{\\boxed{R}}": 1, "\\boxed{ \\fbox{\\boxed{R}} }": 1, "\\boxed{\\boxed{R}": 1, "\\boxed{W} \\boxed{R}": 1,
    "\\boxed{W\\boxed{R}}": 0, "\\boxed{\\boxed{R}W}": 0, "\\boxed{\\boxed{W}\\boxed{R}}": 0,
    "\\boxed{\\fbox{W, \\boxed{R}}}": 0,
}  # fmt: skip
"""Boxes of a right and a wrong answer, and their scores."""


@pytest.mark.parametrize("form", NESTED)
def test_p04_a_box_in_a_box_counts_if_that_holds_nothing_else(form: str) -> None:
    for source, truth, right, wrong in (
        ("stem__gpqa", CHOICE, "C", "D"), ("table", NUMBER, "12", "13"), ("math__x", "12", "12", "13"),
    ):  # fmt: skip
        assert task_of(source).verdict(form.replace("R", right).replace("W", wrong), truth).score == NESTED[form], (
            source
        )


def test_p04_boxes_beside_boxes_in_boxes_take_linear_time() -> None:
    levels = 150_000
    started = time.process_time()
    assert (last_box("\\boxed{" * levels + "x" + "\\boxed{y}}" * levels) or "").startswith("\\boxed{")
    assert time.process_time() - started < 5


LOOK_ALIKES = [chr(code) for code in range(128, 0x3000) if {chr(code).casefold(), chr(code).upper()} & {*ascii_letters}]
"""Letters that case alone makes one of ASCII: the Kelvin sign, the long s, the dotless i."""


def test_p04_a_letter_that_looks_like_another_is_another() -> None:
    assert len(LOOK_ALIKES) >= 3
    for sign in LOOK_ALIKES:
        letter = ({sign.casefold(), sign.upper()} & {*ascii_letters}).pop()
        if letter.upper() in LETTERS:
            choice = json.dumps({"letter": letter.upper(), "options": 10})
            assert task_of("stem__gpqa").verdict(f"\\boxed{{{sign}}}", choice).score == 0, sign
        names = json.dumps({"answers": [f"{letter}nn"]})
        assert task_of("table").verdict(f"\\boxed{{{sign}nn}}", names).score == 0, sign
        assert task_of("table").verdict(f"\\boxed{{{letter.swapcase()}nn}}", names).score == 1
        assert task_of("logic__graph").verdict(f"<answer>{sign}nn</answer>", f'"{letter}nn"').score == 0, sign


HOSTILE = (
    "\\boxed{" * 150_000, "\\boxed{" + "{" * 1_000_000, "\\boxed{" + "\\text{" * 150_000 + "}" * 150_001,
    "\\boxed{" + "C" * 1_000_000 + "}", "Answer: " + " " * 1_000_000 + "x", "**" * 500_000,
    "\\boxed{" + "9" * 1_000_000 + "}", "\\boxed{" + "|" * 1999 + "}", "\\boxed{a}" * 100_000,
    "\\boxed" + " " * 1_000_000, "\\boxed{1e999}", "\\boxed{" + ",1" * 900 + "}",
    *(f"<answer>{inside}</answer>" for inside in (
        "[" * 1_000_000, "-" * 20_000, "9" * 19_000, "1+" * 9_000 + "1", "<answer>" * 100_000, '{"rows": ' * 2000,
        "[[" + "9" * 15_000 + "]]", "\x00", "\ud800", "{[1]: 2}", "__import__('os').getpid()", "not " * 5000 + "1",
        "```\n" + "\n" * 200_000 + "x", '{"rows": [[' + "1" * 10_000 + "]]}",
    )),
)  # fmt: skip


@pytest.mark.parametrize(
    ("source", "truth"),
    [
        ("stem__gpqa", CHOICE), ("stem_web", json.dumps(FREE)), ("table", NUMBER), ("logic__graph", '"K"'),
        ("logic__zebra_puzzle", json.dumps(ZEBRA)), ("logic__ordering_puzzle", '["bus", "car"]'),
        ("logic__arcagi", "[[1, 2], [3, 0]]"),
    ],
)  # fmt: skip
def test_p04_hostile_answers_are_cheap(source: str, truth: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEM_JUDGE_URL", raising=False)
    started = time.process_time()
    for text in HOSTILE:
        verdict = task_of(source).verdict(text, truth)
        assert verdict.score == 0, text[:40]
        assert verdict.reason is not Reason.ERROR or source == "stem_web", text[:40]  # its model is not there
    assert time.process_time() - started < 10
