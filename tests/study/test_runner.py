"""Jobs side by side: lanes, the first failure, times, and what a kill leaves behind; the same on Ray and Slurm."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compositionality.errors import UserError
from compositionality.study.arms import arm_start, load_study, models_made
from compositionality.study.backends import Local, Ray, Slurm, alone, choose_backend, needs_of, uses_ray
from compositionality.study.jobs import Job, Request, study_jobs
from compositionality.study.runner import Runner
from compositionality.study.types import Arm

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300

# A lane announces itself, waits until the lanes named in $TOGETHER have come, and does as its name says: "bad" fails as
# soon as "long" has started a process that does not end by itself.
LANE = r"""
echo "$$" >"$FOLDER/$1.pid"
for other in $TOGETHER; do until [[ -s $FOLDER/$other.pid ]]; do sleep 0.02; done; done
echo "$1 has ${PROCESSES:-no} process and ${OMP_NUM_THREADS:-no} thread"
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
from compositionality.study.backends import Local
from compositionality.study.jobs import Job
from compositionality.study.runner import Runner
from compositionality.study.types import Arm
script, lanes, *words = sys.argv[1:]
jobs = [Job(script, (word,), {"FOLDER": os.environ["FOLDER"]}, one_lane=True) for word in words]
code = asyncio.run(Runner(jobs, Local(int(lanes))).run())
print("all done" if code == 0 else "not done", flush=True)
sys.exit(code)
"""


def lane_script(folder: Path) -> str:
    """The script of the lanes, as jobs name it."""
    (folder / "lane.sh").write_text(LANE)
    return os.path.relpath(folder / "lane", ROOT / "bash")


def lanes(folder: Path, words: str, together: str, lanes: int = 2) -> subprocess.Popen[str]:
    """A runner over the words, started."""
    environment = {**os.environ, "FOLDER": str(folder), "TOGETHER": together}
    environment = {key: value for key, value in environment.items() if key not in ("PROCESSES", "OMP_NUM_THREADS")}
    return subprocess.Popen(
        [sys.executable, "-c", RUN, lane_script(folder), str(lanes), *words.split()],
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
    assert "one | one has 1 process and 1 thread" in out
    assert "two | two has 1 process and 1 thread" in out
    assert out.endswith("all done\n"), err


def test_every_job_gets_its_turn(tmp_path: Path) -> None:
    out, err = output_of(lanes(tmp_path, "one two three four five", ""))
    assert out.endswith("all done\n"), err
    for word in ("one", "two", "three", "four", "five"):
        assert f"{word} | {word} has" in out


def test_one_lane_is_one_after_the_other_with_the_whole_machine(tmp_path: Path) -> None:
    out, err = output_of(lanes(tmp_path, "one two", "", lanes=1))
    assert out.splitlines() == [f"{word} has no process and no thread" for word in ("one", "two")] + ["all done"], err


def test_a_failure_ends_the_other_lane_and_keeps_its_code(tmp_path: Path) -> None:
    """The jobs after it never start."""
    job = lanes(tmp_path, "long bad never", "long bad")
    out, err = output_of(job)
    assert job.returncode == 7
    assert "bad | error: no such luck" in out
    assert "error: bad stopped with exit code 7" in err
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


def test_a_job_comes_after_what_it_needs_and_has_the_machine_to_itself_if_it_must(tmp_path: Path) -> None:
    """The order of ends, the seconds of each job, and those of the whole seed."""
    script = lane_script(tmp_path)
    own = {"FOLDER": str(tmp_path), "SEED": "3"}
    jobs = [
        Job(script, ("a",), own),
        Job(script, ("b",), own, after=(0,), one_lane=True),
        Job(script, ("c",), own, after=(0,), one_lane=True),
        Job(script, ("d",), own, after=(1, 2), ends="section/run_seed"),
    ]
    runner = Runner(jobs, Local(2), tmp_path / "times.tsv", began=5)
    assert asyncio.run(runner.run()) == 0
    rows = [line.split("\t") for line in (tmp_path / "times.tsv").read_text().splitlines()]
    assert [row[:3] for row in rows] == [["5", "3", "3"]] * 4 + [["5", "3", "2"]]
    stages = [row[3] for row in rows]
    assert stages[0] == f"{script} a"
    assert set(stages[1:3]) == {f"{script} b", f"{script} c"}
    assert stages[3:] == [f"{script} d", "section/run_seed"]


@pytest.mark.parametrize(
    ("lanes", "gpus", "own", "sharing"),
    [
        (2, ["0", "1"], ["0", "1"], "1"),
        (4, ["4", "5", "6", "7"], ["4", "5", "6", "7"], "1"),
        (2, ["GPU-a", "MIG-b"], ["GPU-a", "MIG-b"], "1"),
        (3, ["4", "6"], ["4", "6", "4"], "2"),
        (4, ["3"], ["3", "3", "3", "3"], "4"),
    ],
)
def test_every_lane_has_one_of_the_visible_gpus_and_knows_who_shares_it(
    lanes: int, gpus: list[str], own: list[str], sharing: str
) -> None:
    backend = Local(lanes, gpus)
    given = [backend.variables(Job("x", one_lane=True), lane) for lane in range(lanes)]
    assert [variables["CUDA_VISIBLE_DEVICES"] for variables in given] == own
    assert {variables["LANES_PER_GPU"] for variables in given} == {sharing}
    assert backend.variables(Job("x"), 0) == {}


def test_a_lane_with_one_gpu_is_told_of_no_more() -> None:
    job = Job("x", one_lane=True, variables={"N_GPUS": "8", "DEVICE": "gpu"})
    assert Local(8, ["0", "1"]).variables(job, 0)["N_GPUS"] == "1"
    assert "N_GPUS" not in Local(8, ["0", "1"]).variables(Job("x", one_lane=True), 0)
    assert "CUDA_VISIBLE_DEVICES" not in Local(2).variables(job, 0)


@pytest.mark.parametrize(
    ("variables", "one_lane", "needs"),
    [
        ({"DEVICE": "gpu", "N_GPUS": "8"}, False, (1, 8)),
        ({"DEVICE": "gpu", "N_GPUS": "8"}, True, (1, 1)),
        ({"DEVICE": "gpu", "N_GPUS": "8", "ENGINE": "verl"}, False, (1, 8)),
        ({"DEVICE": "gpu"}, False, (1, 1)),
        ({"DEVICE": "cpu", "PROCESSES": "2"}, False, (2, 0)),
        ({"DEVICE": "cpu", "PROCESSES": "null"}, False, (1, 0)),
    ],
)
def test_what_a_job_asks_of_a_cluster(variables: dict[str, str], one_lane: bool, needs: tuple[int, int]) -> None:
    assert needs_of(Job("x", one_lane=one_lane, variables=variables)) == needs


VARIABLES = {
    "SEED": "0", "ARMS": "rl-level2", "DATA_DIR": "d", "CKPT_DIR": "c", "RESULTS_DIR": "r", "BASE_MODEL": "c/base",
    "SEED_CKPT_DIR": "c", "FUNCTION_SPLIT": "0",
    "STUDY": "s", "COUNTDOWN_RESULTS_DIR": "c", "PROFILE": "tiny", "ENGINE": "single", "SECTION": "section41_42",
    "SEEDS": "1", "OUTPUT": "of a single script",
}  # fmt: skip


def test_a_base_model_that_was_given_by_its_hub_id_is_evaluated_and_trained(tmp_path: Path) -> None:
    study = load_study("section41_42")
    study.arms["from-base"] = Arm("", "from-base/final", start="base", script="section41_42/stage2_rl_level2")
    variables = {
        **VARIABLES,
        "CKPT_DIR": str(tmp_path),
        "SEED_CKPT_DIR": str(tmp_path),
        "RFT_ITERATIONS": "3",
        "BASE_MODEL": "some-lab/Model-1B",
    }
    assert models_made(study.arms, variables) == ["base:some-lab/Model-1B"]
    assert "MODEL_PATH=some-lab/Model-1B" in arm_start(study, "from-base", variables)
    made_here = {**variables, "BASE_MODEL": f"{tmp_path}/base"}
    assert models_made(study.arms, made_here) == []
    with pytest.raises(UserError, match=r"starts from base, whose model .* does not exist"):
        arm_start(study, "from-base", made_here)


def test_seeds_are_studies_of_their_own_and_the_model_is_only_where_they_begin() -> None:
    jobs = study_jobs(Request("section41_42", 2, summary=True), {**VARIABLES, "MODEL_PATH": "m"})
    stages = [stage.script for stage in load_study("section41_42").stages]
    names = [*stages, *["section41_42/arm"] * 3, "section41_42/evaluate"]
    assert [job.script for job in jobs] == [*names, *names, "section41_42/summarise"]
    assert [number for number, job in enumerate(jobs) if "MODEL_PATH" in job.variables] == [0, len(names)]
    assert {job.variables["BASE_MODEL"] for job in jobs[:-1]} == {"m"}
    assert {job.variables["CKPT_DIR"] for job in jobs[len(names) : -1]} == {"c-seed1"}
    assert not any("OUTPUT" in job.variables for job in jobs)
    own = study_jobs(Request("section41_42", 2), VARIABLES)
    assert own[-1].variables["BASE_MODEL"] == "c-seed1/base"


def test_every_seed_makes_its_base_where_the_chat_template_is_another() -> None:
    given = {**VARIABLES, "CHAT_TEMPLATE": "plain", "SOURCE_MODEL": "m"}
    for own, source in (({}, "m"), ({"MODEL_PATH": "n"}, "n")):
        jobs = study_jobs(Request("section41_42", 2), {**given, **own})
        seeds = {job.variables["SEED"]: job.variables for job in jobs if job.variables["SEED"] in "01"}
        assert [(one["SOURCE_MODEL"], one["BASE_MODEL"]) for one in seeds.values()] == [
            (source, "c/base"),
            (source, "c-seed1/base"),
        ]


def test_an_arm_that_trains_with_verl_whatever_the_engine_has_the_machine_to_itself() -> None:
    names = ["rl-domains", "rl-math", "sft-domains", "rl-85k"]
    jobs = study_jobs(Request("scaling_law", 1), {**VARIABLES, "SECTION": "scaling_law", "ARMS": " ".join(names)})
    side_by_side = {job.words[0]: job.one_lane for job in jobs if job.script.endswith("/arm")}
    assert [side_by_side[name] for name in names] == [False, False, True, True]


def test_an_arm_is_added_in_one_place(tmp_path: Path) -> None:
    """One more entry of the study's file, with problems of its own: it is scheduled, trained and shown."""
    from compositionality.study import arms

    text = (arms.FOLDER / "section41_42.yaml").read_text() + (
        "  rl-level3:\n    title: RL on level 3\n    start: stage1\n    script: section41_42/stage2_rl_level2\n"
        "    model: stage2-rl-level3/final\n    problems: [string_task/stage2_level3/train]\n"
        "    new_problems: {task: string, levels: [3], seed: 9, count: 100}\n    colour: '#123456'\n"
    )
    (tmp_path / "section41_42.yaml").write_text(text)
    study = load_study("section41_42", tmp_path)
    shown = arms.arm_start(study, "rl-level3", {**VARIABLES, "RFT_ITERATIONS": "3", "DRY_RUN": "1"})
    assert "MODEL=c/stage2-rl-level3/final" in shown
    assert "SCRIPT=section41_42/stage2_rl_level2" in shown
    assert "TRAIN_FILES=d/string_task/stage2_level3/train.parquet" in shown
    assert "OUTPUT=c/stage2-rl-level3" in shown
    assert "'levels=[3]'" in shown
    assert study.arms["rl-level3"].colour == "#123456"


