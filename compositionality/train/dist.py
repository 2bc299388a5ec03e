"""The processes of a single-file trainer: one alone, or those that torchrun started, on a mesh (data × tensor)."""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from compositionality.errors import UserError
from compositionality.train.settings import MeshSettings

Item = TypeVar("Item")
Result = TypeVar("Result")


def start_processes(mesh: MeshSettings, threads: int = 1) -> DeviceMesh | None:
    """Join the ranks that torchrun started; the (data, tensor) mesh, or None for one process on a CPU."""
    on_gpu = torch.cuda.is_available()
    world = int(os.environ.get("WORLD_SIZE", "1"))
    torch.set_num_threads(threads)
    if world == 1 and not on_gpu:
        return None
    return join_mesh(mesh, world, on_gpu=on_gpu)


def join_mesh(mesh: MeshSettings, world: int, *, on_gpu: bool) -> DeviceMesh:
    """Return the (data, tensor) mesh of ``world`` ranks, of which this process becomes one. A collective call."""
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if not dist.is_initialized():
        alone = {"store": dist.HashStore(), "rank": 0, "world_size": 1} if world == 1 else {}
        dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", **alone)
    shape = (world // mesh.tensor, mesh.tensor)
    return init_device_mesh("cuda" if on_gpu else "cpu", shape, mesh_dim_names=("data", "tensor"))


def stop_processes() -> None:
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def memory_metrics() -> dict[str, float]:
    """Return the most GPU memory in GiB that this rank has held so far, under verl's names; nothing on a CPU."""
    if not torch.cuda.is_available():
        return {}
    sizes = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    return {f"perf/max_memory_{name}_gb": size / 2**30 for name, size in sizes.items()}


def rank() -> int:
    """Return the rank of this process, 0 without a process group."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """Return how many ranks there are, 1 without a process group."""
    return dist.get_world_size() if dist.is_initialized() else 1


def own_part(items: Sequence[Item]) -> Sequence[Item]:
    """Return this rank's part of ``items``, about as large as those of the others; tensor ranks have parts, too."""
    first, end = (len(items) * share // world_size() for share in (rank(), rank() + 1))
    return items[first:end]


def on_every_rank(action: Callable[[], Result]) -> list[Result]:
    """Return the results of all ranks, in order; bad input, a full disk or memory of one is a UserError of all."""
    if not dist.is_initialized():
        return [action()]
    result, text, cause = None, None, None
    try:
        result = action()
    except (UserError, OSError, MemoryError) as error:
        from compositionality.errors import system_error  # at an error alone

        cause, text = error, str(error) if isinstance(error, UserError) else system_error(error)
    outcomes: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(outcomes, (result, text))
    for _, text in outcomes:
        if text is not None:
            raise UserError(text) from cause
    return [result for result, _ in outcomes]


def on_first_rank(body: Callable[[], Result]) -> Result:
    """Return on every rank what ``body`` returns on the first, or raise the UserError that it raises there."""
    results: list[Any] = on_every_rank(lambda: body() if rank() == 0 else None)
    result: Result = results[0]
    return result
