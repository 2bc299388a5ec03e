"""The processes of a solution: a fork server that holds nothing secret, and its forks, one for each run."""

import _sitebuiltins
import array
import atexit
import builtins
import contextlib
import ctypes
import fcntl
import io
import json
import operator
import os
import resource
import signal
import socket
import struct
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .wire import GoneError, Peer, receive

CHANNEL = 3
_SET_PDEATHSIG = 1
_CALLS = {
    "x86_64": (0xC000003E, 302, 112, (41, 29, 319, 447, 425)),
    "aarch64": (0xC00000B7, 261, 157, (198, 194, 279, 447, 425)),
}
"""By machine: what the kernel calls the architecture, and the numbers of the calls prlimit64 and setsid, and of those
that are refused: socket, shmget, memfd_create, memfd_secret, io_uring_setup."""
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "get": getattr, "iter": iter, "next": next, "len": len, "getitem": operator.getitem, "str": str, "repr": repr,
    "setitem": operator.setitem, "instance": lambda kind, value: isinstance(value, kind),
}  # fmt: skip


def serve_forks(sock: socket.socket) -> NoReturn:
    """Fork for each request; answer with the process id, then with the exit status."""
    while True:
        lengths, ancillary, _, _ = sock.recvmsg(4, socket.CMSG_SPACE(32))
        if not lengths:
            os._exit(0)
        fds = array.array("i")
        for _, _, data in ancillary:
            fds.frombytes(data[: len(data) - len(data) % 4])
        body = b""
        while len(body) < struct.unpack("<I", lengths)[0]:
            body += sock.recv(1 << 20)
        pid = os.fork()
        if not pid:
            sock.close()
            _run(json.loads(body), list(fds))
        for fd in fds:
            os.close(fd)
        sock.sendall(struct.pack("<q", pid))
        sock.sendall(struct.pack("<q", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))


def prepare(fds: Sequence[int], limits: dict[str, int]) -> None:
    """Start a session; ``fds`` become 0, 1, 2 …, all others are closed; then set the limits that the kernel holds."""
    os.setsid()
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in fds]  # above the places that they go to
    for place, fd in enumerate(moved):
        os.dup2(fd, place)
    os.closerange(len(moved), 1024)
    for name, value in limits.items():
        with contextlib.suppress(ValueError):  # a lower limit holds already
            resource.setrlimit(getattr(resource, name), (value, value))


def _filter_calls() -> None:
    """Refuse system calls by a seccomp filter, where the kernel has them and the machine is one of _CALLS.

    Refused are sockets, as no namespace holds some of their families, memory that counts for no process, and limits of
    other processes, else a program could lower those of the supervisor, which would then fail. A session of its own is
    not given, without an error: the kernel shares processors out by sessions, so many of them leave the supervisor too
    little to stop them.
    """
    arch, prlimit, setsid, refused = _CALLS.get(os.uname().machine, (0, 0, 0, ()))
    if not arch:
        return
    more = len(refused)
    steps = [
        (0x20, 0, 0, 4), (0x15, 0, 7 + more, arch),  # another architecture's calls (32 bits): refused
        (0x20, 0, 0, 0), (0x35, 5 + more, 0, 0x40000000),  # x32's too
        *((0x15, 4 + more - place, 0, call) for place, call in enumerate(refused)),
        (0x15, 5, 0, setsid), (0x15, 0, 2, prlimit), (0x20, 0, 0, 16), (0x15, 0, 1, 0),  # of a process that is named
        (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x00050000),  # allowed, EPERM, 0 at once
    ]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("<H6xQ", len(steps), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None).prctl
    prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    prctl(22, 2, program, 0, 0)  # PR_SET_SECCOMP


def _run(request: dict[str, Any], fds: list[int]) -> NoReturn:
    try:
        null = os.open(os.devnull, os.O_RDWR)
        script = request["kind"] == "script"
        prepare([*fds, null] if script else [null, null, null, *fds], request["limits"])
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _filter_calls()
        os.nice(5)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        code = _finish(_script if script else _serve, request)
    except BaseException:  # noqa: BLE001 - nothing goes back into the fork server
        code = 1
    os._exit(code)


def _finish(work: Callable[[dict[str, Any]], None], request: dict[str, Any]) -> int:
    """Return the exit status, as the interpreter finds it: other threads and atexit run first."""
    code = 0
    try:
        work(request)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001
        code = 1
    if "threading" in sys.modules:
        vars(sys.modules["threading"])["_shutdown"]()
    atexit._run_exitfuncs()
    for stream in {sys.stdout, sys.__stdout__}:
        if stream is not None:
            stream.flush()
    return code & 255


def _module(name: str) -> types.ModuleType:
    """Make a module for the program, in an interpreter that has exit and quit, as without -S."""
    for word in ("exit", "quit"):
        setattr(builtins, word, _sitebuiltins.Quitter(word, "end of file"))
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    return module


def _script(request: dict[str, Any]) -> None:
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8", errors="replace")
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8", errors="replace"
    )
    sys.__stdin__, sys.__stdout__ = sys.stdin, sys.stdout  # type: ignore[misc]
    module = _module("__main__")
    exec(_compile(request), module.__dict__)  # noqa: S102 - this is the sandbox


def _serve(request: dict[str, Any]) -> None:
    module = _module("solution")
    exec(_compile(request), module.__dict__)  # noqa: S102 - this is the sandbox
    _Solution(CHANNEL, module, request["classes"]).serve()


def _compile(request: dict[str, Any]) -> types.CodeType:
    """Compile prefix and program; the program alone if the prefix is no whole program (the head of a function)."""
    program = request["program"]
    try:
        return compile(f"{request['prefix']}\n{program}", "solution.py", "exec", dont_inherit=True)
    except SyntaxError:
        return compile(program, "solution.py", "exec", dont_inherit=True)


class _Solution(Peer):
    """The solution's end: everything may be asked for, as only the tests ask."""

    def __init__(self, fd: int, module: types.ModuleType, classes: list[str]) -> None:
        super().__init__(fd, lambda: {name: vars(module)[name] for name in classes if name in vars(module)})
        self._module = module

    def serve(self) -> None:
        with contextlib.suppress(GoneError):
            while True:
                self.answer(receive(self.fd))

    def perform(self, request: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        operation, target = request["ask"], request["of"]
        if operation == "names":
            return [name for name in vars(self._module) if not name.startswith("__")]
        value: Any = self._module if target is None else self.exported[target]
        return value(*args, **kwargs) if operation == "call" else _OPERATIONS[operation](value, *args)
