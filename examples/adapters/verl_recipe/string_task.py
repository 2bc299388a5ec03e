"""The string task in verl: `python string_task.py FOLDER` makes its problem files, ``compute_score`` judges a response.

FOLDER gets train.parquet (compositions of two trained functions) and validation.parquet (one to four held-out ones).
"""

import sys
from pathlib import Path

from compositionality.reward.verl_reward import compute_score

__all__ = ["compute_score"]


def make_problems(folder: Path, count: int = 20000, per_level: int = 64) -> None:
    """Write both files in verl's RL schema; definitions hidden, no held-out composition in the training file."""
    from compositionality.data.create_problems import create_problems, settings_for

    train, validation = str(folder / "train.parquet"), str(folder / "validation.parquet")
    levels = [1, 2, 3, 4]
    create_problems(settings_for("string", output=train, split="train", levels=[2], count=count))
    held_out = settings_for(
        "string",
        output=validation,
        split="validation",
        functions="heldout",
        avoid=[train],
        levels=levels,
        count=per_level * len(levels),
    )
    create_problems(held_out)


if __name__ == "__main__":
    make_problems(Path(sys.argv[1]))
