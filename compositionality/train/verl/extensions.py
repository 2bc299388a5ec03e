"""Entries of verl's registries, which it looks up by name.

verl imports this module in every process that builds the model configuration, and our trainer where advantages are
computed.
"""

from typing import Any

from verl.experimental.agent_loop.agent_loop import register
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop
from verl.trainer.ppo.core_algos import get_policy_loss_fn, register_adv_est, register_policy_loss
from verl.utils.torch_functional import masked_mean

from compositionality.train.verl import hooks, log_probs
from compositionality.train.verl.prompts import verl_seed

del log_probs  # imported for what it does


@register(hooks.SEEDED_LOOP)
class SeededSingleTurn(SingleTurnAgentLoop):  # type: ignore[misc]
    """verl's single-turn loop with a seed for every response: timing cannot change what is sampled."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> Any:
        seed = verl_seed(self.rollout_config.seed, row["uid"], row["raw_prompt"], row["session_id"])
        return await super().run({**sampling_params, "seed": seed}, **row)


@register_adv_est(hooks.RAFT)  # type: ignore[untyped-decorator]
def raft_advantage(token_level_rewards: Any, response_mask: Any, **_: Any) -> tuple[Any, Any]:
    """Return ``raft_advantage`` of grpo.py in verl's form: advantages and returns, shape (responses, tokens)."""
    advantages = token_level_rewards.sum(-1, keepdim=True).clamp(min=0) * response_mask
    return advantages, advantages


@register_policy_loss(hooks.ON_POLICY)  # type: ignore[untyped-decorator]
def on_policy_loss(
    old_log_prob: Any, log_prob: Any, advantages: Any, response_mask: Any, *args: Any, **kwargs: Any
) -> tuple[Any, dict[str, Any]]:
    """Return verl's clipped loss where one update is made for each batch: the old policy is the present one, detached.

    The pass that would compute the old log-probabilities is saved (``rollout_correction.bypass_mode`` puts vLLM's
    there, shape (responses, tokens)); they serve only to report how far training and rollout disagree.
    """
    vanilla = get_policy_loss_fn("vanilla")
    loss, metrics = vanilla(log_prob.detach(), log_prob, advantages, response_mask, *args, **kwargs)
    gap = masked_mean((old_log_prob - log_prob.detach()).abs(), response_mask)
    return loss, {**metrics, "actor/rollout_gap_mean": gap.item()}
