"""Loggers beside metrics.jsonl and wandb: TensorBoard; console, mlflow, swanlab and trackio as verl has them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compositionality.errors import without_secrets
from compositionality.train.run_folder import flatten
from compositionality.train.settings import OF_VERL
from compositionality.train.wandb_runs import PROJECT, run_name


class TensorBoard:
    """Scalars, a table of completions as text, and the settings as hyperparameters, in ``OUT/tensorboard``."""

    def __init__(self, out: Path, settings: Mapping[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(out / "tensorboard"))
        self.writer.add_hparams(public_settings(settings), {}, run_name=".")

    def write(self, values: Mapping[str, float], step: int) -> None:
        """Add a point to each curve."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def write_generations(self, step: int, generations: Sequence[Mapping[str, Any]]) -> None:
        """Add completions to read, as a table in Markdown."""
        rows = [[*generations[0]], ["---"] * len(generations[0]), *([*one.values()] for one in generations)]
        self.writer.add_text("val/generations", "\n".join(f"| {' | '.join(map(cell, row))} |" for row in rows), step)

    def close(self) -> None:
        """Flush and close the file."""
        self.writer.close()


class VerlLoggers:
    """Scalars in verl's own loggers of these names; what they raise ends the run, as it does with verl."""

    def __init__(self, names: Sequence[str], result: Path, settings: Mapping[str, Any]) -> None:
        from verl.utils.tracking import Tracking

        project = os.environ.get("WANDB_PROJECT") or PROJECT
        self.tracking = Tracking(project, run_name(result), [*names], public_settings(settings))

    def write(self, values: Mapping[str, float], step: int) -> None:
        """Send the metrics of a step."""
        self.tracking.log(values, step)

    def write_generations(self, step: int, generations: Sequence[Mapping[str, Any]]) -> None:
        """Leave completions out: a table of them is in wandb and TensorBoard."""

    def close(self) -> None:
        """Flush and close all of them."""
        self.tracking.finish()


Board = TensorBoard | VerlLoggers


def open_boards(names: Sequence[str], out: Path, result: Path, settings: Mapping[str, Any]) -> list[Board]:
    """Return the loggers of these ``names`` for the run in the folder ``out``, whose product is ``result``."""
    boards: list[Board] = [TensorBoard(out, settings)] if "tensorboard" in names else []
    of_verl = [name for name in names if name in OF_VERL]
    return [*boards, *([VerlLoggers(of_verl, result, settings)] if of_verl else [])]


def public_settings(settings: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    """Return the settings by dotted name, as a table has them, without secrets such as a password in a URL."""
    return {
        name: value if isinstance(value, bool | int | float) else without_secrets(str(value))
        for name, value in flatten(settings).items()
    }


def cell(value: Any) -> str:
    """Return a value as a cell of a table in Markdown."""
    return str(value).replace("|", "\\|").replace("\n", "<br>")
