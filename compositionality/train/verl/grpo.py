"""GRPO with verl: check, train (or go on), export the last model and the best."""

import sys
from pathlib import Path

from omegaconf import DictConfig, OmegaConf, open_dict

from compositionality.data.artefact import Recipe, exclusive, is_done
from compositionality.errors import UserError
from compositionality.train.common.checkpoints import folder, publish_models, resume, scores
from compositionality.train.common.metrics import loggers
from compositionality.train.common.run_folder import flatten, latest_step
from compositionality.train.verl import launch
from compositionality.train.verl.export import export
from compositionality.train.verl.grpo_preflight import check_everything, check_settings

MODULE = "compositionality.train.verl.grpo_trainer"
FINISHED = "finished"
FORWARDED = ("VERL_", "VLLM_", "COMPOSITIONALITY_", "TENSORBOARD_DIR", "OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM")
SETTINGS_OF_OURS = ("reward_shape", "generation_batch_size", "max_error_rate", "dtype")
SETTINGS_OF_VERL = ("data", "algorithm", "actor_rollout_ref", "trainer.total_", "trainer.nnodes", "trainer.n_gpus")
NOT_THE_RESULT = (
    "data.train_files",
    "data.val_files",
    "data.dataloader_num_workers",
    "actor_rollout_ref.model.path",
    "actor_rollout_ref.rollout.gpu_memory_utilization",
    "actor_rollout_ref.rollout.val_kwargs",
    "actor_rollout_ref.rollout.prometheus",  # verl puts the model's path there
)


def train(config: DictConfig) -> None:
    """Train ``lab.model`` on ``lab.train_files``; the results are ``lab.output/final`` and ``lab.output/best``."""
    out = Path(config.lab.output).absolute()
    variables = launch.environment(config, out)
    settle(config, out, variables)
    check_settings(config)
    command = [sys.executable, "-m", MODULE, str(out / "config.yaml")]
    if config.lab.dry_run:
        print(launch.shell_line(command, variables))
        return
    recipe = make_recipe(config)
    if is_done(out / "final", recipe, force=config.lab.force):
        print(f"{config.lab.output}/final is already there")
        return
    with exclusive(out):
        check_everything(config)
        _train(config, recipe, command, variables, out)
        _export(config, recipe, out)


def make_recipe(config: DictConfig) -> Recipe:
    """What the trained weights depend on."""
    flat = flatten(OmegaConf.to_container(config, resolve=True))
    chosen = (*SETTINGS_OF_VERL, *(f"lab.{key}" for key in SETTINGS_OF_OURS))
    settings = {
        key: value
        for key, value in flat.items()
        if key.startswith(chosen) and not key.startswith(NOT_THE_RESULT) and ".profiler." not in key
    }
    files = {f"train_file_{number}": Path(path) for number, path in enumerate(config.lab.train_files)}
    return Recipe("train_grpo", settings, {"model": Path(config.lab.model), **files})


def settle(config: DictConfig, out: Path, variables: dict[str, str]) -> None:
    """Fill in what follows from our own settings, the machine and the environment."""
    if isinstance(config.lab.train_files, str):
        config.lab.train_files = [config.lab.train_files]
    with open_dict(config):
        _settle_paths(config, out)
        _settle_hardware(config, variables)
        _settle_rollouts(config)
        _settle_ray(config, variables)
        config.trainer.logger = loggers(list(config.trainer.logger), variables)


def _settle_paths(config: DictConfig, out: Path) -> None:
    """Absolute paths: on a cluster verl's processes start elsewhere."""
    config.trainer.default_local_dir = str(out / "steps")
    config.actor_rollout_ref.model.path = str(Path(config.lab.model).absolute())
    config.data.train_files = [str(Path(path).absolute()) for path in config.lab.train_files]
    config.data.val_files = [str(Path(config.lab.val_file).absolute())]


def _settle_hardware(config: DictConfig, variables: dict[str, str]) -> None:
    config.lab.processes = count_gpus(config)
    launch.settle_attention(config.lab, config.actor_rollout_ref.model)
    if config.lab.device == "cpu":
        actor, longest = config.actor_rollout_ref.actor, config.data.max_prompt_length + config.data.max_response_length
        actor.ppo_max_token_len_per_gpu = max(actor.ppo_max_token_len_per_gpu, longest)
        # Ray wants a visible GPU for each of its slots, and nobody may find a real one: none has this number.
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(["-1"] * config.lab.processes)
        variables.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
        variables.setdefault("TQ_NUM_THREADS", "1")  # of the store; it warns at every access if there are fewer cores


def count_gpus(config: DictConfig) -> int:
    """Training processes on each machine: as given, or one for every GPU of this one."""
    if config.lab.processes != "auto":
        return int(config.lab.processes)
    import torch

    found = torch.cuda.device_count()
    if not found and not config.lab.dry_run:
        raise UserError("device=gpu, but no GPU is visible; use device=cpu, or set lab.processes")
    return found or 1


def _settle_rollouts(config: DictConfig) -> None:
    rollout, data, lab = config.actor_rollout_ref.rollout, config.data, config.lab
    if rollout.max_model_len is None:
        rollout.max_model_len = data.max_prompt_length + data.max_response_length
    if lab.device == "cpu":
        # A prompt that the token budget splits kills vLLM's CPU build when its request has a seed.
        rollout.max_num_batched_tokens = rollout.max_num_seqs * data.max_prompt_length
    if not config.algorithm.filter_groups.enable:
        config.trainer.v1.sampler.sampler_kwargs.metric = None
    if lab.generation_batch_size is None:
        lab.generation_batch_size = data.train_batch_size * (2 if config.algorithm.filter_groups.enable else 1)


def _settle_ray(config: DictConfig, variables: dict[str, str]) -> None:
    """Join the cluster at ``lab.ray_address``, or start one on this machine, whatever else runs on it."""
    ray = config.ray_kwargs.ray_init
    ray.address = config.lab.ray_address or "local"
    if config.lab.ray_address:
        for key in ("num_cpus", "num_gpus", "include_dashboard"):  # the cluster's own business
            ray.pop(key, None)
        ray.runtime_env.env_vars = {name: variables[name] for name in variables if name.startswith(FORWARDED)}


def _train(config: DictConfig, recipe: Recipe, command: list[str], variables: dict[str, str], out: Path) -> None:
    """Train from the last complete checkpoint to the end, unless that has been reached."""
    steps = out / "steps"
    resumed = resume(out, recipe, force=config.lab.force)
    if (steps / FINISHED).is_file():
        return
    config.trainer.resume_mode = "disable"
    if resumed:
        config.trainer.resume_mode = "resume_path"
        config.trainer.resume_from_path = str(folder(steps, resumed))
    if resumed in scores(steps):
        config.trainer.val_before_train = False
    launch.write_config(config, out / "config.yaml")
    launch.run_trainer(
        command,
        variables,
        name="GRPO",
        log=out / "train.log",
        stall_minutes=config.lab.stall_minutes + 1,
        steps=config.trainer.total_training_steps,
    )


def _export(config: DictConfig, recipe: Recipe, out: Path) -> None:
    """Model folders of the last step and of the best by validation."""
    if not latest_step(out / "steps"):
        raise UserError(f"{out}: no checkpoint was saved; set trainer.save_freq to at most the number of steps")
    publish_models(
        out, recipe, lambda path, target: export(path, target, config.lab.dtype), keep_best=config.lab.keep_best
    )
