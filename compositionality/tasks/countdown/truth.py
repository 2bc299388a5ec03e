"""What a Countdown answer is judged by: the ground truth of our rows and of the formats of others."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from compositionality.errors import UserError
from compositionality.tasks.arithmetic import MAX_DIGITS
from compositionality.tasks.countdown.prompts import OPERATORS

MAX_NUMBERS = 16
STYLES = ("text", "compact")
USES = ("all", "any")


@dataclass(frozen=True, slots=True)
class Truth:
    """Target, numbers in ascending order, and the rules: style, use ("all" or "any" numbers), allowed operators."""

    target: int
    numbers: tuple[int, ...]
    style: str = "text"
    use: str = "all"
    operators: str = OPERATORS


@lru_cache(maxsize=4096)
def read_ground_truth(ground_truth: str) -> Truth:
    """From the JSON text of a row; UserError if it is damaged.

    Ours and TinyZero's hold ``target`` and ``numbers`` (columns of others ``nums``), the paper's ``answer`` and
    ``numbers``; an entry of reasoning-gym holds both under ``metadata``. A value of null is read as an absent one.
    """
    try:
        fields = json.loads(ground_truth)
    except (ValueError, RecursionError) as error:
        raise _damaged(ground_truth, "is no JSON text") from error
    fields = fields.get("metadata", fields) if isinstance(fields, dict) else None
    if not isinstance(fields, dict):
        raise _damaged(ground_truth, "is no object with target and numbers")
    given = {name: value for name, value in fields.items() if value is not None}
    target: Any = given.get("target", given.get("answer"))
    numbers: Any = given.get("numbers", given.get("nums"))
    rules = (given.get("style", STYLES[0]), given.get("use", USES[0]), given.get("operators", OPERATORS))
    problem = _target_problem(target) or _numbers_problem(numbers) or _rules_problem(*rules)
    if problem:
        raise _damaged(ground_truth, problem)
    return Truth(target, tuple(sorted(numbers)), *rules)


def _damaged(ground_truth: str, problem: str) -> UserError:
    return UserError(f"ground_truth {ground_truth[:80]!r} {problem}; make the problem file again")


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) < 10**MAX_DIGITS


def _target_problem(target: Any) -> str | None:
    if target is None:
        return "has no target"
    return None if _is_whole(target) else f"has a target that is no whole number of up to {MAX_DIGITS} digits"


def _numbers_problem(numbers: Any) -> str | None:
    if not isinstance(numbers, list):
        return "has no list of numbers"
    if not 1 <= len(numbers) <= MAX_NUMBERS:
        return f"has {len(numbers)} numbers; 1 to {MAX_NUMBERS} are judged"
    if not all(_is_whole(number) and number > 0 for number in numbers):
        return f"has numbers that are no positive whole numbers of up to {MAX_DIGITS} digits"
    return None


def _rules_problem(style: Any, use: Any, operators: Any) -> str | None:
    if style not in STYLES or use not in USES:
        return "must have the style text or compact and use all or any"
    if not isinstance(operators, str) or not operators or not set(operators) <= set(OPERATORS):
        return f"must have operators out of {OPERATORS}"
    return None
