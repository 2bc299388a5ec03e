"""A user's reward function that judges instead of the tasks: ``FILE.py[:NAME]``, with verl's signature.

    def compute_score(data_source, solution_str, ground_truth, extra_info): ...

It gets the whole response and returns a number, or verl's dictionary: ``score``; optionally ``acc``; a text ``pred``,
the answer it read; further numbers, which are metrics. A response is right if ``acc``, or without it the score, is 1 or
more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.ranges import NoEffect

NAME = "compute_score"
INPUT = "reward.function:"


@dataclass
class FunctionSettings:
    """The reward function that judges instead of the tasks."""

    function: NoEffect[str | None] = None  # FILE.py[:NAME] of verl's compute_score, for any source; null: the task's

    def check(self) -> None:
        """Raise UserError for a function that a judging process cannot load."""
        if self.function:
            from compositionality.reward.pool import JudgePool

            JudgePool(function=self.function).close()

    def inputs(self) -> dict[str, Path]:
        """Return the file as an input of a result; the input's name includes the function's name."""
        path, name = place_of(self.function) if self.function else (None, "")
        return {INPUT + name: path} if path else {}

    def rule(self) -> str | None:
        """Return which answers are right, for tables; None if the tasks' judges decide."""
        if not self.function:
            return None
        path, name = place_of(self.function)
        return f"correct: acc of {path.name}:{name}, without it a score of 1 or more"


def function_of(verls: Mapping[str, Any], function: str | None) -> str:
    """Return ``FILE.py:NAME`` for verl's section ``custom_reward_function``. UserError for other keys or no path."""
    if function or not verls.get("path") or set(verls) - {"path", "name"}:
        raise UserError("reward.custom_reward_function: takes path and name; here: reward.function=FILE.py[:NAME]")
    return f"{verls['path']}:{verls.get('name') or NAME}"


def place_of(word: str) -> tuple[Path, str]:
    """Return file and name of ``FILE.py[:NAME]``. UserError for another form, and for a missing file."""
    path, colon, name = word.rpartition(":")
    path, name = (path, name) if colon and path.endswith(".py") else (word, NAME)
    if not path.endswith(".py") or not name.isidentifier():
        raise UserError(f"reward.function={word}: give FILE.py or FILE.py:NAME")
    if not Path(path).is_file():
        raise UserError(f"reward.function={word}: {path} does not exist; correct the path")
    return Path(path).absolute(), name
