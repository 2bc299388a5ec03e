"""Which judge answers for which ``data_source``."""

import re
from collections.abc import Callable

from compositionality.errors import UserError
from compositionality.tasks.countdown.judge import judge_countdown
from compositionality.tasks.countdown.truth import read_ground_truth as read_countdown_truth
from compositionality.tasks.string.judge import judge_string
from compositionality.tasks.string.judge import read_ground_truth as read_string_truth
from compositionality.types import Verdict

Judge = Callable[[str, str], Verdict]
ReadTruth = Callable[[str], object]

_STRING: tuple[Judge, ReadTruth] = (judge_string, read_string_truth)
_COUNTDOWN: tuple[Judge, ReadTruth] = (judge_countdown, read_countdown_truth)
_TASKS: tuple[tuple[str, tuple[Judge, ReadTruth]], ...] = (
    (r"codeio-forward-incomplete-depth\d+", _STRING),
    (r"string-[a-z_]+-level\d+", _STRING),
    (r"countdown-clean-level\d+", _COUNTDOWN),
    (r"reasoning-gym-countdown-depth\d+", _COUNTDOWN),
    (r"reasoning_gym/countdown", _COUNTDOWN),
    (r"countdown", _COUNTDOWN),
)
_COMPILED = tuple((re.compile(pattern), task) for pattern, task in _TASKS)


def known_data_sources() -> list[str]:
    """The patterns of ``data_source`` that have a judge."""
    return [pattern for pattern, _ in _TASKS]


def find_judge(data_source: str) -> Judge:
    """The judge for ``data_source``; UserError that lists the known ones if there is none."""
    return _find(data_source)[0]


def check_ground_truth(data_source: str, ground_truth: str) -> None:
    """UserError if the judge for ``data_source`` cannot read ``ground_truth``."""
    _find(data_source)[1](ground_truth)


def _find(data_source: str) -> tuple[Judge, ReadTruth]:
    for pattern, task in _COMPILED:
        if pattern.fullmatch(data_source):
            return task
    raise UserError(f"unknown data_source {data_source!r}; known: {', '.join(known_data_sources())}")


def judge(data_source: str, response: str, ground_truth: str) -> Verdict:
    """Judge ``response`` by the task that ``data_source`` names."""
    return find_judge(data_source)(response, ground_truth)
