"""A reward function for TRL's trainers (``GRPOTrainer(reward_funcs=…)``), on the rows of a problem file.

Its dataset is ``datasets.load_dataset("parquet", data_files=FILE)``. TRL itself is not imported.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

from compositionality.errors import UserError
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.reward.shapes import Shape, reward
from compositionality.tasks.registry import task_of
from compositionality.types import LENGTH, STOP, Reason

RewardFunction = Callable[..., list[float | None]]
Turns = str | Sequence[Mapping[str, Any]]
"""A completion from TRL: a text, or a list of messages for a conversational dataset."""
COLUMNS = ("data_source", "reward_model")


def reward_function(
    shape: Shape | str = Shape.BINARY,
    *,
    end_token_ids: Collection[int] = (),
    workers: int = 1,
    max_error_rate: float = 0.01,
) -> RewardFunction:
    """Return a function with TRL's signature: a batch of B completions and the columns of their rows → B rewards.

    Rewards have the ``shape``. If the judge fails, the reward is None and TRL leaves the completion out of the update;
    UserError if the share of failures so far exceeds ``max_error_rate``. With ``end_token_ids`` (EOS and padding of the
    tokenizer) a completion that ends in another token was cut off and is judged OVERLONG. ``workers`` judging processes
    start with the first batch. The share of every reason is logged as ``verdict/REASON``.
    """
    shape = Shape(shape)

    @cache
    def pool() -> JudgePool:
        return JudgePool(workers, max_error_rate=max_error_rate)

    def verdict_reward(
        prompts: Sequence[Any],
        completions: Sequence[Turns],
        completion_ids: Sequence[Sequence[int]] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        reasons = [STOP] * len(prompts)
        if end_token_ids and completion_ids is not None:
            reasons = [STOP if len(ids) and int(ids[-1]) in end_token_ids else LENGTH for ids in completion_ids]
        verdicts = pool().judge(_items(completions, reasons, columns))
        if log := columns.get("log_metric"):
            counts = Counter(verdict.reason for verdict in verdicts)
            for reason in Reason:
                log(f"verdict/{reason.value}", counts[reason] / len(verdicts))
        return [reward(verdict, shape) for verdict in verdicts]

    return verdict_reward


def _items(completions: Sequence[Turns], reasons: Sequence[str], columns: Mapping[str, Any]) -> list[JudgeInput]:
    missing = [name for name in COLUMNS if columns.get(name) is None]
    if missing:
        raise UserError(
            f"the dataset has no column {', '.join(missing)}; load a problem file with "
            "datasets.load_dataset('parquet', data_files=FILE) and keep its columns (remove_unused_columns=False)"
        )
    infos = columns.get("extra_info") or [None] * len(completions)
    rows = zip(columns["data_source"], completions, columns["reward_model"], infos, reasons, strict=True)
    return [
        JudgeInput(source, _text(turns), task_of(source).row_truth(model["ground_truth"], info or {}), reason)
        for source, turns, model, info, reason in rows
    ]


def _text(turns: Turns) -> str:
    """Return the model's text: the completion, or the content of its last message (text parts joined)."""
    content = turns if isinstance(turns, str) else turns[-1]["content"] if turns else ""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return content or ""
