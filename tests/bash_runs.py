"""Running the scripts under bash/ from tests: none of the caller's settings reach them."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Set by the environment of a person, not by a test.
SETTINGS = [
    "MODEL_PATH", "BASE_MODEL", "PROFILE", "DEVICE", "ENGINE", "ROLLOUT_ENGINE", "SEED", "SEEDS", "ARMS", "SECTION",
    "START", "CONTROL",
]  # fmt: skip


def run(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.run(
        ["bash", script, *arguments], cwd=ROOT, env={**kept, **variables}, capture_output=True, text=True, check=False
    )


def commands(done: subprocess.CompletedProcess[str]) -> str:
    """The lines that say what would be run."""
    assert done.returncode == 0, done.stderr
    return "\n".join(line for line in done.stderr.splitlines() if line.startswith("+ "))
