"""Train with verl's GRPO: check, start or go on, export the last model and the best."""

import sys
from functools import partial
from pathlib import Path

from omegaconf import DictConfig, OmegaConf, open_dict

from compositionality.data.artefact import Recipe, exclusive, is_to_be_checked, name_inputs
from compositionality.data.row_format import RowSettings
from compositionality.errors import UserError
from compositionality.reward.function import FunctionSettings
from compositionality.rollout.cluster import worker_variables
from compositionality.rollout.model_folder import check_model
from compositionality.train.log import loggers
from compositionality.train.run_folder import (
    FINISHED,
    check_run,
    flatten,
    folder,
    is_finished,
    latest_step,
    publish_models,
    resume,
    scores,
    validated_on,
)
from compositionality.train.verl import launch
from compositionality.train.verl.export import export
from compositionality.train.verl.preflight import check_grpo_inputs, check_grpo_settings
from compositionality.train.verl.prompts import files_for_verl, row_format_of_run
from compositionality.train.wandb_runs import send_models

MODULE = "compositionality.train.verl.grpo_trainer"
SETTINGS_OF_OURS = ("reward_shape", "generation_batch_size", "export_dtype", "rows")
SETTINGS_OF_VERL = ("data", "algorithm", "actor_rollout_ref", "trainer.total_", "trainer.nnodes", "trainer.n_gpus")
LEFT_OUT = (
    "data.train_files",
    "data.val_files",
    "run.rows.prompt_template",
    "data.dataloader_num_workers",
    "actor_rollout_ref.model.path",
    "critic.model.path",
    "critic.model.tokenizer_path",
    "actor_rollout_ref.rollout.gpu_memory_utilization",
    "actor_rollout_ref.rollout.val_kwargs",
    "actor_rollout_ref.rollout.prometheus",  # verl puts the model's path there
    "algorithm.filter_groups.max_num_gen_batches",
)
"""Begins keys of those sections on which the trained weights do not depend."""
HOW_IT_COMPUTES = ("max_token_len_per_gpu", "enable_gradient_checkpointing")
"""Ends of keys that another machine, or less memory, may change."""


def train(config: DictConfig) -> None:
    """Train ``run.model`` on ``run.train_files``; the results are ``final`` and ``best`` in ``run.output``."""
    run, out = config.run, Path(config.run.output).absolute()
    variables = launch.environment(config, out)
    settle(config, variables)
    check_grpo_settings(config)
    command = [sys.executable, "-m", MODULE, str(out / "config.yaml")]
    if run.dry_run:
        check_grpo_inputs(config)
        if is_to_be_checked(run.model, dry=True):
            settle_template(config)
        check_run(out, make_recipe(config), force=run.force)
        print(launch.shell_line(command, variables))
        return
    launch.settle_model(run, config.actor_rollout_ref.model)
    settle_template(config)
    recipe = make_recipe(config)
    if is_finished(out / "final", recipe, force=run.force):
        return
    with exclusive(out):  # no artefact.make: it holds two models and the checkpoints that they come from
        check_grpo_inputs(config)
        _train(config, recipe, command, variables, out)
        if not latest_step(out / "steps"):
            raise UserError(f"{out}: no checkpoint was saved; set trainer.save_every to at most the number of steps")
        write = partial(export, dtype=run.export_dtype)
        publish_models(out, recipe, write, keep_best=run.keep_best)
        send_models(out, "rl", recipe)


def make_recipe(config: DictConfig) -> Recipe:
    """Return what the trained weights depend on."""
    flat = flatten(OmegaConf.to_container(config, resolve=True))
    critic = ("critic",) if config.algorithm.adv_estimator == "gae" else ()
    chosen = (*SETTINGS_OF_VERL, *critic, *(f"run.{key}" for key in SETTINGS_OF_OURS))
    settings = {
        key: value
        for key, value in flat.items()
        if key.startswith(chosen)
        and not key.startswith(LEFT_OUT)
        and not key.endswith(HOW_IT_COMPUTES)
        and ".profiler." not in key
    }
    settings["train_files"] = names = name_inputs("train_files", config.run.train_files)  # in the order of the problems
    files = dict(zip(names, map(Path, config.run.train_files), strict=True))
    files |= RowSettings(**config.run.rows).inputs() | FunctionSettings(config.run.reward_function).inputs()
    return Recipe("train_grpo", settings, {"model": Path(config.run.model), **files})


def settle(config: DictConfig, variables: dict[str, str]) -> None:
    """Fill in what the environment says: loggers, and the variables of Ray's workers on a cluster."""
    with open_dict(config):
        config.trainer.logger = loggers(list(config.trainer.logger), variables)
        if config.run.ray_address:
            config.ray_kwargs.ray_init.runtime_env.env_vars = worker_variables(variables)


def settle_template(config: DictConfig) -> None:
    """Give the tokenizers that verl loads and saves a template of no text with ``data.apply_chat_template=false``."""
    if not config.run.apply_chat_template:
        model = check_model(Path(config.run.model), chat_template=False)
        config.actor_rollout_ref.model.custom_chat_template = model.tokenizer.chat_template


def _train(config: DictConfig, recipe: Recipe, command: list[str], variables: dict[str, str], out: Path) -> None:
    """Train from the last complete checkpoint to the end, unless that has been reached."""
    run, trainer, steps = config.run, config.trainer, out / "steps"
    scored = validated_on(run.val_files, config.data.val_max_samples, config.actor_rollout_ref.rollout.val_kwargs.n)
    resumed = resume(out, recipe, force=run.force, validation=scored)
    if (steps / FINISHED).is_file():
        return
    trainer.resume_mode = "disable"
    if resumed:
        trainer.resume_mode = "resume_path"
        trainer.resume_from_path = str(folder(steps, resumed))
    if resumed in scores(steps):
        trainer.val_before_train = False
    form = row_format_of_run(run)
    for name, paths in (("train_files", run.train_files), ("val_files", run.val_files or run.train_files[:1])):
        config.data[name] = files_for_verl(paths, form, out / "rows" / name)
    launch.write_config(config, out / "config.yaml")
    minutes, count = run.stall_minutes + 1, trainer.total_training_steps
    launch.run_trainer(command, variables, name="GRPO", log=out / "train.log", stall_minutes=minutes, steps=count)
