"""Processes of one command on this machine: ``run.processes=N`` starts the ranks of a torch.distributed job;
``python -m compositionality.train.launch COMMAND…`` runs a command whose processes all end with it.

As torchrun does it. Its agent takes two seconds more, and where a rank ends with one line and exit code 2 it ends with
thirty lines and exit code 1; here both stay what they are. Under torchrun (RANK is set) nothing is started.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import SystemRandom
from types import FrameType

import psutil

from compositionality.errors import UserError
from compositionality.gpus import VISIBLE, check_gpus_are_used, count_gpus, why_no_gpu
from compositionality.train.settings import RunSettings

PATIENCE = 3.0  # seconds that the first rank has to say what is wrong after another has ended of it,
PATIENCE_FOR_A_REASON = 60.0  # and after one has ended of a UserError, which the first rank alone prints
PER_CORE = 16  # processes on a CPU: more would take all of its memory
GRACE_SECONDS = 10.0  # that processes have to end after SIGTERM


def on_ranks(settings: RunSettings, body: Callable[[], object]) -> None:
    """Run ``body`` in this process if it is a rank or alone, else this same command as the ranks that are asked for.

    UserError for a device that is not there; SystemExit with the exit code of the first rank that failed.
    """
    choose_device(settings.device)
    if "RANK" in os.environ:
        world = int(os.environ.get("WORLD_SIZE", "1"))
        if settings.processes not in (None, world):
            raise UserError(f"run.processes={settings.processes}, but torchrun has started {world}; give one of them")
        check_a_gpu_each(settings.device, int(os.environ.get("LOCAL_WORLD_SIZE", world)), "torchrun --nproc-per-node")
        die_with_parent()
        body()
        return
    count = count_processes(settings)
    if count == 1:
        body()
        return
    check_a_gpu_each(settings.device, count)
    code = start_ranks([sys.executable, *sys.orig_argv[1:]], count)
    if code:
        raise SystemExit(code)


def world_size(settings: RunSettings) -> int:
    """Return ranks of the run: those that torchrun has started, else those that ``on_ranks`` starts."""
    if "RANK" in os.environ:
        return int(os.environ.get("WORLD_SIZE", "1"))
    return count_processes(settings)


def choose_device(device: str) -> None:
    """Hide, for ``cpu``, all GPUs from this process and its children.

    UserError, with the reason, if there is no GPU to take, or with ``auto`` if those that are visible cannot be used.
    """
    if device == "cpu":
        os.environ[VISIBLE] = ""
    if device == "gpu" and not count_gpus():
        raise UserError(f"run.device=gpu, but {why_no_gpu(os.environ)}; run.device=cpu takes the CPU")
    if device == "auto":
        check_gpus_are_used()


def check_a_gpu_each(device: str, processes: int, key: str = "run.processes") -> None:
    """Raise UserError if this machine's processes, counted by ``key``, are more than its GPUs, or a CPU can start."""
    gpus = 0 if device == "cpu" else count_gpus()
    if not gpus and processes > (most := PER_CORE * (os.cpu_count() or 1)):
        raise UserError(
            f"{key}={processes} (of the scripts: N_GPUS), but the CPU has {most // PER_CORE} cores: at most {most}"
        )
    if gpus and processes > gpus:
        visible = f"{VISIBLE}={os.environ[VISIBLE]}" if VISIBLE in os.environ else f"{VISIBLE} is not set"
        raise UserError(
            f"{key}={processes} (of the scripts: N_GPUS), but {gpus} GPU{'s are' if gpus > 1 else ' is'} visible "
            f"({visible}); a process needs a GPU of its own: start at most {gpus}, or make more visible"
        )


def count_processes(settings: RunSettings) -> int:
    """Return the number of processes on this machine: as given, else one for every GPU, else one."""
    if settings.processes is None:
        return 1 if settings.device == "cpu" else max(count_gpus(), 1)
    return settings.processes


