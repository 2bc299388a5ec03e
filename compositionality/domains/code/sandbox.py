"""Runs programs that nobody has read: with bubblewrap where it works, else with what the kernel gives any process.

``python -m compositionality.domains.code.sandbox`` prints which of the two this machine has, the limits, and what is
not contained. README.md describes both.
"""

import contextlib
import json
import logging
import os
import py_compile
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

_LOG = logging.getLogger(__name__)
INSIDE = Path(__file__).parent / "inside"
FALLBACK_VARIABLE = "COMPOSITIONALITY_SANDBOX"
GRACE_S = 1.0
_MIB = 1 << 20
_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_MAIN = "import sys; sys.path.append({path!r}); from inside.supervisor import main; sys.path.pop(); main()"
_START_S, _END_S = 5.0, 0.3
_TRIAL_S = 120.0  # that the trial of bubblewrap may take: a machine that is busy then must not go without it


class SandboxError(Exception):
    """The sandbox did not start, or was ended from outside: nothing is known of the program."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the programs of one job; seconds are those of the whole job."""

    wall_s: float = 7.5  # clearly below the judge pool's 10 s an item
    cpu_s: int = 7  # of processor time, a process
    memory_mb: int = 1024  # address space of a process; twice as much in memory for all together
    processes: int = 32  # at a time, those of the sandbox (3) too
    open_files: int = 64
    file_mb: int = 16  # a file
    scratch_mb: int = 64  # all files
    output_mb: int = 4  # printed in one run


