"""TensorBoard, where it is named in ``trainer.logger``, and wandb, where it can be used without a login."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compositionality.errors import without_secrets
from compositionality.train.common.metrics import loggers, numbers
from compositionality.train.common.run_folder import WANDB_ID


class Trackers:
    """The trackers of one run; a resumed run continues the same wandb run."""

    def __init__(
        self, out: Path, chosen: Sequence[str], settings: Mapping[str, Any], result: Path | None = None
    ) -> None:
        """``result``: what stays of a run folder that does not; wandb takes its name and keeps its files beside it."""
        names = loggers(chosen, os.environ)
        self._board: Any = _tensorboard(out) if "tensorboard" in names else None
        self._wandb: Any = _wandb(out, settings, result or out) if "wandb" in names else None

    def write(self, row: Mapping[str, Any]) -> None:
        """The metrics of ``row["step"]``."""
        step = row["step"]
        scalars = {name: value for name, value in numbers(row).items() if isinstance(value, int | float)}
        if self._board is not None:
            for name, value in scalars.items():
                self._board.add_scalar(name, value, step)
        if self._wandb is not None:
            self._wandb.log(scalars, step=step)

    def close(self) -> None:
        """Flush and close."""
        if self._board is not None:
            self._board.close()
        if self._wandb is not None:
            self._wandb.finish()


def _tensorboard(out: Path) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(out / "tensorboard"))


def _wandb(out: Path, settings: Mapping[str, Any], result: Path) -> Any:
    """The wandb run of this folder; None, with a line, if wandb is not installed, refuses or does not answer."""
    try:
        import wandb
    except ImportError:
        print("wandb is left out: it is not installed (bash bash/setup.sh --full)", flush=True)
        return None
    files = out if result == out else result.with_name(f"{result.name}.wandb")
    files.mkdir(parents=True, exist_ok=True)
    try:
        return wandb.init(
            project="compositionality",
            name=result.name,
            dir=str(files),
            id=(out / WANDB_ID).read_text().strip(),
            resume="allow",
            config=_public(settings),
            settings=wandb.Settings(quiet=True),
        )
    except wandb.errors.Error as error:
        print(f"wandb is left out: {' '.join(str(error).split())[:200]}", flush=True)
        return None


def _public(settings: Any) -> Any:
    """The settings without the secrets that they may hold, such as a password in the URL of a server."""
    if isinstance(settings, Mapping):
        return {name: _public(value) for name, value in settings.items()}
    return without_secrets(settings) if isinstance(settings, str) else settings
