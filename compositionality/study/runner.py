"""Runs the steps of a study: side by side where there are lanes, times recorded, the first failure ends the others.

A backend starts a step's command somewhere and returns its exit code. Steps skip what is there already, so the same
command goes on after a kill. Processes started here die with this one, even if it is killed with SIGKILL.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from compositionality.study.backends import Backend, Write
from compositionality.study.steps import Step


@dataclass
class Runner:
    """Starts steps in order as soon as what they come after is done and there is a lane for them.

    ``times``: file for the seconds of steps that ended well; ``log``: file for what steps say, in place of the screen.
    """

    steps: Sequence[Step]
    backend: Backend
    times: Path | None = None
    log: Path | None = None
    began: int = field(default_factory=lambda: int(time.time()))
    running: dict[asyncio.Task[int], tuple[Step, int]] = field(default_factory=dict)

    async def run(self) -> int:
        """Return 0, or the exit code of the first step that failed, after the steps beside it were ended."""
        waiting, done = list(self.steps), set[str]()
        while waiting or self.running:
            for step in [step for step in waiting if done.issuperset(step.after)]:
                lane = self._free_lane(step)
                if lane is None:
                    break  # in order: nothing overtakes a step that waits for the whole machine
                waiting.remove(step)
                self.running[asyncio.create_task(self._run(step, lane))] = step, lane
            finished, _ = await asyncio.wait(self.running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                step, _ = self.running.pop(task)
                done.add(step.key)
                if code := task.result():
                    await self._stop(step, code)
                    return code
        return 0

    def _free_lane(self, step: Step) -> int | None:
        """Return a lane for a step; any number where the backend has a queue of its own, None if the step must wait."""
        if self.backend.lanes is None:
            return len(self.running)
        beside = [other.one_lane for other, _ in self.running.values()]
        if beside and not all([step.one_lane, *beside]):
            return None
        taken = {lane for _, lane in self.running.values()}
        return next((lane for lane in range(self.backend.lanes) if lane not in taken), None)

    async def _run(self, step: Step, lane: int) -> int:
        """Run a step in a lane, say when it begins and ends, and record its seconds; its exit code."""
        others = [other for other in self.steps if other.key not in step.after and step.key not in other.after]
        has_company = step.one_lane and others != [step]  # some step comes neither before nor after it
        side_by_side = self.backend.lanes is None or (self.backend.lanes > 1 and has_company)
        write: Write | None = None
        if self.log:
            write = log_writer(self.log, step.key)
        elif side_by_side:
            write = partial(print, step.key, "|", flush=True)
        tell, started = say if self.log else write or say, time.monotonic()
        if not self.log:
            tell(f"== {self._clock()}  {step.key}")
        code = await self.backend.run(step, lane, write)
        if code == 0:
            ended = time.monotonic()
            tell(f"== {self._clock()}  {step.key}: done in {round(ended - started)} s")
            if step.name not in ("audit", "page", "record"):  # the page holds the times; what follows it adds none
                self._record(step, ended - started)
        return code

    async def _stop(self, step: Step, code: int) -> None:
        """End the steps beside one that failed."""
        beside = len(self.running)
        for task in self.running:
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        if beside:
            say(f"error: {step.key} stopped with exit code {code}, and the lanes beside it were ended")

    def _record(self, step: Step, seconds: float) -> None:
        """Write one line of times.tsv: start of the command, seed, depth, step, seconds.

        Depth 1 is a step of the whole study, 3 a step of a seed.
        """
        if self.times is not None:
            seed, depth = step.place.name.removeprefix("seed"), 1 if step.whole else 3
            with self.times.open("a") as file:
                file.write(f"{self.began}\t{seed}\t{depth}\t{step.name}\t{round(seconds)}\n")

    def _clock(self) -> str:
        """Return minutes and seconds since the command began."""
        return "{:02d}:{:02d}".format(*divmod(int(time.time()) - self.began, 60))


def log_writer(log: Path, lane: str) -> Write:
    """Writes lines to a file, with the lane's name before them; errors to this process's output too."""

    def write(line: str) -> None:
        with log.open("a") as file:
            file.write(f"{lane} | {line}\n")
        if line.startswith("error: "):
            print(f"{lane} | {line}", file=sys.stderr, flush=True)

    return write


def say(line: str) -> None:
    """Print a line about the run itself."""
    print(line, file=sys.stderr, flush=True)
