"""Settings by verl's and TRL's names are answered in one line, by ours or by how to pass them on."""

import copy
from functools import reduce
from itertools import product
from typing import Any, get_args

import pytest

from compositionality.config.cli import parse
from compositionality.errors import UserError
from compositionality.train import grpo
from compositionality.train.grpo_settings import GAE, Advantage, Aggregation, GrpoSettings
from compositionality.train.names import ELSEWHERE, TRL_NAMES, alternatives, answer, example
from compositionality.train.settings import marked_settings
from compositionality.train.sft_settings import SftSettings
from compositionality.train.verl import configure
from compositionality.train.verl.configure import grpo_keys, grpo_run, sft_keys, sft_run
from compositionality.validation import keys_of

RL = {  # beside the keys of test_grpo_config.TRANSLATION
    "actor_rollout_ref.model.lora_rank": "here model.lora.rank",
    "trainer.n_gpus_per_node": "here run.processes",
    "trainer.nnodes": "here run.nodes",
    "trainer.default_local_dir": "here trainer.output",
    "trainer.project_name": "give it as verl.trainer.project_name=… with engine=verl",
    "actor_rollout_ref.rollout.gpu_memory_utilization": "here rollout.gpu_memory",
    "actor_rollout_ref.actor.ppo_mini_batch_size": "here data.prompts_per_step and algorithm.updates_per_step",
    "actor_rollout_ref.actor.use_kl_loss": "here algorithm.kl",
    "actor_rollout_ref.actor.kl_loss_coef": "here algorithm.kl_coef",
    "actor_rollout_ref.model.path": "here model.path",
    "+actor_rollout_ref.actor.x": "give it as verl.actor_rollout_ref.actor.x=… with engine=verl",
    "algorithm.use_kl_in_reward": "give it as verl.algorithm.use_kl_in_reward=… with engine=verl",
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


@pytest.mark.full
def test_every_key_of_verls_that_ours_sets_is_answered_by_ours() -> None:
    """Those aside that follow from one value of ours alone: files, a rank, a shape."""
    from test_grpo_config import TRANSLATION

    names = {
        (key, words.split()[-1].partition("=")[0]) for words, key, _ in TRANSLATION if words != "model.lora.rank=8"
    }
    for key, ours in names:
        if ours not in (key, "data.val_files", "reward.shape") and key[:4] != "run.":
            with pytest.raises(UserError, match=rf"^{key}: here .*\b{ours}\b"):
                parse(GrpoSettings, [f"{key}=3"])


@pytest.mark.full
@pytest.mark.parametrize("schema", [GrpoSettings, SftSettings])
def test_verl_gets_or_refuses_every_key(schema: type[GrpoSettings] | type[SftSettings]) -> None:
    """A key that changes nothing for verl would be ignored in silence."""

    def for_verl(settings: Any) -> dict[str, Any]:
        is_rl = isinstance(settings, GrpoSettings)
        return grpo_keys(settings) | grpo_run(settings) if is_rl else sft_keys(settings) | sft_run(settings)

    settings, read = example(schema), set[str]()
    for key, value, _ in marked_settings(settings):
        *path, name = key.split(".")
        for alternative, dynamic in product(alternatives(value), (False, True)):
            if isinstance(settings, GrpoSettings):
                settings.algorithm.dynamic_sampling = dynamic
            changed = copy.deepcopy(settings)
            setattr(reduce(getattr, path, changed), name, alternative)
            try:
                same = for_verl(changed) == for_verl(settings)
            except Exception:  # noqa: BLE001  (refused, or of a wrong type, as a file that is a number)
                same = False
            read |= set() if same else {key}
    unread = {key for key, _, _ in marked_settings(settings)} - read
    settled = {"trainer.steps_of", "trainer.part", "reward.custom_reward_function"}  # before verl is asked
    assert unread - settled == {"engine", "verl"}


@pytest.mark.full
def test_every_word_of_an_algorithm_has_its_row_with_both_engines() -> None:
    for kind, ours, verls in (
        (Advantage, {*grpo.ADVANTAGES, GAE}, configure.ADVANTAGES),
        (Aggregation, {*get_args(Aggregation)[1].choices}, configure.LOSS_AGGREGATIONS),
    ):
        assert {*get_args(kind)[1].choices} == ours == {*verls}


def test_other_entry_points_have_none_of_verls_names() -> None:
    assert answer(dict, "trainer.total_epochs") == ""


@pytest.mark.parametrize("schema", [GrpoSettings, SftSettings])
def test_trls_names_are_answered(schema: type[GrpoSettings] | type[SftSettings]) -> None:
    known = set(keys_of(schema))
    for ours, name in ((ours, name) for ours, names in TRL_NAMES.items() for name in names.split()):
        said = f"{name}: here {ours}$" if ours in known else f"{name}: (no such setting|here )"
        for word in (f"{name}=3", f"--{name.replace('_', '-')}=3"):
            with pytest.raises(UserError, match=said):
                parse(schema, [word])
    assert {*TRL_NAMES} <= {*keys_of(GrpoSettings), *keys_of(SftSettings)}
