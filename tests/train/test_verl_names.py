"""Settings by verl's and TRL's names are answered in one line, by ours or by how to pass them on."""

import pytest

from compositionality.config.cli import parse
from compositionality.errors import UserError
from compositionality.ranges import keys_of
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.sft_settings import SftSettings
from compositionality.train.trl_names import TRL_NAMES
from compositionality.train.verl.names import ELSEWHERE, answer

RL = {
    "trainer.total_epochs": "here trainer.epochs",
    "trainer.total_training_steps": "here trainer.steps",
    "trainer.n_gpus_per_node": "here run.processes",
    "trainer.nnodes": "here run.nodes",
    "trainer.save_freq": "here trainer.save_every",
    "trainer.test_freq": "here trainer.eval_every",
    "trainer.val_before_train": "here trainer.eval_every",
    "trainer.critic_warmup": "here critic.alone_steps",
    "trainer.default_local_dir": "here trainer.output",
    "trainer.experiment_name": "here trainer.output",
    "trainer.project_name": "give it as verl.trainer.project_name=… with engine=verl",
    "data.train_batch_size": "here data.prompts_per_step",
    "data.max_prompt_length": "here data.max_prompt_tokens",
    "data.max_response_length": "here rollout.max_tokens",
    "actor_rollout_ref.rollout.n": "here rollout.n",
    "actor_rollout_ref.rollout.temperature": "here rollout.temperature",
    "actor_rollout_ref.rollout.name": "here rollout.engine",
    "actor_rollout_ref.rollout.gpu_memory_utilization": "here rollout.gpu_memory",
    "actor_rollout_ref.rollout.tensor_model_parallel_size": "here mesh.tensor",
    "actor_rollout_ref.actor.optim.lr": "here optim.lr",
    "actor_rollout_ref.actor.ppo_mini_batch_size": "here data.prompts_per_step and algorithm.updates_per_step",
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": "here trainer.micro_batch_tokens",
    "actor_rollout_ref.actor.use_kl_loss": "here algorithm.kl",
    "actor_rollout_ref.actor.kl_loss_type": "here algorithm.kl",
    "actor_rollout_ref.actor.kl_loss_coef": "here algorithm.kl_coef",
    "actor_rollout_ref.actor.entropy_coeff": "here algorithm.entropy_coef",
    "actor_rollout_ref.actor.clip_ratio_high": "here algorithm.clip_high",
    "actor_rollout_ref.actor.loss_agg_mode": "here algorithm.loss_aggregation",
    "actor_rollout_ref.model.path": "here model.path",
    "actor_rollout_ref.model.lora_rank": "here model.lora.rank",
    "actor_rollout_ref.model.target_modules": "here model.lora.targets",
    "actor_rollout_ref.model.enable_gradient_checkpointing": "here model.activation_checkpointing",
    "+actor_rollout_ref.actor.x": "give it as verl.actor_rollout_ref.actor.x=… with engine=verl",
    "algorithm.adv_estimator": "here algorithm.advantage",
    "algorithm.lam": "here algorithm.gae_lambda",
    "algorithm.use_kl_in_reward": "give it as verl.algorithm.use_kl_in_reward=… with engine=verl",
    "critic.optim.lr": "here critic.lr",
    "critic.cliprange_value": "here critic.clip",
    "custom_reward_function.path": "here reward.function",
    "data.shuffel": "no such setting; did you mean data.shuffle",
}
SFT = {
    "trainer.total_epochs": "here trainer.epochs",
    "trainer.total_training_steps": "here trainer.steps",
    "trainer.seed": "here data.seed",
    "data.train_batch_size": "here trainer.batch_rows",
    "data.max_token_len_per_gpu": "here trainer.micro_batch_tokens",
    "model.lora_rank": "here model.lora.rank",
}


@pytest.mark.full
@pytest.mark.parametrize(("schema", "table"), [(GrpoSettings, RL), (SftSettings, SFT)])
def test_verls_names_are_answered(schema: type[GrpoSettings] | type[SftSettings], table: dict[str, str]) -> None:
    ours = set(keys_of(schema))
    for key, said in table.items():
        with pytest.raises(UserError) as error:
            parse(schema, [f"{key}=3"])
        assert str(error.value).removeprefix("+").startswith(f"{key.removeprefix('+')}: {said}")
        if said.startswith("here ") and key not in ELSEWHERE:
            assert set(said.removeprefix("here ").split(" and ")) <= ours


def test_other_entry_points_have_none_of_verls_names() -> None:
    assert answer(dict, "trainer.total_epochs") == ""


@pytest.mark.parametrize("schema", [GrpoSettings, SftSettings])
def test_trls_names_are_answered(schema: type[GrpoSettings] | type[SftSettings]) -> None:
    known = set(keys_of(schema))
    for name in TRL_NAMES:
        ours = next((key for key in TRL_NAMES[name] if key in known), None)
        said = f"{name}: here {ours}$" if ours else f"{name}: no such setting"
        with pytest.raises(UserError, match=said):
            parse(schema, [f"{name}=3"])
    assert {key for keys in TRL_NAMES.values() for key in keys} <= {*keys_of(GrpoSettings), *keys_of(SftSettings)}
