"""Train with verl's supervised fine-tuning: check, start or go on, export."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from compositionality.data.artefact import Recipe, exclusive, new_artefact
from compositionality.data.parquet import count_rows
from compositionality.errors import UserError
from compositionality.rollout import cluster
from compositionality.train.boards import send_models
from compositionality.train.launch import free_port
from compositionality.train.run_folder import check_run, flatten, is_finished, latest_step, resume
from compositionality.train.sft_settings import order_of, train_inputs
from compositionality.train.training_report import sft_report
from compositionality.train.verl import launch
from compositionality.train.verl.export import export
from compositionality.train.verl.preflight import check_sft_inputs, check_sft_settings
from compositionality.train.verl.start import RunContext, context_of, final, find_run

MODULE = "compositionality.train.verl.sft_trainer"
NODES_MODULE = "compositionality.train.verl.sft"
PLACE_SECONDS = 60.0
ANSWER_SECONDS = 10.0  # of a node that is still there while its torchrun runs or has failed

CONVENIENCES = (
    "run.",
    "profiler.",
    "model.path",
    "data.train_files",
    "data.val_files",
    "data.num_workers",
    "data.max_token_len_per_gpu",
    "model.enable_gradient_checkpointing",
    *(f"trainer.{key}" for key in ("default_local_dir", "default_hdfs_dir", "project_name", "experiment_name")),
    *(f"trainer.{key}" for key in ("logger", "save_freq", "test_freq", "max_ckpt_to_keep", "profile_interval")),
    *(f"trainer.{key}" for key in ("resume_mode", "resume_from_path", "device", "nnodes", "n_gpus_per_node")),
)
"""Begins verl's keys of SFT on which the trained weights do not depend."""


def train(config: DictConfig) -> None:
    """Train ``run.model`` on ``run.train_files``; the result is the model folder ``final`` in ``run.output``."""
    run, out = config.run, Path(config.run.output).absolute()
    variables = launch.environment(config, out)
    check_nodes(config)
    command = start_command(config, out / "config.yaml")
    ranks = run.processes * run.nodes
    check_sft_settings(config, ranks)
    if run.dry_run:
        check_sft_inputs(config)
    context = context_of(config, variables, dry=run.dry_run)
    recipe = make_recipe(final(config, context), ranks)
    if run.dry_run:
        check_run(out, recipe, force=run.force)
        print(launch.shell_line(command, variables))
        return
    if is_finished(out / "final", recipe, force=run.force):
        return
    if run.node_rank > 0:  # node 0 checks, writes the configuration and exports; torchrun waits for it
        _run(config, command, variables, out, name=f"SFT on node {run.node_rank}")
        return
    with exclusive(out):  # no artefact.make: its checkpoints outlive a kill
        check_sft_inputs(final(config, context))
        if run.ray_address:
            gpus, files = run.processes if run.device == "gpu" else 0, config.data.train_files
            cluster.check_cluster(run.ray_address, run.nodes, gpus, out, [Path(context.model), *map(Path, files)])
        _train_and_export(config, context, recipe, command, variables, out)
        send_models(out, "sft", recipe)


def make_recipe(config: DictConfig, ranks: int) -> Recipe:
    flat = flatten(OmegaConf.to_container(config, resolve=True))
    settings = {key: value for key, value in flat.items() if not key.startswith(CONVENIENCES)}
    settings |= {"processes": ranks, "export_dtype": config.run.export_dtype, "decay_power": config.run.decay_power}
    settings |= order_of(config.run.train_files)
    return Recipe("train_sft", settings, {"model": Path(config.run.model), **train_inputs(config.run.train_files)})


def check_nodes(config: DictConfig) -> None:
    """Refuse both ways to several machines at once, and several machines without one."""
    run = config.run
    by_hand = run.node_rank > 0 or run.master_addr != "localhost"
    if run.ray_address and by_hand:
        raise UserError(f"run.ray_address={run.ray_address} starts all nodes; leave out run.node_rank, run.master_addr")
    if run.nodes > 1 and not run.ray_address and not by_hand:
        raise UserError(
            f"NNODES={run.nodes} needs a running Ray cluster (RAY_ADDRESS or run.ray_address=HOST:PORT); or start this "
            "command on every machine with its run.node_rank and with run.master_addr=HOST of the first"
        )


def start_command(config: DictConfig, config_file: Path) -> list[str]:
    """Return what the launcher runs: a driver of the Ray cluster, or this machine's part of the run."""
    run = config.run
    if run.ray_address:
        return [sys.executable, "-m", NODES_MODULE, str(config_file)]
    words = torchrun_words(config, str(config_file), run.node_rank, run.master_addr, run.master_port)
    return [sys.executable, "-m", "torch.distributed.run", *words]


def torchrun_words(config: DictConfig, config_file: str, rank: int, address: str, port: int) -> list[str]:
    """Return torchrun's arguments on the node ``rank``; node 0 is at ``address``."""
    place = ["--standalone"]
    if config.run.nodes > 1:
        place = [f"--nnodes={config.run.nodes}", f"--node-rank={rank}"]
        place += [f"--master-addr={address}", f"--master-port={port}"]
    return [*place, f"--nproc-per-node={config.run.processes}", "-m", MODULE, config_file]


