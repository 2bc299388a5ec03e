"""The machine that a study runs on: hardware for its record."""

import os
import platform
import re
from pathlib import Path
from typing import Any

from compositionality.gpus import installed_gpus


def machine() -> dict[str, Any]:
    """Hardware and Python version, without the host's name."""
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
