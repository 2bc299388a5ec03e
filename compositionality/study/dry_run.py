"""The dry run of a study: its scripts list their commands, and each is checked here, in one process.

A command is run as its entry point runs it, with ``--dry-run``: the imports of seconds are shared by all.
"""

import os
import runpy
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from compositionality.study.backends import ROOT, Local, Write
from compositionality.study.jobs import Job
from compositionality.study.overrides import ScriptStep, listed

STEPS = "DRY_STEPS"
"""Names the file to which bash/functions.sh adds commands; the process that has set it checks them."""


@dataclass
class DryRun(Local):
    """Jobs one after the other on this machine; the exit code is that of the first command that is refused."""

    async def run(self, job: Job, lane: int, write: Write | None) -> int:
        """See Backend."""
        if os.environ.get(STEPS) or os.environ.get("LIST_STEPS"):  # a study within another's: that one does it
            return await super().run(job, lane, write)
        with tempfile.NamedTemporaryFile() as file:
            code = await super().run(replace(job, variables={**job.variables, STEPS: file.name}), lane, write)
            return code or check_steps(listed(Path(file.name).read_bytes()), job.variables)


def check_steps(steps: list[ScriptStep], variables: Mapping[str, str]) -> int:
    """0, or the exit code of the first step that its entry point refuses, which has said why."""
    with _environment(variables):
        return next((code for step in steps if (code := check_step(step))), 0)


def check_step(step: ScriptStep, *, dry: bool = True) -> int:
    """The exit code of one command with ``--dry-run``; what it prints but for its error is left out."""
    script = ROOT / "examples" / f"{step.entry_point}.py"
    arguments, sys.argv = sys.argv, [str(script), *step.words, *(["--dry-run"] if dry else [])]
    try:
        with redirect_stdout(StringIO()):
            runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv = arguments
    return 0


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """The environment that the job's commands would have."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
