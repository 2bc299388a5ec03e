"""Starts several processes that form a gloo group, as torchrun would."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import set_executable
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp
from bash_runs import warm_python

from compositionality.train.dist import stop_processes
from compositionality.train.launch import free_port


def _enter(rank: int, world: int, port: int, body: Callable[..., Any], result: str, arguments: tuple[Any, ...]) -> None:
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    returned = body(*arguments)
    if rank == 0:
        torch.save(returned, result)
    stop_processes()
    os._exit(0)  # as the command does: see config.cli.exit_after


def on_ranks(world: int, body: Callable[..., Any], *arguments: Any) -> Any:
    """What ``body(*arguments)`` returns on rank 0 of ``world`` processes; fails if any of them fails."""
    here = str(Path(__file__).parent)
    if here not in sys.path:  # twice in whole runs, never alone, the processes found no ranks.py
        sys.path.insert(0, here)
    with tempfile.TemporaryDirectory() as folder:
        result, said = Path(folder) / "result.pt", Path(folder) / "stderr"
        try:
            with stderr_in(said), warm_starts():
                mp.spawn(_enter, (world, free_port(), body, str(result), arguments), nprocs=world)
        except mp.ProcessExitedException as error:  # it died without an exception that the others could be told
            raise AssertionError(f"{error}, with {sys.path}; they said: {said.read_text()[-2000:]}") from error
        return torch.load(result, weights_only=False)


@contextmanager
def warm_starts() -> Iterator[None]:
    """Processes that are started in the body have imported their packages already."""
    set_executable(warm_python())
    try:
        yield
    finally:
        set_executable(sys.executable)


@contextmanager
def stderr_in(file: Path) -> Iterator[None]:
    """What processes that are started in the body write to stderr, from their first import on, goes to ``file``."""
    before = os.dup(2)
    with file.open("w") as opened:
        os.dup2(opened.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
