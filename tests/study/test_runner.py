"""Steps side by side: lanes, the first failure, times, and what a kill leaves behind; the same on Ray and Slurm."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from compositionality.errors import UserError
from compositionality.study.model import Replicate, Request
from compositionality.study.run import RunStudySettings, backend_of
from compositionality.study.runner import Local, Ray, Runner, Slurm, command_of, lane_variables, resources
from compositionality.study.steps import Step

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300

# A lane announces itself, waits until the lanes named in $TOGETHER have come, and does as its name says: "bad" fails as
# soon as "long" has started a process that does not end by itself.
LANE = r"""
echo "$$" >"$FOLDER/$1.pid"
for other in $TOGETHER; do until [[ -s $FOLDER/$other.pid ]]; do sleep 0.02; done; done
echo "$1 has ${OMP_NUM_THREADS:-no} thread"
case $1 in
  bad)
    until [[ -s $FOLDER/child.pid ]]; do sleep 0.02; done
    echo "error: no such luck" >&2
    exit 7
    ;;
  long) setpriv --pdeathsig KILL bash -c 'echo $$ >"$FOLDER/child.pid"; exec sleep 1000' ;;
esac
"""
RUN = """
import asyncio, os, sys
from compositionality.study.runner import Local, Slurm
from compositionality.study.model import Replicate
from compositionality.study.runner import Runner
from compositionality.study.steps import Step
script, lanes, *words = sys.argv[1:]
place, own = Replicate("study", 0), {"FOLDER": os.environ["FOLDER"]}
steps = [Step(word, place, "tiny", script=script, words=(word,), env=own, one_lane=True) for word in words]
code = asyncio.run(Runner(steps, Local(int(lanes)) if int(lanes) else Slurm()).run())
print("all done" if code == 0 else "not done", flush=True)
sys.exit(code)
"""
PLACE = Replicate("study", 0)


def a_step(script: str = "x", word: str = "one", place: Replicate = PLACE, **keys: Any) -> Step:
    return Step(word, place, "tiny", script=script, words=(word,), **keys)


def lane_script(folder: Path, text: str = LANE) -> str:
    """The script of the lanes, as steps name it."""
    (folder / "lane.sh").write_text(text)
    return os.path.relpath(folder / "lane", ROOT / "bash")


def lanes(folder: Path, words: str, together: str, lanes: int = 2, text: str = LANE) -> subprocess.Popen[str]:
    """A runner over the words, started; with no lanes by Slurm."""
    environment = {**os.environ, "FOLDER": str(folder), "TOGETHER": together}
    environment = {key: value for key, value in environment.items() if key != "OMP_NUM_THREADS"}
    return subprocess.Popen(
        [sys.executable, "-c", RUN, lane_script(folder, text), str(lanes), *words.split()],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def output_of(job: subprocess.Popen[str]) -> tuple[str, str]:
    """What it wrote to stdout and stderr, once it has ended."""
    try:
        return job.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        job.kill()
        raise


def wait_for(folder: Path, name: str) -> int:
    """The process id in a file, once it is there."""
    path = folder / f"{name}.pid"
    deadline = time.monotonic() + PATIENCE_S
    while not (path.is_file() and path.read_text().strip()):
        assert time.monotonic() < deadline, f"{name} never came"
        time.sleep(0.02)
    return int(path.read_text())


def alive(pid: int) -> bool:
    """Running, and not a zombie that nobody has collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_gone(*pids: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, f"left behind: {[pid for pid in pids if alive(pid)]}"
        time.sleep(0.02)


def test_two_lanes_run_at_the_same_time_with_a_thread_each(tmp_path: Path) -> None:
    """Each waits for the other, so one after the other would never end."""
    out, err = output_of(lanes(tmp_path, "one two", "one two"))
    assert "seed0/one | one has 1 thread" in out
    assert "seed0/two | two has 1 thread" in out
    assert out.endswith("all done\n"), err


def test_one_lane_is_one_after_the_other_with_the_whole_machine(tmp_path: Path) -> None:
    out, err = output_of(lanes(tmp_path, "one two", "", lanes=1))
    assert out.splitlines() == [f"{word} has no thread" for word in ("one", "two")] + ["all done"], err


def test_a_failure_ends_the_other_lane_and_keeps_its_code(tmp_path: Path) -> None:
    """The jobs after it never start."""
    job = lanes(tmp_path, "long bad never", "long bad")
    out, err = output_of(job)
    assert job.returncode == 7
    assert "seed0/bad | error: no such luck" in out
    assert "error: seed0/bad stopped with exit code 7" in err
    assert "all done" not in out
    assert not (tmp_path / "never.pid").exists()
    assert_gone(wait_for(tmp_path, "long"), wait_for(tmp_path, "child"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_p07_a_killed_runner_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    job = lanes(tmp_path, "long two", "")
    pids = [wait_for(tmp_path, "long"), wait_for(tmp_path, "child")]
    job.send_signal(number)
    output_of(job)
    assert job.returncode == -number
    assert_gone(*pids)


def test_a_step_comes_after_what_it_needs_and_has_the_machine_to_itself_if_it_must(tmp_path: Path) -> None:
    """The order of ends, and the seconds of each step."""
    script, place = lane_script(tmp_path), Replicate("study", 3)
    own: dict[str, Any] = {"env": {"FOLDER": str(tmp_path)}, "place": place}
    steps = [
        a_step(script, "a", **own),
        a_step(script, "b", after=("seed3/a",), one_lane=True, **own),
        a_step(script, "c", after=("seed3/a",), one_lane=True, **own),
        a_step(script, "d", after=("seed3/b", "seed3/c"), **own),
    ]
    runner = Runner(steps, Local(2), tmp_path / "times.tsv", began=5)
    assert asyncio.run(runner.run()) == 0
    rows = [line.split("\t") for line in (tmp_path / "times.tsv").read_text().splitlines()]
    assert [row[:3] for row in rows] == [["5", "3", "3"]] * 4
    names = [row[3] for row in rows]
    assert (names[0], set(names[1:3]), names[3:]) == ("a", {"b", "c"}, ["d"])


def test_with_a_log_a_line_for_each_step_is_all_that_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    steps = [a_step(lane_script(tmp_path), word, env={"FOLDER": str(tmp_path)}) for word in ("one", "two")]
    assert asyncio.run(Runner(steps, Local(1), log=tmp_path / "log").run()) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert [line.split()[2:4] for line in err.splitlines()] == [["seed0/one:", "done"], ["seed0/two:", "done"]]
    assert "seed0/one | one has" in (tmp_path / "log").read_text()


def test_every_lane_has_one_of_the_visible_gpus_and_knows_who_shares_it() -> None:
    for lanes, gpus, own, sharing in (
        (4, ["4", "5", "6", "7"], ["4", "5", "6", "7"], "1"),
        (2, ["GPU-a", "MIG-b"], ["GPU-a", "MIG-b"], "1"),
        (3, ["4", "6"], ["4", "6", "4"], "2"),
        (4, ["3"], ["3", "3", "3", "3"], "4"),
    ):
        backend = Local(lanes, gpus)
        given = [backend.variables(a_step(one_lane=True), lane) for lane in range(lanes)]
        assert [variables["CUDA_VISIBLE_DEVICES"] for variables in given] == own
        assert {variables["LANES_PER_GPU"] for variables in given} == {sharing}
        assert backend.variables(a_step(), 0) == {}


def test_a_lane_has_one_gpu_one_thread_and_a_training_in_it_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    step = a_step("section41_42/stage2_rl_level2", one_lane=True, gpu=True, entry_point="train_grpo")
    assert "N_GPUS" not in Local(8, ["0", "1"]).variables(step, 0)
    monkeypatch.setenv("N_GPUS", "8")
    assert Local(8, ["0", "1"]).variables(step, 0)["N_GPUS"] == "1"
    assert Local(2).variables(step, 0) == {"OMP_NUM_THREADS": "1", "N_GPUS": "1"}
    assert lane_variables(a_step(one_lane=True, gpu=True, ray=True)) == {}  # verl on Ray asks for its GPUs itself
    assert command_of(step, in_lane=True) == (*command_of(step, in_lane=False), "run.processes=1")
    assert command_of(a_step(entry_point="evaluate"), in_lane=True)[-1] == "one"


def test_what_a_step_asks_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for n_gpus, keys, needs in (
        ("8", {"gpu": True}, (1, 8)),
        ("8", {"gpu": True, "one_lane": True}, (1, 1)),
        ("8", {"gpu": True, "ray": True, "one_lane": True}, (1, 8)),
        ("", {"gpu": True}, (1, 1)),
        ("", {}, (2, 0)),
        ("", {"one_lane": True}, (1, 0)),
    ):
        monkeypatch.setenv("N_GPUS", n_gpus)
        assert resources(a_step(**keys)) == needs


# ---- Slurm and Ray

SBATCH = r"""#!/usr/bin/env bash
# sbatch --wait --parsable as Slurm does it: the job's number at once, then the job, whose exit code it returns. The job
# outlives this command, and with --dependency=singleton waits for those of its name.
echo "$@" >>"$FOLDER/sbatch.log"
echo "sbatch: Setting account: default" >&2 # as a site's plug-in may say
echo "$$;stub"
alone=$$
for word in "$@"; do
  case $word in
    --job-name=*) name=${word#--job-name=} ;;
    --dependency=singleton) alone=$name ;;
    --wrap=*) command=${word#--wrap=} ;;
    --output=*) log=${word#--output=} ;;
    --chdir=*) cd "${word#--chdir=}" ;;
  esac
done
setsid --wait flock "$FOLDER/job-$alone" bash -c "$command" >"$log" 2>&1
"""

# scancel ends the job's processes, wherever they run: here the one that would not end by itself.
SCANCEL = """#!/bin/sh
echo "$@" >>"$FOLDER/scancel.log"
kill -KILL "$(cat "$FOLDER/child.pid")"
"""


def stub_slurm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("FOLDER", str(folder))
    monkeypatch.setenv("RESULTS_DIR", str(folder / "results"))


def cluster_steps(folder: Path, *words: str) -> list[Step]:
    return [a_step(lane_script(folder), word, env={"FOLDER": str(folder)}, one_lane=True) for word in words]


def test_slurm_runs_every_job_and_returns_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_slurm(tmp_path, monkeypatch)
    monkeypatch.setenv("TOGETHER", "one two")
    monkeypatch.setenv("N_GPUS", "8")
    assert asyncio.run(Runner(cluster_steps(tmp_path, "one", "two"), Slurm(["--partition=gpu"])).run()) == 0
    asked = (tmp_path / "sbatch.log").read_text().splitlines()
    assert len(asked) == 2
    assert all("--wait" in line and "--cpus-per-task=1" in line and "--partition=gpu" in line for line in asked)
    logs = "".join(path.read_text() for path in (tmp_path / "results" / "study" / "slurm").glob("*.log"))
    assert "one has 1 thread" in logs
    step = a_step(lane_script(tmp_path), env={"FOLDER": str(tmp_path), "TOGETHER": ""}, gpu=True, ray=True)
    assert asyncio.run(Runner([step], Slurm()).run()) == 0  # without --gpus a job of verl would see none
    assert "--nodes=1 --ntasks=1 --cpus-per-task=1 --gpus=8" in (tmp_path / "sbatch.log").read_text()


def test_a_failed_slurm_job_cancels_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_slurm(tmp_path, monkeypatch)
    monkeypatch.setenv("TOGETHER", "long bad")
    assert asyncio.run(Runner(cluster_steps(tmp_path, "long", "bad"), Slurm()).run()) == 7
    assert (tmp_path / "scancel.log").read_text().strip().isdecimal()
    assert_gone(int((tmp_path / "child.pid").read_text()))


LEFT = r"""
if [[ -f $FOLDER/done ]]; then exit 0; fi
echo start >>"$FOLDER/starts"
echo "$$" >"$FOLDER/left.pid"
sleep 2
touch "$FOLDER/done"
"""


def test_slurm_jobs_that_a_killed_run_left_are_waited_for_and_not_started_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_slurm(tmp_path, monkeypatch)
    run = lanes(tmp_path, "left", "", lanes=0, text=LEFT)
    wait_for(tmp_path, "left")
    run.kill()
    run.wait()
    again = a_step(lane_script(tmp_path, LEFT), "left", env={"FOLDER": str(tmp_path)}, one_lane=True)
    assert asyncio.run(Runner([again], Slurm()).run()) == 0
    assert (tmp_path / "done").is_file()
    assert (tmp_path / "starts").read_text() == "start\n"
    assert len((tmp_path / "sbatch.log").read_text().splitlines()) == 2


def test_p18_a_backend_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="sbatch not found"):
        backend_of(RunStudySettings(backend="slurm"), Request("section41_42", "smoke", (Replicate("s", 0),)))


@pytest.mark.slow
@pytest.mark.full
def test_ray_runs_jobs_at_the_same_time_and_returns_their_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real Ray on this machine, whose two CPUs take two jobs at a time."""
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("TOGETHER", "one two")
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=True)
    try:
        assert asyncio.run(Runner(cluster_steps(tmp_path, "one", "two"), Ray()).run()) == 0
        for name in ("one", "two"):
            (tmp_path / f"{name}.pid").unlink()
        monkeypatch.setenv("TOGETHER", "")
        jobs = [
            *cluster_steps(tmp_path, "one"),
            a_step(lane_script(tmp_path), "bad", env={"FOLDER": str(tmp_path), "TOGETHER": ""}, one_lane=True),
        ]
        (tmp_path / "child.pid").write_text("1")
        assert asyncio.run(Runner(jobs, Ray()).run()) == 7
    finally:
        ray.shutdown()
