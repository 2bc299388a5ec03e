"""What a run tells while it trains: rows of metrics for a file, and now and then a line on the screen."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compositionality.train.common.trackers import Trackers


class RunLog:
    """Appends to OUT/metrics.jsonl and what else is ``asked`` for; prints at most every ``seconds`` seconds."""

    def __init__(self, out: Path, asked: Sequence[str], step: int, steps: int, seconds: float = 10.0) -> None:
        self.file = (out / "metrics.jsonl").open("a", buffering=1)
        self.trackers = Trackers(out, asked, {"steps": steps})
        self.first, self.steps, self.seconds = step, steps, seconds
        self.started = self.last = self.shown = time.monotonic()

    def write(self, row: Mapping[str, Any], tokens: float) -> None:
        """The row of a step; ``tokens`` is how many went through the model since the row before."""
        step = row["step"]
        now = time.monotonic()
        speed = tokens / max(now - self.last, 1e-9)
        self.last = now
        whole = {**row, "perf/tokens_per_second": round(speed)}
        self.file.write(json.dumps(whole) + "\n")
        self.trackers.write(whole)
        if now - self.shown >= self.seconds or step == self.steps or "val/loss" in row:
            self.shown = now
            left = (self.steps - step) * (now - self.started) / (step - self.first)
            told = [f"step {step:,}/{self.steps:,}", f"loss {row['train/loss']:.3f}"]
            told += [f"validation loss {row['val/loss']:.3f}"] if "val/loss" in row else []
            print("  ".join([*told, f"{speed:,.0f} tok/s", f"{left:.0f} s left"]), flush=True)

    def close(self) -> None:
        """Send what is still waiting."""
        self.file.close()
        self.trackers.close()
