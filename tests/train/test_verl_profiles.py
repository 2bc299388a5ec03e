"""Every training command of the GPU profiles, on GPUs that are not here, through verl's own checks."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import test_grpo_config
import test_sft_config
from omegaconf import OmegaConf

from compositionality.config.cli import parse
from compositionality.config.profile import layers_of
from compositionality.train.checks import check_settings
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.run_folder import BY_LENGTH, LENGTHS, flatten
from compositionality.train.settings import marked_settings
from compositionality.train.sft_settings import SftSettings
from compositionality.train.verl import configure, grpo, preflight
from compositionality.train.verl import sft as verl_sft

pytestmark = pytest.mark.full
BASH = Path(__file__).resolve().parents[2] / "bash"
MACHINES = {"1 GPU": (1, 1), "4 nodes of 8 GPUs": (8, 4)}
PROFILES = {  # the model it starts from: family, layers, width, MLP, heads, heads for keys, vocabulary, tied, positions
    "single/verl": ("llama", 6, 384, 1024, 6, 6, 200, True, 1024),
    "instruct/verl": ("qwen2", 28, 1536, 8960, 12, 2, 151936, True, 32768),
    "paper/verl": ("llama", 32, 4096, 14336, 32, 8, 128256, False, 131072),
}
SFT = ("section41_42/stage1_rft", "section41_42/stage2_rft_train", "section43/stage1_rft")
GRPO = (
    "section41_42/stage2_rl_level1",
    "section41_42/stage2_rl_level2",
    "section41_42/stage2_rl_level1to2",
    "section43/stage2_rl_level1",
    "section43/stage2_rl_level1to2",
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders without weights."""
    from transformers import AutoConfig

    from compositionality.train.tiny.model import build_tokenizer

    tokenizer = build_tokenizer(["reverse"])
    found = {}
    for profile, (family, layers, width, mlp, heads, groups, vocabulary, tied, positions) in PROFILES.items():
        found[profile] = tmp_path_factory.mktemp("model")
        AutoConfig.for_model(
            family, num_hidden_layers=layers, hidden_size=width, intermediate_size=mlp, num_attention_heads=heads,
            num_key_value_heads=groups, vocab_size=vocabulary, tie_word_embeddings=tied,
            max_position_embeddings=positions, architectures=[f"{family.capitalize()}ForCausalLM"],
        ).save_pretrained(found[profile])  # fmt: skip
        tokenizer.save_pretrained(found[profile])
    return found


def machine(number: tuple[int, int], model: Path) -> list[str]:
    gpus, nodes = number
    where = [f"run.processes={gpus}", f"run.nodes={nodes}", "run.device=gpu"]
    return ["engine=verl", f"model.path={model}", "trainer.output=OUT", *where]


def grpo_settings_of(profile: str, step: str, words: list[str]) -> GrpoSettings:
    files = ["data.train_files=[a.parquet]", "data.val_files=[b.parquet]"]
    return parse(GrpoSettings, [*files, *words], layers_of(profile, "train_grpo", [step]))


def sft_settings_of(profile: str, step: str, words: list[str]) -> SftSettings:
    return parse(SftSettings, ["data.train_files=[a.parquet]", *words], layers_of(profile, "train_sft", [step]))


def different(settings: Iterable[Any]) -> list[Any]:
    """Those that are not the same as one before: most scripts of a profile train with the same settings."""
    return list({repr(each): each for each in settings}.values())


