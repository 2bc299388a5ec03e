"""Functions of compositionality.yaml. Needs `pip install 'lm-eval[hf]>=0.4.13'`, or `lm-eval[api]` for a server."""

from typing import Any

from compositionality.reward.judge import row_score


def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """The metrics of one problem."""
    return {"acc": row_score(doc, results[0])}
