"""One response to one verdict: the task's judge, the length limit and the failures of the judge itself."""

import logging
from typing import Any

from compositionality.tasks.registry import Judge, find_judge
from compositionality.tasks.truth import truth_text
from compositionality.types import LENGTH, STOP, Reason, Verdict

_LOG = logging.getLogger(__name__)


def judge_response(data_source: str, response: str, ground_truth: Any, finish_reason: str = STOP) -> Verdict:
    """The verdict on ``response``; ``finish_reason`` "length" makes it OVERLONG, whatever the text says.

    ``ground_truth`` is JSON text, or the struct of another library's row.
    A judge that fails gives an ERROR verdict; only an unknown ``data_source`` raises (UserError).
    """
    return judge_with(find_judge(data_source), response, ground_truth, finish_reason)


def judge_with(judge: Judge, response: str, ground_truth: Any, finish_reason: str = STOP) -> Verdict:
    """As ``judge_response``, with the judge given."""
    if finish_reason == LENGTH:
        return Verdict(0.0, Reason.OVERLONG)
    try:
        return judge(response, truth_text(ground_truth))
    except Exception as error:  # noqa: BLE001 - whatever a judge dies of is its own error, no wrong answer (P5)
        _LOG.warning("the judge failed: %s: %s", type(error).__name__, error)
        return Verdict(0.0, Reason.ERROR)
