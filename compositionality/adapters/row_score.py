"""Whether a response to a row of a problem file is right, as lm-eval and LightEval ask it. Neither is imported."""

from collections.abc import Mapping
from typing import Any

from compositionality.reward.judge import judge_response
from compositionality.types import Reason


def row_score(row: Mapping[str, Any], response: str) -> float:
    """Return 1.0 for a right response, else 0.0. RuntimeError, which ends the evaluation, where the judge failed."""
    truth = row["reward_model"]["ground_truth"]
    verdict = judge_response(row["data_source"], response, truth, extra_info=row.get("extra_info"))
    if verdict.reason is Reason.ERROR:
        raise RuntimeError(f"the judge of {row['data_source']} failed: {verdict.error}; the response is not wrong")
    return float(verdict.reason is Reason.CORRECT)
