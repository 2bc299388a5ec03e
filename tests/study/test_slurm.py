"""bash/slurm against stubs of Slurm and Ray: nodes that are late, never come, or leave; nothing stays behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from compositionality.train.launch import free_port

ROOT = Path(__file__).parents[2]
SBATCH = ROOT / "bash/slurm/stage2_rl.sbatch"

SCONTROL = """#!/bin/sh
printf 'node1\\nnode2\\nnode3\\n' | head -n "$SLURM_JOB_NUM_NODES"
"""
SRUN = """#!/usr/bin/env bash
echo "$SRUN_CPUS_PER_TASK $*" >>"$FOLDER/srun.log"
while [[ $1 == --* ]]; do
  if [[ $1 == --nodelist=* ]]; then export NODE=${1#*=}; fi
  shift
done
exec "$@"
"""
# `ray start --block`: the node is up while its file is there. The head listens, as Ray's does.
RAY = """#!/usr/bin/env python3
import os, pathlib, socket, sys, time
words, folder, node = sys.argv[1:], pathlib.Path(os.environ["FOLDER"]), os.environ.get("NODE", "node1")
options = dict(word.partition("=")[::2] for word in words)
if words[0] == "start":
    with (folder / "ray.log").open("a") as log:
        print(node, *words, file=log)
    if "--head" in options:
        server = socket.create_server(("127.0.0.1", int(options["--port"])))
    late = os.environ.get("LATE", "")
    if node in late:
        time.sleep(float(late.partition(":")[2]))
    (folder / node).write_text(options["--num-gpus"])
    leaves = os.environ.get("LEAVES", "")
    while node != leaves or not (folder / "started").is_file():  # it leaves once the script runs
        time.sleep(0.1)
    (folder / node).unlink()
    sys.exit(1)
"""
# Where the minutes shall be over, they are as soon as so many nodes are up.
FAKE_RAY = """
import os, pathlib, time
ALL = ("node1", "node2", "node3")
FOLDER = pathlib.Path(os.environ["FOLDER"])
def init(*_, **__): pass
def nodes():
    there = [name for name in ALL if (FOLDER / name).is_file()]
    if len(there) == int(os.environ.get("OVER", "0")):
        time.monotonic = lambda: float("inf")
    return [{"NodeID": name, "NodeManagerHostname": name + ".domain", "Alive": True,
             "Resources": {"GPU": float((FOLDER / name).read_text())}} for name in there]
"""
SCRIPT = """
touch "$FOLDER/started"
echo "$NNODES nodes of $N_GPUS GPUs at $RAY_ADDRESS, $RAY_AUTH_MODE, $*"
if [[ $1 == long ]]; then sleep 1000; fi
exit "${2:-0}"
"""


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """A folder with the project's scripts and stubs in it; the variables of a job of three nodes."""
    stubs = {
        "bin/scontrol": SCONTROL, "bin/srun": SRUN, ".venv/bin/ray": RAY, "ray/__init__.py": FAKE_RAY,
        "ray/_private/__init__.py": "", "ray/_private/state.py": "def available_resources_per_node(): return {}",
        "bash/hello.sh": SCRIPT, ".venv/bin/python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
    }  # fmt: skip
    for name, text in stubs.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name not in ("NNODES", "N_GPUS", "PROFILE")}
    return {
        **kept, "FOLDER": str(tmp_path), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "SLURM_JOB_ID": "17",
        "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_NODELIST": "node[1-3]", "SLURM_JOB_NUM_NODES": "3",
        "SLURM_CPUS_PER_TASK": "64", "SLURM_GPUS_ON_NODE": "8", "RAY_PORT": str(free_port()),
        "PYTHONPATH": f"{tmp_path}:{ROOT}", "RAY_MINUTES": "10",
    }  # fmt: skip


def start(variables: dict[str, str], *words: str) -> "subprocess.Popen[str]":
    # the names node2, node3 are nobody's: the address is that of the loopback
    text = SBATCH.read_text().replace('address --hosts "${nodes[@]:1}"', "address")
    copy = Path(variables["FOLDER"]) / "job.sbatch"
    copy.write_text(text)
    return subprocess.Popen(
        ["bash", str(copy), *words], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(job: "subprocess.Popen[str]", variables: dict[str, str]) -> tuple[int, str, str]:
    """Exit code, output and errors of a job, of which no process is left."""
    out, err = job.communicate(timeout=300)
    deadline = time.monotonic() + 300
    while left := processes_of(variables["FOLDER"]):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    return job.returncode, out, err


def processes_of(folder: str) -> list[list[str]]:
    """The command lines of all processes that were started with this $FOLDER."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("FOLDER") == folder:
                found.append(process.cmdline())
        except psutil.Error:
            pass
    return found


def test_a_late_node_is_waited_for_and_every_node_gets_its_cpus_and_gpus(slurm: dict[str, str]) -> None:
    """The job has the exit code of the script."""
    variables = {**slurm, "LATE": "node3:2"}
    code, out, err = ended(start(variables, "hello", "more", "7"), variables)
    assert (code, err) == (7, "")
    assert out == f"3 nodes of 8 GPUs at 127.0.0.1:{slurm['RAY_PORT']}, token, more 7\n"
    folder = Path(slurm["FOLDER"])
    assert [line.split()[0] for line in (folder / "srun.log").read_text().splitlines()] == ["64", "64"]
    started = (folder / "ray.log").read_text().splitlines()
    assert sorted(line.split()[0] for line in started) == ["node1", "node2", "node3"]
    assert all("--num-cpus=64 --num-gpus=8" in line and "--block" in line for line in started)


def test_p18_a_node_that_never_comes_is_named(slurm: dict[str, str]) -> None:
    variables = {**slurm, "LATE": "node3:1000", "OVER": "2"}
    code, out, err = ended(start(variables, "hello"), variables)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "2 of 3 nodes with 8 GPUs came up in 10 minutes (missing: node3); raise RAY_MINUTES" in err


def test_p18_a_node_that_leaves_ends_the_job_in_one_line(slurm: dict[str, str]) -> None:
    variables = {**slurm, "LEAVES": "node2"}
    code, _, err = ended(start(variables, "hello", "long"), variables)
    assert code == 2
    assert err == "error: Ray has ended on node2; see ray-17.log, then submit the job again: it continues\n"


def test_a_cancelled_job_leaves_nothing(slurm: dict[str, str]) -> None:
    job = start(slurm, "hello", "long")
    assert job.stdout is not None
    assert "3 nodes" in job.stdout.readline()
    job.send_signal(signal.SIGTERM)
    code, _, _ = ended(job, slurm)
    assert code == 143


def test_p18_a_script_that_there_is_not_is_one_line(slurm: dict[str, str]) -> None:
    code, _, err = ended(start(slurm, "helo"), slurm)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("error: bash/helo.sh: no such file")
