"""Which judge answers for which ``data_source``."""

import re
from collections.abc import Callable

from compositionality.errors import UserError
from compositionality.tasks.base import Verdict
from compositionality.tasks.string.judge import judge_string

Judge = Callable[[str, str], Verdict]

_JUDGES: tuple[tuple[str, Judge], ...] = (
    (r"codeio-forward-incomplete-depth\d+", judge_string),
    (r"string-[a-z_]+-level\d+", judge_string),
)
_COMPILED = tuple((re.compile(pattern), judge) for pattern, judge in _JUDGES)


def known_data_sources() -> list[str]:
    """The patterns of ``data_source`` that have a judge."""
    return [pattern for pattern, _ in _JUDGES]


def find_judge(data_source: str) -> Judge:
    """The judge for ``data_source``; UserError that lists the known ones if there is none."""
    for pattern, judge_response in _COMPILED:
        if pattern.fullmatch(data_source):
            return judge_response
    raise UserError(f"unknown data_source {data_source!r}; known: {', '.join(known_data_sources())}")


def judge(data_source: str, response: str, ground_truth: str) -> Verdict:
    """Judge ``response`` by the task that ``data_source`` names."""
    return find_judge(data_source)(response, ground_truth)
