"""The judge of logic puzzles: labelled answers, truths of others, limits."""

import json
from itertools import product
from typing import Any

import pytest

from compositionality.domains.logic.task import TASK
from compositionality.reward.judge import judge_response
from compositionality.types import Reason

HEADER = ["House", "Name", "Drink"]
ROWS = [["1", "Eric", "tea"], ["2", "Anna", "milk"]]
TRUTHS: dict[str, Any] = {
    "zebra": {"header": HEADER, "rows": ROWS},
    "ordering": ["bus", "car", "van"],
    "graph": "K",
    "arc": [[1, 2], [3, 0]],
}
SOURCES = {
    "zebra": "logic__zebra_puzzle_dataset",
    "ordering": "logic__ordering_puzzle_dataset",
    "graph": "logic__graph_logical_dataset",
    "arc": "simulation__arcagi1",
}
ONE_LINE = json.dumps(TRUTHS["zebra"])
RIGHT = {
    "zebra": [
        ONE_LINE,
        repr(TRUTHS["zebra"]),
        json.dumps(TRUTHS["zebra"], indent=1),
        json.dumps({"header": HEADER, "rows": [[1, "Eric", "tea"], [2, "Anna", "milk"]]}),
        json.dumps({"rows": ROWS}),
        ONE_LINE.lower(),
        f"```json\n{ONE_LINE}\n```",
        f"{{}}</answer> no: <answer>{ONE_LINE}",
        f"\n{ONE_LINE}\n",
    ],
    "ordering": [
        '["bus", "car", "van"]', "['bus', 'car', 'van']", "[bus, car, van]", '["Bus","CAR","van"]',
        '[\n"bus",\n"car",\n"van"\n]', '("bus", "car", "van")', '```\n["bus", "car", "van"]\n```',
    ],
    "graph": ["K", "k", " K ", "\nK\n", "J</answer> or rather <answer>K"],
    "arc": [
        "[[1, 2], [3, 0]]", "[[1,2],[3,0]]", "[[1, 2],\n [3, 0]]", "((1, 2), (3, 0))", "```\n[[1, 2], [3, 0]]\n```",
    ],
}  # fmt: skip
WRONG = {
    "zebra": [
        f"{ONE_LINE}</answer> no: <answer>{{}}",
        json.dumps({"header": HEADER, "rows": [["1", "Anna", "tea"], ["2", "Eric", "milk"]]}),
        json.dumps({"header": ["House", "Drink", "Name"], "rows": ROWS}),
        json.dumps({"header": HEADER, "rows": ROWS[:1]}),
        json.dumps({"header": HEADER, "rows": [[*row, "x"] for row in ROWS]}),
        json.dumps(ROWS),
        json.dumps({"header": HEADER, "rows": None}),
        "Eric drinks tea in house 1, Anna milk in house 2",
        f"dict(rows={ROWS})",
        f"{ONE_LINE} or {{}}",
        f"{TRUTHS['zebra']} # or {{}}",
    ],
    "ordering": [
        '["bus", "car", "van"] # or ["van", "car", "bus"]', '["bus", # or "van"\n"car", "van"]',
        '["van", "car", "bus"]', '["bus", "car"]', '["bus", "car", "van", "van"]', '[["bus", "car", "van"]]',
        'not "bus" before "car" before "van"', '{"bus": "car", "van"}', "buscarvan", '["bus, car, van"]',
        'sorted(["bus", "car", "van"])', "[bus, car, van", '{"a": "bus", "b": "car", "c": "van"}',
    ],
    "graph": ["J", "K or J", "node K", "K.", "KK", "", "K -> J", "'K'"],
    "arc": [
        "[[1, 3], [2, 0]]", "[[1, 2]]", "[[1, 2], [3, 0], [0, 0]]", "[[1, 2, -1], [3, 0, -1]]",
        "[[1, 2], [3, 0]] # or [[0, 0], [0, 0]]",
        "[[1, 2], [3, 0]] or [[0, 0], [0, 0]]", "[[1, 2], [3, 0]] is not it", '[["1", "2"], ["3", "0"]]',
        "[[True, 2], [3, 0]]", "[1, 2, 3, 0]", "1 2\n3 0",
    ],
}  # fmt: skip


