"""Runs the jobs of a study: side by side where there are lanes, times recorded, the first failure ends the others.

A backend starts a job's script somewhere and returns its exit code. Scripts skip what is there already, so the same
command goes on after a kill. Processes started here die with this one, even if it is killed with SIGKILL.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compositionality.study.backends import Backend, Write
from compositionality.study.jobs import Job


@dataclass
class Runner:
    """Starts jobs in order as soon as what they come after is done and there is a lane for them."""

    jobs: Sequence[Job]
    backend: Backend
    times: Path | None = None
    began: int = field(default_factory=lambda: int(time.time()))
    done: set[int] = field(default_factory=set)
    tasks: dict[asyncio.Task[int], int] = field(default_factory=dict)
    lanes: dict[int, int] = field(default_factory=dict)
    starts: dict[str, float] = field(default_factory=dict)

    async def run(self) -> int:
        """0, or the exit code of the first job that failed, after the jobs beside it were ended."""
        waiting = list(range(len(self.jobs)))
        while waiting or self.tasks:
            self._start_those_that_can(waiting)
            finished, _ = await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                number = self.tasks.pop(task)
                self.lanes.pop(number, None)
                self.done.add(number)
                if code := task.result():
                    await self._stop(self.jobs[number], code)
                    return code
        return 0

    def _start_those_that_can(self, waiting: list[int]) -> None:
        for number in list(waiting):
            job = self.jobs[number]
            if not self.done.issuperset(job.after):
                continue
            lane = self._free_lane(job)
            if lane is None:
                return  # in order: nothing overtakes a job that waits for the whole machine
            waiting.remove(number)
            self.lanes[number] = lane
            self.tasks[asyncio.create_task(self._job(job, lane))] = number

    def _free_lane(self, job: Job) -> int | None:
        """A lane for a job; any number where the backend has a queue of its own, None if the job must wait."""
        if self.backend.lanes is None:
            return len(self.tasks)
        alone = any(not self.jobs[number].one_lane for number in self.lanes)
        if alone or (self.lanes and not job.one_lane):
            return None
        return next((lane for lane in range(self.backend.lanes) if lane not in self.lanes.values()), None)

    async def _job(self, job: Job, lane: int) -> int:
        side_by_side = self.backend.lanes is None or (job.one_lane and self.backend.lanes > 1)
        write = lane_writer(job.lane) if side_by_side else None
        tell, started, seed = write or say, time.monotonic(), label_of(job)
        self.starts.setdefault(seed, started)
        command = " ".join([f"bash/{job.script}.sh", *job.words])
        tell(f"== {self._clock()}  {command}")
        code = await self.backend.run(job, lane, write)
        if code == 0:
            ended = time.monotonic()
            tell(f"== {self._clock()}  {command}: done in {round(ended - started)} s")
            if job.timed:
                self.record(seed, job.depth, job.label, ended - started)
            if job.ends:
                self.record(seed, 2, job.ends, ended - self.starts[seed])
        return code

    async def _stop(self, job: Job, code: int) -> None:
        beside = len(self.tasks)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if beside:
            say(f"error: {job.lane} stopped with exit code {code}, and the lanes beside it were ended")

    def record(self, seed: str, depth: int, label: str, seconds: float) -> None:
        """One line of times.tsv: start of the command, seed, depth, stage, seconds."""
        if self.times is not None:
            with self.times.open("a") as file:
                file.write(f"{self.began}\t{seed}\t{depth}\t{label}\t{round(seconds)}\n")

    def _clock(self) -> str:
        passed = int(time.time()) - self.began
        return f"{passed // 60:02d}:{passed % 60:02d}"


def label_of(job: Job) -> str:
    """What its times are recorded for: its seed, with the split of the functions in a study of several."""
    return job.variables.get("REPLICATE") or os.environ.get("REPLICATE") or job.variables.get("SEED", "0")


def lane_writer(lane: str) -> Write:
    """Writes lines with the lane's name before them."""
    return lambda line: print(f"{lane} | {line}", flush=True)


def say(line: str) -> None:
    """A line about the run itself."""
    print(line, file=sys.stderr, flush=True)
