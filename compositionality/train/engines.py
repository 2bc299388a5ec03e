"""The two training programs, whichever engine does the work: what the entry points run and what ``--cfg`` shows."""

import importlib.util
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any

from compositionality.data.artefact import Recipe, is_to_be_checked
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.gpus import count_gpus
from compositionality.rollout.model_folder import resolve_model
from compositionality.train import grpo_settings, sft_settings
from compositionality.train.checks import check_settings
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.launch import check_a_gpu_each, choose_device, count_processes, on_ranks
from compositionality.train.rows import read_messages
from compositionality.train.run_folder import check_run, is_finished
from compositionality.train.sft_settings import SftSettings
from compositionality.train.tiny.settings import PretrainSettings, make_recipe
from compositionality.yaml_files import as_yaml

SLOW_ATTENTION = (
    "model.attention=sdpa: rows are packed, and the attention of a micro-batch grows with the square of "
    "trainer.micro_batch_tokens; flash-attn is faster there: bash bash/setup.sh --flash-attn"
)


def train_grpo(settings: GrpoSettings) -> None:
    """Train ``model.path`` on ``data.train_files``; UserError for settings that this engine cannot have."""
    check_settings(settings)
    settle_files(settings, dry=settings.dry_run)
    _train(settings, grpo_settings.make_recipe)


def train_sft(settings: SftSettings) -> None:
    """Fine-tune ``model.path`` on ``data.train_files``; UserError for settings that this engine cannot have."""
    check_settings(settings)
    settle_files(settings, dry=settings.dry_run)
    if not settings.data.val_files and "RANK" not in os.environ:
        print("no data.val_files: no validation loss is reported", flush=True)
    _train(settings, sft_settings.make_recipe)


def pretrain_tiny(settings: PretrainSettings) -> None:
    """Make the model ``settings.output``; UserError for settings that no run can have."""
    if not skips(Path(settings.output), make_recipe(settings), force=settings.force):
        on_ranks(settings.run, lambda: _be_a_rank(settings))


def skips(target: Path, recipe: Recipe, *, force: bool) -> bool:
    """Ask ``is_finished`` before ranks are started, and torch imported; False on a rank, which checks itself."""
    return "RANK" not in os.environ and target.exists() and is_finished(target, recipe, force=force)


def settle_files(settings: GrpoSettings | SftSettings, *, dry: bool) -> None:
    """Fill in what the files of rows and other runs say: how long to train, on what to validate.

    With ``dry``, what is not there yet is left out.
    """
    if isinstance(settings, GrpoSettings):
        settle_epochs(settings, dry=dry)
    else:
        sft_settings.settle_length(settings, dry=dry)
        sft_settings.settle_validation(settings)


def settle_epochs(settings: GrpoSettings, *, dry: bool) -> None:
    """Set ``trainer.steps`` to at most the whole steps of ``trainer.epochs`` passes, as verl counts them.

    A dry run without the problems leaves it. UserError for problems that make no step.
    """
    data, trainer = settings.data, settings.trainer
    if trainer.epochs is None or not is_to_be_checked(*data.train_files, dry=dry):
        return
    problems = sum(read_problems(Path(path), settings.row_format()).num_rows for path in data.train_files)
    if problems < data.prompts_per_step:
        raise UserError(
            f"{', '.join(data.train_files)}: {problems} problems are less than a step; "
            f"lower data.prompts_per_step={data.prompts_per_step}"
        )
    steps = problems // data.prompts_per_step * trainer.epochs
    trainer.steps = min(trainer.steps or steps, steps)


def show_verl(settings: GrpoSettings | SftSettings) -> str:
    """Return the configuration with which verl would start now, as YAML; what is not there yet stays as it is named.

    Empty with engine=single: its settings are all there is.
    """
    if settings.engine != "verl":
        return ""
    settle_files(settings, dry=True)
    settle_cluster(settings, imagined=True)
    config = _verl_config(settings)  # before omegaconf is imported here: it refuses a wrong antlr4
    from omegaconf import OmegaConf

    from compositionality.train.verl.start import shown

    with redirect_stdout(sys.stderr):
        return OmegaConf.to_yaml(shown(config))


def _verl_config(settings: GrpoSettings | SftSettings) -> Any:
    from compositionality.train.verl.configure import grpo_config, sft_config

    return grpo_config(settings) if isinstance(settings, GrpoSettings) else sft_config(settings)


