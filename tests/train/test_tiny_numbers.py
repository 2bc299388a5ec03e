"""The Countdown part of the pretraining text."""

import json
import re
from collections import Counter
from random import Random

import pytest

from compositionality.tasks.registry import task_of
from compositionality.train.tiny.numbers import NumberText
from compositionality.types import Reason

LARGEST = 60
TEXT = NumberText(LARGEST, 0.2, 0.4, 4)
STEP = re.compile(r"(\d+)([-+*/^_])(\d+)=(\d+)")
RULES = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": max,
    "_": min,
}
OWN = re.compile(r"[-+*/]+:\d+(\|\d+)+>\d+")
OTHER = re.compile(r"([-+*/^_]*[\^_][-+*/^_]*):([\d|]+)>(\d+)")


Pairs = list[tuple[str, str]]


@pytest.fixture(scope="module")
def exchanges() -> Pairs:
    rng = Random(0)
    return [TEXT.exchange(rng) for _ in range(3000)]


def test_every_calculation_is_right_and_within_bounds(exchanges: Pairs) -> None:
    steps = [step for _, response in exchanges for step in STEP.findall(response)]
    assert {step[1] for step in steps} == set(RULES)
    for a, operator, b, c in steps:
        assert RULES[operator](int(a), int(b)) == int(c)
        assert max(map(int, (a, b, c))) <= LARGEST
        assert min(map(int, (a, b, c))) >= 1


def test_the_game_is_shown_with_two_numbers_only_and_answers_are_right_for_the_judge(exchanges: Pairs) -> None:
    played = [pair for pair in exchanges if OWN.fullmatch(pair[0])]
    assert len(played) > 500
    for prompt, response in played:
        numbers, target = prompt.partition(":")[2].split(">")
        truth = {"target": int(target), "numbers": [int(n) for n in numbers.split("|")], "style": "compact"}
        assert len(truth["numbers"]) == 2  # type: ignore[arg-type]
        reason = task_of("countdown-clean-level2").verdict(response, json.dumps(truth)).reason
        assert reason is Reason.CORRECT, (prompt, response)


def test_other_games_use_the_operators_they_name_and_every_number(exchanges: Pairs) -> None:
    played = [pair for pair in exchanges if OTHER.fullmatch(pair[0])]
    assert {prompt.count("|") for prompt, _ in played} == {1, 2, 3, 4}
    for prompt, response in played:
        allowed, numbers, target = OTHER.fullmatch(prompt).groups()  # type: ignore[union-attr]
        there = Counter(map(int, numbers.split("|")))
        for a, operator, b, c in STEP.findall(response):
            assert operator in allowed
            there.subtract([int(a), int(b)])
            assert min(there.values()) >= 0
            there[int(c)] += 1
        assert +there == Counter([int(target)])


def test_sums_are_worked_out_step_by_step_to_what_they_come_to(exchanges: Pairs) -> None:
    for prompt, response in exchanges:
        if ">" in prompt:
            continue
        first, *rest = re.findall(r"\d+", prompt)
        value = float(first)
        for operator, number in zip(re.findall(r"[-+*/^_]", prompt), rest, strict=True):
            value = RULES[operator](value, int(number))
        assert value == int(response.rpartition("=")[2])
        assert len(response.splitlines()) == len(rest)


def test_echoes_hold_up_to_five_numbers(exchanges: Pairs) -> None:
    echoes = [(prompt, response) for prompt, response in exchanges if prompt.startswith('"')]
    assert all(prompt == f'"{response}' for prompt, response in echoes)
    assert {response.count("|") for _, response in echoes} == {1, 2, 3, 4}
