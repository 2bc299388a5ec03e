"""Ground truths of foreign rows, brought to the text that judges read."""

import json
from typing import Any

from compositionality.errors import UserError


def truth_text(ground_truth: Any) -> str:
    """``ground_truth`` as JSON text: itself if it is text already, else the struct that other libraries write.

    numpy's arrays and numbers inside it count as lists and numbers. UserError for anything else.
    """
    if isinstance(ground_truth, str):
        return ground_truth
    try:
        return json.dumps(ground_truth, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"ground_truth of type {type(ground_truth).__name__}: give JSON text or a struct") from error


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")
