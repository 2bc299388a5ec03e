"""Data-parallel vLLM: one engine per GPU (or tensor-parallel group) over all GPUs and nodes that Ray sees."""

import queue
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.rollout import cluster
from compositionality.rollout.engines.base import Chat, Tick, no_tick
from compositionality.rollout.engines.vllm import VllmEngine, VllmOptions
from compositionality.types import Completion, SamplingOptions


class RayEngine:
    """Sends each whole call to the next free replica, so that results do not depend on the number of replicas.

    ``address``: a cluster to join; without one Ray is started on this machine.
    """

    def __init__(self, model: Path, options: VllmOptions, *, replicas: int = 0, address: str = "") -> None:
        import ray

        model = model.absolute()  # workers have the working directory of ray start
        self._started = not ray.is_initialized()
        if self._started and address:
            cluster.join(address)
            cluster.check_seen([model])
        elif self._started:  # a separate cluster, even if others run on this machine
            ray.init("local", log_to_driver=False, include_dashboard=False)
        gpus = int(ray.cluster_resources().get("GPU", 0))
        self.parallel_calls = _replica_count(replicas, gpus, options.tensor_parallel)
        resources = {"num_gpus": options.tensor_parallel} if gpus else {"num_cpus": 1}
        actor = ray.remote(VllmEngine).options(**resources)
        self._actors = [actor.remote(model, options) for _ in range(self.parallel_calls)]
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for replica in self._actors:
            self._free.put(replica)

    def generate(
        self, prompts: Sequence[Chat], seeds: Sequence[int], options: SamplingOptions, tick: Tick = no_tick
    ) -> list[Completion]:
        """Sample one completion per prompt and seed, in order. UserError if the replica has ended or cannot start."""
        import ray

        replica = self._free.get()
        try:
            completions: list[Completion] = ray.get(replica.generate.remote(prompts, seeds, options))
        except ray.exceptions.RayError as error:
            raise UserError(_failure_reason(error)) from error
        finally:
            self._free.put(replica)
        tick(len(completions))
        return completions

    def close(self) -> None:
        """End the replicas, and Ray if this engine started it."""
        import ray

        for replica in self._actors:
            ray.kill(replica)
        if self._started:
            ray.shutdown()


def _failure_reason(error: Exception) -> str:
    """Return in one line why a replica failed: its own exception, or the loss of its process or node."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, UserError):
        return str(cause)
    lines = [line.strip() for line in str(cause or error).splitlines() if line.strip()] or [type(error).__name__]
    reason = lines[-1] if isinstance(cause, Exception) else lines[0]
    return f"engine=ray: a replica of vLLM ended ({reason[:300]}); finished shards are kept, run the same command again"


def _replica_count(replicas: int, gpus: int, tensor_parallel: int) -> int:
    """Return the number of replicas: as given, or for 0 as many as the GPUs allow (one without GPUs)."""
    count, possible = max(1, replicas), gpus // tensor_parallel
    if gpus and possible < count:
        raise UserError(
            f"{gpus} GPUs are too few for {count} replicas of {tensor_parallel} GPUs; lower replicas or tensor_parallel"
        )
    return count if replicas or not gpus else possible
