"""run.processes=N: the ranks of one job, which fail and end together."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compositionality.errors import UserError
from compositionality.train.common.ranks import RunSettings, on_ranks

PATIENCE_S = 300
RANK = """
import os, sys, time
from compositionality.config.cli import with_errors_in_one_line
from compositionality.errors import UserError
from compositionality.train.common.ranks import RunSettings, on_ranks

def body():
    import torch.distributed as dist
    dist.init_process_group("gloo")
    rank, everyone = dist.get_rank(), [None] * dist.get_world_size()
    dist.all_gather_object(everyone, os.getpid())
    if rank == 0:
        print(*everyone, flush=True)
    dist.barrier()
    if sys.argv[1:] == ["told"]:
        raise UserError("no such luck")
    if sys.argv[1:] == [str(rank)]:
        os._exit(5)  # as the trainers do: the interpreter's own way out may abort in gloo's threads
    time.sleep(1000 if sys.argv[1:] else 0)

with_errors_in_one_line(lambda: on_ranks(RunSettings(device="cpu", processes=2), body))
"""


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    (folder / "rank.py").write_text(RANK)
    command = [sys.executable, str(folder / "rank.py"), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def assert_gone(*pids: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, "processes were left behind"
        time.sleep(0.02)


@pytest.mark.parametrize(("failing", "code"), [("", 0), ("0", 5), ("1", 5), ("told", 2)])
def test_processes_are_the_ranks_of_one_job(tmp_path: Path, failing: str, code: int) -> None:
    job = start(tmp_path, *filter(None, [failing]))
    printed, told = job.communicate(timeout=PATIENCE_S)
    pids = [int(word) for word in printed.split()]
    assert len(set(pids)) == 2, told
    assert job.returncode == code
    if failing == "told":
        assert told == "error: no such luck\n"  # by the first rank alone
    if failing == "1":
        assert "error: process 1 of 2 ended with exit code 5" in told
    assert_gone(*pids)


def test_p07_a_killed_launcher_leaves_no_rank_behind(tmp_path: Path) -> None:
    job = start(tmp_path, "2")
    assert job.stdout is not None
    pids = [int(word) for word in job.stdout.readline().split()]
    assert len(pids) == 2
    job.send_signal(signal.SIGKILL)
    assert_gone(*pids)
    job.communicate()


def test_p18_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"CUDA_VISIBLE_DEVICES": ""})
    with pytest.raises(UserError, match=r"run\.device=gpu, but no GPU is visible"):
        on_ranks(RunSettings(device="gpu"), lambda: None)


def test_p18_torchrun_and_another_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"RANK": "0", "WORLD_SIZE": "4"})
    with pytest.raises(UserError, match=r"run\.processes=2, but torchrun has started 4"):
        on_ranks(RunSettings(processes=2), lambda: None)
