"""The configuration of a start: that of the settings (configure.py), with what the start finds; ``--cfg`` shows it."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

from omegaconf import DictConfig, open_dict

from compositionality.data.artefact import is_to_be_checked
from compositionality.data.parquet import count_rows
from compositionality.rollout.cluster import worker_variables
from compositionality.rollout.model_folder import check_model, resolve_model
from compositionality.train.log import loggers
from compositionality.train.run_folder import complete_steps, folder, latest_step, scores, validated_on
from compositionality.train.verl import launch
from compositionality.train.verl.prompts import files_for_verl, problem_files, row_format_of_run


@dataclass(frozen=True)
class RunContext:
    """Facts of the environment and the disk that are not in the settings."""

    loggers: Sequence[str]  # that can be used here
    workers: Mapping[str, str]  # the environment of Ray's workers on a cluster
    model: str  # its folder
    chat_template: str | None = None  # of the tokenizers that verl loads and saves; None: the model's own
    files: Mapping[str, list[str] | None] = field(default_factory=dict)  # of rows, as verl reads them; None: no such
    checkpoint: Path | None = None  # to go on from
    validated: bool = False  # the checkpoint has been, before the run was stopped


def final(config: DictConfig, context: RunContext) -> DictConfig:
    """Return the configuration that verl's trainer gets; ``config``, of the settings, stays as it is."""
    ready = deepcopy(config)
    is_rl, trainer = "algorithm" in config, ready.trainer
    model = ready.actor_rollout_ref.model if is_rl else ready.model
    with open_dict(ready):
        trainer.logger = [*context.loggers]
        ready.run.model = model.path = context.model
        if context.chat_template is not None:
            model.custom_chat_template = context.chat_template
        if is_rl and ready.run.ray_address:
            ready.ray_kwargs.ray_init.runtime_env.env_vars = {**context.workers}
        for name, paths in context.files.items():
            ready.data[name] = paths
            if paths is None:
                trainer.test_freq = -1  # verl reads the validation set whenever this is positive
        if context.checkpoint:
            trainer.resume_mode, trainer.resume_from_path = "resume_path", str(context.checkpoint)
        elif is_rl:
            trainer.resume_mode = "disable"
        if context.validated:
            trainer.val_before_train = False
    return ready


def context_of(config: DictConfig, variables: Mapping[str, str], *, dry: bool) -> RunContext:
    """Find what a run is recognised by, and the loggers; ``dry``: what is not there yet stays as it is named."""
    run, is_rl = config.run, "algorithm" in config
    model = Path(run.model).expanduser()
    if not dry or model.is_dir():
        model = resolve_model(run.model).absolute()
    template = None
    if is_rl and not run.apply_chat_template and is_to_be_checked(run.model, dry=dry):
        template = check_model(model, chat_template=False).tokenizer.chat_template
    files: dict[str, list[str] | None] = {} if is_rl else {"val_files": files_to_validate(config)}
    names = loggers(list(config.trainer.logger), variables)
    return RunContext(names, worker_variables(variables), str(model), template, files)


def find_run(config: DictConfig, context: RunContext, *, dry: bool) -> RunContext:
    """Add what the run folder says, once ``resume`` has repaired it, and of RL the files in verl's schema."""
    run, out = config.run, Path(config.run.output).absolute()
    steps, is_rl = out / "steps", "algorithm" in config
    step = max(complete_steps(steps), default=0) if is_rl else latest_step(steps)
    context = replace(context, checkpoint=folder(steps, step) if step and not run.force else None)
    if not is_rl:
        return context
    form = row_format_of_run(run)
    files = {
        name: files_for_verl(paths, form, out / "rows" / name)
        for name, paths in problem_files(run).items()
        if is_to_be_checked(*paths, dry=dry)
    }
    scored = scores(steps, validation_of(config)) if is_to_be_checked(*run.val_files, dry=dry) else {}
    return replace(context, files=files, validated=step in scored and not run.force)


def validation_of(config: DictConfig) -> str:
    """Return what a run's scores stand on."""
    data, rollout = config.data, config.actor_rollout_ref.rollout
    return validated_on(config.run.val_files, data.val_max_samples, rollout.val_kwargs.n)


def shown(config: DictConfig) -> DictConfig:
    """Return the configuration with which a run would start now; nothing is written or downloaded."""
    variables = launch.environment(config, Path(config.run.output).absolute())
    return final(config, find_run(config, context_of(config, variables, dry=True), dry=True))


def files_to_validate(config: DictConfig) -> list[str] | None:
    """Return the files if they hold a batch: verl drops an incomplete one and fails without any."""
    paths, batch = [Path(path) for path in config.run.val_files], config.data.train_batch_size
    if not all(path.is_file() for path in paths):  # the checks report it; in a dry run it may be made later
        return [str(path.absolute()) for path in paths]
    rows = sum(map(count_rows, paths))
    if paths and rows < batch:
        files = ", ".join(config.run.val_files)
        print(f"{files}: {rows} rows, less than one batch of {batch}: no validation loss", flush=True)
    return [str(path.absolute()) for path in paths] if rows >= batch else None
