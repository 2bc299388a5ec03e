"""A reward function for TRL's trainers (``GRPOTrainer(reward_funcs=…)``), on the rows of a problem file.

``datasets.load_dataset("parquet", data_files=FILE)`` gives the dataset that it reads. TRL itself is not imported.
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
"""A completion as TRL gives it: a text, or for a conversational dataset a list of messages."""
NEEDED = ("data_source", "reward_model")


def reward_function(
    shape: Shape | str = Shape.BINARY,
    *,
    end_token_ids: Collection[int] = (),
    workers: int = 1,
    max_error_rate: float = 0.01,
) -> RewardFunction:
    """Return a function of TRL's signature: a batch of B completions and the columns of their rows → B rewards.

    The reward is that of ``shape``, and None where the judge failed: TRL then leaves the completion out of the update.
    More failures than ``max_error_rate`` of all completions so far raise UserError. With ``end_token_ids`` (EOS and
    padding of the tokenizer) a completion that ends in another token was cut off and is judged as OVERLONG. Judging
    takes ``workers`` processes, started with the first batch. The share of every reason is logged as
    ``verdict/REASON``.
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
    missing = [name for name in NEEDED if columns.get(name) is None]
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
    """Return what the model wrote: the text, or the content of the last message (its parts of text, joined)."""
    content = turns if isinstance(turns, str) else turns[-1]["content"] if turns else ""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return content or ""
