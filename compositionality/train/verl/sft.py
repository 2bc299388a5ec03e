"""Supervised fine-tuning with verl: check, train (or go on), export."""

import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from omegaconf import DictConfig, open_dict

from compositionality.data.artefact import Recipe, exclusive, is_done, new_artefact
from compositionality.errors import UserError
from compositionality.train.common.checkpoints import resume
from compositionality.train.common.metrics import loggers
from compositionality.train.common.run_folder import latest_step
from compositionality.train.verl import launch
from compositionality.train.verl.export import export
from compositionality.train.verl.preflight import check_model_and_data
from compositionality.train.verl.recipe import result_settings

MODULE = "compositionality.train.verl.sft_trainer"


def train(config: DictConfig) -> None:
    """Train ``lab.model`` on ``lab.train_file``; the result is the model folder ``lab.output/final``."""
    out = Path(config.lab.output)
    variables = launch.environment(config, out)
    processes = count_processes(config)
    settle(config, out, variables)
    command = torchrun(config, out / "config.yaml", processes)
    if config.lab.dry_run:
        print(launch.shell_line(command, variables))
        return
    if processes is None:
        raise UserError("device=gpu, but no GPU is visible; use device=cpu, or set lab.processes")
    ranks = processes * config.lab.nodes
    recipe = make_recipe(config, ranks)
    if is_done(out / "final", recipe, force=config.lab.force):
        print(f"{out / 'final'} is already there")
        return
    if config.lab.node_rank > 0:  # node 0 checks, writes the configuration and exports; torchrun waits for it
        _run(config, command, variables, out, name=f"SFT on node {config.lab.node_rank}")
        return
    with exclusive(out):
        check_model_and_data(config, ranks)
        _train_and_export(config, recipe, command, variables, out)


def make_recipe(config: DictConfig, ranks: int) -> Recipe:
    """What the trained weights depend on."""
    settings: dict[str, Any] = {**result_settings(config), "processes": ranks, "dtype": config.lab.dtype}
    return Recipe("train_sft", settings, {"model": Path(config.lab.model), "train_file": Path(config.lab.train_file)})


def settle(config: DictConfig, out: Path, variables: dict[str, str]) -> None:
    """Fill in what follows from our own settings and the environment."""
    validate = enough_for_validation(config)
    with open_dict(config):
        config.trainer.default_local_dir = str(out / "steps")
        config.trainer.logger = loggers(list(config.trainer.logger), variables)
        launch.settle_attention(config.lab, config.model)
        config.data.val_files = [config.lab.val_file] if validate else None
        if not validate:
            config.trainer.test_freq = -1  # verl reads the validation set whenever this is positive


def enough_for_validation(config: DictConfig) -> bool:
    """verl drops an incomplete batch, also in validation, and stumbles over an empty one."""
    path = Path(config.lab.val_file) if config.lab.val_file else None
    if path is None or not path.is_file():
        return path is not None  # a missing file is told by the checks, or is made later (dry run)
    rows = pq.read_metadata(path).num_rows
    if rows < config.data.train_batch_size:
        print(
            f"{path}: {rows} rows, less than one batch of {config.data.train_batch_size}: no validation loss",
            flush=True,
        )
        return False
    return True


def count_processes(config: DictConfig) -> int | None:
    """Processes on this machine; None if there should be one for each GPU and none is visible."""
    if config.lab.processes != "auto":
        return int(config.lab.processes)
    import torch

    return torch.cuda.device_count() or None


def torchrun(config: DictConfig, config_file: Path, processes: int | None) -> list[str]:
    """The command of this machine's part of the run."""
    lab = config.lab
    place = ["--standalone"]
    if lab.nodes > 1:
        place = [f"--nnodes={lab.nodes}", f"--node-rank={lab.node_rank}"]
        place += [f"--master-addr={lab.master_addr}", f"--master-port={lab.master_port}"]
    workers = f"--nproc-per-node={processes or 'gpu'}"
    return [sys.executable, "-m", "torch.distributed.run", *place, workers, "-m", MODULE, str(config_file)]


def _train_and_export(
    config: DictConfig, recipe: Recipe, command: list[str], variables: dict[str, str], out: Path
) -> None:
    resumed = resume(out, recipe, force=config.lab.force, repaired=False)  # verl's checkpoints bear no mark
    if resumed:
        config.trainer.resume_mode = "resume_path"
        config.trainer.resume_from_path = str(out / "steps" / f"global_step_{resumed}")
    launch.write_config(config, out / "config.yaml")
    if not finished(config, resumed):
        _run(config, command, variables, out, name="SFT")
    step = latest_step(out / "steps")
    facts: dict[str, Any] = {"step": step}
    with new_artefact(out / "final", recipe, facts) as partial:
        facts |= export(out / "steps" / f"global_step_{step}", partial, config.lab.dtype)
    print(f"{out / 'final'}: {facts['parameters']:,} parameters after {step} steps", flush=True)


def finished(config: DictConfig, step: int) -> bool:
    """True if ``step`` is the last one (the run was ended while exporting)."""
    rows = pq.read_metadata(Path(config.lab.train_file)).num_rows
    epochs = rows // config.data.train_batch_size * config.trainer.total_epochs
    return step >= int(config.trainer.total_training_steps or epochs)


def _run(config: DictConfig, command: list[str], variables: dict[str, str], out: Path, name: str) -> None:
    log = out / ("train.log" if config.lab.node_rank == 0 else f"train.{config.lab.node_rank}.log")
    minutes, steps = config.lab.stall_minutes, count_steps(config)
    launch.run_trainer(command, variables, name=name, log=log, stall_minutes=minutes, steps=steps)


def count_steps(config: DictConfig) -> int:
    """Updates of the whole run; verl drops an incomplete batch at the end of an epoch."""
    given = config.trainer.total_training_steps
    rows = pq.read_metadata(config.lab.train_file).num_rows
    return int(given or rows // config.data.train_batch_size * config.trainer.total_epochs)
