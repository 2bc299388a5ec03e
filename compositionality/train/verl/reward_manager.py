"""Judge verl's responses, by verl's interface of a reward manager over the project's judges."""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from verl import DataProto
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from compositionality.reward.judge import judge_response
from compositionality.reward.pool import JudgeInput, SharedJudge
from compositionality.reward.verl_reward import score_dict
from compositionality.rollout.model_folder import check_model
from compositionality.tasks.registry import task_of
from compositionality.types import LENGTH, STOP, Reason, Verdict


class JudgeFailedError(RuntimeError):
    """The judge gave no verdict: verl drops the response, our sampler its group, and stops the run if many fail."""


class VerdictRewardManager(RewardManagerBase):  # type: ignore[misc]
    """Judges one response and gives the reward of the configured shape (``run.reward_shape``).

    ``run.reward_function``, if there is one, judges in a process that can be killed, whatever the data source.
    """

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any, **_: Any) -> None:
        super().__init__(config, tokenizer, compute_score)
        self.shape = config.run.reward_shape
        self.judge_seconds = config.run.judge_seconds
        function = config.run.reward_function
        self.own = SharedJudge(1, self.judge_seconds, function) if function else None
        self.limit = config.data.max_response_length
        model = Path(config.actor_rollout_ref.model.path)
        self.ends = check_model(model, chat_template=config.run.apply_chat_template).eos_ids

    async def run_single(self, data: DataProto) -> dict[str, Any]:
        """Return the reward and, as metrics, ``acc`` and a 0/1 for each other reason.

        JudgeFailedError without a verdict.
        """
        item = data[-1]
        tokens = item.batch["responses"]
        tokens = tokens[: int(item.batch["attention_mask"][-len(tokens) :].sum())].tolist()
        return await self.score(tokens, item.non_tensor_batch)

    async def score(self, tokens: list[int], row: Mapping[str, Any]) -> dict[str, Any]:
        """Return what ``run_single`` does, for the response ``tokens`` to the problem ``row``."""
        response = self.tokenizer.decode(tokens, skip_special_tokens=True)
        truth, reason = row["reward_model"]["ground_truth"], self.finish_reason(tokens)
        verdict = await self._judge(JudgeInput(row["data_source"], response, truth, reason, row.get("extra_info")))
        if verdict.reason is Reason.ERROR:
            why = f" ({verdict.error})" if verdict.error else ""
            raise JudgeFailedError(f"{row['data_source']}: no verdict on the response {response[-200:]!r}{why}")
        numbers = score_dict(verdict, self.shape)
        del numbers[Reason.ERROR]  # of such verdicts there is none here
        return {"reward_score": numbers["score"], "reward_extra_info": numbers}

    def finish_reason(self, tokens: list[int]) -> str:
        """Return ``length`` if the response fills the limit without an end token."""
        return LENGTH if len(tokens) >= self.limit and tokens[-1] not in self.ends else STOP

    async def _judge(self, item: JudgeInput) -> Verdict:
        """Return the verdict, of a thread; an ERROR verdict if it takes too long, the wait for its turn not counted."""
        loop = asyncio.get_running_loop()
        if self.own is not None:
            return await loop.run_in_executor(None, self.own.judge, item)
        answer = loop.run_in_executor(None, partial(judge_response, *item[:-1], judge_seconds=self.judge_seconds))
        if not task_of(item.data_source).trusted_judge:
            return await answer  # its process keeps the time
        try:
            return await asyncio.wait_for(answer, self.judge_seconds)
        except TimeoutError:
            return Verdict(0.0, Reason.ERROR)