def test_an_arm_may_differ_in_keys_alone() -> None:
    """Its run folder is its own; one whose script makes several folders names none."""
    script, arguments = "section41_42/stage2_rl_level2", ["algorithm.clip_high=0.28"]
    study = load_study("section41_42")
    study.arms["dapo"] = Arm("DAPO", "stage2-dapo/final", start="stage1", script=script, arguments=arguments)
    shown = arm_start(study, "dapo", {**VARIABLES, "RFT_ITERATIONS": "3", "DRY_RUN": "1"})
    assert "OUTPUT=c/stage2-dapo" in shown
    assert "ARGUMENTS=(algorithm.clip_high=0.28)" in shown
    assert "OUTPUT" not in arm_start(study, "rft", {**VARIABLES, "RFT_ITERATIONS": "3", "DRY_RUN": "1"})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("start: stage1\n", "start: stage9\n"), r"arms\.rl-level1\.start: no arm stage9; there are: base stage1"),
        (("stage2_rl_level1\n", "stage2_rl_level9\n"), r"bash/section41_42/stage2_rl_level9\.sh: no such file"),
        (("title: RL on level 1\n", "titel: RL on level 1\n"), r"section41_42\.yaml: arms\.rl-level1\.titel"),
        (("evaluated: [stage1, base]", "evaluated: [stage2]"), r"evaluated: no arm stage2"),
        (("title: RL on level 1\n", "title: [\n"), r"section41_42\.yaml: not readable as YAML: line \d+"),
    ],
)
def test_p18_a_study_that_does_not_fit_is_one_line(change: tuple[str, str], named: str, tmp_path: Path) -> None:
    from compositionality.study.arms import FOLDER

    text = (FOLDER / "section41_42.yaml").read_text()
    assert change[0] in text
    (tmp_path / "section41_42.yaml").write_text(text.replace(*change, 1))
    with pytest.raises(UserError, match=named) as caught:
        load_study("section41_42", tmp_path)
    assert "\n" not in str(caught.value)


