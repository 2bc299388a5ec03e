"""Checks before the first step, an error a line: of both trainers, of SFT, of GRPO."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from compositionality.data.artefact import is_to_be_checked
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.rollout.cluster import check_cluster
from compositionality.rollout.engines.vllm import check_heads
from compositionality.rollout.model_folder import ModelFolder, check_context, check_model, read_config, text_config
from compositionality.train.lora import check_adapters
from compositionality.train.rows import (
    check_generation_prompt,
    check_template,
    load_rows,
    read_messages,
    tokenize_problems,
)
from compositionality.train.settings import LoraSettings
from compositionality.train.verl.memory import check_training
from compositionality.train.verl.prompts import check_problems_last, row_format_of_run

REFUSALS = (AssertionError, ValueError, TypeError, NotImplementedError, HydraException, OmegaConfBaseException)


@contextmanager
def verls_refusals() -> Iterator[None]:
    """Drop what verl prints and make what it raises a UserError of one line."""
    try:
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except REFUSALS as error:
        reason = error.__cause__ or error  # Hydra's names the class that it could not make
        raise UserError(f"verl refuses its configuration: {' '.join(str(reason).split())}") from error


def check_targets(folder: Path, model: DictConfig) -> None:
    """Raise UserError for layers to adapt that the model in ``folder`` does not have."""
    targets = model.get("target_modules") or []
    check_adapters(folder, LoraSettings(model.lora_rank, targets=[] if isinstance(targets, str) else list(targets)))


# ---- SFT


def check_sft_settings(config: DictConfig, ranks: int) -> None:
    """Refuse settings that verl does not take, on ``ranks`` processes; neither the model nor the rows need be there."""
    batch, shared = config.data.train_batch_size, config.engine.ulysses_sequence_parallel_size
    if ranks % shared:
        raise UserError(f"verl.engine.ulysses_sequence_parallel_size={shared} does not divide the {ranks} processes")
    if batch % (ranks // shared):
        raise UserError(f"trainer.batch_rows={batch} is not a multiple of the {ranks // shared} processes")
    if config.data.use_dynamic_bsz and config.data.max_token_len_per_gpu < config.data.max_length:
        raise UserError(
            f"trainer.micro_batch_tokens={config.data.max_token_len_per_gpu} is less than "
            f"data.max_length={config.data.max_length}: a long row would not fit into a micro-batch"
        )
    for key, value in {"pad_mode": "no_padding", "apply_chat_template_kwargs": {}}.items():
        if config.data.custom_cls.path and config.data[key] != value:
            raise UserError(
                f"verl.data.{key}={config.data[key]}: the rows that both engines read do not have it; "
                "verl.data.custom_cls.path=null takes verl's own"
            )
    with verls_refusals():  # the first call imports verl, 4 s of processor time
        from verl.utils.config import omega_conf_to_dataclass

        for part in (config.engine, config.optim, config.checkpoint):
            omega_conf_to_dataclass(part)


def check_sft_inputs(config: DictConfig) -> None:
    """Check the model and the files of an SFT run; in a dry run those that are there."""
    run, data = config.run, config.data
    columns = (data.messages_key, data.prompt_key, data.response_key)
    files = [path for path in (*run.train_files, *run.val_files) if is_to_be_checked(path, dry=run.dry_run)]
    has_model = is_to_be_checked(run.model, dry=run.dry_run)
    if has_model:
        model = check_model(Path(run.model))
        check_context(model, data.max_length, "data.max_length")
        check_template(model.path, model.tokenizer)
        check_targets(model.path, config.model)
        limits = data.max_length, columns, data.truncation
        sizes = {path: len(load_rows(Path(path), model.tokenizer, *limits)) for path in files}
    else:
        sizes = {path: len(read_messages(Path(path), None, columns)) for path in files}
    if sizes.keys() >= {*run.train_files}:
        rows, batch = sum(sizes[path] for path in run.train_files), data.train_batch_size
        if rows < batch:
            names = ", ".join(run.train_files)
            raise UserError(f"{names}: {rows} rows are less than one batch; trainer.batch_rows={batch}")
    if has_model:
        check_training(config)


# ---- GRPO


def check_grpo_settings(config: DictConfig) -> None:
    """Refuse settings that contradict each other."""
    actor, data, run = config.actor_rollout_ref.actor, config.data, config.run
    updates = actor.ppo_epochs * data.train_batch_size != actor.ppo_mini_batch_size
    bypass = config.algorithm.rollout_correction.bypass_mode
    if updates and actor.policy_loss.loss_mode == "on_policy":
        raise UserError(
            "policy_loss.loss_mode=on_policy is for one update per batch; for several give algorithm.updates_per_step"
        )
    if not bypass and actor.policy_loss.loss_mode == "on_policy":
        raise UserError("old log-probabilities would be computed and not used: bypass_mode=true goes with on_policy")
    check_sharing(config)
    if not run.val_files and config.trainer.test_freq > 0:
        raise UserError(f"verl.trainer.test_freq={config.trainer.test_freq} validates, and there is no data.val_files")
    if run.nodes > 1 and not run.ray_address:
        raise UserError(
            f"NNODES={run.nodes} needs a running Ray cluster: ray start --head on one machine, "
            "ray start --address=… on the others, then run.ray_address=HOST:PORT (or RAY_ADDRESS)"
        )
    check_grpo_as_verl_does(config)


def check_sharing(config: DictConfig) -> None:
    """Refuse processes that cannot share responses and layers evenly, and a micro-batch below the longest response."""
    actor, data, rollout = config.actor_rollout_ref.actor, config.data, config.actor_rollout_ref.rollout
    ranks = config.trainer.n_gpus_per_node * config.trainer.nnodes
    for prompts, part in ((data.train_batch_size, "a step"), (actor.ppo_mini_batch_size, "an update")):
        if prompts * rollout.n % ranks:
            raise UserError(
                f"data.prompts_per_step × rollout.n = {prompts * rollout.n} responses (of {part}) cannot be shared "
                f"evenly by {ranks} processes; change either, or algorithm.updates_per_step"
            )
    if ranks % rollout.tensor_model_parallel_size:
        raise UserError(f"mesh.tensor={rollout.tensor_model_parallel_size} does not divide the {ranks} processes")
    longest = data.max_prompt_length + data.max_response_length
    if actor.use_dynamic_bsz and actor.ppo_max_token_len_per_gpu < longest:
        raise UserError(
            f"verl.actor_rollout_ref.actor.ppo_max_token_len_per_gpu={actor.ppo_max_token_len_per_gpu} is less than "
            f"data.max_prompt_tokens + rollout.max_tokens = {longest}: a long response would not fit into a micro-batch"
        )


def check_grpo_as_verl_does(config: DictConfig) -> None:
    """Raise UserError for what verl's own checks refuse; they need neither model nor data nor GPUs.

    The first call imports verl, 5 s of processor time.
    """
    with verls_refusals():
        from verl.trainer.ppo.utils import need_critic, need_reference_policy
        from verl.utils.config import omega_conf_to_dataclass, validate_config

        critic = need_critic(config) and Path(config.run.model).is_dir()  # it reads the model, which a dry run may lack
        validate_config(config, use_reference_policy=need_reference_policy(config), use_critic=critic)
        for part in (config.actor_rollout_ref.rollout, config.algorithm):
            omega_conf_to_dataclass(part)


def check_layers(model: Path, tensor: int) -> None:
    """Raise UserError unless ``tensor`` ranks of vLLM can share the attention heads of a model."""
    config = text_config(read_config(model))
    heads = config.get("num_attention_heads")
    groups = config.get("num_key_value_heads") or heads
    if not isinstance(heads, int) or not isinstance(groups, int):
        return
    if heads % tensor or (groups % tensor and tensor % groups):
        raise UserError(f"mesh.tensor={tensor} does not divide the {heads} heads, {groups} for keys, of {model}")


def check_grpo_model(config: DictConfig) -> ModelFolder:
    """Return the model of a GRPO run. Raise UserError for one that cannot be sampled, or not trained so."""
    run, rollout = config.run, config.actor_rollout_ref.rollout
    model = check_model(Path(run.model), chat_template=run.apply_chat_template)
    if rollout.name == "vllm":
        check_heads(model.path, "engine=single")
    check_layers(model.path, rollout.tensor_model_parallel_size)
    check_generation_prompt(model.path, model.tokenizer)
    check_targets(model.path, config.actor_rollout_ref.model)
    longest = config.data.max_prompt_length + config.data.max_response_length
    check_context(model, longest, "data.max_prompt_tokens + rollout.max_tokens")
    return model


def check_grpo_inputs(config: DictConfig) -> None:
    """Check the model, the files and the cluster of a GRPO run; in a dry run the inputs that are there."""
    run, form = config.run, row_format_of_run(config.run)
    files = [path for path in (*run.train_files, *run.val_files) if is_to_be_checked(path, dry=run.dry_run)]
    has_model = is_to_be_checked(run.model, dry=run.dry_run)
    if has_model:
        tokenizer, limit = check_grpo_model(config).tokenizer, config.data.max_prompt_length  # verl would cut prompts
        sizes = {path: len(tokenize_problems([path], tokenizer, limit, row_format=form)) for path in files}
    else:
        sizes = {path: read_problems(Path(path), form).num_rows for path in files}
    if is_to_be_checked(*run.train_files, dry=run.dry_run):
        names, problems = ", ".join(run.train_files), sum(sizes[path] for path in run.train_files)
        if problems < (batch := run.generation_batch_size):
            raise UserError(
                f"{names}: {problems} problems are less than the rollout.generation_batch={batch} that a step asks; "
                "give more problems, or lower it and data.prompts_per_step"
            )
        steps = None if run.epochs else config.trainer.total_training_steps
        check_problems_last(names, problems, config.trainer.total_epochs, batch, steps)
    if has_model:
        check_training(config, sizes)
    if run.ray_address and not run.dry_run:  # a dry run may be for another machine
        places = map(Path, [run.model, *run.train_files, *run.val_files])
        check_cluster(run.ray_address, run.nodes, run.processes, Path(run.output), [*places])
