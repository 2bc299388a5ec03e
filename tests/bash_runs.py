"""Running the scripts under bash/ from tests: none of the caller's settings reach them."""

import atexit
import os
import runpy
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from warm_python import OF_VERL, PATH, WarmPython

from compositionality.study.model import ROOTS
from compositionality.study.steps import STEP_VARIABLES

ROOT = Path(__file__).parents[1]
OF_A_PERSON = {
    *STEP_VARIABLES, *ROOTS.values(), "PROFILE", "STUDY", "SEED", "SPLIT", "TEST_SEED", "SEEDS", "REPLICATES", "ARMS",
    "BACKEND", "BASE_MODEL", "CHAT_TEMPLATE", "N_GPUS", "NNODES", "RAY_ADDRESS", "CUDA_VISIBLE_DEVICES", "DRY_RUN",
    "PYTHON", "WANDB_RUN_GROUP", "WANDB_TAGS",
}  # fmt: skip
"""Variables that a person, or a test that runs in a lane, may have set."""


@cache
def warm_python() -> str:
    """A program to give as PYTHON, of which many starts cost little; see warm_python.py."""
    folder = tempfile.TemporaryDirectory()
    python = WarmPython(Path(folder.name), OF_VERL if find_spec("verl") else ())
    atexit.register(lambda: (python.close(), folder.cleanup()))
    return str(python.path)


def warm_verl() -> dict[str, str]:
    """PYTHON for verl's trainers, and the variables by which Ray's workers start from it too."""
    python = warm_python()
    path = os.pathsep.join([str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHON": python, PATH: python, "RAY_RUNTIME_ENV_HOOK": "warm_python.of_ray", "PYTHONPATH": path}


def run(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script with these variables and the interpreter of the tests, on a machine without GPUs."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_PERSON}
    own = {"PYTHON": sys.executable, "CUDA_VISIBLE_DEVICES": "", **variables}
    return subprocess.run(
        ["bash", script, *arguments], cwd=ROOT, env={**kept, **own}, capture_output=True, text=True, check=False
    )


def typed(entry: str, words: Sequence[str]) -> object:
    """The exit code of examples/ENTRY.py, run in this process as a person would type it; what it sets is undone."""
    before, path, kept = sys.argv, list(sys.path), dict(os.environ)
    sys.argv = [str(ROOT / "examples" / f"{entry}.py"), *words]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        return end.code
    finally:
        sys.argv, sys.path[:] = before, path  # train_grpo.py takes its own folder away, which runpy does not put there
        os.environ.clear()
        os.environ.update(kept)
    return None


def commands(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    """The commands that it says it would run: name of the entry point, then its words, unquoted."""
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [shlex.split(line) for line in (done.stdout + done.stderr).splitlines() if line.startswith("+ ")]
    return [[Path(words[2]).stem, *words[3:]] for words in lines]


def values(command: list[str]) -> dict[str, str]:
    """The key=value words of a command; of a key that is there twice the last."""
    return dict(word.split("=", 1) for word in command[1:] if "=" in word)


def dry(script: str, *arguments: str, **variables: str) -> list[list[str]]:
    """The commands of a script, which are not even checked."""
    return commands(run(script, *arguments, **{"PYTHON": "true", "DRY_RUN": "1", **variables}))
