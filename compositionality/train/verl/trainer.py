"""verl's synchronous trainer with additions, by subclassing.

Prompts in a fixed order, generation batches of a size of their own, a stop at the end of the data, when there is
no signal left or when a loss is no longer a number, and the validation score of every step.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import compress, groupby
from pathlib import Path
from typing import Any

import torch
import transfer_queue
from omegaconf import DictConfig, open_dict
from verl.trainer.ppo.checkpoint_callback import CheckpointCallback
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils import tensordict_utils
from verl.utils.dataset.rl_dataset import collate_fn

from compositionality.data.artefact import remove, write_text
from compositionality.errors import UserError
from compositionality.rollout.model_folder import check_model, shape_of_model
from compositionality.train.checkpoint import replace_sealed
from compositionality.train.grpo_report import pass_at_k_metrics, validation_score
from compositionality.train.log import to_read
from compositionality.train.metrics import (
    COMPLETIONS,
    EVALUATED_TOKENS,
    FLOPS,
    NO_SIGNAL,
    PAPER_FLOPS,
    SAMPLED,
    SAMPLED_TOKENS,
    SMALLEST_ADVANTAGE,
    STEP_ROW,
    TOKENS,
    TRAINED,
    UPDATES,
    ComputeMeter,
    numbers,
    step_row,
)
from compositionality.train.run_folder import complete_steps, folder, mark_complete, prune, record_score
from compositionality.train.verl import extensions, hooks
from compositionality.train.verl.metrics import log_completions
from compositionality.train.verl.prompts import PromptStream
from compositionality.train.verl.replay import NoSignalError, row_order

del extensions  # imported for the advantages that it registers

BY_THE_LONGEST = ("prompt_length/clip_ratio", "response_length_non_aborted/clip_ratio")
"""verl's shares of a batch that are as long as its longest row; prompts are not cut here, no response is aborted."""


