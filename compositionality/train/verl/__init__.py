"""verl as our training engine: its CPU platform, the launcher, SFT, GRPO and export. Nothing inside verl is changed."""

import os


def on_cpu() -> bool:
    """Tell whether this is a process that runs verl on the CPU (``VERL_PLATFORM=cpu``)."""
    return os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu"