def start_ranks(command: Sequence[str], count: int) -> int:
    """Start ``count`` processes of ``command`` that die with this one; return 0, or the first failure's code.

    They pass over SIGINT, which a terminal sends to them too: this process ends them.
    """
    port = free_port()
    ranks = [
        subprocess.Popen(
            command, env=rank_environment(rank, count, port), stdin=subprocess.DEVNULL, preexec_fn=_prepare_rank
        )
        for rank in range(count)
    ]
    try:
        return wait_for(ranks)
    finally:
        end_at_once(ranks)


def end_at_once(ranks: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Kill all that still run, and wait for them; all are stopped first, so that none complains of another's end.

    By their numbers: a KeyboardInterrupt within ``Popen.poll`` may have left its lock taken, and ``wait`` waits for it.
    """
    living = [rank.pid for rank in ranks if rank.returncode is None]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in living:
            with suppress(ProcessLookupError):
                os.kill(process, number)
    for process in living:
        with suppress(ChildProcessError):
            os.waitpid(process, 0)


def _prepare_rank() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()


def wait_for(ranks: Sequence["subprocess.Popen[bytes]"]) -> int:
    """Return 0 when all have ended well; else the first failure's exit code, once the first rank has printed why."""
    codes = [rank.poll() for rank in ranks]
    while None in codes and not any(codes):
        time.sleep(0.02)
        codes = [rank.poll() for rank in ranks]
    failed = next((number for number, code in enumerate(codes) if code), None)
    if failed is None:
        return 0
    code = ranks[failed].returncode
    try:
        ranks[0].wait(PATIENCE_FOR_A_REASON if code == UserError.exit_code else PATIENCE)
    except subprocess.TimeoutExpired:
        print(f"error: process {failed} of {len(ranks)} ended with exit code {code}", file=sys.stderr, flush=True)
    return 128 - code if code < 0 else code


def rank_environment(rank: int, count: int, port: int) -> dict[str, str]:
    """Return the variables by which torch.distributed finds the other ranks; one thread each."""
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_PORT": port}
    return {**os.environ, "MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"} | {key: str(place[key]) for key in place}


def free_port() -> int:
    """Return a free port below those that the kernel gives away, so that nothing takes it before the ranks listen."""
    while True:
        port = SystemRandom().randrange(20_000, 32_768)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Get the signal ``number`` when the parent dies: a killed launcher must not leave processes that hold locks."""
    _prctl(_SET_PDEATHSIG, number)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


# ---- a command that leaves no process behind


def guard(command: Sequence[str]) -> int:
    """Run ``command`` and leave no process behind; its exit code (128 + signal if a signal ended it).

    Ray and vLLM start processes in sessions of their own. The guard adopts every orphan among its descendants, gets a
    signal when its parent dies, even by SIGKILL, and ends them all.
    """
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    _prctl(_SET_CHILD_SUBREAPER, 1)
    die_with_parent(signal.SIGTERM)
    if os.getppid() != parent or parent == 1:  # the parent died before the line above
        return 128 + signal.SIGTERM
    child = subprocess.Popen(command, preexec_fn=_die_with_guard)
    try:
        code = child.wait()
    finally:
        end_descendants()
    return code if code >= 0 else 128 - code


def descendants(root: int) -> list[psutil.Process]:
    try:
        return [process for process in psutil.Process(root).children(recursive=True) if is_alive(process)]
    except psutil.NoSuchProcess:
        return []


def end_descendants() -> None:
    """Send SIGTERM to every descendant, and SIGKILL to those that are still alive after a grace period."""
    _signal_all(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while descendants(os.getpid()) and time.monotonic() < deadline:
        _reap()
        time.sleep(0.1)
    while descendants(os.getpid()):
        _signal_all(signal.SIGKILL)
        _reap()
        time.sleep(0.1)


def is_alive(process: psutil.Process) -> bool:
    """Tell whether the process runs; a zombie does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE  # type: ignore[no-any-return]
    except psutil.NoSuchProcess:
        return False


def _signal_all(number: signal.Signals) -> None:
    for process in descendants(os.getpid()):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_descendants()
    os._exit(128 + number)


def _die_with_guard() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_parent()


if __name__ == "__main__":
    sys.exit(guard(sys.argv[1:]))
