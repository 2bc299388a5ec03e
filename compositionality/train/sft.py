"""Supervised fine-tuning on chat rows, and the loop that pretraining shares with it; the model code is policy.py's.

``fit`` is the loop, ``Fit.update`` one turn of it: gradients of a sum over this rank's tokens, added up over the ranks,
divided by the number of tokens that all of them trained on. So the result does not depend on how a batch is cut.

    python compositionality/train/sft.py model.path=… data.train_files=[…] trainer.output=…
    torchrun --standalone --nproc_per_node=4 compositionality/train/sft.py …

Reads a model folder and files of chats, or of prompts and responses. Writes OUTPUT/final (the model), steps/
(checkpoints, from which the same command goes on) and metrics.jsonl. Tensors: B rows, T tokens, N trained tokens.
"""

# ruff: noqa: N806

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from compositionality.data.artefact import Recipe, is_to_be_checked, new_artefact
from compositionality.errors import UserError
from compositionality.rollout.model_folder import ModelFolder, check_context, check_family, check_model, read_config
from compositionality.rollout.prompts import ChatRow
from compositionality.seeds import row_at
from compositionality.train.checkpoint import RunFolder, export, load_checkpoint, save_checkpoint
from compositionality.train.dist import device, memory_metrics, rank
from compositionality.train.log import Progress, RunLog
from compositionality.train.lora import check_adapters, stored
from compositionality.train.memory import check_training
from compositionality.train.metrics import TOKENS, TRAINED
from compositionality.train.policy import (
    Policy,
    clip_gradients,
    learning_rate_at,
    load_model,
    local_gradient,
    new_optimizer,
    reduce_gradients,
    set_learning_rate,
    shard,
    trainable,
)
from compositionality.train.rows import check_template, load_rows
from compositionality.train.run_folder import folder, prune
from compositionality.train.settings import OptimSettings, check_split
from compositionality.train.sft_settings import SftSettings, SftTrainerSettings, make_recipe
from compositionality.train.training_report import sft_report

# ---- batches as a function of the step, cut into as many micro-batches for every rank


class MicroBatch(NamedTuple):
    """Rows that go through the model at once: ``tokens`` (int64, BT, padded at the ends), ``loss_mask``
    (BT, 1: trained on), and how many of the tokens are no padding.
    """

    tokens: Tensor
    loss_mask: Tensor
    real: int


class Batches(Protocol):
    """Training batches as a function of the step alone: a resumed run sees the same."""

    @property
    def steps(self) -> int:
        """Steps of the whole run."""

    @property
    def epoch_steps(self) -> int:
        """Steps after which a checkpoint and the validation are due."""

    def stream(self, start: int, rank: int, ranks: int) -> Iterator[list[MicroBatch]]:
        """Yield, for each step from ``start`` on, the micro-batches of this rank: as many as any other rank has."""


