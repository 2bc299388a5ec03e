"""A program of ours that stops for good at a place, so that a test which kills it there or before is never too late.

``python held.py checkpoint=N PROGRAM.py WORD…`` once the checkpoint of step N, or a later one, is complete;
``python held.py shard=N PROGRAM.py WORD…`` in front of the writing of shard N of rollouts. It prints HELD there.
verl's trainers run in processes of their own: with the variables of ``held_verl`` each imports this file.
"""

import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

HELD = "held"
OF_VERL = "HELD_VERL"


def held(place: str, number: int, program: Path) -> list[str]:
    """The command that runs ``program`` as far as the place, behind the interpreter."""
    return [__file__, f"{place}={number}", str(program)]


def held_verl(number: int) -> dict[str, str]:
    """The variables with which engine=verl runs as far as the checkpoint of step ``number``, or a later one."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"VERL_USE_EXTERNAL_MODULES": Path(__file__).stem, OF_VERL: str(number), "PYTHONPATH": path}


def kill_once(saved: Callable[[], object], words: Sequence[str], log: Path, variables: Mapping[str, str]) -> int:
    """SIGKILL a program once it has saved; how many processes it had started, of which none is left."""
    from compositionality.train.launch import descendants, is_alive

    before = descendants(os.getpid())  # those of a warm start are no descendants of the process
    with log.open("w") as stream:
        process = subprocess.Popen(words, env=variables, stdout=stream, stderr=stream)
    try:
        while not saved():
            assert process.poll() is None, log.read_text()[-3000:]
            time.sleep(0.01)
        below = [one for one in descendants(os.getpid()) if one not in before and one.pid != process.pid]
    finally:
        process.kill()
        process.wait()
    while any(map(is_alive, below)):
        time.sleep(0.05)
    return len(below)


def hold() -> NoReturn:
    print(HELD, flush=True)
    while True:
        signal.pause()


def hold_after_a_checkpoint(number: int) -> None:
    from compositionality.train import run_folder

    mark = run_folder.mark_complete

    def mark_and_hold(steps: Path, step: int) -> None:
        mark(steps, step)
        if step >= number:
            hold()

    run_folder.mark_complete = mark_and_hold


def hold_verl_after_a_checkpoint(number: int) -> None:
    """RL marks its checkpoints as the other engine does; those of SFT are complete when verl's function returns."""
    from verl.utils.checkpoint import CheckpointHandler

    hold_after_a_checkpoint(number)
    save = CheckpointHandler.save_checkpoint

    def save_and_hold(self: CheckpointHandler, step: int) -> None:
        save(self, step)
        if step >= number:
            hold()

    CheckpointHandler.save_checkpoint = save_and_hold


def hold_before_a_shard(number: int) -> None:
    from compositionality.rollout.store import WorkingFolder

    write = WorkingFolder.write

    def write_unless_held(self: WorkingFolder, shard: int, table: Any) -> None:
        if shard == number:
            hold()
        write(self, shard, table)

    WorkingFolder.write = write_unless_held  # type: ignore[method-assign]


if __name__ == "__main__":
    place, _, number = sys.argv[1].partition("=")
    {"checkpoint": hold_after_a_checkpoint, "shard": hold_before_a_shard}[place](int(number))
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
elif OF_VERL in os.environ:
    hold_verl_after_a_checkpoint(int(os.environ[OF_VERL]))
