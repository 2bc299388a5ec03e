"""Where the scripts of a study run: this machine, a Ray cluster, or Slurm."""

import asyncio
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from compositionality.errors import UserError, check_installed
from compositionality.gpus import LANES_PER_GPU, VISIBLE
from compositionality.rollout import cluster
from compositionality.study.jobs import Job

ROOT = Path(__file__).parents[2]
BOUND = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
"""A process that ends when the one that started it does."""
Write = Callable[[str], None]


class Backend(Protocol):
    """Where jobs run. ``lanes``: jobs at a time; None: the backend has a queue of its own."""

    lanes: int | None

    async def run(self, job: Job, lane: int, write: Write | None) -> int:
        """Run one job; its exit code. Its lines go to ``write``, or (None) straight to this process's output.

        Cancelled, it ends the job.
        """
        ...


@dataclass
class Local:
    """This machine: ``lanes`` jobs side by side, one core each, or spread over ``gpus`` (ids, see ``visible_gpus``)."""

    lanes: int | None = 1
    gpus: Sequence[str] = ()

    async def run(self, job: Job, lane: int, write: Write | None) -> int:
        """See Backend."""
        own = self.variables(job, lane)
        return await run_command((*BOUND, *command_of(job)), {**os.environ, **job.variables, **own}, write)

    def variables(self, job: Job, lane: int) -> dict[str, str]:
        """Variables of a job: in a lane one process and thread, one GPU, and how many lanes share that."""
        if not job.one_lane or self.lanes == 1:
            return {}
        if not self.gpus:
            return alone(job)
        sharing = -(-(self.lanes or 1) // len(self.gpus))
        return alone(job) | {VISIBLE: self.gpus[lane % len(self.gpus)], LANES_PER_GPU: str(sharing)}


def command_of(job: Job) -> tuple[str, ...]:
    """The command of a job, from the repository's root."""
    return "bash", f"bash/{job.script}.sh", *job.words


async def run_command(command: Sequence[str], variables: Mapping[str, str], write: Write | None) -> int:
    """Run a command in the repository's root, its output line by line to ``write``; its exit code."""
    piped = asyncio.subprocess.PIPE if write else None
    merged = asyncio.subprocess.STDOUT if write else None
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, env=dict(variables), stdin=asyncio.subprocess.DEVNULL, stdout=piped, stderr=merged,
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
    """A Ray cluster: every job is a task with the CPUs and GPUs that it needs; its lines come through Ray's own log.

    The repository and its folders must be on a file system that all nodes see.
    """

    address: str = ""
    lanes: int | None = None

    async def run(self, job: Job, lane: int, write: Write | None) -> int:  # noqa: ARG002
        """See Backend."""
        import ray

        if not ray.is_initialized() and self.address:
            cluster.join(self.address, log_to_driver=True)
            cluster.check_seen([ROOT / "bash" / "env.sh"])
        elif not ray.is_initialized():
            ray.init(address="local")  # without an address Ray would join any cluster here
        cpus, gpus = (1, 0) if uses_ray(job) else needs_of(job)
        task = ray.remote(run_on_node).options(num_cpus=cpus, num_gpus=gpus, max_retries=0)
        variables = {**cluster.worker_variables(os.environ), **cluster.tracker_variables(os.environ), **job.variables}
        if uses_ray(job):
            variables["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
        reference: Any = task.remote((*BOUND, *command_of(job)), {**variables, **alone(job)}, str(ROOT))
        try:
            code: int = await reference
        except asyncio.CancelledError:
            ray.cancel(reference, force=True)
            raise
        except ray.exceptions.RayError as error:
            said = " ".join(str(error).split())[:200]
            raise UserError(
                f"{job.label}: its node left the Ray cluster, or Ray failed ({said}); run it again"
            ) from error
        return code


@dataclass
class Slurm:
    """Slurm: every job is one ``sbatch --wait``; ``options`` are added to it. Logs are in $RESULTS_DIR/slurm.

    A run that is killed leaves its jobs to Slurm. Started again it submits them again, under the same names: each waits
    until the one that was left has ended (``singleton``), and then finds its work done.
    """

    options: list[str] = field(default_factory=list)
    lanes: int | None = None

    async def run(self, job: Job, lane: int, write: Write | None) -> int:  # noqa: ARG002
        """See Backend."""
        results, label = Path(job.variables["RESULTS_DIR"]), job.label.replace("/", "-").replace(" ", "-")
        log = results / "slurm" / f"{label}.log"
        (ROOT / log).parent.mkdir(parents=True, exist_ok=True)
        cpus, gpus = needs_of(job)
        wanted = ["--nodes=1", "--ntasks=1", f"--cpus-per-task={cpus}", *([f"--gpus={gpus}"] if gpus else [])]
        command = [
            *("sbatch", "--wait", "--parsable", "--export=ALL", f"--chdir={ROOT}", f"--output={log}"),
            *(f"--job-name={results.name}-{label}", "--dependency=singleton", "--requeue", *wanted),
            *(*self.options, f"--wrap={shlex.join(command_of(job))}"),
        ]
        ids: list[str] = []

        def note(line: str) -> None:
            ids.append(line.partition(";")[0])
            if write is not None:
                write(f"Slurm job {line}, log {log}")

        try:
            return await run_command((*BOUND, *command), {**os.environ, **job.variables, **alone(job)}, note)
        except asyncio.CancelledError:
            subprocess.run(["scancel", *ids[:1]], check=False)
            raise


def alone(job: Job) -> dict[str, str]:
    """Variables of a job in a lane: one process, one thread, one GPU (verl takes those of the machine)."""
    if not job.one_lane or uses_ray(job):
        return {}
    one = ("PROCESSES", "OMP_NUM_THREADS", "LANES", *(("N_GPUS",) if job.variables.get("N_GPUS") else ()))
    return dict.fromkeys(one, "1")


def needs_of(job: Job) -> tuple[int, int]:
    """CPUs and GPUs of a job on a cluster: one of both in a lane, else a CPU per process and N_GPUS GPUs."""
    if job.variables.get("DEVICE") == "gpu":
        return 1, (1 if job.one_lane and not uses_ray(job) else int(job.variables.get("N_GPUS") or 1))
    processes = job.variables.get("PROCESSES", "1")
    return (1 if job.one_lane or processes == "null" else int(processes)), 0


def uses_ray(job: Job) -> bool:
    """Whether the job asks Ray for its own GPUs, as verl does."""
    return job.variables.get("DEVICE") == "gpu" and job.variables.get("ENGINE") == "verl"


def run_on_node(command: Sequence[str], variables: Mapping[str, str], root: str) -> int:
    """Run a command on the node where this is called; its exit code."""
    code = subprocess.run(command, cwd=root, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, check=False)
    return 128 - code.returncode if code.returncode < 0 else code.returncode


def choose_backend(
    name: str, lanes: int, gpus: Sequence[str], ray_address: str, slurm_options: Sequence[str]
) -> Backend:
    """The backend of this name. UserError for one that there is not, or that is not installed here."""
    if name == "local":
        return Local(lanes, gpus)
    if name == "ray":
        check_installed("ray", "backend=ray")
        return Ray(ray_address)
    if name == "slurm":
        if shutil.which("sbatch") is None:
            raise UserError("backend=slurm: there is no sbatch here; start this on a machine of the Slurm cluster")
        return Slurm([*slurm_options])
    raise UserError(f"backend={name}: choose local, ray or slurm")
