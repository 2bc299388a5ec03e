"""Running the scripts under bash/ from tests: none of the caller's settings reach them."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from compositionality.study.environment import environment

ROOT = Path(__file__).parents[1]
OF_A_PERSON = {
    *environment({"PROFILE": "tiny"}),
    *(
        "MODEL_PATH",
        "MODEL_NAME",
        "MODELS",
        "ENGINES",
        "START",
        "CONTROL",
        "RFT",
        "RFT_BUDGET",
        "RFT_FILTER",
        "DRY_RUN",
        "BACKEND",
        "PYTHON",
    ),
}
"""Variables that a person, or a test that runs in a lane, may have set."""


def run(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script with these variables and the interpreter of the tests."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_PERSON}
    return subprocess.run(
        ["bash", script, *arguments], cwd=ROOT, env={**kept, "PYTHON": sys.executable, **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def commands(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    """The commands that it says it would run: name of the entry point, then its words, unquoted."""
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [shlex.split(line) for line in (done.stdout + done.stderr).splitlines() if line.startswith("+ ")]
    return [[Path(words[2]).stem, *words[3:]] for words in lines]


def values(command: list[str]) -> dict[str, str]:
    """The key=value words of a command; of a key that is there twice the last."""
    return dict(word.split("=", 1) for word in command[1:] if "=" in word)


def dry(script: str, *arguments: str, **variables: str) -> list[list[str]]:
    """The commands of a script with DRY_RUN=1; the training settings are not read."""
    quick = {"PYTHON": str(ROOT / "tests" / "dry_python"), "REAL_PYTHON": sys.executable, "DRY_RUN": "1"}
    return commands(run(script, *arguments, **{**quick, **variables}))
