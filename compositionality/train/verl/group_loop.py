"""verl's single-turn agent loop, a group at a time: on a tiny model its bookkeeping would cost more than the model.

verl makes two calls to its load balancer, one to a reward worker, one write to the store and one agent object for
every response, and has vLLM report every token. Here that is done once for each prompt, the reward manager that verl
loads judges in this very process, and vLLM reports whole responses.
Used with run.device=cpu.
"""

import asyncio
from functools import cached_property
from typing import Any
from uuid import uuid4

import ray
import torch
import transfer_queue
from verl.experimental.agent_loop import AgentLoopOutput
from verl.trainer.ppo.reward import load_reward_manager
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.utils.tensordict_utils import list_of_dict_to_tensordict
from vllm.sampling_params import RequestOutputKind

from compositionality.train.verl.prompts import verl_seed

VERL_WORKER: Any = AgentLoopWorkerTQ.__ray_metadata__.modified_class
Row = dict[str, Any]


class GroupWorker(VERL_WORKER):  # type: ignore[misc]
    """Samples all responses of a prompt at the same time and stores them together."""

    @cached_property
    def reward_manager(self) -> Any:
        return load_reward_manager(self.config, self.tokenizer)

    async def _run_prompt(self, prompt: Row, sampling_params: Row, trajectory: Row, trace: bool = False) -> None:
        """Store, as verl has it, ``running``, the responses, then ``finished``, or ``failure`` if one failed."""
        del trace
        validate = trajectory["validate"]
        place = {"key": prompt["uid"], "partition_id": "val" if validate else "train"}
        await transfer_queue.async_kv_put(**place, tag={"status": "running"})
        rollout = self.config.actor_rollout_ref.rollout
        results = await self._answer(prompt, sampling_params, rollout.val_kwargs.n if validate else rollout.n)
        rows = [result for result in results if not isinstance(result, BaseException)]
        errors = [result for result in results if isinstance(result, BaseException)]
        for error in errors[:1]:
            print(f"a response to prompt {prompt['uid']} failed: {error!r}", flush=True)
        if rows:
            await transfer_queue.async_kv_batch_put(
                keys=[f"{prompt['uid']}_{row['session_id']}_0" for row in rows],
                fields=list_of_dict_to_tensordict(rows),
                tags=[tag(row) for row in rows],
                partition_id=place["partition_id"],
            )
        await transfer_queue.async_kv_put(**place, tag={"status": "failure" if errors else "finished"})

    async def _answer(self, prompt: Row, sampling_params: Row, count: int) -> list[Row | BaseException]:
        """Return ``count`` rows for the store, an exception in place of each that failed."""
        chat = list(prompt["raw_prompt"])
        text = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        request = uuid4().hex
        name, server = await self.llm_client._acquire_server(request, prompt_ids=ids, sampling_params=sampling_params)
        try:
            responses = [self._respond(server, prompt, ids, sampling_params, sample) for sample in range(count)]
            return await asyncio.gather(*responses, return_exceptions=True)
        finally:
            self.llm_client._release_server(name, request)

    async def _respond(self, server: Any, prompt: Row, ids: list[int], sampling_params: Row, sample: int) -> Row:
        """Return one response, judged, as a row of the store."""
        seed = verl_seed(self.rollout_config.seed, prompt["uid"], prompt["raw_prompt"], sample)
        params = {**sampling_params, "seed": seed, "output_kind": RequestOutputKind.FINAL_ONLY}
        output = await server.generate.remote(request_id=uuid4().hex, prompt_ids=ids, sampling_params=params)
        tokens = list(output.token_ids)
        verdict = await self.reward_manager.score(tokens, prompt)
        version = output.extra_fields.get("global_steps")
        extra = {"min_global_steps": version, "max_global_steps": version, "turn_scores": [], "tool_rewards": []}
        fields = AgentLoopOutput(
            prompt_ids=ids,
            response_ids=tokens,
            response_mask=[1] * len(tokens),
            response_logprobs=list(output.log_probs) if output.log_probs else None,
            reward_score=verdict["reward_score"],
            num_turns=2,
            metrics={},
            extra_fields={**extra, "reward_extra_info": verdict["reward_extra_info"]},
        ).as_dict()
        length = len(ids) + len(tokens)
        return {
            **fields,
            **prompt,
            "session_id": sample,
            "loss_mask": fields["response_mask"],
            "input_ids": torch.cat([fields["prompts"], fields["responses"]]),
            "position_ids": torch.arange(length),
            "multi_modal_inputs": {},
        }


class GroupManager(AgentLoopManagerTQ):  # type: ignore[misc]
    """verl's manager with our worker."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(GroupWorker)


def tag(row: Row) -> Row:
    """Return what verl's trainer and replay buffer read of a stored response without fetching it."""
    prompt, response = len(row["prompts"]), len(row["responses"])
    return {
        "status": "success",
        "prompt_len": prompt,
        "response_len": response,
        "seq_len": prompt + response,
        "global_steps": row["global_steps"],
        "min_global_steps": row["extra_fields"]["min_global_steps"],
        "max_global_steps": row["extra_fields"]["max_global_steps"],
    }
