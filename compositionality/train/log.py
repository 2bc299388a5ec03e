"""What a training run of either engine writes down: metrics.jsonl, wandb, lines on the screen; the rest: boards.py."""

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compositionality.train.boards import open_boards
from compositionality.train.completions import Completions
from compositionality.train.metrics import numbers
from compositionality.train.run_folder import WANDB_ID
from compositionality.train.wandb_runs import open_wandb, or_left_out, send_artifacts, wandb_is_usable


class Clock:
    """Seconds spent by name, since ``seconds`` was last emptied."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the seconds of a ``with`` block to ``name``."""
        started = time.monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started


class MetricsFile:
    """One JSON line for each row of metrics, appended: numbers and short texts only; nan and inf become null."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("a", buffering=1)

    def write(self, row: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(numbers(row)) + "\n")

    def close(self) -> None:
        self._stream.close()


class Progress:
    """Lines such as ``step 12/100  loss 0.5  …  1:52 left``.

    ``steps`` is the last step, None if unknown; ``first`` the step that the run starts from, None if the first step
    seen is to start the clock.
    """

    def __init__(self, steps: int | None, first: int | None = None) -> None:
        self.steps = steps
        self._start = None if first is None else (first, time.monotonic())

    def line(self, step: int, parts: Sequence[str], *, timed: bool = True) -> str:
        """Return the line of ``step``; with the time left at the speed so far, if ``timed``."""
        of = f"/{self.steps:,}" if self.steps else ""
        return "  ".join([f"step {step:,}{of}", *parts, *(self._time_left(step) if timed else ())])

    def _time_left(self, step: int) -> list[str]:
        now = time.monotonic()
        if self._start is None or step < self._start[0]:
            self._start = (step, now)
        first, began = self._start
        if not self.steps or step <= first:
            return []
        seconds = int((now - began) / (step - first) * (self.steps - step))
        return [f"{seconds // 60}:{seconds % 60:02} left"]


class RunLog:
    """The rows of one run, in every place at once. A resumed run goes on in the same file and the same wandb run.

    ``settings``: all of them, the run's configuration in wandb; ``job``: rl, sft or pretrain. ``result``: what stays of
    a run folder that does not; wandb takes its name and keeps its files beside it.
    """

    def __init__(
        self,
        out: Path,
        chosen: Sequence[str],
        job: str,
        settings: Mapping[str, Any],
        result: Path | None = None,
        code: str = "",
    ) -> None:
        self.file = MetricsFile(out / "metrics.jsonl")
        names = loggers(chosen, os.environ)
        self.boards = open_boards(names, out, result or out, settings)
        self.wandb: Any = None
        if "wandb" in names:
            identity = (out / WANDB_ID).read_text().strip()
            self.wandb = open_wandb(result or out, job, settings, identity, inside=result is None, code=code)
        self.kept: list[Mapping[str, Any]] = []  # completions of the step whose row comes next
        self.completions = Completions(out)
        for row, generations in self.completions.so_far:  # that a killed process did not send
            if self.wandb is not None and row["step"] >= self.wandb.step:
                self.send(row, generations)

    def write(self, row: Mapping[str, Any]) -> None:
        self.file.write(row)
        for board in self.boards:
            board.write(scalars(row), row["step"])
            if self.kept:
                board.write_generations(row["step"], self.kept)
        self.send(row, self.kept)
        self.kept = []

    def send(self, row: Mapping[str, Any], generations: Sequence[Mapping[str, Any]]) -> None:
        """Send to wandb; a run goes on without it if that fails."""
        run, self.wandb = self.wandb, None
        if run is not None:
            with or_left_out():
                run.log(scalars(row) | self.completions.grown(row["step"], generations), step=row["step"])
                self.wandb = run

    def keep_generations(self, step: int, generations: Sequence[Mapping[str, Any]]) -> None:
        """Keep completions to read: the row of their step takes them along to every place."""
        self.completions.keep(step, generations)
        self.kept = [*generations]

    def send_artifacts(self, used: Iterable[Path], made: Iterable[Path]) -> None:
        """Send the models that the run ``made``, and what it ``used``, to wandb as artifacts."""
        if self.wandb is not None:
            with or_left_out():
                send_artifacts(self.wandb, used, made)

    def close(self) -> None:
        self.file.close()
        for board in self.boards:
            board.close()
        if self.wandb is not None:
            with or_left_out():
                self.wandb.finish()


class SupervisedLog(RunLog):
    """The log of SFT and of pretraining: also a line on the screen, at most every ten seconds."""

    seconds = 10.0

    def __init__(self, progress: Progress, *run: Any) -> None:
        """Start the log; ``run``: see RunLog."""
        super().__init__(*run)
        self.progress, self.last = progress, time.monotonic()
        self.shown = self.last

    def write_step(self, row: Mapping[str, Any], tokens: float) -> None:
        """Write the row of a step; ``tokens`` is how many went through the model since the row before."""
        now = time.monotonic()
        speed = tokens / max(now - self.last, 1e-9)
        self.last = now
        self.write({**row, "perf/tokens_per_second": round(speed)})
        if now - self.shown >= self.seconds or row["step"] == self.progress.steps or "val/loss" in row:
            self.shown = now
            parts = [f"loss {row['train/loss']:.3f}"]
            parts += [f"validation loss {row['val/loss']:.3f}"] if "val/loss" in row else []
            print(self.progress.line(row["step"], [*parts, f"{speed:,.0f} tok/s"]), flush=True)


def scalars(row: Mapping[str, Any]) -> dict[str, int | float]:
    """Return the entries of a row that a curve is drawn of; wandb and TensorBoard have the step beside them."""
    values = numbers(row).items()
    return {name: value for name, value in values if isinstance(value, int | float) and name != "step"}


def loggers(chosen: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the loggers of a run: those ``chosen``, the file always, wandb if and only if it can be used."""
    names = [name for name in chosen if name not in ("file", "wandb")]
    if wandb_is_usable(environment):
        names.append("wandb")
    elif "wandb" in chosen:
        print("wandb is left out: set WANDB_API_KEY, or WANDB_MODE=offline", flush=True)
    return [*names, "file"]