def settle_cluster(settings: GrpoSettings | SftSettings, *, imagined: bool) -> None:
    """Fill in what the machine and the environment say: device, processes, nodes, Ray's address, attention.

    ``imagined``: for another machine than this one, so that no GPU needs to be here. UserError for a device that is not
    there, or more processes than GPUs (those of a Ray cluster are not counted).
    """
    run = settings.run
    run.ray_address = run.ray_address or os.environ.get("RAY_ADDRESS") or None
    elsewhere = bool(run.ray_address) and run.device == "gpu"
    if not imagined and not elsewhere:
        choose_device(run.device)
    if not imagined and elsewhere and not (run.processes or count_gpus()):
        raise UserError(
            f"run.processes (N_GPUS): give the GPUs per node of the cluster at {run.ray_address}; none is here"
        )
    if run.device == "auto":
        run.device = "gpu" if count_gpus() else "cpu"
    run.processes = count_processes(run)
    run.nodes = run.nodes or int(os.environ.get("NNODES", "1"))
    if not imagined and not run.ray_address:
        check_a_gpu_each(run.device, run.processes)
    check_attention(settings, imagined=imagined or elsewhere)
    settle_attention(settings)
    if settings.engine == "verl" and run.device == "gpu" and not imagined and settings.model.attention == "sdpa":
        print(SLOW_ATTENTION, file=sys.stderr)


def settle_attention(settings: GrpoSettings | SftSettings) -> None:
    """Settle ``model.attention=auto``: flash_attention_2 on a GPU where flash-attn is installed, else sdpa."""
    if settings.model.attention == "auto":
        on_a_cluster = bool(settings.run.ray_address) and settings.run.device == "gpu"
        flash = importlib.util.find_spec("flash_attn") is not None and (on_a_cluster or count_gpus() > 0)
        settings.model.attention = "flash_attention_2" if flash else "sdpa"


def check_attention(settings: GrpoSettings | SftSettings, *, imagined: bool) -> None:
    """Raise UserError for ``model.attention=flash_attention_2`` on a CPU, or on GPUs here without flash-attn."""
    if settings.model.attention != "flash_attention_2":
        return
    fix = "give model.attention=auto, which takes it where it can"
    device, gpus = settings.run.device, count_gpus()
    if device == "cpu" or (device == "auto" and not gpus and not imagined):
        raise UserError(f"model.attention=flash_attention_2: needs a GPU; {fix}")
    if (gpus or not imagined) and importlib.util.find_spec("flash_attn") is None:
        raise UserError(
            f"model.attention=flash_attention_2: flash-attn is not installed; bash bash/setup.sh --flash-attn, or {fix}"
        )


def _train(settings: Any, recipe: Callable[[Any], Recipe]) -> None:
    """Train with the engine that is chosen; in a dry run, which begins with the same checks, show what would run.

    torch is imported by the ranks only: a process that starts them has no use for it.
    """
    if settings.engine == "verl":
        settle_cluster(settings, imagined=settings.dry_run)
        config = _verl_config(settings)  # before the launchers are imported: it refuses a wrong antlr4
        from compositionality.train.verl import grpo, sft

        trainer: Any = grpo if isinstance(settings, GrpoSettings) else sft
        trainer.train(config)
        return
    check_attention(settings, imagined=settings.dry_run)
    if settings.dry_run:
        if is_to_be_checked(settings.model.path, dry=True):
            _read_inputs(settings)
        else:
            _check_files(settings)
        check_run(Path(settings.trainer.output), recipe(settings), force=settings.force)
        print(as_yaml(asdict(settings)), end="")
        return
    if int(os.environ.get("NNODES", "1")) > 1 and "RANK" not in os.environ:
        print(
            "NNODES is left out: engine=single uses this machine; start torchrun on each, or take engine=verl",
            flush=True,
        )
    settle_attention(settings)
    settings.model.path = str(resolve_model(settings.model.path))
    if not skips(Path(settings.trainer.output, "final"), recipe(settings), force=settings.force):
        on_ranks(settings.run, lambda: _be_a_rank(settings))


def _check_files(settings: GrpoSettings | SftSettings) -> None:
    """Raise UserError for a damaged file of rows, of those that are there; the model is not, so none are tokenized."""
    for path in (*settings.data.train_files, *settings.data.val_files):
        if is_to_be_checked(path, dry=True):
            if isinstance(settings, GrpoSettings):
                read_problems(Path(path), settings.row_format())
            else:
                read_messages(Path(path), None, settings.data.columns())


def _be_a_rank(settings: GrpoSettings | SftSettings | PretrainSettings) -> None:
    from compositionality.train.dist import stop_processes
    from compositionality.train.tiny.pretrain import pretrain

    if isinstance(settings, PretrainSettings):
        pretrain(settings)
    else:
        train_on_rank(settings)
    stop_processes()


def train_on_rank(settings: GrpoSettings | SftSettings) -> Path:
    """Read what a run needs and train, as one of the ranks that were started, or alone; return the result."""
    from compositionality.train import grpo, sft
    from compositionality.train.dist import start_processes

    mesh = start_processes(settings.mesh, settings.trainer.threads)
    trainer: Any = grpo if isinstance(settings, GrpoSettings) else sft
    return Path(trainer.train(settings, lambda: _read_inputs(settings), mesh))


def _read_inputs(settings: GrpoSettings | SftSettings) -> Any:
    from compositionality.train.rows import read_grpo_inputs
    from compositionality.train.sft import read_sft_inputs

    return read_grpo_inputs(settings) if isinstance(settings, GrpoSettings) else read_sft_inputs(settings)