# ---- Slurm and Ray

SBATCH = r"""#!/usr/bin/env bash
# sbatch --wait --parsable as Slurm does it: the job's number at once, then the job, whose exit code it returns. The job
# outlives this command, and with --dependency=singleton waits for those of its name.
echo "$@" >>"$FOLDER/sbatch.log"
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


def cluster_jobs(folder: Path, *words: str) -> list[Job]:
    own = {"FOLDER": str(folder), "RESULTS_DIR": str(folder / "results"), "SEED": "0", "DEVICE": "cpu"}
    return [Job(lane_script(folder), (word,), own, one_lane=True) for word in words]


def test_slurm_runs_every_job_and_returns_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_slurm(tmp_path, monkeypatch)
    monkeypatch.setenv("TOGETHER", "one two")
    assert asyncio.run(Runner(cluster_jobs(tmp_path, "one", "two"), Slurm(["--partition=gpu"])).run()) == 0
    asked = (tmp_path / "sbatch.log").read_text().splitlines()
    assert len(asked) == 2
    assert all("--wait" in line and "--cpus-per-task=1" in line and "--partition=gpu" in line for line in asked)
    logs = "".join(path.read_text() for path in (tmp_path / "results" / "slurm").glob("*.log"))
    assert "one has 1 process and 1 thread" in logs


def test_slurm_gives_a_job_its_gpus_on_one_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a job of verl: without --gpus it would see none."""
    stub_slurm(tmp_path, monkeypatch)
    monkeypatch.setenv("TOGETHER", "one")
    own = {"FOLDER": str(tmp_path), "RESULTS_DIR": str(tmp_path), "DEVICE": "gpu", "ENGINE": "verl", "N_GPUS": "8"}
    assert asyncio.run(Runner([Job(lane_script(tmp_path), ("one",), own)], Slurm()).run()) == 0
    assert "--nodes=1 --ntasks=1 --cpus-per-task=1 --gpus=8" in (tmp_path / "sbatch.log").read_text()


