"""The GRPO configuration composes against the pinned verl, and says what is wrong early."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from omegaconf import OmegaConf
from sft_assets import make_model

from compositionality.config.cli import parse
from compositionality.config.profile import layers_of
from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.train.checks import check_settings
from compositionality.train.engines import settle_cluster, train_grpo
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.run_folder import RUN_VARIABLES
from compositionality.train.verl import configure, grpo, hooks, launch, memory, preflight, start
from compositionality.train.verl.configure import grpo_keys, grpo_run
from compositionality.types import Problem

pytestmark = pytest.mark.full

PAPER = ["profile=paper"]
PRECISION = "actor_rollout_ref.actor.fsdp_config.mixed_precision"
CPU = ["run.device=cpu", "data.max_prompt_tokens=64", "rollout.max_tokens=128"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("grpo") / "model")


def problem_file(path: Path, prompt: str = "func_1func_2:abc") -> Path:
    truth = json.dumps({"ref_output": "abc", "style": "compact"})
    problems = [Problem("string-trained-level2", 2, "trained", prompt, truth, number) for number in range(40)]
    pq.write_table(to_table(problems, "train"), path)
    return path


def settings_of(*words, model="models/base", out="OUT"):
    files = ["data.train_files=[a.parquet,b.parquet]", "data.val_files=[c.parquet]"]
    given = ["engine=verl", f"model.path={model}", f"trainer.output={out}", *files]
    if "profile=paper" in words:
        words = [word for word in words if word != "profile=paper"]
        return parse(GrpoSettings, [*given, "run.device=gpu", *words], layers_of("paper", "train_grpo"))
    return parse(GrpoSettings, [*given, "algorithm.dynamic_sampling=true", *words])


def composed(*words, model="models/base", out="OUT"):
    return compose(settings_of(*words, model=model, out=out), out)


def compose(settings, out="OUT"):
    """The configuration of settings after all checks that need no files, and the variables of its processes."""
    check_settings(settings)
    settle_cluster(settings, imagined=True)
    config = configure.grpo_config(settings)
    variables = launch.environment(config, Path(out))
    config = start.final(config, start.context_of(config, variables, dry=True))
    preflight.check_grpo_settings(config)
    return config, variables


TRANSLATION = [  # our key and value, verl's key and value
    ("data.prompts_per_step=32", "data.train_batch_size", 32),
    ("data.prompts_per_step=32", "actor_rollout_ref.actor.ppo_mini_batch_size", 32),
    ("data.seed=7", "data.seed", 7),
    ("data.max_prompt_tokens=99", "data.max_prompt_length", 99),
    ("rollout.max_tokens=77", "data.max_response_length", 77),
    ("rollout.n=5", "actor_rollout_ref.rollout.n", 5),
    ("rollout.temperature=0.5", "actor_rollout_ref.rollout.temperature", 0.5),
    ("rollout.top_p=0.9", "actor_rollout_ref.rollout.top_p", 0.9),
    ("rollout.top_k=0", "actor_rollout_ref.rollout.top_k", -1),
    ("rollout.top_k=20", "actor_rollout_ref.rollout.top_k", 20),
    ("rollout.seed=3", "actor_rollout_ref.rollout.seed", 3),
    ("rollout.engine=sglang", "actor_rollout_ref.rollout.name", "sglang"),
    ("rollout.generation_batch=50", "run.generation_batch_size", 50),
    ("mesh.tensor=2", "actor_rollout_ref.rollout.tensor_model_parallel_size", 2),
    ("optim.lr=0.125", "actor_rollout_ref.actor.optim.lr", 0.125),
    ("optim.beta2=0.9", "actor_rollout_ref.actor.optim.betas", [0.9, 0.9]),
    ("optim.warmup_steps=4", "actor_rollout_ref.actor.optim.lr_warmup_steps", 4),
    ("optim.weight_decay=0.5", "actor_rollout_ref.actor.optim.weight_decay", 0.5),
    ("optim.max_grad_norm=2", "actor_rollout_ref.actor.optim.clip_grad", 2.0),
    ("algorithm.advantage=dr_grpo", "algorithm.norm_adv_by_std_in_grpo", False),
    ("algorithm.advantage=rloo", "algorithm.adv_estimator", "rloo"),
    ("algorithm.loss_aggregation=sequence", "actor_rollout_ref.actor.loss_agg_mode", "seq-mean-token-mean"),
    ("algorithm.clip_low=0.1", "actor_rollout_ref.actor.clip_ratio_low", 0.1),
    ("algorithm.clip_high=0.28", "actor_rollout_ref.actor.clip_ratio_high", 0.28),
    ("algorithm.updates_per_step=4", "actor_rollout_ref.actor.ppo_mini_batch_size", 4),
    ("algorithm.updates_per_step=4", "actor_rollout_ref.actor.policy_loss.loss_mode", "vanilla"),
    ("algorithm.updates_per_step=4", "algorithm.rollout_correction.bypass_mode", False),
    ("algorithm.kl=k3", "actor_rollout_ref.actor.kl_loss_type", "k3"),
    ("algorithm.entropy_coef=0.01", "actor_rollout_ref.actor.entropy_coeff", 0.01),
    ("algorithm.dynamic_sampling=true", "algorithm.filter_groups.enable", True),
    ("algorithm.max_generation_batches=3", "algorithm.filter_groups.max_num_gen_batches", 3),
    ("reward.shape=paper", "run.reward_shape", "paper"),
    ("reward.shape=score", "algorithm.filter_groups.metric", "score"),
    ("trainer.steps=9", "trainer.total_training_steps", 9),
    ("trainer.epochs=3", "trainer.total_epochs", 3),
    ("trainer.epochs=3", "trainer.total_training_steps", None),
    ("trainer.epochs=3 trainer.steps=9", "trainer.total_training_steps", 9),
    ("data.val_files=[]", "trainer.test_freq", -1),
    ("data.val_files=[]", "trainer.val_before_train", False),
    ("trainer.save_every=5", "trainer.save_freq", 5),
    ("trainer.save_every=0", "trainer.save_freq", 100),
    ("trainer.eval_every=5", "trainer.test_freq", 5),
    ("trainer.eval_every=0", "trainer.test_freq", -1),
    ("trainer.eval_every=0", "trainer.val_before_train", False),
    ("trainer.eval_samples=4", "actor_rollout_ref.rollout.val_kwargs.n", 4),
    ("trainer.samples_every=3", "run.samples_every", 3),
    ("trainer.micro_batch_tokens=20000", "actor_rollout_ref.actor.ppo_max_token_len_per_gpu", 20000),
    ("trainer.output=some/RUN", "trainer.experiment_name", "RUN/some"),
    ("model.dtype=bfloat16", "actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype", "bf16"),
    ("model.activation_checkpointing=true", "actor_rollout_ref.model.enable_gradient_checkpointing", True),
    ("data.shuffle=false", "data.shuffle", False),
    (
        "data.prompt_key=q data.reward_fn_key=s data.truth_key=[a,b] data.source=math data.prompt_template=t",
        "run.rows",
        {"prompt_key": "q", "reward_fn_key": "s", "truth_key": ["a", "b"], "source": "math", "prompt_template": "t"},
    ),
    ("data.apply_chat_template=false", "run.apply_chat_template", False),
    ("model.lora.rank=8", "actor_rollout_ref.model.lora_rank", 8),
    ("model.lora.rank=8", "actor_rollout_ref.model.lora.merge", True),
    ("model.lora.rank=8", "actor_rollout_ref.model.target_modules", "all-linear"),
    ("model.lora.rank=8 model.lora.alpha=16", "actor_rollout_ref.model.lora_alpha", 16),
    ("model.lora.rank=8 model.lora.targets=[q_proj]", "actor_rollout_ref.model.target_modules", ["q_proj"]),
    ("algorithm.advantage=gae", "algorithm.adv_estimator", "gae"),
    ("algorithm.advantage=gae algorithm.gamma=0.9", "algorithm.gamma", 0.9),
    ("algorithm.advantage=gae algorithm.gae_lambda=0.5", "algorithm.lam", 0.5),
    ("algorithm.advantage=gae critic.lr=1e-4", "critic.optim.lr", 1e-4),
    ("algorithm.advantage=gae critic.clip=0.2", "critic.cliprange_value", 0.2),
    ("algorithm.advantage=gae critic.alone_steps=5", "trainer.critic_warmup", 5),
]


@pytest.mark.parametrize(("word", "key", "value"), TRANSLATION)
def test_p09_the_same_key_means_the_same_to_verl(word, key, value):
    settings = settings_of("run.device=cpu", *word.split())
    settle_cluster(settings, imagined=True)
    translated = grpo_keys(settings) | {f"run.{name}": found for name, found in grpo_run(settings).items()}
    assert translated[key] == value


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "words",
    [
        ["algorithm.kl=k3", "algorithm.kl_coef=0.1"],
        ["verl.algorithm.use_kl_in_reward=true"],
        ["verl.actor_rollout_ref.actor.use_kl_loss=true"],
        ["verl.algorithm.use_kl_in_reward=true", f"verl.{PRECISION}.param_dtype=fp16"],
    ],
)
def test_the_reference_is_computed_in_the_precision_of_the_policy(words, dtype):
    config, _ = composed("run.device=cpu", f"model.dtype={dtype}", *words)
    actor, reference = (config.actor_rollout_ref[role].fsdp_config for role in ("actor", "ref"))
    usual = {"param_dtype": "bf16"}  # verl's
    assert reference.get("mixed_precision", usual)["param_dtype"] == actor.mixed_precision.param_dtype


def test_a_reference_has_keys_of_ours_only_where_verl_makes_one():
    """By verl's own function, which chooses the workers; a precision that is given stays."""
    from verl.trainer.ppo.utils import Role
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    kl = "verl.algorithm.use_kl_in_reward=true"
    for words, made in (([], False), ([kl], True), ([kl, "model.lora.rank=4"], False)):
        config, _ = composed("run.device=cpu", *words)
        trainer = SimpleNamespace(config=config)
        PPOTrainer._init_resource_pool_mgr(trainer)
        assert memory.has_reference(config) == (Role.ActorRolloutRef in trainer.role_worker_mapping) == made
        assert ("mixed_precision" in config.actor_rollout_ref.ref.fsdp_config) == made
    config, _ = composed("run.device=cpu", kl, f"+verl.{PRECISION.replace('actor.', 'ref.')}={{param_dtype: fp16}}")
    assert config.actor_rollout_ref.ref.fsdp_config.mixed_precision.param_dtype == "fp16"


