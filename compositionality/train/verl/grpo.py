"""Train with verl's GRPO: check, start or go on, export the last model and the best."""

import sys
from functools import partial
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from compositionality.data.artefact import Recipe, exclusive, name_inputs
from compositionality.data.row_format import RowSettings
from compositionality.errors import UserError
from compositionality.reward.function import FunctionSettings
from compositionality.train.boards import send_models
from compositionality.train.run_folder import (
    FINISHED,
    check_run,
    flatten,
    is_finished,
    latest_step,
    publish_models,
    resume,
)
from compositionality.train.verl import launch
from compositionality.train.verl.export import export
from compositionality.train.verl.preflight import check_grpo_inputs, check_grpo_settings
from compositionality.train.verl.prompts import problem_files, row_format_of_run, write_rows
from compositionality.train.verl.start import RunContext, context_of, final, find_run, validation_of

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
    check_grpo_settings(config)
    command = [sys.executable, "-m", MODULE, str(out / "config.yaml")]
    if run.dry_run:
        check_grpo_inputs(config)
    context = context_of(config, variables, dry=run.dry_run)
    recipe = make_recipe(final(config, context))
    if run.dry_run:
        check_run(out, recipe, force=run.force)
        print(launch.shell_line(command, variables))
        return
    if is_finished(out / "final", recipe, force=run.force):
        return
    with exclusive(out):  # no artefact.make: it holds two models and the checkpoints that they come from
        check_grpo_inputs(final(config, context))
        _train(config, context, recipe, command, variables, out)
        if not latest_step(out / "steps"):
            raise UserError(f"{out}: no checkpoint was saved; set trainer.save_every to at most the number of steps")
        write = partial(export, dtype=run.export_dtype)
        publish_models(out, recipe, write, keep_best=run.keep_best)
        send_models(out, "rl", recipe)


def make_recipe(config: DictConfig) -> Recipe:
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


def _train(
    config: DictConfig, context: RunContext, recipe: Recipe, command: list[str], variables: dict[str, str], out: Path
) -> None:
    """Train from the last complete checkpoint to the end, unless that has been reached."""
    resume(out, recipe, force=config.run.force, validation=validation_of(config))
    if (out / "steps" / FINISHED).is_file():
        return
    run, ready = config.run, final(config, find_run(config, context, dry=False))
    for name, paths in problem_files(run).items():
        write_rows(paths, row_format_of_run(run), ready.data[name])
    launch.write_config(ready, out / "config.yaml")
    minutes, count = run.stall_minutes + 1, ready.trainer.total_training_steps
    launch.run_trainer(command, variables, name="GRPO", log=out / "train.log", stall_minutes=minutes, steps=count)
