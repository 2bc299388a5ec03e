"""Which judge a ``data_source`` leads to: every known pattern with a right and a wrong answer, nothing else known."""

import json
from typing import Any

import pytest

from compositionality.errors import UserError
from compositionality.reward.judge import judge_response
from compositionality.tasks.registry import task_of
from compositionality.types import Reason

BOX = ("\\boxed{5}", "\\boxed{6}")
ADD = "```python\nimport sys\na, b = map(int, sys.stdin.read().split())\nprint(a {} b)\n```"
PROGRAM = (ADD.format("+"), ADD.format("-"))
TESTS = json.dumps({"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]})
ZEBRA = {"header": ["House", "Name"], "rows": [["1", "Ann"], ["2", "Bob"]]}
ZEBRA_ANSWERS = tuple(
    f"<answer>{json.dumps({**ZEBRA, 'rows': rows})}</answer>" for rows in (ZEBRA["rows"], [["1", "Bob"]])
)
GRID = ("<answer>[[1, 0], [0, 1]]</answer>", "<answer>[[1, 0], [0, 0]]</answer>")
ORDER = ("<answer>['ann', 'bob']</answer>", "<answer>['bob', 'ann']</answer>")
OUTPUT = ('{"output": [1, 2]}', '{"output": [2, 1]}')
LETTER = ("\\boxed{B}", "\\boxed{C}")
CELL = ("\\boxed{12 | blue}", "\\boxed{12 | red}")

TABLE: list[tuple[str, str, Any, tuple[str, str]]] = [
    ("math__merged_deduped_dapo_or1_dataset", "math", "5", BOX),
    ("math__deepscaler_preview", "math", "5", BOX),
    ("math_dapo", "math", "5", ("so\nAnswer: 5", "so\nAnswer: 6")),
    ("openai/gsm8k", "math", "3 + 2 = 5\n#### 5", ("so\n#### 5", "so\n#### 6")),
    ("lighteval/MATH", "math", "5", BOX),
    ("DigitalLearningGmbH/MATH-lighteval", "math", "5", BOX),
    ("HuggingFaceH4/MATH-500", "math", "5", BOX),
    ("aime2024", "math", 5, BOX),
    ("aimeamc2023", "math", "5.0", BOX),
    ("numina_olympiads", "math", "5", BOX),
    ("hiyouga/geometry3k", "math", "5", BOX),
    ("codegen__leetcode2k", "code", json.dumps({"functional": "def check(f):\n    assert f(1) == 2\n\ncheck(g)"}),
     ("```python\ndef g(x):\n    return x + 1\n```", "```python\nimport sys\nsys.exit(0)\n```")),
    ("codegen__taco", "code", TESTS, PROGRAM),
    ("codegen__livecodebench", "code", TESTS, PROGRAM),
    ("codecontests", "code", TESTS, PROGRAM),
    ("apps", "code", TESTS, PROGRAM),
    ("codeforces", "code", TESTS, PROGRAM),
    ("taco", "code", TESTS, PROGRAM),
    ("simulation__codeio", "simulation", {"output": [1, 2]}, OUTPUT),
    ("simulation__arcagi1", "logic", [[1, 0], [0, 1]], GRID),
    ("simulation__barc", "logic", [[1, 0], [0, 1]], GRID),
    ("logic__arcagi2", "logic", [[1, 0], [0, 1]], GRID),
    ("logic__barc", "logic", [[1, 0], [0, 1]], GRID),
    ("logic__zebra_puzzle_dataset", "logic", ZEBRA, ZEBRA_ANSWERS),
    ("zebra_puzzle_dataset", "logic", ZEBRA, ZEBRA_ANSWERS),
    ("ordering_puzzle_dataset", "logic", ["ann", "bob"], ORDER),
    ("graph_logical_dataset", "logic", "abc", ("<answer>ABC</answer>", "<answer>abd</answer>")),
    ("logic__ordering_puzzle_dataset", "logic", ["ann", "bob"], ORDER),
    ("logic__graph_logical_dataset", "logic", "abc", ("<answer>ABC</answer>", "<answer>abd</answer>")),
    ("table__hitab", "table", "12|blue", CELL),
    ("table__multihier", "table", "12|blue", CELL),
    ("stem__supergpqa", "stem", "B", LETTER),
    ("stem__gpqa", "stem", "B", LETTER),
    ("stem__gpqa_no_box", "stem", "B", ("Answer: B", "Answer: C")),
    ("stem_web", "stem", "potassium", ("\\boxed{potassium}", "no box")),
    ("countdown", "countdown", {"numbers": [3, 4], "target": 7}, ("<answer>3+4</answer>", "<answer>3*4</answer>")),
]  # fmt: skip
"""A data source, its task, a ground truth as files hold it, a right and a wrong response."""


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_a_data_source_leads_to_its_judge(row: tuple[str, str, Any, tuple[str, str]]) -> None:
    data_source, task, truth, (right, wrong) = row
    assert task_of(data_source).name == task
    info = {"question": "Which?", "split": "train"}
    verdicts = [judge_response(data_source, text, truth, extra_info=info) for text in (right, wrong)]
    assert verdicts[0].reason is Reason.CORRECT
    assert verdicts[1].reason in (Reason.WRONG, Reason.NO_ANSWER, Reason.WRONG_VALUE)
    assert verdicts[1].score < 1


OTHER_NAMES = {
    "simulation": ("simulation__cruxeval-i", "simulation__cruxeval"),
    "stem": ("stem__gpqa_diamond", "stem__gpqa_diamond_no_box", "stem__web_3.6k"),
    "countdown": ("countdown-clean-level3", "reasoning-gym-countdown-depth3", "reasoning_gym/countdown"),
    "reasoning_gym": ("reasoning_gym/leg_counting",),
}


@pytest.mark.parametrize(("task", "name"), [(task, name) for task, names in OTHER_NAMES.items() for name in names])
def test_a_data_source_belongs_to_its_task(task: str, name: str) -> None:
    assert task_of(name).name == task


@pytest.mark.parametrize(
    "name", ["ood__ifeval", "searchR1_nq", "my/data", "", "codegen", "logic__sudoku", "xmath", "xcountdown"]
)
def test_an_unknown_data_source_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(
        UserError, match=r"unknown data_source .*; known: .*string-.*math.*codegen__.*by an entry point"
    ):
        task_of(name)
