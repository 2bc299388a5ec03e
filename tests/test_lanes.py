"""Commands side by side (bash/lib.sh): lanes and ranks, the first failure, and what a kill leaves behind."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATIENCE_S = 60

# A lane announces itself, waits until the lanes named in $TOGETHER have come, and does as its name says: "bad" fails as
# soon as "long" has started a process that does not end by itself.
LANE = r"""
source "$ROOT/bash/lib.sh"
echo "$$" >"$FOLDER/$1.pid"
for other in $TOGETHER; do until [[ -s $FOLDER/$other.pid ]]; do sleep 0.02; done; done
echo "$1 has $PROCESSES process and $OMP_NUM_THREADS thread"
case $1 in
  bad)
    until [[ -s $FOLDER/child.pid ]]; do sleep 0.02; done
    echo "error: no such luck" >&2
    exit 7
    ;;
  long) "${BOUND[@]}" .venv/bin/python -c 'import os, time
open(os.environ["FOLDER"] + "/child.pid", "w").write(str(os.getpid()))
time.sleep(1000)' ;;
esac
"""


def lanes(folder: Path, words: str, together: str, **variables: str) -> subprocess.Popen[str]:
    """``in_lanes`` over the words, started."""
    (folder / "lane.sh").write_text(LANE)
    script = os.path.relpath(folder / "lane", ROOT / "bash")
    given = {"FOLDER": str(folder), "ROOT": str(ROOT), "TOGETHER": together, "PROFILE": "tiny", "LANES": "2"}
    return subprocess.Popen(
        ["bash", "-c", f'source bash/lib.sh; in_lanes {script} "{words}"; echo all done'],
        cwd=ROOT,
        env={**os.environ, **given, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


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


def test_every_word_gets_its_turn(tmp_path: Path) -> None:
    out, err = output_of(lanes(tmp_path, "one two three four five", ""))
    assert out.endswith("all done\n"), err
    for word in ("one", "two", "three", "four", "five"):
        assert f"{word} | {word} has" in out


def test_one_lane_is_one_after_the_other(tmp_path: Path) -> None:
    variables = {"LANES": "1", "PROCESSES": "1", "OMP_NUM_THREADS": "1"}
    out, err = output_of(lanes(tmp_path, "one two", "", **variables))
    assert out.splitlines() == [f"{word} has 1 process and 1 thread" for word in ("one", "two")] + ["all done"], err


def test_a_failure_ends_the_other_lane_and_keeps_its_code(tmp_path: Path) -> None:
    """The words after it never start."""
    job = lanes(tmp_path, "long bad never", "long bad")
    out, err = output_of(job)
    assert job.returncode == 7
    assert "bad | error: no such luck" in out
    assert "error: bad stopped with exit code 7" in err
    assert "all done" not in out
    assert not (tmp_path / "never.pid").exists()
    assert_gone(wait_for(tmp_path, "long"), wait_for(tmp_path, "child"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_p07_killed_lanes_leave_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    job = lanes(tmp_path, "long two", "")
    pids = [wait_for(tmp_path, "long"), wait_for(tmp_path, "child")]
    job.send_signal(number)
    output_of(job)
    assert job.returncode == -number
    assert_gone(*pids)