def test_a_critic_is_like_the_policy_and_only_there_with_gae():
    from verl.trainer.ppo.utils import need_critic

    config, variables = composed("run.device=cpu", "algorithm.advantage=gae", "model.lora.rank=4")
    critic, actor = config.critic, config.actor_rollout_ref.actor
    assert need_critic(config)
    assert (critic.strategy, critic.fsdp.use_torch_compile) == (actor.strategy, actor.fsdp_config.use_torch_compile)
    assert critic.model.path == config.actor_rollout_ref.model.path
    assert critic.model.lora_rank == 0
    assert "compositionality.train.verl.critic" in variables["VERL_USE_EXTERNAL_MODULES"]
    plain, variables = composed("run.device=cpu")
    assert not need_critic(plain)
    assert "critic" not in variables["VERL_USE_EXTERNAL_MODULES"]


def test_verls_own_keys_come_last():
    plain, _ = composed("run.device=cpu", "algorithm.dynamic_sampling=false")  # every default as it is
    assert plain.algorithm.filter_groups.enable is False
    config, _ = composed(
        "run.device=cpu", "verl.actor_rollout_ref.rollout.n=64", "rollout.n=4", "verl.trainer.logger=[]"
    )
    assert config.actor_rollout_ref.rollout.n == 64
    assert composed(*PAPER, "run.processes=1")[0].trainer.total_training_steps is None


