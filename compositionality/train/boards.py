"""Other loggers than metrics.jsonl and wandb: TensorBoard; console, mlflow, swanlab and trackio as verl has them."""

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compositionality.errors import without_secrets
from compositionality.train.completions import TABLE
from compositionality.train.log import scalars
from compositionality.train.metrics import read_metrics
from compositionality.train.run_folder import flatten
from compositionality.train.settings import VERLS_LOGGERS
from compositionality.train.wandb_runs import PROJECT, run_name


class TensorBoard:
    """A run in a folder for TensorBoard: scalars, tables as text, figures, and the settings as hyperparameters.

    ``done``: the last step that is kept of a run that goes on there.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], done: int | None = None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder), purge_step=None if done is None else done + 1)
        self.writer.add_hparams(public_settings(settings), {}, run_name=".")

    def write(self, row: Mapping[str, Any], generations: Sequence[Mapping[str, Any]]) -> None:
        """Add the metrics of a step, and completions of it to read."""
        for name, value in scalars(row).items():
            self.writer.add_scalar(name, value, row["step"])
        if generations:
            self.write_table(TABLE, generations, row["step"])

    def write_table(self, name: str, rows: Sequence[Mapping[str, Any]], step: int = 0) -> None:
        """Add rows with the same keys, as a table in Markdown."""
        self.writer.add_text(name, markdown(rows), step)

    def write_figure(self, name: str, png: bytes) -> None:
        from PIL import Image

        with Image.open(io.BytesIO(png)) as picture:
            self.writer.add_image(name, np.asarray(picture.convert("RGB")), dataformats="HWC")

    def close(self) -> None:
        self.writer.close()


class VerlLoggers:
    """Scalars in verl's own loggers of these names; what they raise ends the run, as it does with verl."""

    def __init__(self, names: Sequence[str], result: Path, settings: Mapping[str, Any]) -> None:
        from verl.utils.tracking import Tracking

        project = os.environ.get("WANDB_PROJECT") or PROJECT
        self.tracking = Tracking(project, run_name(result), [*names], public_settings(settings))

    def write(self, row: Mapping[str, Any], _: Sequence[Mapping[str, Any]]) -> None:
        """Add the metrics of a step, without completions: a table of them is in wandb and TensorBoard."""
        self.tracking.log(scalars(row), row["step"])

    def close(self) -> None:
        self.tracking.finish()


Board = TensorBoard | VerlLoggers


def open_boards(names: Sequence[str], out: Path, result: Path, settings: Mapping[str, Any]) -> list[Board]:
    """Return the loggers of these names, for a run in the folder ``out`` that is called as its ``result``."""
    opened: list[Board] = []
    if "tensorboard" in names:
        rows = read_metrics(out / "metrics.jsonl")  # what a killed run wrote beyond them goes
        opened.append(TensorBoard(out / "tensorboard", settings, rows[-1]["step"] if rows else None))
    if of_verl := [name for name in names if name in VERLS_LOGGERS]:
        opened.append(VerlLoggers(of_verl, result, settings))
    return opened


def public_settings(settings: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    """Return the settings by dotted name, as a table has them, without secrets such as a password in a URL."""
    return {
        name: value if isinstance(value, bool | int | float) else without_secrets(str(value))
        for name, value in flatten(settings).items()
    }


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows with the same keys as a table in Markdown."""
    lines = [[*rows[0]], ["---"] * len(rows[0]), *([*row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def cell(value: Any) -> str:
    """Return a value as a cell of a table in Markdown."""
    return str(value).replace("|", "\\|").replace("\n", "<br>")