def _train_and_export(
    config: DictConfig, context: RunContext, recipe: Recipe, command: list[str], variables: dict[str, str], out: Path
) -> None:
    resumed = resume(out, recipe, force=config.run.force, repaired=False)  # verl's checkpoints bear no mark
    launch.write_config(final(config, find_run(config, context, dry=False)), out / "config.yaml")
    if resumed < count_steps(config):  # else the run was ended while exporting
        _run(config, command, variables, out, name="SFT")
    step = latest_step(out / "steps")
    rows = sum(map(count_rows, map(Path, config.run.train_files)))
    facts = {"step": step, **sft_report(out / "metrics.jsonl", step, rows, config.run.train_files)}
    with new_artefact(out / "final", recipe, facts) as partial:
        facts |= export(out / "steps" / f"global_step_{step}", partial, config.run.export_dtype)
    print(f"{out / 'final'}: {facts['parameters']:,} parameters after {step} steps", flush=True)


def _run(config: DictConfig, command: list[str], variables: dict[str, str], out: Path, name: str) -> None:
    rank, minutes = config.run.node_rank, config.run.stall_minutes
    log = out / (f"train.{rank}.log" if rank else "train.log")
    launch.run_trainer(command, variables, name=name, log=log, stall_minutes=minutes, steps=count_steps(config))


def count_steps(config: DictConfig) -> int:
    """Return the updates of the whole run; verl drops an incomplete batch at the end of an epoch."""
    if steps := config.trainer.total_training_steps:
        return int(steps)
    rows = sum(map(count_rows, map(Path, config.run.train_files)))
    return int(rows // config.data.train_batch_size * config.trainer.total_epochs)


# ---- on a Ray cluster: python -m compositionality.train.verl.sft CONFIG.yaml


def main() -> None:
    """Train on a Ray cluster with the configuration named on the command line, one torchrun on every node.

    The launcher starts and watches it as it does torchrun.
    """
    config: Any = OmegaConf.load(sys.argv[1])
    try:
        code = train_on_nodes(config, sys.argv[1])
    except UserError as error:
        launch.report_failure(str(error))
        raise SystemExit(UserError.exit_code) from error
    if code:
        raise SystemExit(code)


class NodePart:
    """An actor that holds the GPUs of one node and runs its torchrun."""

    def place(self) -> tuple[str, int]:
        """Return the address of this node, and a port that is free on it."""
        import ray

        return ray.util.get_node_ip_address(), free_port()

    def run(self, words: Sequence[str], variables: Mapping[str, str]) -> int:
        """Return the exit code of torchrun; its processes end with this one."""
        guard = [sys.executable, "-m", "compositionality.train.launch"]
        command = [*guard, sys.executable, "-m", "torch.distributed.run", *words]
        environment = {**os.environ, **variables, "PYTHONUNBUFFERED": "1"}
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode


def train_on_nodes(config: DictConfig, config_file: str) -> int:
    """Return 0, or the exit code of the first node that failed, or left: it ends the others."""
    import ray
    from ray.exceptions import RayError

    run = config.run
    cluster.join(run.ray_address, log_to_driver=True)
    watch = cluster.NodeWatch(launch.end_driver)
    parts = place_parts(run)
    address, port = ray.get(parts[0].place.remote())
    variables = {**cluster.worker_variables(os.environ), **cluster.tracker_variables(os.environ)}
    words = [torchrun_words(config, config_file, rank, address, port) for rank in range(len(parts))]
    running = [part.run.remote(arguments, variables) for part, arguments in zip(parts, words, strict=True)]
    while running:
        ended, running = ray.wait(running)
        try:
            code: int = ray.get(ended[0])
            if code:
                ray.get([part.place.remote() for part in parts], timeout=ANSWER_SECONDS)
                return code
        except RayError:
            watch.look(cluster.LEFT_SECONDS)
            raise
    return 0


def place_parts(run: DictConfig) -> list[Any]:
    """Start an actor on each of ``run.nodes`` nodes, with ``run.processes`` of its GPUs (or CPUs)."""
    import ray
    from ray.exceptions import GetTimeoutError
    from ray.util.placement_group import placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    kind = "GPU" if run.device == "gpu" else "CPU"
    group = placement_group([{"CPU": 1, kind: run.processes}] * run.nodes, strategy="STRICT_SPREAD")
    try:
        ray.get(group.ready(), timeout=PLACE_SECONDS)
    except GetTimeoutError as error:
        raise UserError(
            f"run.nodes={run.nodes} × run.processes={run.processes}: the Ray cluster at {run.ray_address} has not so "
            f"many nodes with that many free {kind}s; lower NNODES or N_GPUS, or start more nodes"
        ) from error
    amounts = {"num_gpus": run.processes, "num_cpus": 1} if kind == "GPU" else {"num_cpus": run.processes}
    part: Any = ray.remote(max_concurrency=2, **amounts)(NodePart)
    places = [PlacementGroupSchedulingStrategy(group, number) for number in range(run.nodes)]
    return [part.options(scheduling_strategy=place).remote() for place in places]


if __name__ == "__main__":
    main()
