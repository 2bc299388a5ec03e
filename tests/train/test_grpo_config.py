"""The GRPO configuration composes against the pinned verl, for every kind of machine, and says what is wrong early."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sft_assets import make_model

from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.train.verl import grpo, grpo_preflight, launch
from compositionality.types import Problem

PAPER = ["device=gpu", "lab.reward_shape=paper", "lab.generation_batch_size=32"]
MACHINES = {
    "two cores": ["device=cpu", "data.max_prompt_length=64", "data.max_response_length=128"],
    "one GPU": [*PAPER, "lab.processes=1"],
    "8 GPUs": [*PAPER, "lab.processes=8"],
    "2 nodes of 8 GPUs": [*PAPER, "lab.processes=8", "lab.nodes=2", "lab.ray_address=head:6379"],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("grpo") / "model")


def problem_file(path: Path, rows: int = 40, prompt: str = "func_1func_2:abc") -> Path:
    truth = json.dumps({"ref_output": "abc", "style": "compact"})
    problems = [Problem("string-trained-level2", 2, "trained", prompt, truth, number) for number in range(rows)]
    pq.write_table(to_table(problems, "train"), path)
    return path


def composed(*words, model="models/base", out="OUT"):
    files = ["lab.train_files=[a.parquet,b.parquet]", "lab.val_file=c.parquet"]
    config = launch.compose_config("grpo", [f"lab.model={model}", f"lab.output={out}", *files, *words])
    variables = launch.environment(config, Path(out))
    grpo.settle(config, Path(out).absolute(), variables)
    grpo_preflight.check_settings(config)
    return config, variables


@pytest.mark.parametrize("machine", MACHINES)
def test_p12_verl_takes_the_configuration(machine, model, monkeypatch):
    from verl.utils.config import omega_conf_to_dataclass

    from compositionality.train.verl.grpo_trainer import check

    for name in ("VERL_PLATFORM", "NNODES", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    config, _ = composed(*MACHINES[machine], model=model)
    check(config)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    assert (actor.strategy, actor.policy_loss.loss_mode, actor.loss_agg_mode) == ("fsdp2", "on_policy", "token-mean")
    assert (rollout.name, rollout.tensor_model_parallel_size) == ("vllm", 1)
    assert config.trainer.n_gpus_per_node * config.trainer.nnodes == (
        16 if "nodes" in machine else 8 if "8" in machine else 1
    )


def test_the_papers_values_are_the_defaults(monkeypatch):
    from verl.trainer.ppo.utils import need_critic, need_reference_policy

    monkeypatch.delenv("NNODES", raising=False)
    config, _ = composed(*PAPER, "lab.processes=8")
    actor, rollout, filters = (
        config.actor_rollout_ref.actor,
        config.actor_rollout_ref.rollout,
        config.algorithm.filter_groups,
    )
    assert (config.data.train_batch_size, actor.ppo_mini_batch_size, rollout.n) == (16, 16, 16)
    assert (config.data.max_prompt_length, config.data.max_response_length) == (1024, 8192)
    assert (actor.optim.lr, actor.optim.clip_grad, actor.clip_ratio_low, actor.clip_ratio_high) == (1e-6, 1.0, 0.2, 0.2)
    assert (actor.entropy_coeff, actor.use_kl_loss, config.algorithm.use_kl_in_reward) == (0, False, False)
    assert (rollout.temperature, rollout.top_p, rollout.top_k, rollout.gpu_memory_utilization) == (1.0, 1.0, -1, 0.8)
    assert (filters.enable, filters.metric, filters.max_num_gen_batches) == (True, "acc", 10)
    assert (config.trainer.save_freq, config.trainer.test_freq, config.trainer.total_epochs) == (25, 25, 1)
    assert (actor.fsdp_config.param_offload, actor.fsdp_config.optimizer_offload) == (True, True)
    assert (actor.use_dynamic_bsz, actor.ppo_max_token_len_per_gpu, rollout.enable_prefix_caching) == (
        True,
        17408,
        True,
    )
    assert not need_reference_policy(config)
    assert not need_critic(config)
    assert config.algorithm.rollout_correction.bypass_mode


def test_ray_sees_a_device_for_every_slot_of_a_cpu_and_nobody_a_real_one(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # as bash/lib.sh sets it
    for processes in (1, 2):
        _, variables = composed("device=cpu", f"lab.processes={processes}")
        assert variables["CUDA_VISIBLE_DEVICES"].split(",") == ["-1"] * processes


def test_nodes_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("NNODES", "3")
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    config, variables = composed(*PAPER, "lab.processes=4", "data.train_batch_size=48")
    assert (config.trainer.nnodes, config.ray_kwargs.ray_init.address) == (3, "head:6379")
    assert config.ray_kwargs.ray_init.runtime_env.env_vars.VERL_USE_EXTERNAL_MODULES
    assert variables["VERL_USE_EXTERNAL_MODULES"] == "compositionality.train.verl.metrics"
    monkeypatch.delenv("RAY_ADDRESS")
    with pytest.raises(UserError, match="NNODES=3 needs a running Ray cluster"):
        composed(*PAPER, "lab.processes=4", "data.train_batch_size=48")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["actor_rollout_ref.actor.ppo_mini_batch_size=8"], "on_policy is for one update per batch"),
        (["actor_rollout_ref.actor.ppo_epochs=2"], "on_policy is for one update per batch"),
        (["algorithm.rollout_correction.bypass_mode=false"], "computed and not used"),
        (["lab.reward_shape=square"], "'square' is not one of binary, paper"),
        (["lab.processes=7"], "256 responses cannot be shared evenly by 7 processes"),
        (["actor_rollout_ref.rollout.m=1"], "Could not override"),
    ],
)
def test_p18_settings_that_contradict_each_other(words, said, monkeypatch):
    monkeypatch.delenv("NNODES", raising=False)
    with pytest.raises(UserError, match=said) as error:
        composed("device=cpu", *words)
    assert "\n" not in str(error.value)


def test_p18_trouble_with_files_is_told_before_the_start(model, tmp_path):
    good = problem_file(tmp_path / "good.parquet")
    long = problem_file(tmp_path / "long.parquet", prompt="func_1" * 40 + ":abc")
    cases = {
        "no such file": [tmp_path / "absent.parquet"],
        r"40 of 40 prompts are longer than data.max_prompt_length=64 tokens \(longest \d+, first is row 0\)": [
            good,
            long,
        ],
        r"40 problems are less than one generation batch": [good],
    }
    for said, files in cases.items():
        more = ["lab.generation_batch_size=50"] if "less than" in said else []
        config, _ = composed(*MACHINES["two cores"], *more, model=model, out=tmp_path / "out")
        config.lab.train_files, config.lab.val_file = [str(path) for path in files], str(good)
        with pytest.raises(UserError, match=said):
            grpo_preflight.check_everything(config)


def test_p18_no_cluster_at_the_address():
    with pytest.raises(UserError, match=r"no Ray cluster answers at localhost:9 .*ray start --head --port=9"):
        grpo_preflight.check_cluster("localhost:9")
    with pytest.raises(UserError, match="'head' is not HOST:PORT"):
        grpo_preflight.check_cluster("head")


def test_the_recipe_holds_what_the_weights_depend_on(model, tmp_path):
    def settings(*words):
        return grpo.make_recipe(composed("device=cpu", *words, model=model, out=tmp_path)[0]).settings

    same = settings("trainer.save_freq=5", "lab.keep=3", "ray_kwargs.ray_init.num_cpus=4", "trainer.test_freq=1")
    assert same == settings()
    assert not [key for key, value in same.items() if str(model) in str(value) or str(tmp_path) in str(value)]
    for word in (
        "actor_rollout_ref.actor.optim.lr=1e-5",
        "data.seed=2",
        "lab.reward_shape=paper",
        "trainer.total_epochs=2",
    ):
        assert settings(word) != settings()


def test_a_dry_run_prints_the_whole_command(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("NNODES", raising=False)
    words = ["lab.model=M", f"lab.output={tmp_path}", "lab.train_files=[a]", "lab.val_file=b", "lab.dry_run=true"]
    grpo.train(launch.compose_config("grpo", words))
    assert f"-m compositionality.train.verl.grpo_trainer {tmp_path}/config.yaml" in capsys.readouterr().out


def test_nowhere_a_literal_number_of_gpus():
    for path in launch.CONFIG_DIR.rglob("grpo*.yaml"):
        assert "gpus_per_node: 8" not in path.read_text()