@register_trainer(hooks.TRAINER)
class VerlGrpoTrainer(PPOTrainerSync):  # type: ignore[misc]
    total_training_steps: int

    def __init__(self, config: DictConfig) -> None:
        with open_dict(config):
            config.trainer.v1.trainer_mode = "sync"  # verl's base class takes every other name for an async trainer
        super().__init__(config)
        self.steps_folder = Path(config.trainer.default_local_dir)
        self.generation_size = config.trainer.v1.sampler.sampler_kwargs.generation_batch_size
        self.row: dict[str, Any] = {}
        shape, actor = shape_of_model(config.run.model), config.actor_rollout_ref
        self.flops = ComputeMeter(
            shape.layers * shape.block + shape.width,  # without embeddings and head
            old=not config.algorithm.rollout_correction.bypass_mode,
            reference=actor.actor.use_kl_loss or config.algorithm.use_kl_in_reward,
            frozen=actor.model.lora_rank > 0,
            critic=config.algorithm.adv_estimator == "gae",
        )
        self.ends = check_model(Path(config.run.model), chat_template=config.run.apply_chat_template).eos_ids

    def _init_dataloader(self) -> None:
        super()._init_dataloader()
        data = self.config.data
        self.train_dataloader = PromptStream(self.train_dataset, seed=data.seed, shuffle=data.shuffle)

    def _next_train_batch(self, num_prompts: int | None = None) -> Any:
        rows = self.train_dataloader.take(num_prompts or self.generation_size)
        batch = tensordict_utils.get_tensordict(collate_fn(rows))
        tensordict_utils.assign_non_tensor_data(batch, "global_steps", self.global_steps)
        return batch

    def step(self, metrics: dict[str, Any], timing_raw: dict[str, float]) -> Any:
        """Make one update; save the state before it if no group has signal."""
        began = time.monotonic()
        try:
            batch = super().step(metrics, timing_raw)
        except NoSignalError:
            self._save_state_before_step()
            raise
        # verl logs only after saving and validating: the checkpoint takes the row along, for a run killed in between.
        actor = self.config.actor_rollout_ref.actor
        metrics[UPDATES] = actor.ppo_epochs * (self.config.data.train_batch_size // actor.ppo_mini_batch_size)
        self.row = dict(metrics)
        timings = {**timing_raw, "step": time.monotonic() - began}
        self._compute_metrics(batch, self.row, timings, self.global_steps, epoch=0)
        responses = len(responses_of(batch))
        self._end_with_the_data(self.global_steps)
        counts = {
            TOKENS: actor.ppo_epochs * round(responses * self.row["response_length/mean"]),
            **self._flops(responses),
            NO_SIGNAL: self._without_signal(),
        }
        metrics |= counts
        self.row |= counts
        if (every := self.config.run.samples_every) and self.global_steps % every == 0:
            log_completions(self.logger, self.global_steps, self._completions(batch))
        return batch

    def _completions(self, batch: Any) -> list[dict[str, Any]]:
        """Return some responses of a batch to read, with their special tokens, as the single-file trainer has them."""
        keys = sorted(responses_of(batch), key=row_order)
        fields = ["prompts", "responses", "rm_scores", "extra_fields"]
        fetched = transfer_queue.kv_batch_get(keys, batch.partition_id, fields)
        prompts, responses, scores = (fetched[name].unbind() for name in fields[:3])
        rewards = [float(values.sum()) for values in scores]
        verdicts = [extra["reward_extra_info"] for extra in fetched.pop("extra_fields").tolist()]
        right = [verdict.get("acc", reward) >= 1 for verdict, reward in zip(verdicts, rewards, strict=True)]
        groups = [[*places] for _, places in groupby(range(len(keys)), lambda place: row_order(keys[place])[0])]
        chosen = to_read([[right[place] for place in places] for places in groups])
        return [
            {
                "position": int(row_order(keys[place])[0]),
                "prompt": self.tokenizer.decode(prompts[place]),
                "completion": self.tokenizer.decode(responses[place]),
                "reward": rewards[place],
                "right": right[place],
            }
            for place in (groups[group][number] for group, number in chosen)
        ]

    def _compute_metrics(self, batch: Any, metrics: dict[str, Any], *rest: Any, **names: Any) -> None:
        """Add verl's metrics of a step, with the share of responses that the limit cut: no end token is their last."""
        super()._compute_metrics(batch, metrics, *rest, **names)
        metrics["training/epoch"] = (self.train_dataloader.position - 1) // len(self.train_dataset)  # as grpo.py
        for name in BY_THE_LONGEST:
            metrics.pop(name, None)
        responses, limit, cut = responses_of(batch), self.config.data.max_response_length, 0
        if full := [key for key, tag in responses.items() if tag["response_len"] >= limit]:
            fetched = transfer_queue.kv_batch_get(full, batch.partition_id, ["responses"])["responses"]
            cut = sum(ids[-1].item() not in self.ends for ids in fetched.unbind())
        metrics["response_length/clip_ratio"] = cut / len(responses)

    def _without_signal(self) -> int:
        """Return 1 if all advantages of the step are zero; raft's need no difference in a group for one that is not."""
        ends = (self.row[f"critic/advantages/{end}"] for end in ("min", "max"))
        return int(max(map(abs, ends)) <= SMALLEST_ADVANTAGE)

    def _flops(self, responses: int) -> dict[str, float]:
        """Return the FLOPs and the sampled completions until and with this step.

        Completions that are not in its batch, and those of a validation, count as long as the mean of its batch.
        """
        tokens, every = self.row["perf/total_num_tokens"], self.config.trainer.test_freq
        is_last = self.global_steps >= self.total_training_steps
        is_due = every > 0 and (is_last or self.global_steps % every == 0)
        validated = len(self.val_dataset) * self.config.actor_rollout_ref.rollout.val_kwargs.n * is_due
        counts = {
            SAMPLED: self.row[SAMPLED],
            SAMPLED_TOKENS: tokens * self.row[SAMPLED] / responses,
            TRAINED: tokens * self.config.actor_rollout_ref.actor.ppo_epochs,
            EVALUATED_TOKENS: tokens * validated / responses,
        }
        sums = self.flops.add(counts)
        return {name: sums[name] for name in (FLOPS, PAPER_FLOPS, COMPLETIONS)}

    def _save_state_before_step(self) -> None:
        """Save the weights of the last update, with the data position after the prompts that gave no signal."""
        self.global_steps -= 1
        if self.global_steps in complete_steps(self.steps_folder):
            state = self.train_dataloader.state_dict()
            replace_sealed(folder(self.steps_folder, self.global_steps) / "data.pt", partial(torch.save, state))
        elif self.global_steps > 0:
            self._save_checkpoint()

    def _save_checkpoint(self) -> None:
        remove(folder(self.steps_folder, self.global_steps))  # left by a run that was killed while saving
        super()._save_checkpoint()

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """Update the policy. UserError if a loss or the gradient norm is not finite: verl would just go on."""
        batch = super()._update_actor(batch, metrics)
        for name, value in metrics.items():
            if name.endswith(("loss", "grad_norm")) and not math.isfinite(value):
                raise UserError(
                    f"step {self.global_steps}: {name} is {value}; the last checkpoint is kept. "
                    "Lower optim.lr and run the same command again"
                )
        return batch

    def _compute_values(self, batch: Any, metrics: dict[str, Any]) -> Any:
        batch.extra_info.pop("no_lora_adapter", None)  # verl leaves it there for the critic, which has no adapter
        return super()._compute_values(batch, metrics)

    def on_train_begin(self) -> None:
        """Take up what a resumed run had computed; its data stream may already know the last step."""
        checkpoint = folder(self.steps_folder, self.global_steps - 1)
        if (checkpoint / STEP_ROW).is_file():
            self.flops.restore(step_row(checkpoint))
        stream = self.train_dataloader
        if stream.left(self.config.trainer.total_epochs) >= self.generation_size:
            stream.last_step = None  # of a run that has been given more epochs
        self._end_with_the_data(self.global_steps - 1)

    def _end_with_the_data(self, step: int) -> None:
        """Make the step after ``step`` the last one when too few prompts are left for another generation batch."""
        stream = self.train_dataloader
        if stream.last_step is None and stream.left(self.config.trainer.total_epochs) < self.generation_size:
            stream.last_step = step + 1
        if stream.last_step is not None:
            self.total_training_steps = min(self.total_training_steps, stream.last_step)

    def _validate(self) -> dict[str, float]:
        metrics: dict[str, float] = super()._validate()
        record_score(self.steps_folder, self.global_steps, validation_score(metrics))
        prune(self.steps_folder, self.config.run.keep, keep_best=True)
        return metrics if self.global_steps else self.flops.add(metrics)  # the sums of a step are in its row

    def _val_metrics_update(
        self, data_sources: Sequence[str], sample_uids: Sequence[str], infos: dict[str, list[Any]], *rest: Any, **_: Any
    ) -> dict[str, float]:
        """Return verl's metrics of a validation, and pass@k.

        Without problems of which a response got no verdict: verl counts that as wrong.
        """
        responses = Counter(sample_uids)
        n = max(responses.values(), default=0)
        whole = [responses[uid] == n for uid in sample_uids]
        sources, uids = [*compress(data_sources, whole)], [*compress(sample_uids, whole)]
        infos = {name: [*compress(values, whole)] for name, values in infos.items()}
        metrics: dict[str, float] = super()._val_metrics_update(sources, uids, infos, *rest)
        if "acc" not in infos:  # a reward function of one's own that tells a score alone
            return metrics
        right = {uid: (source, list[float]()) for uid, source in zip(uids, sources, strict=True)}
        for uid, value in zip(uids, infos["acc"], strict=True):
            right[uid][1].append(value)
        return metrics | pass_at_k_metrics([*right.values()])


class Seal(CheckpointCallback):  # type: ignore[misc]
    """Seals what verl has saved, then deletes what is no longer needed."""

    def on_save(self, trainer: Any, global_step: int, checkpoint_dir: str, async_save: bool = False, **_: Any) -> None:
        """Seal a checkpoint, on the driver, when all ranks have written their part."""
        del async_save
        steps = Path(checkpoint_dir).parent
        if trainer.row:
            write_text(folder(steps, global_step) / STEP_ROW, json.dumps({"step": global_step, **numbers(trainer.row)}))
        mark_complete(steps, global_step)
        prune(steps, self.config.run.keep, keep_best=True)


def responses_of(batch: Any) -> dict[str, Any]:
    """Return the tags of a batch's responses by their keys, without the rows that fill it up."""
    tags = zip(batch.keys, batch.tags, strict=True)
    return {key: tag for key, tag in tags if not tag.get("is_padding", False)}