def judged(kind: str, inside: str):
    return judge_response(SOURCES[kind], f"<think>…</think>\n<answer>{inside}</answer>", TRUTHS[kind])


@pytest.mark.parametrize(("kind", "inside"), [(kind, one) for kind, some in RIGHT.items() for one in some])
def test_p04_right_answers_score_one(kind, inside):
    verdict = judged(kind, inside)
    assert (verdict.score, verdict.reason) == (1, Reason.CORRECT)


@pytest.mark.parametrize(("kind", "inside"), [(kind, one) for kind, some in WRONG.items() for one in some])
def test_p04_wrong_answers_score_less(kind, inside):
    verdict = judged(kind, inside)
    assert verdict.reason in (Reason.WRONG, Reason.MALFORMED, Reason.NO_ANSWER)
    assert verdict.score < 1 if kind == "zebra" else verdict.score == 0


@pytest.mark.parametrize(
    ("rows", "score"),
    [
        ([["1", "Eric", "tea"], ["2", "Anna", "water"]], 3 / 4),
        ([["1", "Anna", "milk"], ["2", "Eric", "tea"]], 0),
        ([["1", "?", "?"], ["2", "?", "?"]], 0),
        ([["2", "Eric", "tea"], ["2", "Anna", "milk"]], 1 / 2),
        ([[None, True, 1.5], ["x", "y", "z"]], 0),
        ([["1", "Eric", "tea"]], 0),
    ],
)
def test_a_zebra_puzzle_is_scored_by_cells_and_correct_only_as_a_whole(rows, score):
    verdict = judged("zebra", json.dumps({"header": HEADER, "rows": rows}))
    assert (verdict.score, verdict.reason) == (pytest.approx(score), Reason.WRONG)


@pytest.mark.parametrize("name", ["node_7", "New York", "7", 7, "x-1"])
def test_a_node_may_have_a_longer_name(name):
    truth = TASK.row_truth(name, {})
    assert TASK.verdict(f"<answer>{name}</answer>", truth).reason is Reason.CORRECT
    assert TASK.verdict("<answer>K</answer>", truth).reason is Reason.WRONG


@pytest.mark.parametrize("kind", ["ordering", "graph", "zebra"])
def test_p04_another_sign_of_the_same_look_or_lower_case_is_another_name(kind):
    """Kelvin sign, Cyrillic, full width, with an invisible sign: each instead of a letter of the answer."""
    for gold in ("Kask", "task"):

        def written(name):
            rows = {"header": ["House", "name"], "rows": [["1", name]]}
            return name if kind == "graph" else json.dumps(rows if kind == "zebra" else [name, "b"], ensure_ascii=False)

        truth = written(gold)
        for old, new in (
            ("k", "\u212a"),
            ("a", "\u0430"),
            ("s", "\u017f"),
            ("s", "\uff53"),
            ("s", "s\u200b"),
            ("k", "q"),
        ):
            name = gold.replace(old, new)
            assert TASK.verdict(f"<answer>{written(name)}</answer>", truth).score == 0, name
        assert TASK.verdict(f"<answer>{written(gold.upper())}</answer>", truth).score == 1


def test_p04_an_object_that_gives_two_answers_gives_none():
    for first, form in product(([], ROWS), (json.dumps, repr)):
        key = form("rows")
        answer = f"{{{key}: {form(first)}, {key}: {form(ROWS)}}}"
        assert TASK.verdict(f"<answer>{answer}</answer>", json.dumps(TRUTHS["zebra"])).reason is Reason.MALFORMED
