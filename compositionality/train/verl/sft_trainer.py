"""verl's SFT trainer with additions: ``torchrun -m compositionality.train.verl.sft_trainer CONFIG.yaml``.

Added from outside, by subclassing: a seed for the order of the rows, a learning rate that falls as a power, an exact
resume at the end of an epoch, pruning that never leaves a run without a checkpoint, and a stop when the loss is no
longer a number.
"""

import pickle
import sys
from itertools import count
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf
from verl.trainer.sft_trainer import SFTTrainer
from verl.utils import tensordict_utils
from verl.utils.checkpoint import CheckpointHandler
from verl.utils.distributed import destroy_global_process_group, initialize_global_process_group

from compositionality.errors import UserError
from compositionality.ranges import CountOrAll
from compositionality.train.metrics import TOKENS
from compositionality.train.policy import learning_rate_at
from compositionality.train.run_folder import prune
from compositionality.train.settings import OptimSettings
from compositionality.train.verl.launch import report_failure
from compositionality.train.verl.metrics import NumberWatch


class Checkpoints(CheckpointHandler):  # type: ignore[misc]
    """verl's checkpoints; old ones are deleted only once the new one is complete and named in the tracker."""

    def __init__(self, *, keep: CountOrAll, steps_per_epoch: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.keep = keep
        self.steps_per_epoch = steps_per_epoch

    def save_checkpoint(self, step: int) -> None:
        try:
            super().save_checkpoint(step)
        except (RuntimeError, OSError) as error:
            path = Path(self.default_local_dir) / f"global_step_{step}"
            report_failure(f"{path}: could not be written; is the disk full? The checkpoints before it are kept")
            raise SystemExit(UserError.exit_code) from error
        if self.rank == 0:
            prune(Path(self.default_local_dir), self.keep)

    def load_checkpoint(self) -> int:
        try:
            step: int = super().load_checkpoint()
        except (RuntimeError, EOFError, OSError, pickle.UnpicklingError) as error:
            fix = "delete that folder, and the run goes on from the one before it"
            report_failure(f"{self.resume_from_path}: damaged checkpoint; {fix}")
            raise SystemExit(UserError.exit_code) from error
        return step

    def _load_dataloader_state(self, checkpoint_path: str) -> None:
        """Restore no position at the end of an epoch: it is "all rows read", and would skip the next epoch."""
        if self.resume_global_step % self.steps_per_epoch:
            super()._load_dataloader_state(checkpoint_path)


class VerlSftTrainer(SFTTrainer):  # type: ignore[misc]
    def _build_dataloader(self) -> None:
        super()._build_dataloader()
        self.train_sampler.seed = self.config.trainer.seed
        for loader in (self.train_dataloader, self.val_dataloader):
            if loader is not None:  # else every epoch draws from the global generator, and a resumed run once more
                loader.generator = torch.Generator().manual_seed(self.config.trainer.seed)

    def _build_ckpt_handler(self) -> None:
        self.ckpt_handler = Checkpoints(
            engine=self.engine,
            train_dataloader=self.train_dataloader,
            default_local_dir=self.config.trainer.default_local_dir,
            resume_mode=self.config.trainer.resume_mode,
            resume_from_path=self.config.trainer.resume_from_path,
            lora_train_meta=self._get_lora_train_meta(),
            keep=self.config.run.keep,
            steps_per_epoch=self.steps_per_epoch,
        )

    def _init_engine(self) -> None:
        super()._init_engine()
        self._set_schedule()
        train_batch, watch, steps = self.training_client.train_batch, NumberWatch(), count(1)

        def checked_train_batch(data: Any) -> Any:
            """Train on a batch. Loss and gradient norm are the same on all processes, which stop together."""
            output, step = train_batch(data=data), self.resume_global_step + next(steps)
            tokens = self._loss_tokens(data)
            if self.engine.is_mp_src_rank_with_outputs():
                metrics = tensordict_utils.get(output, "metrics")
                metrics[TOKENS] = tokens
                if problem := watch.problem(metrics["loss"], metrics["grad_norm"], step):
                    report_failure(problem)
                    sys.exit(problem)
            return output

        self.training_client.train_batch = checked_train_batch

    def _loss_tokens(self, data: Any) -> int:
        """Return the tokens of the batch that are trained on, over all data ranks. A collective call."""
        mask = data["loss_mask"]
        tokens = (mask.values() if mask.is_nested else mask).sum().to(self.device_name)
        if self.engine.get_data_parallel_size() > 1:
            torch.distributed.all_reduce(tokens, group=self.engine.get_data_parallel_group())
        return int(tokens)

    def _set_schedule(self) -> None:
        """Set the learning rate of ``optim.warmup_steps`` and ``decay_power``, as the single-file trainer has it.

        verl itself has constant and cosine; cosine is left alone.
        """
        optim, power = self.optimizer_config, self.config.run.decay_power
        if optim.lr_scheduler_type != "constant":
            return
        shape = OptimSettings(lr=1.0, warmup_steps=max(optim.lr_warmup_steps, 0), decay_power=power)
        scheduler, steps = self.engine.lr_scheduler, self.total_training_steps
        scheduler.lr_lambdas = [lambda step: learning_rate_at(min(step, steps), steps, shape)] * len(scheduler.base_lrs)
        for group, rate in zip(self.engine.optimizer.param_groups, scheduler.base_lrs, strict=True):
            group["lr"] = rate * scheduler.lr_lambdas[0](0)


def main() -> None:
    config = OmegaConf.load(sys.argv[1])
    initialize_global_process_group()
    VerlSftTrainer(config).fit()
    destroy_global_process_group()


if __name__ == "__main__":
    main()
