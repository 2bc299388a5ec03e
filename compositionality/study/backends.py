"""Where the steps of a study run: this machine, a Ray cluster, or Slurm."""

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compositionality.config.profile import TRAINERS
from compositionality.errors import UserError
from compositionality.gpus import LANES_PER_GPU, VISIBLE
from compositionality.rollout import cluster
from compositionality.study.model import ROOTS, study_folder
from compositionality.study.steps import Step

ROOT = Path(__file__).parents[2]
BOUND = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
"""A process that ends when the one that started it does."""
OF_THE_RUN = (*ROOTS.values(), "PYTHON", "N_GPUS", "NNODES", "BASE_MODEL", "CHAT_TEMPLATE")
"""Variables of a person that a step on another machine needs too."""
Write = Callable[[str], None]


@dataclass
class Local:
    """This machine: ``lanes`` steps side by side, one core each, or spread over ``gpus`` (ids of ``visible_gpus``)."""

    lanes: int | None = 1
    gpus: Sequence[str] = ()

    async def run(self, step: Step, lane: int, write: Write | None) -> int:
        variables = {**os.environ, **step.variables, **self.variables(step, lane)}
        return await run_command(command_of(step, in_lane=step.one_lane and self.lanes != 1), variables, write)

    def variables(self, step: Step, lane: int) -> dict[str, str]:
        """Return variables of a step: in a lane one thread, one GPU, and how many lanes share that."""
        if self.lanes == 1:
            return {}
        if not step.one_lane or not self.gpus:
            return alone(step)
        sharing = -(-(self.lanes or 1) // len(self.gpus))
        return alone(step) | {VISIBLE: self.gpus[lane % len(self.gpus)], LANES_PER_GPU: str(sharing)}


def command_of(step: Step, *, in_lane: bool) -> tuple[str, ...]:
    """Return the command of a step, from the repository's root; a training in a lane has one process."""
    command = step.command(os.environ.get("PYTHON") or sys.executable)
    return (*command, "run.processes=1") if in_lane and step.entry_point in TRAINERS and not step.ray else command


async def run_command(command: Sequence[str], variables: Mapping[str, str], write: Write | None) -> int:
    """Run a command in the repository's root, its output line by line to ``write``; its exit code.

    It ends when this process does.
    """
    piped = asyncio.subprocess.PIPE if write else None
    merged = asyncio.subprocess.STDOUT if write else None
    process = await asyncio.create_subprocess_exec(
        *BOUND, *command, cwd=ROOT, env=dict(variables), stdin=asyncio.subprocess.DEVNULL, stdout=piped, stderr=merged,
        limit=2**24,
    )  # fmt: skip
    try:
        if process.stdout is not None and write is not None:
            async for line in process.stdout:
                write(line.decode(errors="replace").rstrip("\n"))
        code = await process.wait()
    except asyncio.CancelledError:
        if process.returncode is None:
            process.kill()
        await process.wait()
        raise
    return 128 - code if code < 0 else code


@dataclass
class Ray:
    """A Ray cluster: every step is a task with the CPUs and GPUs that it needs; its lines come through Ray's own log.

    The repository and its folders must be on a file system that all nodes see.
    """

    address: str = ""
    lanes: int | None = None

    async def run(self, step: Step, lane: int, write: Write | None) -> int:  # noqa: ARG002
        import ray

        if not ray.is_initialized() and self.address:
            cluster.join(self.address, log_to_driver=True)
            cluster.check_seen([ROOT / "bash" / "env.sh"])
        elif not ray.is_initialized():
            ray.init(address="local")  # without an address Ray would join any cluster here
        cpus, gpus = (1, 0) if step.ray else needs_of(step)
        task = ray.remote(run_on_node).options(num_cpus=cpus, num_gpus=gpus, max_retries=0)
        given = {name: os.environ[name] for name in OF_THE_RUN if name in os.environ}
        workers = {**cluster.worker_variables(os.environ), **cluster.tracker_variables(os.environ)}
        variables = {**workers, **given, **step.variables}
        if step.ray:
            variables["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
        command = (*BOUND, *command_of(step, in_lane=step.one_lane))
        reference: Any = task.remote(command, {**variables, **alone(step)}, str(ROOT))
        try:
            code: int = await reference
        except asyncio.CancelledError:
            ray.cancel(reference, force=True)
            raise
        except ray.exceptions.RayError as error:
            said = " ".join(str(error).split())[:200]
            why = f"{step.key}: its node left the Ray cluster, or Ray failed ({said}); run it again"
            raise UserError(why) from error
        return code


@dataclass
class Slurm:
    """Slurm: every step is one ``sbatch --wait``; ``options`` are added to it. Logs are in results/STUDY/slurm.

    A run that is killed leaves its jobs to Slurm. Started again it submits them again, under the same names: each waits
    until the one that was left has ended (``singleton``), and then finds its work done.
    """

    options: list[str] = field(default_factory=list)
    lanes: int | None = None

    async def run(self, step: Step, lane: int, write: Write | None) -> int:  # noqa: ARG002
        label, study = step.key.replace("/", "-"), step.place.study.partition("/")[0]
        log = Path(study_folder("results", study), "slurm", f"{label}.log")
        (ROOT / log).parent.mkdir(parents=True, exist_ok=True)
        cpus, gpus = needs_of(step)
        wanted = ["--nodes=1", "--ntasks=1", f"--cpus-per-task={cpus}", *([f"--gpus={gpus}"] if gpus else [])]
        command = [
            *("sbatch", "--wait", "--parsable", "--export=ALL", f"--chdir={ROOT}", f"--output={log}"),
            *(f"--job-name={study}-{label}", "--dependency=singleton", "--requeue", *wanted),
            *(*self.options, f"--wrap={shlex.join(command_of(step, in_lane=step.one_lane))}"),
        ]
        ids: list[str] = []

        def note(line: str) -> None:
            is_id = line.partition(";")[0].isdecimal()  # a site's own lines may stand before it
            if is_id:
                ids.append(line.partition(";")[0])
            if write is not None:
                write(f"Slurm job {line}, log {log}" if is_id else line)

        try:
            return await run_command(command, {**os.environ, **step.variables, **alone(step)}, note)
        except asyncio.CancelledError:
            subprocess.run(["scancel", *ids[:1]], check=False)
            raise


Backend = Local | Ray | Slurm
"""Where steps run. ``lanes``: steps at a time; None: the backend has a queue of its own.

``run`` returns the exit code of a step, whose lines go to ``write``, or (None) straight to this process's output.
Cancelled, it ends the step.
"""


def alone(step: Step) -> dict[str, str]:
    """Return variables of a step in a lane: one thread, one GPU (verl takes those of the machine)."""
    if not step.one_lane or step.ray:
        return {}
    return dict.fromkeys(("OMP_NUM_THREADS", *(("N_GPUS",) if os.environ.get("N_GPUS") else ())), "1")


def needs_of(step: Step) -> tuple[int, int]:
    """Return CPUs and GPUs of a step on a cluster: one of both in a lane, else two CPUs, or one and N_GPUS GPUs."""
    if step.gpu:
        return 1, (1 if step.one_lane and not step.ray else int(os.environ.get("N_GPUS") or 1))
    return (1 if step.one_lane else 2), 0


def run_on_node(command: Sequence[str], variables: Mapping[str, str], root: str) -> int:
    """Run a command on the node where this is called; its exit code."""
    code = subprocess.run(command, cwd=root, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, check=False)
    return 128 - code.returncode if code.returncode < 0 else code.returncode
