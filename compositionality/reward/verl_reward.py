"""The reward function in verl's form (``reward.custom_reward_function``)."""

from typing import Any

from compositionality.reward.judge import judge_response
from compositionality.reward.shapes import Shape, reward
from compositionality.types import STOP, Reason, Verdict


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: dict[str, Any] | None = None,
    shape: str = Shape.BINARY,
    finish_reason: str = STOP,
    **_: Any,
) -> dict[str, float]:
    """Return ``score`` (the reward), ``acc`` (1 if correct) and an indicator per other reason, each a metric.

    A failed judge gives score 0 and ``error`` 1, as verl needs a number; the reward manager counts errors (P5).
    """
    return score_dict(judge_response(data_source, solution_str, ground_truth, finish_reason, extra_info), shape)


def score_dict(verdict: Verdict, shape: str = Shape.BINARY) -> dict[str, float]:
    """Return a verdict as verl's dictionary of numbers, always with the same keys, and a reward function's metrics."""
    indicators = {reason.value: float(verdict.reason is reason) for reason in Reason if reason is not Reason.CORRECT}
    score = reward(verdict, shape) or 0.0
    return {**verdict.metrics, "score": score, "acc": float(verdict.reason is Reason.CORRECT), **indicators}
