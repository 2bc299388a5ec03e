"""Keep verl's metrics in our files: a JSONL file that a resumed run continues, wandb only where it can be used.

verl imports this module in every process of a run (hooks.py); its warm-up of the learning rate is replaced here, too.
Its own file logger starts a new file when a run is
resumed; ours continues from the checkpoint.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from compositionality.data.git import code_version
from compositionality.train.boards import define_validation_metrics, facts_of, markdown, or_left_out
from compositionality.train.log import TABLE, Completions, MetricsFile, scalars
from compositionality.train.settings import OptimSettings

PATIENCE = 3  # updates


class JsonLines:
    """verl's file logger, appending: one line for each step and source of metrics."""

    def __init__(self, project_name: str, experiment_name: str) -> None:
        path = os.environ.get("VERL_FILE_LOGGER_PATH", f"{project_name}/{experiment_name}.jsonl")
        self._file = MetricsFile(Path(path))

    def log(self, data: Mapping[str, Any], step: int) -> None:
        self._file.write({"step": step, **data})

    def finish(self) -> None:
        self._file.close()


class NumberWatch:
    """Recognises a run that has diverged: a loss that is not finite, or gradients that are not for several updates.

    verl skips an update whose gradient norm is not finite: one may be bad luck, ``PATIENCE`` in a row are not.
    """

    skipped = 0

    def problem(self, loss: float, gradient_norm: float, step: int) -> str | None:
        """Return the reason to stop after ``step``, or None."""
        if not math.isfinite(loss):
            return f"the loss is {loss} at step {step}; the checkpoints before it are kept; try a lower optim.lr"
        self.skipped = 0 if math.isfinite(gradient_norm) else self.skipped + 1
        if self.skipped < PATIENCE:
            return None
        return f"no update since step {step - self.skipped}: the gradients are {gradient_norm}; try a lower optim.lr"


def install() -> None:
    """Replace verl's file logger by ours, and its table of completions; let a run continue without wandb if that fails.

    In wandb and TensorBoard that table would have the name of ours; other loggers keep verl's. The rate of its constant
    schedule rises as the single-file trainer's does: verl's begins at 0, so that the first update changes nothing.
    """
    from verl.utils import torch_functional, tracking

    tracking.FileLogger = JsonLines
    verls_table = tracking.ValidationGenerationsLogger
    verls_table.log_generations_to_wandb = verls_table.log_generations_to_tensorboard = lambda *_: None
    tracking.Tracking.__init__ = without_wandb_if_it_fails(tracking.Tracking.__init__)
    torch_functional.get_constant_schedule_with_warmup = rising


def rising(optimizer: Any, num_warmup_steps: int, last_epoch: int = -1) -> Any:
    """Return, in the form of verl's function, a schedule that is constant once the rate has risen."""
    from torch.optim.lr_scheduler import LambdaLR

    from compositionality.train.policy import learning_rate_at

    shape = OptimSettings(lr=1.0, warmup_steps=num_warmup_steps)
    return LambdaLR(optimizer, lambda step: learning_rate_at(step, 1, shape), last_epoch)


def without_wandb_if_it_fails(start: Callable[..., None]) -> Callable[..., None]:
    """Return verl's ``Tracking.__init__`` with our x-axes and facts in wandb, tried again without it where that fails.

    A run that goes on sends what a killed process had written but not sent.
    """

    def start_anyway(
        self: Any, project_name: str, experiment_name: str, default_backend: Any = "console", config: Any = None
    ) -> None:
        backends = [default_backend] if isinstance(default_backend, str) else list(default_backend)
        self.completions = Completions(Path(os.environ.get("VERL_FILE_LOGGER_PATH", os.devnull)).parent)
        if "wandb" in backends:
            import wandb

            try:
                start(self, project_name, experiment_name, backends, config)
                define_validation_metrics(wandb)
                facts = facts_of(Path(os.environ.get("WANDB_DIR", "")).absolute()) | {"code": code_version()}
                wandb.config.update({"facts": facts}, allow_val_change=True)  # type: ignore[no-untyped-call]
                for row, table in self.completions.so_far:
                    if wandb.run is not None and row["step"] >= wandb.run.step:
                        wandb.log(scalars(row) | self.completions.grown(row["step"], table), step=row["step"])
                return
            except wandb.errors.Error as error:
                print(f"wandb is left out: {' '.join(str(error).split())[:200]}", flush=True)
        start(self, project_name, experiment_name, [name for name in backends if name != "wandb"], config)

    return start_anyway


def log_completions(tracking: Any, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Keep completions to read of a step, and send them to wandb and TensorBoard where these are among verl's loggers.

    ``tracking``: verl's, started by ``start_anyway``.
    """
    tracking.completions.keep(step, rows)
    if "wandb" in tracking.logger:
        with or_left_out():
            tracking.logger["wandb"].log(tracking.completions.grown(step, rows), step=step)
    if "tensorboard" in tracking.logger and rows:
        tracking.logger["tensorboard"].writer.add_text(TABLE, markdown(rows), step)


if __name__ in os.environ.get("VERL_USE_EXTERNAL_MODULES", "").split(","):
    install()