def test_verls_own_keys_are_added_and_taken_out_by_hydras_signs():
    words = "+verl.ray_kwargs.ray_init._temp_dir=/t", "++verl.data.seed=7", "~verl.trainer.device", "+verl.a.b={c: 1}"
    config, _ = composed("run.device=cpu", *words)
    assert (config.ray_kwargs.ray_init._temp_dir, config.data.seed, config.a.b.c) == ("/t", 7, 1)
    assert "device" not in config.trainer
    for word, said in {
        "+verl.data.seed=7": "verl has this key; give verl.data.seed=7",
        "~verl.data.seed=7": "deletes a key; give ~verl.data.seed, without a value",
        "~verl.nope": "verl has no such key",
        "+verl.data.seed.x=1": "verl has no such key",
        "++verl.run.x=1": "verl has no such key",
        "verl.actor_rollout_ref.actor.optim.lr=1,2": "give a number",
        "verl.actor_rollout_ref.actor.fsdp_config.param_offload=1": "give true or false",
    }.items():
        with pytest.raises(UserError) as error:
            composed("run.device=cpu", word)
        assert str(error.value).startswith(f"{word}: {said}")


def test_p12_verl_takes_the_configuration(model, monkeypatch):
    """On a CPU; on GPUs: test_verl_profiles.py."""
    from verl.utils.config import omega_conf_to_dataclass

    for name in ("VERL_PLATFORM", "NNODES", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    config, _ = composed(*CPU, model=model)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    assert (actor.strategy, actor.policy_loss.loss_mode, actor.loss_agg_mode) == ("fsdp2", "on_policy", "token-mean")
    assert (rollout.name, rollout.tensor_model_parallel_size) == ("vllm", 1)
    assert config.trainer.n_gpus_per_node * config.trainer.nnodes == 1


def test_the_papers_values(monkeypatch):
    from verl.trainer.ppo.utils import need_critic, need_reference_policy

    monkeypatch.delenv("NNODES", raising=False)
    config, _ = composed(*PAPER, "run.processes=8")
    actor, rollout = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout
    filters = config.algorithm.filter_groups
    assert (config.data.train_batch_size, actor.ppo_mini_batch_size, rollout.n) == (16, 16, 16)
    assert (config.data.max_prompt_length, config.data.max_response_length) == (1024, 8192)
    assert (actor.optim.lr, actor.optim.clip_grad, actor.clip_ratio_low, actor.clip_ratio_high) == (1e-6, 1.0, 0.2, 0.2)
    assert (actor.entropy_coeff, actor.use_kl_loss, config.algorithm.use_kl_in_reward) == (0, False, False)
    assert (rollout.temperature, rollout.top_p, rollout.top_k, rollout.gpu_memory_utilization) == (1.0, 1.0, -1, 0.8)
    assert (filters.enable, filters.metric, filters.max_num_gen_batches) == (True, "acc", 10)
    assert (config.trainer.save_freq, config.trainer.test_freq, config.trainer.total_epochs) == (25, 25, 1)
    assert (actor.fsdp_config.param_offload, actor.fsdp_config.optimizer_offload) == (True, True)
    assert (actor.use_dynamic_bsz, actor.ppo_max_token_len_per_gpu) == (True, 17408)
    assert rollout.enable_prefix_caching
    assert config.actor_rollout_ref.model.use_remove_padding
    assert not need_reference_policy(config)
    assert not need_critic(config)
    assert config.algorithm.rollout_correction.bypass_mode


def test_a_gpu_without_flash_attn_is_told_once(monkeypatch, capsys):
    monkeypatch.setattr("compositionality.train.engines.count_gpus", lambda: 1)
    monkeypatch.setattr("compositionality.train.engines.choose_device", lambda device: None)
    for imagined, lines in ((False, 1), (True, 0)):
        settings = settings_of("run.device=gpu", "run.processes=1", "model.attention=auto")
        settle_cluster(settings, imagined=imagined)
        said = capsys.readouterr().err.splitlines()
        assert len(said) == lines
        assert all("bash bash/setup.sh --flash-attn" in line for line in said)


def test_ray_sees_a_device_for_every_slot_of_a_cpu_and_nobody_a_real_one(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for processes in (1, 2):
        _, variables = composed("run.device=cpu", f"run.processes={processes}")
        assert variables["CUDA_VISIBLE_DEVICES"].split(",") == ["-1"] * processes


def test_a_lane_that_shares_its_gpu_gives_vllm_its_part_of_the_memory(monkeypatch):
    monkeypatch.setenv("LANES_PER_GPU", "4")
    config, _ = composed(*PAPER, "run.processes=1")
    assert config.actor_rollout_ref.rollout.gpu_memory_utilization == pytest.approx(0.8 / 4)


def test_p18_another_verl_is_one_line(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: [SimpleNamespace(version="0.4.1")])
    with pytest.raises(UserError, match=f"verl 0.4.1 is installed, and this needs {hooks.VERL}; run bash"):
        composed()
    pinned = re.findall(r"verl==([\d.]+)", (Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert {*pinned} == {hooks.VERL}


@pytest.mark.parametrize("entry", ["train_grpo", "train_sft"])
@pytest.mark.parametrize(
    ("module", "content", "told"),
    [
        (
            "omegaconf",
            "raise Exception('Could not deserialize ATN with version 3 (expected 4).')",
            r"Hydra.* needs antlr4.* 4\.9,.* antlr4-python3-runtime==4\.9\.3.*",
        ),
        *(
            (package, f"raise ModuleNotFoundError(name={package!r})", f"the package {package} is not installed; run .*")
            for package in ("hydra", "omegaconf")
        ),
    ],
)
def test_p18_an_environment_without_the_right_hydra_is_one_line(tmp_path, entry, module, content, told):
    """As LightEval's, where antlr4 is 4.13 and Hydra may be missing."""
    (tmp_path / f"{module}.py").write_text(content)
    words = ["engine=verl", "model.path=m", "data.train_files=[f]", "trainer.output=o", "--dry-run"]
    command = [sys.executable, "-m", "compositionality", entry, *words]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.fullmatch(f"error: engine=verl: {told}\n", done.stderr)


def test_nodes_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("NNODES", "3")
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("WANDB_API_KEY", "HF_TOKEN", "VLLM_API_KEY"):
        monkeypatch.setenv(name, "a-secret-of-mine")
    config, variables = composed(*PAPER, "run.processes=4", "data.prompts_per_step=48")
    assert (config.trainer.nnodes, config.ray_kwargs.ray_init.address) == (3, "head:6379")
    assert config.ray_kwargs.ray_init.runtime_env.env_vars.VERL_USE_EXTERNAL_MODULES
    assert config.ray_kwargs.ray_init.runtime_env.env_vars.HF_HUB_OFFLINE == "1"
    assert "secret" not in OmegaConf.to_yaml(config)
    assert variables["VERL_USE_EXTERNAL_MODULES"] == hooks.EVERY_MODULE
    monkeypatch.delenv("RAY_ADDRESS")
    with pytest.raises(UserError, match="NNODES=3 needs a running Ray cluster"):
        composed(*PAPER, "run.processes=4", "data.prompts_per_step=48")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["verl.actor_rollout_ref.actor.ppo_epochs=2"], "on_policy is for one update per batch"),
        (["verl.algorithm.rollout_correction.bypass_mode=false"], "computed and not used"),
        (["reward.control=shuffled"], "the best checkpoint is chosen by right answers"),
        (["algorithm.entropy_like=metrics.jsonl"], "entropy_coef=0.0: entropy_like needs a positive one"),
        (["algorithm.kl=k2"], "algorithm.kl=k2: give algorithm.kl_coef, the weight of that loss, or kl=none"),
        (["optim.decay_power=1"], "optim.decay_power=1.0: engine=verl does not have it"),
        (
            ["algorithm.dynamic_sampling=false", "algorithm.drop_equal_groups=true"],
            "drop_equal_groups=true without dynamic_sampling: engine=verl",
        ),
        (
            ["run.processes=32", "algorithm.updates_per_step=16"],
            r"16 responses \(of an update\) cannot be shared evenly by 32 processes; change either, or algorithm.upd",
        ),
        (["run.processes=4", "mesh.tensor=8"], "mesh.tensor=8 does not divide the 4 processes"),
        (
            ["verl.actor_rollout_ref.actor.ppo_max_token_len_per_gpu=300"],
            "ppo_max_token_len_per_gpu=300 is less than data.max_prompt_tokens",
        ),
        (["verl.actor_rollout_ref.actor.loss_agg_mode=mean"], "verl refuses its configuration: Invalid loss_agg_mode"),
        (["verl.actor_rollout_ref.actor.use_dynamic_bsz=false"], "verl refuses its configuration: .*micro_batch_size"),
    ],
)
def test_p18_settings_that_contradict_each_other(words, said, monkeypatch):
    monkeypatch.delenv("NNODES", raising=False)
    with pytest.raises(UserError, match=said):
        composed("run.device=cpu", *words)


def test_p18_an_advantage_of_ones_own_that_verl_lacks_is_named():
    settings = GrpoSettings()
    settings.algorithm.advantage = "own"  # added to those of engine=single
    with pytest.raises(UserError, match=r"algorithm.advantage=own: .* name it in ADVANTAGES"):
        grpo_keys(settings)


def test_p18_trouble_with_files_is_told_before_the_start(model, tmp_path, monkeypatch):
    good = problem_file(tmp_path / "good.parquet")
    long = problem_file(tmp_path / "long.parquet", "func_1" * 40 + ":abc")

    def check(said, *files, more=()):
        given = [f"data.train_files=[{','.join(map(str, files))}]", f"data.val_files=[{good}]", *more]
        config, _ = composed(*CPU, *given, model=model, out=tmp_path / "out")
        with pytest.raises(UserError, match=said):
            preflight.check_grpo_inputs(config)

    check("no such file", tmp_path / "absent.parquet")
    check(r"long.parquet: 40 prompts are longer than max_prompt_tokens=64 \(the longest, row 0, has \d+\)", good, long)
    check(
        "40 problems are less than the rollout.generation_batch=50 that a step asks",
        good,
        more=["rollout.generation_batch=50"],
    )
    monkeypatch.setattr("compositionality.rollout.engines.vllm.CPU_HEAD_WIDTHS", (64,))
    check("the head size is 32, vLLM on a CPU supports only 64; give engine=single", good)


def test_p18_heads_that_tensor_parallelism_cannot_share_are_told_before_the_start(model):
    preflight.check_layers(model, 2)
    with pytest.raises(UserError, match="tensor=4 does not divide the 2 heads, 2 for keys, of "):
        preflight.check_layers(model, 4)


def test_p18_no_cluster_at_the_address():
    with pytest.raises(UserError, match=r"no Ray cluster answers at localhost:9 .*ray start --head --port=9"):
        preflight.check_cluster("localhost:9", 1, 1, Path(), [])


def test_a_launcher_without_a_gpu_starts_a_run_on_those_of_a_cluster(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    settings = settings_of("run.device=gpu", "run.processes=8")
    settle_cluster(settings, imagined=False)
    assert (settings.run.processes, settings.run.ray_address) == (8, "head:6379")
    settings.run.processes = None
    with pytest.raises(
        UserError, match=r"run.processes \(N_GPUS\): give the GPUs per node of the cluster at head:6379"
    ):
        settle_cluster(settings, imagined=False)


def test_the_recipe_holds_what_the_weights_depend_on(model, tmp_path):
    def settings(*words):
        given = settings_of("run.device=cpu", *words, model=model, out=tmp_path)
        settle_cluster(given, imagined=True)
        return grpo.make_recipe(configure.grpo_config(given)).settings

    same = settings()
    ours = ("trainer.save_every=5", "trainer.keep=3", "trainer.eval_every=1")
    assert settings(*ours, "verl.ray_kwargs.ray_init.num_cpus=4") == same
    assert not [key for key, value in same.items() if str(model) in str(value) or str(tmp_path) in str(value)]
    for word in ("optim.lr=1e-5", "reward.shape=paper", "verl.trainer.total_epochs=2"):
        assert settings(word) != same
    how = ("trainer.micro_batch_tokens=9000", "model.activation_checkpointing=true", "reward.max_error_rate=0.5")
    for word in (*how, "algorithm.max_generation_batches=7", "rollout.gpu_memory=0.3"):
        assert settings(word) == same, word


def test_a_dry_run_prints_the_whole_command(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("NNODES", raising=False)
    train_grpo(settings_of("run.device=cpu", "dry_run=true", out=tmp_path))
    assert f"-m compositionality.train.verl.grpo_trainer {tmp_path}/config.yaml" in capsys.readouterr().out


def test_a_run_is_called_in_wandb_as_it_lies_or_as_it_is_told(monkeypatch):
    """The single engine's names: tests/train/test_log.py."""
    names = ("WANDB_NAME", "WANDB_RUN_GROUP", "WANDB_JOB_TYPE", "WANDB_ENTITY")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    config, variables = composed(out="results/mine/seed3/rl-level2")
    assert config.trainer.experiment_name == "rl-level2/seed3"
    assert [variables.get(name) for name in names] == [None, "mine", "rl", None]
    assert "WANDB_RUN_GROUP" not in composed(out="OUT")[1]
    for name in names:
        monkeypatch.setenv(name, name.lower())
    config, variables = composed(out="results/mine/seed3/rl-level2")
    assert config.trainer.experiment_name == "wandb_name"
    assert [variables[name] for name in names] == [name.lower() for name in names]
    monkeypatch.setenv("WANDB_SERVICE", "of what starts it")
    assert "WANDB_SERVICE" not in composed()[1]


def test_a_run_has_its_own_tags_in_wandb_and_those_given_also_after_another_in_one_process(monkeypatch, tmp_path):
    for name in RUN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_TAGS", "own")
    monkeypatch.setenv("PROFILE", "tiny")
    rows = problem_file(tmp_path / "rows.parquet")
    words = ("run.device=cpu", "trainer.steps=1", f"data.train_files=[{rows}]")
    for seed, arm in ((3, "rl-level2"), (4, "rl-level1")):
        out = tmp_path / f"mine/seed{seed}/stage2-{arm}"
        train_grpo(settings_of("dry_run=true", *words, out=out))
        _, variables = composed(*words, out=out)
        assert variables["WANDB_TAGS"] == f"tiny,verl,string,{arm},seed{seed},split0,own"


def test_completions_of_steps_and_validations_are_kept_in_the_run_folder():
    trainer, folder = composed("verl.trainer.rollout_data_dir=null")[0].trainer, Path("OUT").absolute()
    assert (trainer.rollout_data_dir, trainer.validation_data_dir) == (None, f"{folder}/validation")
    assert grpo_keys(settings_of("run.device=cpu"))["trainer.rollout_data_dir"] == f"{folder}/rollouts"
