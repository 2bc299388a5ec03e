"""A reward function of the user's own, which judges in place of the tasks: ``FILE.py[:NAME]``, in verl's signature.

    def compute_score(data_source, solution_str, ground_truth, extra_info): ...

It gets the whole response and returns a number, or verl's dictionary: ``score``; ``acc``, if it is given; a text
``pred``, the answer that was read; further numbers, which are metrics. A response is right if ``acc``, or without it
the score, is 1 or more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.errors import UserError

NAME = "compute_score"
INPUT = "reward.function:"


@dataclass
class FunctionSettings:
    """Which function judges in place of the tasks."""

    function: str | None = None  # FILE.py[:NAME] of verl's compute_score, for any data source; null: the task's judge

    def check(self) -> None:
        """Raise UserError for a function that a judging process cannot load."""
        if self.function:
            from compositionality.reward.pool import JudgePool

            JudgePool(function=self.function).close()

    def inputs(self) -> dict[str, Path]:
        """Return the file that a result is made of; the name of the input names the function in it."""
        path, name = place_of(self.function) if self.function else (None, "")
        return {INPUT + name: path} if path else {}

    def rule(self) -> str | None:
        """Return which answers are right, for tables; None where the tasks' judges say so."""
        if not self.function:
            return None
        path, name = place_of(self.function)
        return f"correct: acc of {path.name}:{name}, without it a score of 1 or more"


def function_of(verls: Mapping[str, Any], function: str | None) -> str:
    """Return ``FILE.py:NAME`` of verl's section ``custom_reward_function``. UserError if it says more or less."""
    if function or not verls.get("path") or set(verls) - {"path", "name"}:
        raise UserError("reward.custom_reward_function: takes path and name; here: reward.function=FILE.py[:NAME]")
    return f"{verls['path']}:{verls.get('name') or NAME}"


def place_of(word: str) -> tuple[Path, str]:
    """Return file and name of ``FILE.py[:NAME]``. UserError for another word, and for a file that is not there."""
    path, colon, name = word.rpartition(":")
    path, name = (path, name) if colon and path.endswith(".py") else (word, NAME)
    if not path.endswith(".py") or not name.isidentifier():
        raise UserError(f"reward.function={word}: give FILE.py or FILE.py:NAME")
    if not Path(path).is_file():
        raise UserError(f"reward.function={word}: there is no file {path}; correct the path")
    return Path(path).absolute(), name
