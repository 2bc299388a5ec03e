"""The machine that a study runs on: hardware for its record, visible GPUs for its lanes."""

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Hardware and Python version, without the host's name."""
    info = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*: (.+)$", info.read_text(), re.MULTILINE) if info.is_file() else []
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30, 1),
        "gpus": gpus(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def gpus() -> list[str]:
    """Names of the NVIDIA GPUs; none without a driver."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in shown.splitlines() if line.strip()]


def count_gpus(given: Mapping[str, str]) -> int:
    """GPUs that ``given["CUDA_VISIBLE_DEVICES"]`` leaves visible; 0 without a driver."""
    if given.get("CUDA_VISIBLE_DEVICES") == "":
        return 0
    visible = [word for word in given.get("CUDA_VISIBLE_DEVICES", "").split(",") if word]
    return min(len(gpus()), len(visible)) if visible else len(gpus())