@dataclass(frozen=True)
class ChatBatches:
    """``rows`` in a new order in every epoch. Its last batch may be smaller; ``even``: goes on into the next epoch."""

    rows: Sequence[ChatRow]
    steps: int
    batch_rows: int
    budget: int
    seed: int
    even: bool = False

    @property
    def epoch_steps(self) -> int:
        return -(-len(self.rows) // self.batch_rows)

    def stream(self, start: int, rank: int, ranks: int) -> Iterator[list[MicroBatch]]:
        for step in range(start, self.steps):
            yield micro_batches([self.rows[number] for number in self.numbers(step)], self.budget, rank, ranks)

    def numbers(self, step: int) -> list[int]:
        rows = len(self.rows)
        epoch, place = (0, step) if self.even else divmod(step, self.epoch_steps)
        first = epoch * rows + place * self.batch_rows
        last = first + self.batch_rows if self.even else min(first + self.batch_rows, (epoch + 1) * rows)
        return [row_at(position, rows, self.seed) for position in range(first, last)]


def micro_batches(rows: Sequence[ChatRow], budget: int, rank: int = 0, ranks: int = 1) -> list[MicroBatch]:
    """Return this rank's ``rows``, longest first, in micro-batches of at most ``budget`` tokens with their padding.

    Neighbours of about one length go to different ranks, so that all have the same work, in equally many parts.
    """
    ordered = sorted(rows, key=lambda row: -len(row.tokens))
    parts = []
    while ordered:
        count = max(1, budget // len(ordered[0].tokens)) * ranks
        share = ordered[:count][rank::ranks]
        filler = padded([ChatRow(ordered[0].tokens[:1], [0])])._replace(real=0)
        parts.append(padded(share) if share else filler)
        del ordered[:count]
    return parts


def padded(rows: Sequence[ChatRow]) -> MicroBatch:
    """Return rows as one tensor, padded at the ends with 0, which the loss mask leaves out."""
    longest = max(2, *(len(row.tokens) for row in rows)) if rows else 2
    tokens_BT = torch.zeros(len(rows), longest, dtype=torch.int64)
    loss_mask_BT = torch.zeros(len(rows), longest, dtype=torch.int8)
    for number, row in enumerate(rows):
        tokens_BT[number, : len(row.tokens)] = torch.tensor(row.tokens)
        loss_mask_BT[number, : len(row.tokens)] = torch.tensor(row.loss_mask, dtype=torch.int8)
    return MicroBatch(tokens_BT, loss_mask_BT, sum(len(row.tokens) for row in rows))


# ---- the loop


class Fit:
    """Supervised training of a policy: one update, the loop, its checkpoints."""

    def __init__(
        self,
        policy: Policy,
        tokenizer: Any,
        optim: OptimSettings,
        trainer: SftTrainerSettings,
        mesh: DeviceMesh | None,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        self.policy, self.tokenizer, self.optim, self.trainer, self.mesh = policy, tokenizer, optim, trainer, mesh
        self.optimizer = optimizer or new_optimizer(policy, optim)
        self.group = mesh["data"].get_group() if mesh is not None else None
        self.rank = int(mesh["data"].get_local_rank()) if mesh is not None else 0
        self.ranks = int(mesh["data"].size()) if mesh is not None else 1
        self.loss = math.nan
        self.log: SupervisedLog | None = None

    def update(self, parts: Sequence[MicroBatch], rate: float) -> tuple[Tensor, float]:
        """Take a step on this rank's ``parts``; return sums over ranks (loss, trained, real tokens), gradient norm."""
        trained, real = sum(int(part.loss_mask[:, 1:].sum()) for part in parts), sum(part.real for part in parts)
        tally = torch.tensor([0, trained, real], dtype=torch.float64, device=device())
        self.optimizer.zero_grad(set_to_none=True)
        for part in parts:
            loss = -self.log_probs(part).sum()
            loss.backward()
            tally[0] += loss.detach()
        if self.group is not None:
            dist.all_reduce(tally, group=self.group)
        reduce_gradients(self.policy, self.mesh)
        gradients = [local_gradient(parameter) for parameter in trainable(self.policy)]
        torch._foreach_mul_(gradients, 1.0 / max(float(tally[1]), 1.0))
        norm = clip_gradients(trainable(self.policy), self.optim.max_grad_norm)
        if math.isfinite(norm):
            set_learning_rate(self.optimizer, rate)
            self.optimizer.step()
        return tally, norm

    def log_probs(self, part: MicroBatch) -> Tensor:
        """Return log p of the tokens that are trained on, float32 of shape (N,)."""
        (logp_N,) = self.policy(part.tokens.to(device()), part.loss_mask.to(device()), with_entropy=False)
        return logp_N

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def mean_loss(self, parts: Sequence[MicroBatch]) -> float:
        """Return loss per token over all ranks' ``parts``."""
        tally = torch.zeros(2, dtype=torch.float64, device=device())
        for part in parts:
            logp_N = self.log_probs(part)
            tally += torch.stack([-logp_N.sum(), torch.tensor(logp_N.numel(), device=logp_N.device)])
        if self.group is not None:
            dist.all_reduce(tally, group=self.group)
        return float(tally[0] / tally[1])

    def run(
        self,
        batches: Batches,
        out: Path,
        start: int,
        job: str,
        settings: Mapping[str, Any],
        validation: Sequence[MicroBatch] = (),
        result: Path | None = None,
    ) -> float:
        """Train from step ``start`` to the last, saving on the way; the mean loss since the row before the last.

        ``job``, ``settings``, ``result``: see RunLog.
        """
        trainer, tally = self.trainer, torch.zeros(3, dtype=torch.float64, device=device())
        save_every = trainer.save_every or batches.epoch_steps
        if start:
            self.loss = load_checkpoint(folder(out / "steps", start), self.policy, self.optimizer)["loss"]
        if rank() == 0:
            progress = Progress(batches.steps, start)
            self.log = SupervisedLog(progress, out, trainer.logger, job, settings, result)
        for step, parts in enumerate(batches.stream(start, self.rank, self.ranks), start + 1):
            rate = learning_rate_at(step - 1, batches.steps, self.optim)
            sums, norm = self.update(parts, rate)
            if not math.isfinite(norm):
                raise UserError(
                    f"the loss is {float(sums[0] / sums[1]):.3g} and its gradient {norm} at step {step}; "
                    "the checkpoints before it are kept; try a lower optim.lr"
                )
            tally += sums
            ends_epoch, ends_run = step % batches.epoch_steps == 0, step == batches.steps
            save = step % save_every == 0 or ends_run
            row: dict[str, Any] = {"step": step}
            if step % trainer.log_every == 0 or save or ends_epoch:
                self.loss = float(tally[0] / tally[1])
                row |= {"train/loss": self.loss, "train/grad_norm": norm, "train/lr": rate, **memory_metrics()}
                row |= {TOKENS: int(tally[1]), TRAINED: int(tally[2])}
                if validation and (ends_epoch or ends_run):
                    row["val/loss"] = self.mean_loss(validation)
                if self.log:
                    self.log.write_step(row, tokens=float(tally[2]))
                tally.zero_()
            if save:
                self.save(out / "steps", row)
        return self.loss

    def save(self, steps: Path, row: Mapping[str, Any]) -> None:
        """Write a checkpoint; older ones beyond ``keep`` go once it is complete."""
        state = {"step": row["step"], "loss": self.loss}
        save_checkpoint(steps, row["step"], self.policy, self.optimizer, self.tokenizer, state=state, row=row)
        if rank() == 0:
            prune(steps, self.trainer.keep)

    def publish(self, target: Path, recipe: Recipe, facts: Mapping[str, Any]) -> None:
        """Write the trained model as the artefact ``target`` and end the log. A collective call; rank 0 writes."""
        sizes = {name: parameter.numel() for name, parameter in self.policy.named_parameters()}
        facts = {"parameters": sum(sizes[weight] for weight, *_ in stored(sizes).values()), **facts}
        with new_artefact(target, recipe, facts) if rank() == 0 else nullcontext(target) as partial:
            export(self.policy, self.tokenizer, partial)
        if self.log:
            figures = f"{facts['parameters']:,} parameters, {facts['steps']:,} steps, loss {facts['loss']}"
            print(f"{target}: {figures}", flush=True)
            self.log.send_artifacts(used=recipe.inputs.values(), made=[target])
            self.log.close()


class SupervisedLog(RunLog):
    """The log of SFT and of pretraining: also a line on the screen, at most every ten seconds."""

    seconds = 10.0

    def __init__(self, progress: Progress, *run: Any) -> None:
        super().__init__(*run)
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


# ---- the rows


@dataclass(frozen=True)
class SftInputs:
    """The model to start from, the rows to train on and those to validate on."""

    model: ModelFolder
    rows: list[ChatRow]
    val_rows: list[ChatRow]


def read_sft_inputs(settings: SftSettings) -> SftInputs:
    """Return model and rows; in a dry run of those files that are there.

    UserError for rows that do not fit the model, and for a run that does not fit this machine.
    """
    data, dry = settings.data, settings.dry_run
    model = check_model(Path(settings.model.path))
    check_family(model.path)
    check_split(read_config(model.path), settings.mesh.tensor)
    check_adapters(model.path, settings.model.lora)
    check_context(model, data.max_length, "data.max_length")
    check_template(model.path, model.tokenizer)
    check_training(settings)
    rows, val_rows = (
        [
            row
            for path in paths
            if is_to_be_checked(path, dry=dry)
            for row in load_rows(Path(path), model.tokenizer, data.max_length, data.columns())
        ]
        for paths in (data.train_files, data.val_files)
    )
    if data.prompt_loss:
        rows = [replace(row, loss_mask=[0] + [1] * (len(row.tokens) - 1)) for row in rows]
    return SftInputs(model, rows, val_rows)


# ---- a run


def train(settings: SftSettings, read: Callable[[], SftInputs], mesh: DeviceMesh | None) -> Path:
    """Fine-tune ``model.path``, or continue a run that was killed; return the model folder. Every rank calls this.

    ``engines.train_sft`` has checked the settings; ``read`` returns the inputs, once the run is known to be unfinished.
    Raise UserError for a folder that is another run's, and for a loss that is not finite.
    """
    recipe, data, trainer = make_recipe(settings), settings.data, settings.trainer
    run = RunFolder(Path(trainer.output), recipe, force=settings.force)
    final = run.out / "final"
    if run.is_finished():
        return final
    inputs = read()
    batches = new_batches(inputs.rows, trainer, data.seed)
    policy = shard(load_model(settings.model), mesh, settings.mesh, settings.model.dtype)
    fit = Fit(policy, inputs.model.tokenizer, settings.optim, trainer, mesh)
    validation = micro_batches(inputs.val_rows, trainer.micro_batch_tokens, fit.rank, fit.ranks)
    with run:
        loss = fit.run(batches, run.out, run.resume(), "sft", asdict(settings), validation)
        facts = {"steps": batches.steps, "loss": round(loss, 4)}
        if rank() == 0:
            facts |= sft_report(run.out / "metrics.jsonl", batches.steps, len(batches.rows), data.train_files)
        fit.publish(final, recipe, facts)
    return final


def new_batches(rows: Sequence[ChatRow], trainer: SftTrainerSettings, seed: int) -> ChatBatches:
    """Return the batches of a run: as large and as many as ``trainer`` says, in rows or in tokens."""
    batch_rows, even = trainer.batch_rows, trainer.batch_tokens is not None
    if trainer.batch_tokens is not None:
        trained = sum(sum(row.loss_mask[1:]) for row in rows)
        batch_rows = max(1, round(trainer.batch_tokens * len(rows) / trained))
    epoch = len(rows) / batch_rows if even else -(-len(rows) // batch_rows)
    steps = trainer.steps or max(1, round(trainer.epochs * epoch))
    if trainer.tokens is not None:
        steps = max(1, round(trainer.tokens * epoch / sum(len(row.tokens) for row in rows)))
    return ChatBatches(rows, steps, batch_rows, trainer.micro_batch_tokens, seed, even)


if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its names would hide those of packages
    from compositionality.config.cli import run
    from compositionality.train.engines import show_verl, train_sft

    run(SftSettings, train_sft, __doc__, show_verl)
