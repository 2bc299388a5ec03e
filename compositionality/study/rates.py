"""Which learning rate tuning chooses: bash/section41_42/tune_lr.sh."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from compositionality.data.json_files import NUMBER, check_shape, read_json_object
from compositionality.errors import UserError

GROUP = "trained"
AGAIN = "run bash/section41_42/evaluate.sh again"


def mean_accuracy(paths: Sequence[str]) -> dict[float, float]:
    """Accuracy by rate, mean over files (seeds) and levels of trained functions; models are named by their rates.

    UserError for files that do not have the same rates and levels.
    """
    found: defaultdict[tuple[float, int], list[float]] = defaultdict(list)
    for path in paths:
        content = read_json_object(Path(path), AGAIN)
        check_shape(content, {"results": {"model": str, "by": str, "accuracy": NUMBER}}, path, AGAIN)
        for row in content["results"]:
            if row["by"] == "level" and row["group"] == GROUP:
                found[float(row["model"]), row["level"]].append(row["accuracy"])
    rates = sorted({rate for rate, _ in found})
    levels = {level for _, level in found}
    if not rates or any(len(found[rate, level]) != len(paths) for rate in rates for level in levels):
        raise UserError(f"{', '.join(paths)}: not the same rates and levels of group {GROUP} in each; {AGAIN}")
    return {rate: sum(sum(found[rate, level]) for level in levels) / len(levels) / len(paths) for rate in rates}


def choice(paths: Sequence[str]) -> str:
    """The accuracy of every rate, and the rate with the highest; of equal ones the lowest."""
    accuracy = mean_accuracy(paths)
    best = max(accuracy, key=lambda rate: (accuracy[rate], -rate))
    lines = [f"optim.lr={rate:g}: {100 * share:.1f} % right" for rate, share in accuracy.items()]
    return "\n".join([*lines, f"chosen: optim.lr={best:g}"])
