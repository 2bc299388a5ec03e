"""A Python whose heavy packages are imported already, to be given as PYTHON to the scripts of a whole study.

Each start is a fork of one process: six seconds of processor time less, of which a study has dozens. A start has the
command line, environment, folder and streams that its caller gives it, and ends when its caller does. A plain
interpreter starts them in test_gpu_check.py (problems, pretraining, rollouts, both trainers), test_confirmatory.py (a
study's claims, record and page, its training done), test_scripts.py (refusals, dry runs) and trainer_runs.py (verl's
trainers when they are killed); verl, Ray and vLLM start such interpreters themselves. What runs on several processes
(run.processes=2) must start from a plain one: each of them imports the program anew.
"""

import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

PACKAGES = (
    *("altair", "pandas", "pyarrow.dataset", "pydantic", "scipy.stats", "statsmodels.stats.proportion"),
    *("torch._dynamo", "torch.distributed.tensor", "transformers.models.auto.modeling_auto"),
    *("transformers.models.auto.tokenization_auto", "transformers.models.llama.modeling_llama"),
)
CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(server, [len(request).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(request)
    code = server.recv(1)
os._exit(code[0] if code else 1)
"""


class WarmPython:
    """Starts the process; ``path`` is the program to give as PYTHON."""

    def __init__(self, folder: Path) -> None:
        self.path, address = folder / "python", str(folder / "socket")
        command = [sys.executable, "-P", __file__, address]
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.server.stdout is not None
        assert self.server.stdout.read(5) == b"ready"
        self.path.write_text(CLIENT.format(python=sys.executable, address=address))
        self.path.chmod(0o755)

    def close(self) -> None:
        self.server.communicate()  # the end of its input is its own end


def serve(address: str) -> None:
    """Answer starts until the input ends."""
    for name in PACKAGES:
        importlib.import_module(name)
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
    """Start what a client asks for, and tell it the exit code; end it if the client is killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    header, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as file:
        request = json.loads(file.read(int.from_bytes(header, "big")))
    child = os.fork()
    if child == 0:
        connection.close()
        start(*request, streams)
    if connection in select.select([connection, os.pidfd_open(child)], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        connection.sendall(bytes([code if code >= 0 else 128 - code]))
    finally:
        os._exit(0)


def start(words: list[str], environment: dict[str, str], folder: str, streams: list[int]) -> NoReturn:
    """Run a program in this process, as ``python WORDS`` does."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = words
    sys.path[:0] = [str(Path(words[0]).resolve().parent), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    runpy.run_path(words[0], run_name="__main__")
    sys.exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
