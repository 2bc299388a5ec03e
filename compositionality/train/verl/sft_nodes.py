"""SFT on a Ray cluster, one torchrun on every node: ``python -m compositionality.train.verl.sft_nodes CONFIG.yaml``.

Started and watched by the launcher as torchrun is. The first node that fails, or leaves, ends the others.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

from compositionality.errors import UserError
from compositionality.rollout import cluster
from compositionality.train.launch import free_port
from compositionality.train.verl.launch import report_failure
from compositionality.train.verl.sft import torchrun_words

PLACE_SECONDS = 60.0
ANSWER_SECONDS = 10.0  # of a node that is still there while its torchrun runs or has failed


class NodePart:
    """The actor that holds the GPUs of one node and runs its torchrun."""

    def place(self) -> tuple[str, int]:
        """Address of this node, and a port that is free on it."""
        import ray

        return ray.util.get_node_ip_address(), free_port()

    def run(self, words: Sequence[str], variables: Mapping[str, str]) -> int:
        """The exit code of torchrun; its processes end with this one."""
        guard = [sys.executable, "-m", "compositionality.train.verl.process_guard"]
        command = [*guard, sys.executable, "-m", "torch.distributed.run", *words]
        environment = {**os.environ, **variables, "PYTHONUNBUFFERED": "1"}
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode


def main() -> None:
    """Run the configuration named on the command line."""
    config: Any = OmegaConf.load(sys.argv[1])
    try:
        code = train(config, sys.argv[1])
    except UserError as error:
        report_failure(str(error))
        raise SystemExit(UserError.exit_code) from error
    if code:
        raise SystemExit(code)


def train(config: DictConfig, config_file: str) -> int:
    """0, or the exit code of the first node that failed."""
    import ray
    from ray.exceptions import RayError

    run = config.run
    cluster.join(run.ray_address, log_to_driver=True)
    watch = cluster.NodeWatch(_end)
    parts = place_parts(run)
    address, port = ray.get(parts[0].place.remote())
    variables = {**cluster.worker_variables(os.environ), **cluster.tracker_variables(os.environ)}
    running = []
    for rank, part in enumerate(parts):
        words = torchrun_words(config, config_file, rank, address, port)
        running.append(part.run.remote(words, variables))
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
    """One actor on each of ``run.nodes`` nodes, with ``run.processes`` of its GPUs (or CPUs)."""
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
    part: Any = ray.remote(NodePart)
    return [
        part.options(
            **amounts, max_concurrency=2, scheduling_strategy=PlacementGroupSchedulingStrategy(group, number)
        ).remote()
        for number in range(run.nodes)
    ]


def _end(message: str) -> None:
    report_failure(message)
    os._exit(UserError.exit_code)  # Ray ends what this driver has started; the guard, what is on this machine


if __name__ == "__main__":
    main()
