"""Progress of a collection: a bar on a terminal, a line every 15 seconds elsewhere."""

import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 15.0


class Meter:
    """Counts completions and tokens of this run; ``done`` of ``total`` completions exist already."""

    def __init__(self, total: int, done: int, console: Console) -> None:
        self._console = console
        self._rows, self._total, self._before = done, total, done
        self.tokens = 0
        self._start = self._last_line = time.monotonic()
        columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}")
        self._bar = Progress(
            *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, disable=not console.is_terminal
        )
        self._task = self._bar.add_task("", total=total, completed=done, rate="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    @property
    def tokens_per_second(self) -> float:
        """Tokens of finished shards per second of this run."""
        return self.tokens / max(time.monotonic() - self._start, 1e-9)

    def tick(self, rows: int) -> None:
        """Count ``rows`` more finished completions."""
        self._rows += rows
        self._show()

    def add_tokens(self, tokens: int) -> None:
        """Count the tokens of a finished shard."""
        self.tokens += tokens
        self._show()

    def _show(self) -> None:
        rate = f"{self.tokens_per_second:,.0f} tok/s" if self.tokens else ""
        self._bar.update(self._task, completed=self._rows, rate=rate)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._last_line > SECONDS_BETWEEN_LINES:
            self._last_line = now
            speed = (self._rows - self._before) / (now - self._start)
            left = (self._total - self._rows) / speed if speed else float("inf")
            self._console.print(f"{self._rows}/{self._total} completions {rate}, {left:,.0f} s left")
