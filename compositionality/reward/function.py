"""A reward function of the user's own, which judges in place of the tasks: ``FILE.py[:NAME]``, in verl's signature.

    def compute_score(data_source, solution_str, ground_truth, extra_info): ...

It gets the whole response and returns a number, or verl's dictionary: ``score``; ``acc``, if it is given; a text
``pred``, the answer that was read; further numbers, which are metrics. A response is right if ``acc``, or without it
the score, is 1 or more.
"""

import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.types import Reason, Verdict

NAME = "compute_score"
INPUT = "reward.function:"
RewardFunction = Callable[..., Any]


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


def load_function(word: str) -> RewardFunction:
    """Run the function's file, in a process of the judge pool only, and return it. UserError if that fails."""
    path, name = place_of(word)
    spec = importlib.util.spec_from_file_location("reward_function", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"reward.function={word}: cannot be imported ({type(error).__name__}: {error})") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise UserError(f"reward.function={word}: {path.name} has no function {name}; give FILE.py:NAME")
    return function  # type: ignore[no-any-return]


def call_function(function: RewardFunction, data_source: str, info: Any, response: str, truth: Any) -> Verdict:
    """Return the verdict that the function gives. Raises what it raises, and ValueError for what is no score."""
    returned = function(data_source=data_source, solution_str=response, ground_truth=truth, extra_info=info)
    if inspect.iscoroutine(returned):
        import asyncio  # slow to import

        returned = asyncio.run(returned)
    return verdict_of(returned)


def verdict_of(returned: Any) -> Verdict:
    """Return the verdict that a number or verl's dictionary stands for. ValueError for anything else."""
    fields = dict(returned) if isinstance(returned, Mapping) else {"score": returned}
    score = number(fields.pop("score", None))
    right = number(fields.pop("acc")) if "acc" in fields else score
    if score is None or right is None:
        raise ValueError(f"it returned {returned!r:.200}; give a finite number, or a dictionary with one as score")
    pred = fields.pop("pred", None)
    metrics = {str(name): value for name, field in fields.items() if (value := number(field)) is not None}
    reason = Reason.CORRECT if right >= 1 else Reason.WRONG
    return Verdict(score, reason, pred if isinstance(pred, str) else None, metrics)


def number(value: Any) -> float | None:
    """Return a finite number, a boolean, or a scalar of numpy or torch as a float; None for anything else."""
    value = value.item() if getattr(value, "shape", None) == () else value
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