def test_these_are_the_scripts_that_train() -> None:
    scripts = [path.relative_to(BASH).with_suffix("").as_posix() for path in BASH.glob("section*/*.sh")]
    training = {name for name in scripts if "run train_" in (BASH / f"{name}.sh").read_text()}
    others = {"section41_42/stage2_rl_control", "section41_42/stage2_rl_level2_verl", "section41_42/ablation_variant"}
    assert {*SFT, *GRPO} == training - others  # those take the settings of stage2_rl_level2


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("number", MACHINES)
def test_verl_takes_every_training_command(profile: str, number: str, models: dict[str, Path]) -> None:
    from verl.single_controller.ray.base import ResourcePoolManager
    from verl.utils.config import omega_conf_to_dataclass

    words = machine(MACHINES[number], models[profile])
    gpus, nodes = MACHINES[number]
    for settings in different(grpo_settings_of(profile, step, words) for step in GRPO):
        if nodes != 1:
            settings.run.ray_address = "head:6379"
        config, _ = test_grpo_config.compose(settings)
        model = omega_conf_to_dataclass(config.actor_rollout_ref.model)
        actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
        rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
        assert (model.use_remove_padding, model.enable_gradient_checkpointing) == (True, True)
        assert (actor.strategy, actor.engine.strategy, actor.policy_loss.loss_mode) == ("fsdp2", "fsdp2", "on_policy")
        assert actor.engine.mixed_precision["param_dtype"] == "bf16"
        assert rollout.max_model_len <= model.hf_config.max_position_embeddings
        assert rollout.enable_chunked_prefill
        assert rollout.agent.default_agent_loop == "seeded_single_turn"
        assert rollout.agent.agent_loop_manager_class is None
        pool = [config.trainer.n_gpus_per_node] * config.trainer.nnodes
        assert ResourcePoolManager({"global_pool": pool}, {}).get_n_gpus() == gpus * nodes
        preflight.check_layers(models[profile], rollout.tensor_model_parallel_size)
    for settings in different(sft_settings_of(profile, step, words) for step in SFT):
        config = test_sft_config.compose(settings)
        assert config.data.max_length <= model.hf_config.max_position_embeddings
        assert config.data.train_batch_size % (gpus * nodes) == 0


@pytest.mark.full
def test_no_row_of_the_tables_of_what_makes_a_recipe_is_loose() -> None:
    """They name verl's keys, of which the next verl may lack one, or ours in a recipe that is read again."""
    words = ["engine=verl", "model.path=m", "trainer.output=OUT", "run.device=gpu", "run.processes=8"]
    rl, sft = grpo_settings_of("paper/verl", GRPO[0], words), sft_settings_of("paper/verl", SFT[0], words)
    keys, of_sft = (
        flatten(OmegaConf.to_container(config, resolve=True)).keys()
        for config in (configure.grpo_config(rl), configure.sft_config(sft))
    )
    beginnings = (*grpo.SETTINGS_OF_VERL, *grpo.LEFT_OUT, *(f"run.{key}" for key in grpo.SETTINGS_OF_OURS))
    assert not [part for part in beginnings if not any(key.startswith(part) for key in keys)]
    assert not [part for part in grpo.HOW_IT_COMPUTES if not any(key.endswith(part) for key in keys)]
    assert not [part for part in verl_sft.CONVENIENCES if not any(key.startswith(part) for key in of_sft)]
    known = keys | of_sft | {key for settings in (rl, sft) for key, _, _ in marked_settings(settings)}
    assert not [part for part in (*LENGTHS, *BY_LENGTH) if not any(key.endswith(part) for key in known)]


@pytest.mark.parametrize("profile", ["single/single", "instruct/single"])
def test_the_single_file_trainers_take_every_training_command(profile: str) -> None:
    words = ["engine=single", "model.path=m", "trainer.output=OUT", "run.device=gpu", "run.processes=1"]
    for settings in [grpo_settings_of(profile, step, [*words, "rollout.engine=builtin"]) for step in GRPO]:
        check_settings(settings)
        assert (settings.model.dtype, settings.mesh.shard) == ("bfloat16", True)  # shard() refuses bfloat16 unsharded
    for settings in [sft_settings_of(profile, step, words) for step in SFT]:
        check_settings(settings)
        assert (settings.model.dtype, settings.mesh.shard) == ("bfloat16", True)