def test_a_failed_slurm_job_cancels_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_slurm(tmp_path, monkeypatch)
    monkeypatch.setenv("TOGETHER", "long bad")
    assert asyncio.run(Runner(cluster_jobs(tmp_path, "long", "bad"), Slurm()).run()) == 7
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
    script = lane_script(tmp_path)
    (tmp_path / "lane.sh").write_text(LEFT)
    variables = {"FOLDER": str(tmp_path), "RESULTS_DIR": str(tmp_path / "results"), "DEVICE": "cpu"}
    code = (
        "import asyncio, sys; from compositionality.study.backends import Slurm\n"
        "from compositionality.study.jobs import Job; from compositionality.study.runner import Runner\n"
        f"asyncio.run(Runner([Job({script!r}, ('left',), {variables!r}, one_lane=True)], Slurm()).run())"
    )
    run = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    wait_for(tmp_path, "left")
    run.kill()
    run.wait()
    again = [Job(script, ("left",), variables, one_lane=True)]
    assert asyncio.run(Runner(again, Slurm()).run()) == 0
    assert (tmp_path / "done").is_file()
    assert (tmp_path / "starts").read_text() == "start\n"
    assert len((tmp_path / "sbatch.log").read_text().splitlines()) == 2


def test_p18_a_backend_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for name, named in (("slurm", "there is no sbatch here"), ("cloud", "choose local, ray or slurm")):
        with pytest.raises(UserError, match=named):
            choose_backend(name, 1, (), "", [])


def test_a_verl_job_gets_its_gpus_from_slurm_and_on_ray_asks_for_them_itself() -> None:
    variables = {"DEVICE": "gpu", "ENGINE": "verl", "N_GPUS": "8"}
    assert needs_of(Job("x", variables=variables)) == needs_of(Job("x", variables=variables, one_lane=True)) == (1, 8)
    assert alone(Job("x", variables=variables, one_lane=True)) == {}
    assert uses_ray(Job("x", variables=variables))
    assert not uses_ray(Job("x", variables={**variables, "ENGINE": "single"}))


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
        assert asyncio.run(Runner(cluster_jobs(tmp_path, "one", "two"), Ray()).run()) == 0
        for name in ("one", "two"):
            (tmp_path / f"{name}.pid").unlink()
        monkeypatch.setenv("TOGETHER", "")
        jobs = [
            *cluster_jobs(tmp_path, "one"),
            Job(lane_script(tmp_path), ("bad",), {"FOLDER": str(tmp_path), "TOGETHER": ""}),
        ]
        (tmp_path / "child.pid").write_text("1")
        assert asyncio.run(Runner(jobs, Ray()).run()) == 7
    finally:
        ray.shutdown()
