"""run.processes=N: the ranks of one job, which fail and end together."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from fake_gpus import UUIDS as GPU_UUIDS
from fake_gpus import fake_torch, install_nvidia_smi

from compositionality.errors import UserError
from compositionality.train import launch
from compositionality.train.engines import settle_cluster
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.launch import check_a_gpu_each, count_processes, on_ranks
from compositionality.train.settings import ClusterSettings, RunSettings
from compositionality.train.sft_settings import SftSettings

PATIENCE_S = 300
RANK = """
import os, sys, time
from pathlib import Path
from compositionality.config.cli import exit_after
from compositionality.errors import UserError
from compositionality.train.launch import on_ranks
from compositionality.train.settings import RunSettings

def body():
    rank, failing = os.environ["RANK"], sys.argv[1:]
    if not failing:
        import torch.distributed as dist
        dist.init_process_group("gloo")
        dist.barrier()
    os.write(1, f"{os.getpid()}\\n".encode())  # one write: the other rank writes to the same pipe
    Path(__file__).with_name(rank).touch()
    while not all(Path(__file__).with_name(one).exists() for one in "01"):
        time.sleep(0.01)
    if failing == ["told"]:
        time.sleep(4 if rank == "0" else 0)  # longer than after an end without a reason
        raise UserError("no such luck")
    if failing == [rank]:
        os._exit(5)  # as the trainers do: the interpreter's own way out may abort in gloo's threads
    time.sleep(1000 if failing else 0)

exit_after(lambda: on_ranks(RunSettings(device="cpu", processes=2), body))
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


@pytest.mark.parametrize(("failing", "code"), [("", 0), ("1", 5), ("told", 2)])
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
    pids = [int(job.stdout.readline()) for _ in range(2)]
    job.send_signal(signal.SIGKILL)
    assert_gone(*pids)
    job.communicate()


@pytest.mark.parametrize("line", range(60))  # twice as many as one look at two ranks takes
def test_p07_an_interrupt_at_any_line_of_the_wait_ends_all_ranks(monkeypatch: pytest.MonkeyPatch, line: int) -> None:
    """Those of ``subprocess`` among them, which holds a lock while it polls."""
    ranks, wait, left = [], launch.wait_for, [line]

    def interrupt(_frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        left[0] -= event == "line"
        if left[0] < 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return interrupt

    def traced(started: Sequence[subprocess.Popen[bytes]]) -> int:
        ranks.extend(started)
        sys.settrace(interrupt)
        return wait(started)

    monkeypatch.setattr(launch, "wait_for", traced)
    with pytest.raises(KeyboardInterrupt):
        launch.start_ranks(["sleep", "1000"], 2)
    assert len(ranks) == 2
    assert_gone(*(rank.pid for rank in ranks))


def test_p18_a_gpu_that_is_not_there_or_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch counts the GPUs of any driver; device=auto would go on, on the CPU."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "environ", {"CUDA_VISIBLE_DEVICES": ""})
        with pytest.raises(UserError, match=r"run\.device=gpu, but no GPU is visible: there is no NVIDIA driver"):
            on_ranks(RunSettings(device="gpu"), lambda: None)
    install_nvidia_smi(tmp_path, monkeypatch, 2, "550.54.14")
    fake_torch(monkeypatch, usable=0, found=2)
    for device in ("gpu", "auto"):
        with pytest.raises(UserError, match=r"driver is 550\.54\.14, and CUDA 13 .* needs 580\.65"):
            on_ranks(RunSettings(device=device), lambda: None)


@pytest.mark.parametrize("visible", ["0", GPU_UUIDS[0], None])
def test_p18_more_processes_than_visible_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str | None
) -> None:
    install_nvidia_smi(tmp_path, monkeypatch, 8)
    fake_torch(monkeypatch, usable=1)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    shown = f"CUDA_VISIBLE_DEVICES={visible}" if visible else "CUDA_VISIBLE_DEVICES is not set"
    for device in ("gpu", "auto"):
        with pytest.raises(UserError, match=rf"run\.processes=8 .*N_GPUS.*, but 1 GPU is visible \({shown}\)"):
            on_ranks(RunSettings(device=device, processes=8), lambda: None)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "16")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    with pytest.raises(UserError, match=r"torchrun --nproc-per-node=8 .*, but 1 GPU is visible"):
        on_ranks(RunSettings(), lambda: None)
    with pytest.raises(UserError, match=r"run\.processes=2, but torchrun has started 16"):
        on_ranks(RunSettings(processes=2), lambda: None)


def test_as_many_processes_as_visible_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_nvidia_smi(tmp_path, monkeypatch, 8)
    fake_torch(monkeypatch, usable=4)
    assert count_processes(RunSettings()) == 4
    check_a_gpu_each("gpu", 4)
    check_a_gpu_each("cpu", 16)
    with pytest.raises(UserError, match=r"run\.processes=9999 .*, but the CPU has \d+ cores: at most \d+"):
        check_a_gpu_each("cpu", 9999)


@pytest.mark.parametrize("schema", [GrpoSettings, SftSettings])
def test_p18_verl_has_no_more_processes_than_visible_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: type[GrpoSettings] | type[SftSettings]
) -> None:
    """Those of a Ray cluster are not counted here; a dry run is for another machine."""
    install_nvidia_smi(tmp_path, monkeypatch, 8)
    fake_torch(monkeypatch, usable=1)
    eight, told = RunSettings(processes=8), r"run\.processes=8 .* but 1 GPU is visible"
    with pytest.raises(UserError, match=told):
        settle_cluster(schema(engine="verl", run=ClusterSettings(**vars(eight))), imagined=False)
    settle_cluster(schema(engine="verl", run=ClusterSettings(**vars(eight))), imagined=True)
    on_ray = schema(engine="verl", run=ClusterSettings(**vars(eight), ray_address="head:6379"))
    settle_cluster(on_ray, imagined=False)
    fake_torch(monkeypatch, usable=0, found=8, cuda="13.0")
    with pytest.raises(UserError, match="cannot start CUDA"):
        settle_cluster(schema(engine="verl"), imagined=False)
