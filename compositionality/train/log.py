"""The log of a training run of either engine: metrics.jsonl, wandb, lines on the screen; the rest: boards.py."""

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from compositionality.data.artefact import write_text
from compositionality.train.metrics import Row, numbers, read_metrics
from compositionality.train.run_folder import WANDB_ID


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
        total = f"/{self.steps:,}" if self.steps else ""
        return "  ".join([f"step {step:,}{total}", *parts, *(self._time_left(step) if timed else ())])

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
        self.file, self.completions = MetricsFile(out / "metrics.jsonl"), Completions(out)
        self.pending: list[Mapping[str, Any]] = []  # completions of the step whose row comes next
        self.boards: list[Any] = []  # what else takes rows: TensorBoard, verl's loggers, wandb
        self.wandb: Any = None
        names = loggers(chosen, os.environ)
        if {*names} - {"file", "wandb"}:
            from compositionality.train.boards import open_boards

            self.boards += open_boards(names, out, result or out, settings)
        if "wandb" in names:
            from compositionality.train.boards import WandbLog, open_wandb

            identity = (out / WANDB_ID).read_text().strip()
            run = open_wandb(result or out, job, settings, identity, inside=result is None, code=code)
            self.wandb = WandbLog(run, self.completions)
            self.boards.append(self.wandb)

    def write(self, row: Mapping[str, Any]) -> None:
        self.file.write(row)
        for board in self.boards:
            board.write(row, self.pending)
        self.pending = []

    def keep_generations(self, step: int, generations: Sequence[Mapping[str, Any]]) -> None:
        """Keep completions to read: the row of their step takes them along to every place."""
        self.completions.keep(step, generations)
        self.pending = [*generations]

    def send_artifacts(self, used: Iterable[Path], made: Iterable[Path]) -> None:
        """Send the models that the run ``made``, and what it ``used``, to wandb as artifacts."""
        if self.wandb is not None:
            self.wandb.send_artifacts(used, made)

    def close(self) -> None:
        self.file.close()
        for board in self.boards:
            board.close()


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


def wandb_is_usable(environment: Mapping[str, str]) -> bool:
    """Return whether wandb would not ask for a login."""
    mode = environment.get("WANDB_MODE", "")
    return mode == "offline" or (bool(environment.get("WANDB_API_KEY")) and mode != "disabled")


# ---- completions to read

SAMPLES = "samples"
"""Folder of completions to read; below it in a record and in results one for each run."""
GENERATIONS = f"{SAMPLES}/generations.jsonl"
"""In a run folder: the completions to read of every step so far."""
TABLE = "val/generations"
"""Where wandb and TensorBoard have them."""
GROUPS_TO_READ = 5
"""Groups kept to read, of a step."""


class Completions:
    """The completions to read of a run in a folder: ``so_far``, its rows of metrics with theirs, and those to come.

    Those after its last row are dropped: the process that wrote them was killed, and they are sampled again.
    """

    def __init__(self, out: Path) -> None:
        self.file, self.so_far = out / GENERATIONS, rows_with_completions(out)
        self.table: Any = None
        if self.file.is_file():
            lines = [{"step": row["step"], **text} for row, completions in self.so_far for text in completions]
            write_text(self.file, "".join(f"{json.dumps(line)}\n" for line in lines))

    def keep(self, step: int, rows: Sequence[Row]) -> None:
        """Write those of a step, all with the same keys, into the file.

        Before the checkpoint of the step, so that a run that is killed between it and the row of metrics has them too.
        """
        if rows:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as stream:
                stream.writelines(f"{json.dumps({'step': step, **row})}\n" for row in rows)

    def grown(self, step: int, rows: Sequence[Row]) -> dict[str, Any]:
        """Return, for ``run.log``, wandb's table with those of a step; nothing of a step without any."""
        if not rows:
            return {}
        import wandb

        if self.table is None:
            self.table = wandb.Table(columns=["step", *rows[0]], log_mode="INCREMENTAL")
        for row in rows:  # by name: an earlier version may have kept other keys; a table's columns cannot grow
            self.table.add_data(*map({**row, "step": step}.get, self.table.columns))
        return {TABLE: self.table}


def to_read(correct: Sequence[Sequence[bool]]) -> list[tuple[int, int]]:
    """Return which completions of a step are to be read: places of groups, and in each of a right and a wrong one.

    The first of each kind, of the first five groups; groups with both come first. ``correct``: of each group, whether
    its completions are right.
    """
    groups = sorted(range(len(correct)), key=lambda group: len(set(correct[group])) == 1)[:GROUPS_TO_READ]
    return [
        (group, correct[group].index(value)) for group in groups for value in (True, False) if value in correct[group]
    ]


def rows_with_completions(out: Path) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return the rows of the run in a folder so far, each with its completions to read."""
    rows = read_metrics(out / "metrics.jsonl")
    last = {row["step"]: place for place, row in enumerate(rows)}
    pairs: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [(row, []) for row in rows]
    for row in read_metrics(out / GENERATIONS):
        if row["step"] in last:
            pairs[last[row["step"]]][1].append({name: value for name, value in row.items() if name != "step"})
    return pairs
