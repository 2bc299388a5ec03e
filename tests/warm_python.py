"""A Python whose heavy packages are imported already, to be given as PYTHON to the scripts of a whole study.

Each start is a fork of one process: six seconds of processor time less, of which a study has dozens, and twelve less
for each process of verl's GRPO. A start has the command line, environment, folder and open files that its caller gives
it, and ends when its caller does, and with it all that it has started. What it starts by multiprocessing is such a fork
too; so is, with the variable CHILDREN, what it starts as sys.executable, and with PYTHON_EXEC what torchrun starts.
``of_ray`` makes Ray's workers such forks. verl, Ray, vLLM and our own packages are never imported before the fork.

A plain interpreter starts them in test_gpu_check.py (problems, pretraining, rollouts, both trainers),
test_confirmatory.py (a study's claims, record and page, its training done), test_scripts.py (problems, dry runs) and
test_cluster_real.py and trainer_runs.py (verl's, with Ray and vLLM, the latter when GRPO is killed). What is killed as
several processes must start from a plain one: a fork is no child of its caller, whose death the kernel would tell it.
"""

import ctypes
import gc
import importlib
import json
import multiprocessing
import os
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import psutil

PACKAGES = (
    *("altair", "pandas", "pyarrow.dataset", "pydantic", "scipy.stats", "statsmodels.stats.proportion"),
    *("torch._dynamo", "torch.distributed.tensor", "transformers.models.auto.modeling_auto"),
    *("transformers.models.auto.tokenization_auto", "transformers.models.llama.modeling_llama"),
)
OF_VERL = (
    *("accelerate", "aiohttp", "cv2", "datasets", "fastapi", "hydra", "mistral_common.protocol.instruct.request"),
    *("openai", "openai.types.chat", "openai.types.responses", "opentelemetry.sdk.trace", "prometheus_client"),
    *("scipy.signal", "tensordict", "torch._inductor.compile_fx", "torch.onnx", "torchdata.stateful_dataloader"),
    *("uvicorn", "xgrammar", "zmq"),
)
"""What verl's and vLLM's processes import besides."""
CHILDREN = "WARM_CHILDREN"
SUBREAPER = 36
"""Of prctl: who takes the orphans among its descendants for its children."""
PATH = "WARM_PYTHON"
"""In the environment: the program that ``of_ray`` gives to Ray."""
CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    listed = {{*map(int, os.listdir("/proc/self/fd"))}} - {{server.fileno()}}
    files = [file for file in listed if os.path.exists(f"/proc/self/fd/{{file}}")]  # the listing's own is closed again
    request = json.dumps([sys.argv, dict(os.environ), os.getcwd(), files]).encode()
    socket.send_fds(server, [len(request).to_bytes(8, "big")], files)
    server.sendall(request)
    signal.signal(signal.SIGTERM, lambda number, frame: server.sendall(bytes([number])))
    code = server.recv(1)
os._exit(code[0] if code else 1)
"""


class WarmPython:
    """Starts the process, with PACKAGES and ``more`` imported; ``path`` is the program to give as PYTHON."""

    def __init__(self, folder: Path, more: tuple[str, ...] = ()) -> None:
        self.path, address = folder / "python", str(folder / "socket")
        command = [sys.executable, "-P", __file__, address, *more]
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.server.stdout is not None
        assert self.server.stdout.read(5) == b"ready"
        self.path.write_text(CLIENT.format(python=sys.executable, address=address))
        self.path.chmod(0o755)

    def close(self) -> None:
        """End the server without waiting for its forks: the resource tracker of this process outlives it."""
        assert self.server.stdin is not None
        self.server.stdin.close()  # the end of its input is its end
        self.server.wait()


def of_ray(runtime_env: dict[str, Any] | None) -> dict[str, Any]:
    """Give Ray's workers the interpreter PATH: what RAY_RUNTIME_ENV_HOOK names."""
    return {**(runtime_env or {}), "py_executable": os.environ[PATH]}


def serve(address: str, *more: str) -> None:
    """Answer starts until the input ends."""
    for name in (*PACKAGES, *more):
        importlib.import_module(name)
    gc.freeze()  # forks share what no collection visits
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        os.write(1, b"ready")
        while server in select.select([server, 0], [], [])[0]:
            connection, _ = server.accept()
            with connection:
                if os.fork() == 0:
                    server.close()
                    attend(connection)


def attend(connection: socket.socket) -> NoReturn:
    """Start what a client asks for, hand on its SIGTERM, and tell it the exit code; end it if the client is killed.

    What it leaves behind is ended too.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    header, files, _, _ = socket.recv_fds(connection, 8, 64)
    request = bytearray()
    while len(request) < int.from_bytes(header, "big"):
        request += connection.recv(1 << 16)
    child = os.fork()
    if child == 0:
        connection.close()
        start(*json.loads(request), files)
    for file in files:
        os.close(file)
    process = os.pidfd_open(child)
    while process not in select.select([connection, process], [], [])[0]:
        told = connection.recv(1)
        os.kill(child, told[0] if told else signal.SIGKILL)
        if not told:
            break
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for left in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            left.kill()
    try:
        connection.sendall(bytes([code if code >= 0 else 128 - code]))
    finally:
        os._exit(0)


def start(argv: list[str], environment: dict[str, str], folder: str, numbers: list[int], files: list[int]) -> NoReturn:
    """Run a program in this process, as ``python WORDS`` does, with the caller's open files under their numbers."""
    os.setpgrp()  # Ray ends the process groups of its workers
    place(dict(zip(numbers, files, strict=True)))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    sys.orig_argv, words = argv, argv[1:]
    multiprocessing.set_executable(argv[0])
    if CHILDREN in environment:
        sys.executable = argv[0]
    while words[0].startswith("-") and words[0] not in ("-c", "-m"):
        flag = words.pop(0)
        if flag in ("-X", "-W"):
            words.pop(0)
        if flag == "-u":
            environment["PYTHONUNBUFFERED"] = "1"
    if environment.get("PYTHONUNBUFFERED"):
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    path = environment.get("PYTHONPATH", "").split(os.pathsep)
    if words[0] == "-c":
        sys.argv[:] = ["-c", *words[2:]]
        sys.path[:0] = ["", *path]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(words[1], main.__dict__)
    elif words[0] == "-m":
        sys.argv[:] = words[1:]
        sys.path[:0] = [folder, *path]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = words
        sys.path[:0] = [str(Path(words[0]).resolve().parent), *path]
        runpy.run_path(words[0], run_name="__main__")
    sys.exit(0)


def place(files: dict[int, int]) -> None:
    """Give each open file the number that its caller had it under."""
    free = 1 + max((*files, *files.values()))
    moved = {number: free + count for count, number in enumerate(files)}
    for number, file in files.items():
        os.dup2(file, moved[number])
        os.close(file)
    for number, file in moved.items():
        os.dup2(file, number)
        os.close(file)


if __name__ == "__main__":
    serve(*sys.argv[1:])
