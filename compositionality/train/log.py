"""What a training run of either engine writes down: metrics.jsonl, TensorBoard, wandb, lines on the screen."""

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compositionality.data.artefact import code_version
from compositionality.errors import without_secrets
from compositionality.train.common.metrics import numbers, read_metrics
from compositionality.train.common.run_folder import WANDB_ID

PROJECT = "compositionality"
"""In wandb, unless WANDB_PROJECT names another."""
RUN_VARIABLES = ("PROFILE", "STUDY", "SEED", "SPLIT", "TEST_SEED")
"""Of bash/env.sh, which say what run a script's command belongs to."""


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
        """Append the metrics of ``row["step"]``."""
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
        self, out: Path, chosen: Sequence[str], job: str, settings: Mapping[str, Any], result: Path | None = None
    ) -> None:
        self.file = MetricsFile(out / "metrics.jsonl")
        names = loggers(chosen, os.environ)
        self.board: Any = _tensorboard(out) if "tensorboard" in names else None
        self.wandb: Any = None
        if "wandb" in names:
            identity = (out / WANDB_ID).read_text().strip()
            self.wandb = open_wandb(result or out, job, settings, identity, inside=result is None)
        self.generations: Any = None
        if self.wandb is not None:  # rows of before that a killed process did not send
            for row in read_metrics(out / "metrics.jsonl"):
                if row["step"] >= self.wandb.step:
                    self.wandb.log(scalars(row), step=row["step"])

    def write(self, row: Mapping[str, Any]) -> None:
        """Write the metrics of ``row["step"]``."""
        self.file.write(row)
        if self.board is not None:
            for name, value in scalars(row).items():
                self.board.add_scalar(name, value, row["step"])
        if self.wandb is not None:
            self.wandb.log(scalars(row), step=row["step"])

    def write_generations(self, step: int, generations: Sequence[Mapping[str, Any]]) -> None:
        """Add completions to read, all with the same keys, to wandb's growing table ``val/generations``."""
        if self.wandb is None or not generations:
            return
        import wandb

        if self.generations is None:
            self.generations = wandb.Table(columns=["step", *generations[0]], log_mode="INCREMENTAL")
        for generation in generations:
            self.generations.add_data(step, *generation.values())
        self.wandb.log({"val/generations": self.generations}, step=step)

    def close(self) -> None:
        """Flush and close all of them."""
        self.file.close()
        if self.board is not None:
            self.board.close()
        if self.wandb is not None:
            self.wandb.finish()


class SupervisedLog(RunLog):
    """The log of SFT and of pretraining: also a line on the screen, at most every ten seconds."""

    seconds = 10.0

    def __init__(
        self,
        out: Path,
        chosen: Sequence[str],
        job: str,
        settings: Mapping[str, Any],
        result: Path | None,
        progress: Progress,
    ) -> None:
        super().__init__(out, chosen, job, settings, result)
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
    found = {name: value for name, value in numbers(row).items() if isinstance(value, int | float)}
    return {name: value for name, value in found.items() if name != "step"}


def loggers(chosen: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the loggers of a run: those ``chosen``, the file always, wandb if and only if it can be used."""
    wanted = [name for name in chosen if name not in ("file", "wandb")]
    if wandb_is_usable(environment):
        wanted.append("wandb")
    elif "wandb" in chosen:
        print("wandb is left out: set WANDB_API_KEY, or WANDB_MODE=offline", flush=True)
    return [*wanted, "file"]


def wandb_is_usable(environment: Mapping[str, str]) -> bool:
    """Return whether wandb would not ask for a login."""
    mode = environment.get("WANDB_MODE", "")
    return mode == "offline" or (bool(environment.get("WANDB_API_KEY")) and mode != "disabled")


def run_name(result: Path) -> str:
    """Return the name of a run in wandb: WANDB_NAME, or its folder and the replicate's, ``stage2-rl-level2/seed0``."""
    result = result.absolute()
    return os.environ.get("WANDB_NAME") or f"{result.name}/{result.parent.name}"


def _tensorboard(out: Path) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(out / "tensorboard"))


def open_wandb(result: Path, job: str, settings: Mapping[str, Any], identity: str, *, inside: bool = False) -> Any:
    """Return the wandb run of this result; None, with a line, if wandb is not installed, refuses or does not answer.

    Group, tags and entity are wandb's own variables. Its files lie beside the result, or ``inside``.
    """
    try:
        import wandb
    except ImportError:
        print("wandb is left out: it is not installed (bash bash/setup.sh)", flush=True)
        return None
    files = result if inside else result.with_name(f"{result.name}.wandb")
    files.mkdir(parents=True, exist_ok=True)
    which = {name.lower(): os.environ[name] for name in RUN_VARIABLES if name in os.environ}
    try:
        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or PROJECT,
            name=run_name(result),
            job_type=job,
            dir=str(files),
            id=identity,
            resume="allow",
            config={**_public(settings), "run": which | {"code": code_version()}},
            settings=wandb.Settings(quiet=True),
        )
    except wandb.errors.Error as error:
        print(f"wandb is left out: {' '.join(str(error).split())[:200]}", flush=True)
        return None
    run.define_metric("val-core/*", summary="last,max")
    return run


def _public(settings: Any) -> Any:
    """Return the settings without the secrets that they may hold, such as a password in the URL of a server."""
    if isinstance(settings, Mapping):
        return {name: _public(value) for name, value in settings.items()}
    if isinstance(settings, list | tuple):
        return [_public(value) for value in settings]
    return without_secrets(str(settings)) if isinstance(settings, str | Path) else settings
