"""Ray clusters: join one, count and check its nodes before a start, and watch for nodes that leave."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.errors import SECRET_VARIABLES, UserError

CONNECT_SECONDS = 5.0
RELEASE_SECONDS = 30.0  # until the GPUs of an ended job are free again
CHECK_SECONDS = 120.0
WATCH_SECONDS = 2.0
LEFT_SECONDS = 90.0  # until Ray notices that the node of failed actors has left: five checks of up to 13 s
BY_NAME = ("auto", "local")
FOR_WORKERS = (
    *("VERL_", "VLLM_", "COMPOSITIONALITY_", "NCCL_", "GLOO_", "HF_", "TQ_"),
    *("TENSORBOARD_DIR", "OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM", "TRANSFORMERS_OFFLINE"),
)
FOR_TRACKERS = ("WANDB_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
NOT_FORWARDED = ("WANDB_SERVICE",)  # internal to wandb, valid in one process tree


@dataclass(frozen=True)
class ClusterNode:
    """A living node: Ray's id, host name, number of GPUs and of free ones."""

    id: str
    host: str
    gpus: int
    free: int


def worker_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for every process on a cluster; without secrets, as Ray logs them."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(FOR_WORKERS) and not name.upper().endswith(SECRET_VARIABLES)
    }


def tracker_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for the process that logs to wandb, including key and proxies: pass them as an argument."""
    return {
        name: value
        for name, value in environment.items()
        if name.upper().startswith(FOR_TRACKERS) and name not in NOT_FORWARDED
    }


def join(address: str, *, log_to_driver: bool = False) -> None:
    """Make this process a driver of the cluster at ``address`` (HOST:PORT or auto). UserError if that fails."""
    import ray

    check_answers(address)
    variables = worker_variables(os.environ)
    try:
        ray.init(address, log_to_driver=log_to_driver, logging_level="ERROR", runtime_env={"env_vars": variables})
    except (ConnectionError, ValueError, RuntimeError) as error:  # RuntimeError: another version of Ray or Python
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"the Ray cluster at {address} cannot be joined: {reason}; use the same .venv and the same Ray token "
            "(ray get-auth-token) on every node"
        ) from error


def check_answers(address: str) -> None:
    """Raise UserError unless something listens at ``address``."""
    if address in BY_NAME:
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise UserError(f"run.ray_address: {address!r} is not HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as error:  # UnicodeError: not a host name
        raise UserError(
            f"no Ray cluster answers at {address} ({getattr(error, 'strerror', None) or error}); "
            f"start one with: ray start --head --port={port}"
        ) from error


def nodes() -> list[ClusterNode]:
    """Return the living nodes of the cluster that this process has joined."""
    import ray
    from ray._private.state import available_resources_per_node

    free = available_resources_per_node()
    return [
        ClusterNode(
            node["NodeID"],
            node["NodeManagerHostname"],
            int(node["Resources"].get("GPU", 0)),
            int(free.get(node["NodeID"], {}).get("GPU", 0)),
        )
        for node in ray.nodes()
        if node["Alive"]
    ]


def check_cluster(address: str, nodes: int, gpus: int, folder: Path, files: Sequence[Path]) -> None:
    """Raise UserError unless ``nodes`` nodes have ``gpus`` free GPUs each and all see ``folder`` and ``files``.

    A separate process asks Ray: a server that is not Ray would block it for minutes.
    """
    check_answers(address)
    command = [sys.executable, "-m", "compositionality.study.cluster", "check", address]
    command += [f"--nodes={nodes}", f"--gpus-per-node={gpus}", f"--folder={folder}", "--paths", *map(str, files)]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=CHECK_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"{address} accepts connections but does not answer as a Ray cluster within {CHECK_SECONDS:.0f} s; "
            "run.ray_address (RAY_ADDRESS) is HOST:PORT of ray start --head"
        ) from error
    if result.returncode:
        message = (result.stderr.strip().splitlines() or [f"exit code {result.returncode}"])[-1]
        raise UserError(message.removeprefix("error: "))


def check_capacity(address: str, count: int, gpus: int) -> None:
    """Raise UserError unless ``count`` nodes of the joined cluster have ``gpus`` free GPUs each, at once or soon."""
    deadline = time.monotonic() + RELEASE_SECONDS
    living = nodes()
    while sum(node.free >= gpus for node in living) < count:
        if sum(node.gpus >= gpus for node in living) < count or time.monotonic() > deadline:
            counts = ", ".join(f"{node.host} {node.free} of {node.gpus}" for node in living)
            raise UserError(
                f"run.nodes={count} × run.processes={gpus}: needs that many nodes with that many free GPUs, but the "
                f"Ray cluster at {address} has (free of all GPUs) {counts}; lower NNODES or N_GPUS, or start more nodes"
            )
        time.sleep(1)
        living = nodes()


def check_shared(folder: Path, files: Sequence[Path]) -> None:
    """Raise UserError unless all nodes of the joined cluster see a file just written in ``folder``, and ``files``."""
    place = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
    with tempfile.NamedTemporaryFile(dir=place, prefix=".seen-by-all-nodes-") as probe:
        check_seen([Path(probe.name)], place)
    check_seen(files)


def check_seen(files: Sequence[Path], shown: Path | None = None) -> None:
    """Raise UserError for a node of the joined cluster that does not see one of ``files`` (``shown`` in messages)."""
    import ray
    from ray.exceptions import GetTimeoutError, RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    paths = [path.absolute() for path in files]
    for node in nodes():
        on_node = NodeAffinitySchedulingStrategy(node.id, soft=False)
        task: Any = ray.remote(unseen).options(num_cpus=0, scheduling_strategy=on_node, max_retries=0)
        try:
            missing = ray.get(task.remote(paths), timeout=CHECK_SECONDS / 2)
        except (RayError, GetTimeoutError) as error:
            reason = " ".join(str(getattr(error, "cause", None) or error).split())[-200:]
            raise UserError(
                f"{node.host}: a task of this project fails there ({reason}); the repository and its .venv must be "
                "at the same path on every node"
            ) from error
        if missing:
            raise UserError(
                f"{shown or missing[0]}: the node {node.host} does not see it; put the run folder, the model and the "
                "data on a file system that all nodes share"
            )


def unseen(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if not path.exists()]


class NodeWatch:
    """Calls ``act`` with one line when a node leaves on which this driver has, or had, an actor."""

    def __init__(self, act: Callable[[str], None]) -> None:
        self._act = act
        self._hosts: dict[str, str] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def look(self, seconds: float = 0.0) -> None:
        """Look now, and for ``seconds`` more: Ray needs some time to notice that a node has left."""
        deadline = time.monotonic() + seconds
        while True:
            with self._lock:
                self._look()
            if time.monotonic() >= deadline:
                return
            time.sleep(WATCH_SECONDS)

    def _watch(self) -> None:
        from ray.exceptions import RayError

        while True:
            time.sleep(WATCH_SECONDS)
            with suppress(RayError, RuntimeError):  # Ray is being shut down
                self.look()

    def _look(self) -> None:
        import ray
        from ray._private.state import state

        if not ray.is_initialized():
            return
        job = ray.JobID.from_hex(ray.get_runtime_context().get_job_id())
        by_id = {node["NodeID"]: node for node in ray.nodes()}
        for actor in state.actor_table(None, job).values():
            name = actor["Address"]["NodeID"]
            if name in by_id:
                self._hosts[name] = by_id[name]["NodeManagerHostname"]
        for name, host in self._hosts.items():
            if not by_id.get(name, {"Alive": False})["Alive"]:
                self._act(
                    f"the node {host} left the Ray cluster during the run; start it again and run the same command"
                )
