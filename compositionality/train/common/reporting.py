"""What is written about a run of either engine: metrics.jsonl, TensorBoard, wandb, lines of progress on the screen."""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compositionality.train.common.metrics import numbers
from compositionality.train.common.trackers import Trackers


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
        """The metrics of ``row["step"]``."""
        self._stream.write(json.dumps(numbers(row)) + "\n")

    def close(self) -> None:
        """Close the file."""
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
        """The line of ``step``; with the time left at the speed so far, if ``timed``."""
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
    """The rows of a supervised run, everywhere; on the screen at most every ten seconds. ``result``: see Trackers."""

    seconds = 10.0

    def __init__(self, out: Path, loggers: Sequence[str], first: int, steps: int, result: Path | None = None) -> None:
        self.file = MetricsFile(out / "metrics.jsonl")
        self.trackers = Trackers(out, loggers, {"steps": steps}, result)
        self.progress = Progress(steps, first)
        self.steps = steps
        self.last = self.shown = time.monotonic()

    def write(self, row: Mapping[str, Any], tokens: float) -> None:
        """The row of a step; ``tokens`` is how many went through the model since the row before."""
        now = time.monotonic()
        speed = tokens / max(now - self.last, 1e-9)
        self.last = now
        whole = {**row, "perf/tokens_per_second": round(speed)}
        self.file.write(whole)
        self.trackers.write(whole)
        if now - self.shown >= self.seconds or row["step"] == self.steps or "val/loss" in row:
            self.shown = now
            parts = [f"loss {row['train/loss']:.3f}"]
            parts += [f"validation loss {row['val/loss']:.3f}"] if "val/loss" in row else []
            print(self.progress.line(row["step"], [*parts, f"{speed:,.0f} tok/s"]), flush=True)

    def close(self) -> None:
        """Flush and close the file and the trackers."""
        self.file.close()
        self.trackers.close()
