"""A program of ours that stops for good at a place, so that a test which kills it there or before is never too late.

``python held.py checkpoint=N PROGRAM.py WORD…`` once the checkpoint of step N, or a later one, is complete;
``python held.py shard=N PROGRAM.py WORD…`` in front of the writing of shard N of rollouts. It prints HELD there.
"""

import runpy
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

HELD = "held"


def held(place: str, number: int, program: Path) -> list[str]:
    """The command that runs ``program`` as far as the place, behind the interpreter."""
    return [__file__, f"{place}={number}", str(program)]


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