@dataclass(frozen=True, slots=True)
class Containment:
    """The containment of programs here: ``full`` (bubblewrap) or not, and what is not contained, in one sentence."""

    full: bool
    missing: str
    bwrap: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One line of the results: what a run of the program printed and its exit status, or how the job ended.

    ``end``: done, passed, failed, broken (tests that cannot run), or the limit that was passed: time, memory,
    processes, output, killed.
    """

    exit_code: int = 0
    output: str = ""
    end: str = ""
    text: str = ""


def run_script(
    program: str, inputs: Sequence[str], prefix: str = "", limits: Limits | None = None
) -> Generator[Run, None, None]:
    """Run a program once for each input, each in a process of its own; the last item says how the job ended.

    Close the iterator early to end the rest. SandboxError if the sandbox does not start.
    """
    return _runs({"program": program, "prefix": prefix, "inputs": list(inputs)}, limits or Limits())


def run_tests(program: str, tests: str, prefix: str = "", style: str = "assert", limits: Limits | None = None) -> Run:
    """Run ``tests`` on a program that they cannot be changed by; ``style`` pytest: its test functions. See ``Run.end``.

    SandboxError if the sandbox does not start.
    """
    job = {"program": program, "prefix": prefix, "tests": tests, "style": style}
    return list(_runs(job, limits or Limits()))[-1]


@cache
def containment() -> Containment:
    """Return how programs are contained on this machine, tried once. What is missing is logged once, as a warning."""
    contained = _find_containment()
    if not contained.full:
        _LOG.warning("the sandbox for programs is not complete: %s", contained.missing)
    return contained


def fallback(why: str) -> Containment:
    """Return the sandbox without bubblewrap, and what it does not contain."""
    return Containment(
        False,
        f"{why}, so programs can use the network, read and write every file that this user can, signal this user's "
        "processes, and leave processes behind if they end their supervisor",
    )


def _find_containment() -> Containment:
    if os.environ.get(FALLBACK_VARIABLE) == "fallback":
        return fallback(f"{FALLBACK_VARIABLE}=fallback is set")
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return fallback("bubblewrap (bwrap) is not installed")
    usage = subprocess.run([bwrap, "--help"], capture_output=True, text=True, check=False).stdout
    limits = {"--size": "the size of all files together", "--disable-userns": "further user namespaces"}
    options = tuple(option for option in limits if option in usage)
    lacks = " and ".join(limit for option, limit in limits.items() if option not in options)
    missing = f"this bubblewrap is an older one, so {lacks} are not limited" if lacks else "the kernel, which is shared"
    full = Containment(True, missing, bwrap, options)
    try:
        job = {"program": "print(1)", "prefix": "", "inputs": [""]}
        runs = list(_runs(job, Limits(wall_s=_TRIAL_S), full, _TRIAL_S))
    except SandboxError as error:
        return fallback(f"bubblewrap does not work here ({error})")
    return full if runs[0].output == "1\n" else fallback("bubblewrap does not run Python here")


def _runs(
    job: Mapping[str, Any], limits: Limits, contained: Containment | None = None, start_s: float | None = None
) -> Generator[Run, None, None]:
    """Start the sandbox, give it the job, and read its lines until it ends or its time is over."""
    contained = contained or containment()
    memory, file = limits.memory_mb * _MIB, limits.file_mb * _MIB
    kernel = {
        "RLIMIT_CPU": limits.cpu_s, "RLIMIT_AS": memory, "RLIMIT_FSIZE": file, "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_CORE": 0,
    }  # fmt: skip
    counted = {"wall_s": limits.wall_s, "processes": limits.processes, "memory_bytes": memory}
    counted["output_bytes"] = limits.output_mb * _MIB
    text = json.dumps({**job, **counted, "limits": kernel}).encode()
    with contextlib.ExitStack() as stack:
        scratch = None if contained.full else tempfile.TemporaryDirectory(prefix="sandbox-", ignore_cleanup_errors=True)
        folder = stack.enter_context(scratch) if scratch else None
        process = _start(contained, folder, limits)
        try:
            yield from _lines(process, text, (start_s or _START_S, limits.wall_s + GRACE_S), contained)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _lines(
    process: "subprocess.Popen[bytes]", job: bytes, patience: tuple[float, float], contained: Containment
) -> Iterator[Run]:
    """Yield the runs that the supervisor reports. Raise SandboxError if it ends without a word.

    ``patience``: the seconds that it may take to start, and then for the job.
    """
    assert process.stdin
    assert process.stdout
    start_s, wall_s = patience
    deadline = time.monotonic() + start_s
    rest = b""
    ready = False
    while True:
        if not select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if not ready:
                raise SandboxError(f"it has not started within {start_s:.0f} s")
            yield Run(end="time")
            return
        part = os.read(process.stdout.fileno(), 1 << 16)
        if not part:
            break
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            fields = json.loads(line)
            if "ready" in fields:
                ready, deadline = True, time.monotonic() + wall_s
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(job)
                    process.stdin.close()
                continue
            yield Run(fields.get("exit", 0), fields.get("output", ""), fields.get("end", ""), fields.get("text", ""))
            if "end" in fields:
                return
    if ready and not contained.full:
        yield Run(end="killed")  # only the program can have done it
        return
    errors = process.stderr.read().decode("utf-8", "replace").strip() if process.stderr else ""
    reason = f": {errors.splitlines()[-1][:200]}" if errors else ""
    raise SandboxError(f"it ended with status {process.wait()}{reason}")


def _start(contained: Containment, folder: str | None, limits: Limits) -> "subprocess.Popen[bytes]":
    """Start the supervisor; ``folder``: its working directory without bubblewrap."""
    _compile_inside()
    python = os.path.realpath(sys.executable)
    home = "/run" if contained.full else str(INSIDE.parent)
    command = [python, "-I", "-S", "-B", "-X", "utf8", "-c", _MAIN.format(path=home)]
    environment = {} if folder is None else _environment(folder)
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            [*_bwrap(contained, limits), *command] if contained.full else command,
            stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, env=environment, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise SandboxError(str(error)) from error


def _environment(folder: str) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": folder, "TMPDIR": folder, "LC_ALL": "C.UTF-8"}


def _bwrap(contained: Containment, limits: Limits) -> list[str]:
    size = ["--size", str(limits.scratch_mb * _MIB)] if "--size" in contained.options else []
    words = [
        contained.bwrap, "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL",
    ]  # fmt: skip
    words += ["--die-with-parent", "--new-session", "--as-pid-1", "--hostname", "sandbox", "--clearenv"]
    words += ["--disable-userns"] if "--disable-userns" in contained.options else []
    for name in _SYSTEM:
        path = Path("/") / name
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    for prefix in {sys.base_prefix, sys.base_exec_prefix}:
        if not Path(prefix).is_relative_to("/usr"):
            words += ["--ro-bind", prefix, prefix]
    words += ["--ro-bind", str(INSIDE), "/run/inside"]
    words += ["--proc", "/proc", "--remount-ro", "/proc"]  # what the kernel shows could be written by a user 0
    words += [*size, "--tmpfs", "/dev"]
    for device in ("null", "zero", "full", "random", "urandom"):
        words += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        words += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
    words += ["--symlink", "/proc/self/fd", "/dev/fd", "--remount-ro", "/dev"]
    words += [*size, "--tmpfs", "/tmp", "--remount-ro", "/", "--chdir", "/tmp"]
    for name, value in _environment("/tmp").items():
        words += ["--setenv", name, value]
    return words


@cache
def _compile_inside() -> None:
    """Write byte code beside the files, where that can be written: the sandbox cannot keep it."""
    for path in INSIDE.glob("*.py"):
        with contextlib.suppress(OSError):
            py_compile.compile(str(path), quiet=2)


def main() -> None:
    logging.disable()
    contained = containment()
    print(f"sandbox: {'bubblewrap, all namespaces unshared' if contained.full else 'fallback, without namespaces'}")
    for name, value in asdict(Limits()).items():
        print(f"  {name} = {value}")
    if not contained.full:
        print("  scratch_mb is not enforced without bubblewrap")
    scope = "network, files of this machine, other processes, environment" if contained.full else "environment"
    print(f"contained: {scope}")
    print(f"not contained: {contained.missing}")


if __name__ == "__main__":
    main()
