r"""Judging a completion: its final answer, and where the row asks for it the chain of the whole response.

*text*: the number in the last closed ``\boxed{…}`` or ``<answer>…</answer>``. *compact*: the number behind the last
``=`` of the last line, which must be about the quantity in question. A number is written in plain digits, perhaps with
a minus in front.
"""

import re

from compositionality.tasks.answers import CLOSE, OPEN, last_between
from compositionality.tasks.igsm.process import ChainFault, check_chain
from compositionality.tasks.igsm.truth import IgsmTruth, read_ground_truth
from compositionality.types import Reason, Verdict

MAX_LENGTH = 64_000
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})", re.ASCII)
_REASONS = {
    ChainFault.UNREADABLE: Reason.MALFORMED,
    ChainFault.ARITHMETIC: Reason.WRONG_VALUE,
    ChainFault.DEPENDENCIES: Reason.WRONG_NUMBERS,
    ChainFault.UNFINISHED: Reason.WRONG,
}


def judge_igsm(response: str, ground_truth: str) -> Verdict:
    """Judge a response; never raises on what a model wrote, linear in its length."""
    truth = read_ground_truth(ground_truth)
    answer = compact_answer(response, truth) if truth.style == "compact" else boxed_answer(response)
    if answer is None:
        return Verdict(0.0, Reason.NO_ANSWER)
    if not _NUMBER.fullmatch(answer):
        return Verdict(0.0, Reason.MALFORMED, answer[:100])
    if int(answer) != truth.answer or answer == "-0":
        return Verdict(0.0, Reason.WRONG, answer)
    return Verdict(1.0, Reason.CORRECT, answer)


def judge_chain(response: str, ground_truth: str, verdict: Verdict) -> Verdict:
    """The verdict on a right answer once the chain is read too, where the row asks for it."""
    truth = read_ground_truth(ground_truth)
    if truth.problem is None:
        return verdict
    if len(response) > MAX_LENGTH:
        return Verdict(0.0, Reason.MALFORMED, verdict.answer)
    fault = check_chain(response, truth.problem, truth.names).fault
    return Verdict(0.0, _REASONS.get(fault, Reason.ILLEGAL), verdict.answer) if fault else verdict


def compact_answer(response: str, truth: IgsmTruth) -> str | None:
    """What stands behind the last ``=`` of the last line; None if that is not about the question."""
    line = response.rpartition("\n")[2]
    return line.rpartition("=")[2] if line.startswith(f"{truth.asked}=") else None


def boxed_answer(response: str) -> str | None:
    """Return what the last box or answer tag that is closed holds; None if there is none, or nothing in it."""
    _, answer = max(last_between(response, "\\boxed{", "}"), last_between(response, OPEN, CLOSE))
    return answer.strip(" \n") or None
