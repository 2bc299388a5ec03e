"""Runs the steps of a study: side by side where there are lanes, times recorded, the first failure ends the others.

A backend starts a step's command somewhere and returns its exit code. Steps skip what is there already, so the same
command goes on after a kill. Processes started here die with this one, even if it is killed with SIGKILL.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compositionality.study.backends import Backend, Write
from compositionality.study.steps import Step


@dataclass
class Runner:
    """Starts steps in order as soon as what they come after is done and there is a lane for them."""

    steps: Sequence[Step]
    backend: Backend
    times: Path | None = None
    log: Path | None = None
    began: int = field(default_factory=lambda: int(time.time()))
    done: set[str] = field(default_factory=set)
    tasks: dict[asyncio.Task[int], int] = field(default_factory=dict)
    lanes: dict[int, int] = field(default_factory=dict)
    starts: dict[str, float] = field(default_factory=dict)

    async def run(self) -> int:
        """0, or the exit code of the first step that failed, after the steps beside it were ended."""
        waiting = list(range(len(self.steps)))
        while waiting or self.tasks:
            self._start_those_that_can(waiting)
            finished, _ = await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                number = self.tasks.pop(task)
                self.lanes.pop(number, None)
                self.done.add(self.steps[number].key)
                if code := task.result():
                    await self._stop(self.steps[number], code)
                    return code
        return 0

    def _start_those_that_can(self, waiting: list[int]) -> None:
        for number in list(waiting):
            step = self.steps[number]
            if not self.done.issuperset(step.after):
                continue
            lane = self._free_lane(step)
            if lane is None:
                return  # in order: nothing overtakes a step that waits for the whole machine
            waiting.remove(number)
            self.lanes[number] = lane
            self.tasks[asyncio.create_task(self._run(step, lane))] = number

    def _free_lane(self, step: Step) -> int | None:
        """A lane for a step; any number where the backend has a queue of its own, None if the step must wait."""
        if self.backend.lanes is None:
            return len(self.tasks)
        alone = any(not self.steps[number].one_lane for number in self.lanes)
        if alone or (self.lanes and not step.one_lane):
            return None
        return next((lane for lane in range(self.backend.lanes) if lane not in self.lanes.values()), None)

    async def _run(self, step: Step, lane: int) -> int:
        side_by_side = self.backend.lanes is None or (step.one_lane and self.backend.lanes > 1)
        write = log_writer(self.log, step.key) if self.log else lane_writer(step.key) if side_by_side else None
        tell, started = say if self.log else write or say, time.monotonic()
        self.starts.setdefault(label_of(step), started)
        if not self.log:
            tell(f"== {self._clock()}  {step.key}")
        code = await self.backend.run(step, lane, write)
        if code == 0:
            ended = time.monotonic()
            tell(f"== {self._clock()}  {step.key}: done in {round(ended - started)} s")
            if step.name not in (
                "audit",
                "page",
            ):  # the page holds the times; its check adds none
                self.record(label_of(step), 1 if step.whole else 3, step.name, ended - started)
            if step.name == "evaluate" and not step.one_lane:  # the seed's table
                self.record(label_of(step), 2, "study/run_seed", ended - self.starts[label_of(step)])
        return code

    async def _stop(self, step: Step, code: int) -> None:
        beside = len(self.tasks)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if beside:
            say(f"error: {step.key} stopped with exit code {code}, and the lanes beside it were ended")

    def record(self, seed: str, depth: int, label: str, seconds: float) -> None:
        """One line of times.tsv: start of the command, seed, depth, step, seconds.

        Depth 1 is a step of the whole study, 2 a seed up to its table, 3 a step of a seed.
        """
        if self.times is not None:
            with self.times.open("a") as file:
                file.write(f"{self.began}\t{seed}\t{depth}\t{label}\t{round(seconds)}\n")

    def _clock(self) -> str:
        passed = int(time.time()) - self.began
        return f"{passed // 60:02d}:{passed % 60:02d}"


def label_of(step: Step) -> str:
    """What its times are recorded for: its seed, with the split of the functions in a study of several."""
    return step.place.name.removeprefix("seed")


def lane_writer(lane: str) -> Write:
    """Writes lines with the lane's name before them."""
    return lambda line: print(f"{lane} | {line}", flush=True)


def log_writer(log: Path, lane: str) -> Write:
    """Writes lines to a file, with the lane's name before them; errors to this process's output too."""

    def write(line: str) -> None:
        with log.open("a") as file:
            file.write(f"{lane} | {line}\n")
        if line.startswith("error: "):
            print(f"{lane} | {line}", file=sys.stderr, flush=True)

    return write


def say(line: str) -> None:
    """A line about the run itself."""
    print(line, file=sys.stderr, flush=True)
