"""The first process in the sandbox: starts all others, counts them, and ends them. It alone writes the results.

Reads one job (JSON) from standard input, writes lines of JSON: ``ready``, one for each run of the program, ``end``.
Where there is a namespace of its own it is process 1 there, so that nothing outlives it.
"""

import contextlib
import ctypes
import io
import json
import os
import select
import signal
import socket
import struct
import time
from typing import Any, NoReturn

from . import solution

POLL_S = 0.005
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_CHILD_SUBREAPER = 1, 4, 36
_PAGE = 4096


class LimitError(Exception):
    """The program passed a limit; the text names it."""


def main() -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one signal that a program could send to process 1
    prctl = ctypes.CDLL(None).prctl
    prctl(_SET_DUMPABLE, 0, 0, 0, 0)  # neither traced nor read, nor are the forks
    if os.getpid() != 1:
        prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    our_end, server_end = socket.socketpair()
    server_pid = os.fork()
    if not server_pid:
        our_end.close()
        os.close(0)
        os.close(1)
        prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        solution.serve_forks(server_end)
    server_end.close()
    _write({"ready": True})
    supervisor = Supervisor(our_end, server_pid, json.loads(io.FileIO(0, closefd=False).readall()))
    try:
        end = supervisor.run()
    except LimitError as error:
        end = {"end": str(error)}
    except ConnectionError:  # the fork server is gone, which only the program can have done
        end = {"end": "killed"}
    supervisor.kill_all()
    _write(end)
    os._exit(0)


class Supervisor:
    """The runs of one job. ``server``: the socket of the fork server."""

    def __init__(self, server: socket.socket, server_pid: int, job: dict[str, Any]) -> None:
        self.server, self.server_pid, self.job = server, server_pid, job
        self.deadline = time.monotonic() + job["wall_s"]
        self.looked = 0.0

    def run(self) -> dict[str, Any]:
        if "tests" in self.job:
            return self._check()
        for number, text in enumerate(self.job["inputs"]):
            _write({"case": number, **self._script(text)})
        return {"end": "done"}

    def _request(self, kind: str, fds: list[int], **more: Any) -> int:
        """Ask for a fork of the server that has these files; return its process id."""
        job = {name: self.job[name] for name in ("prefix", "program", "limits")}
        body = json.dumps({"kind": kind, **job, **more}).encode()
        socket.send_fds(self.server, [struct.pack("<I", len(body))], fds)
        self.server.sendall(body)
        for fd in fds:
            os.close(fd)
        return self._answer()

    def _answer(self) -> int:
        while not select.select([self.server], [], [], POLL_S)[0]:
            self._look()
        data = self.server.recv(8, socket.MSG_WAITALL)
        if len(data) < 8:
            raise LimitError("killed")
        return int(struct.unpack("<q", data)[0])

    def _script(self, text: str) -> dict[str, Any]:
        """Run the program as a script once; return its exit status and what it printed."""
        stdin = os.memfd_create("stdin")
        with os.fdopen(os.dup(stdin), "wb") as file:
            file.write(text.encode("utf-8", "replace"))
        os.lseek(stdin, 0, os.SEEK_SET)
        output, write_end = os.pipe()
        os.set_blocking(output, False)
        pid = self._request("script", [stdin, write_end])
        printed = bytearray()
        fds = [output, self.server.fileno()]
        while True:
            ready, _, _ = select.select(fds, [], [], POLL_S)
            self._look()
            if output in ready and not self._drain(output, printed):
                fds.remove(output)
            if self.server.fileno() in ready:
                break
        code = self._answer()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        self._drain(output, printed)
        os.close(output)
        return {"exit": code, "output": printed.decode("utf-8", "replace")}

    def _drain(self, output: int, printed: bytearray) -> bool:
        """Read what is available; return False at the end of the stream."""
        try:
            while part := os.read(output, 1 << 16):
                printed += part
                if len(printed) > self.job["output_bytes"]:
                    raise LimitError("output")
        except BlockingIOError:
            return True
        return False

    def _check(self) -> dict[str, Any]:
        """Run the tests in one process, the solution in another, with a channel between them."""
        from . import checker

        tests_end, solution_end = socket.socketpair()
        results, write_end = os.pipe()
        self._request("serve", [solution_end.detach()], classes=checker.classes_of(self.job["prefix"]))
        if not os.fork():
            os.close(0)
            os.close(1)
            checker.check(tests_end.fileno(), write_end, self.job)
        tests_end.close()
        os.close(write_end)
        while not select.select([results], [], [], POLL_S)[0]:
            self._look()
        from .wire import GoneError, receive

        try:
            kind, text = receive(results)
        except GoneError:
            kind, text = "failed", "the tests were ended"
        return {"end": kind, "text": text}

    def _look(self) -> None:
        """Reap what has ended; raise LimitError for too many processes, too much memory in all, or the time."""
        now = time.monotonic()
        if now > self.deadline:
            raise LimitError("time")
        if now - self.looked < POLL_S:
            return
        self.looked = now
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, and others may have its pid
            os.kill(self.server_pid, signal.SIGCONT)  # the program may have stopped it
        _reap()
        pids = processes()
        if len(pids) > self.job["processes"]:
            raise LimitError("processes")
        if sum(_second(pid, "statm") for pid in pids) * _PAGE > self.job["memory_bytes"] * 2:
            raise LimitError("memory")

    def kill_all(self) -> None:
        """End every process but this one, and wait until they are gone."""
        for _ in range(1000):
            pids = processes()
            if not pids:
                return
            if os.getpid() == 1:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            _reap()


def processes() -> list[int]:
    """Return all other processes of the namespace, or without one all descendants of this process."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - ten times faster
    if os.getpid() == 1:
        return [pid for pid in pids if pid != 1]
    parents = {pid: _second(pid, "stat") for pid in pids}
    descendants, queue = [], [os.getpid()]
    while queue:
        ancestor = queue.pop()
        children = [pid for pid, parent in parents.items() if parent == ancestor]
        descendants += children
        queue += children
    return descendants


def _second(pid: int, name: str) -> int:
    """Return the second number of ``stat`` after the command, the parent, or of ``statm``: pages in memory, shared too.

    0 for a process that has ended.
    """
    try:
        with open(f"/proc/{pid}/{name}") as file:  # noqa: PTH123 - pathlib is slow to import
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _write(line: dict[str, Any]) -> None:
    data = memoryview(json.dumps(line).encode() + b"\n")
    while data:
        data = data[os.write(1, data) :]
