"""The machine that a step runs on: GPUs, host memory, disk."""

import math
import shutil
from dataclasses import dataclass
from pathlib import Path

from compositionality.gpus import count_gpus

CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class Machine:
    """``gpus``, ``gpu_bytes`` of each (None: none is here) and ``host_bytes`` of a node; ``disk_bytes`` in all."""

    nodes: int
    gpus: int
    gpu_bytes: float | None
    host_bytes: float
    disk_bytes: float


def this_machine(out: Path | None = None, nodes: int = 1) -> Machine:
    """What is here; the disk is the one of ``out``, with what lies there already, which a new run takes over.

    Without ``out`` the disk is not asked for.
    """
    import torch

    gpus = count_gpus()
    sizes = [torch.cuda.get_device_properties(number).total_memory for number in range(gpus)]
    return Machine(nodes, gpus, min(sizes, default=None), host_bytes(), math.inf if out is None else disk_bytes(out))


def host_bytes() -> float:
    """Memory of this machine, or of the container where that has less."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    total = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal:"))
    limits = [Path(name).read_text().strip() for name in CGROUP_LIMITS if Path(name).is_file()]
    return min([total, *(int(limit) for limit in limits if limit.isdigit())])


def disk_bytes(out: Path) -> float:
    """Free on the disk of ``out``, and what ``out`` itself holds."""
    there = sum(map(_size, out.rglob("*"))) if out.is_dir() else 0
    parent = next(path for path in [out, *out.absolute().parents] if path.exists())
    return shutil.disk_usage(parent).free + there


def _size(path: Path) -> int:
    """Bytes of a file; 0 of a folder, and of what is gone by now."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0
