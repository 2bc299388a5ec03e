"""GRPO in one file: rollout, advantages, loss, update. The model, its mesh and its optimizer are in ``policy.py``.

Read it from the top: ``train`` starts a run or continues one, ``GrpoTrainer.run`` is the loop, and below stands what
the loop calls, in the order of a step: rollout and rewards, advantages, micro-batches, losses (one formula, one
function). ``train/README.md`` names the papers. The command checks the settings and starts the ranks (``engines.py``);
on each of them ``train`` gets a function that reads the problems (``rows.py``).

    python compositionality/train/grpo.py model.path=… data.train_files=[…] trainer.output=…
    torchrun --standalone --nproc_per_node=4 compositionality/train/grpo.py mesh.tensor=2 …

Names of tensors: B rows, T their padded length, N their response tokens (flat, row after row, no padding),
G prompt groups, S completions of a group.
"""

# ruff: noqa: N803, N806

import contextlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from compositionality.errors import UserError
from compositionality.train.checkpoint import RunFolder, weight_buckets
from compositionality.train.dist import device, memory_metrics, on_every_rank, own_part, rank, world_size
from compositionality.train.grpo_report import (
    Clock,
    Report,
    RolloutGap,
    actor_mfu,
    advantage_metrics,
    new_meter,
    rollout_metrics,
    speeds,
    update_metrics,
    validation_costs,
    validation_metrics,
    validation_score,
)
from compositionality.train.grpo_settings import GrpoSettings, make_recipe
from compositionality.train.policy import (
    Policy,
    clip_gradients,
    learning_rate_at,
    load_model,
    new_optimizer,
    reduce_gradients,
    set_learning_rate,
    shard,
    trainable,
    without_adapters,
)
from compositionality.train.prompts import (
    GrpoInputs,
    Refills,
    TokenizedProblem,
    completion_seeds,
    problem_at,
    too_few_groups,
)
from compositionality.train.samplers import TokenSampler, new_sampler
from compositionality.types import Completion, PromptGroup, Reason, SamplingOptions, TrainSample, Verdict

Batch = dict[str, Tensor]
"""A micro-batch on the device.

``tokens_BT``: prompt and response, padded at the ends. ``loss_mask_BT``: 1 for response tokens. ``advantage_N``: of the
token's completion. ``weight_N``: the token's coefficient in the loss of an optimizer step. ``share_N``: 1 / response
tokens of that step, for means of metrics. Log-probs: ``rollout_logp_N`` of the sampler; ``old_logp_N`` of the policy
before the step, if that has several updates; ``ref_logp_N`` of the reference model, if there is a KL term.
"""
VALIDATION_SAMPLE = -1  # numbers of completions in validation go down from here: their seeds are no training seeds
MAX_LOG_RATIO = 20.0


# ---- the run


def train(settings: GrpoSettings, read: Callable[[], GrpoInputs], mesh: DeviceMesh | None) -> Path:
    """Train, or go on with a run that was killed; return the run folder. Called on every rank of ``mesh``, or alone.

    ``engines.train_grpo`` has checked the settings; ``read`` returns the inputs, once the run is known to be unfinished
    and its folder is held. Raise UserError for a folder that is another run's, and for a loss that is not finite.
    """
    recipe, out = make_recipe(settings), Path(settings.trainer.output)
    keep, keep_best = settings.trainer.keep, settings.trainer.keep_best
    folder = RunFolder(out, recipe, force=settings.force, keep=keep, keep_best=keep_best)
    if folder.is_finished():
        return out
    # The trainer is made before the folder is touched: a start that is refused deletes nothing.
    with folder, contextlib.closing(GrpoTrainer(settings, read(), mesh, folder)) as trainer:
        validation = settings.data.val_files, settings.trainer.eval_limit, settings.trainer.eval_samples
        trainer.run(folder.resume(*validation))
        folder.publish()
        if trainer.report is not None:
            trainer.report.send_models(recipe.inputs.values())
    return out


class GrpoTrainer:
    """A run of GRPO: what it holds between steps, its loop, one step, validation and checkpoints."""

    def __init__(self, settings: GrpoSettings, inputs: GrpoInputs, mesh: DeviceMesh | None, folder: RunFolder) -> None:
        self.settings, self.inputs, self.mesh, self.folder = settings, inputs, mesh, folder
        self.policy = self.new_policy(entropy_gradient=settings.algorithm.entropy_coef != 0)
        self.reference: Policy | None = None
        if settings.algorithm.kl != "none":  # with LoRA it is the policy without its adapters
            self.reference = self.policy if settings.model.lora.rank else self.new_policy().requires_grad_(False)
        self.optimizer = new_optimizer(self.policy, settings.optim)
        self.clock = Clock()
        self.sampler = new_sampler(settings, self.policy.model.config, inputs.eos_ids, device())
        self.worker = RolloutWorker(settings, self.sampler, inputs.tokenizer, self.clock)
        self.flops = new_meter(self.policy.named_parameters(), settings.algorithm)
        self.position = 0  # in the stream of prompts
        self.shown: list[PromptGroup] = []  # groups of the last step from which completions to read are taken
        self.row: dict[str, Any] = {}  # metrics of the last step
        self.report: Report | None = None  # on the first rank

    def new_policy(self, *, entropy_gradient: bool = False) -> Policy:
        """Return the model that the run starts from, on the mesh."""
        model = self.settings.model
        return shard(load_model(model), self.mesh, self.settings.mesh, model.dtype, entropy_gradient=entropy_gradient)

    def run(self, done: int) -> None:
        """Train to the last step; ``done``: the step whose checkpoint to go on from, 0 for a start."""
        trainer = self.settings.trainer
        self.report = Report(self.folder.out, self.settings, done) if rank() == 0 else None
        if done:
            self.restore(done)
        self.sync_weights()
        if not done:
            self.log({"step": 0, **self.flops.add(self.evaluate(0) if trainer.eval_every else {})})
        step = done
        while not self.is_over(step):
            step += 1
            self.clock.seconds.clear()
            with self.clock("step"):
                groups, metrics = self.collect(step)  # completions and their rewards
                samples = to_samples(groups, self.settings.algorithm.advantage)  # advantages
                metrics |= advantage_metrics(samples)
                target = self.inputs.entropies[step - 1] if self.inputs.entropies else None
                entropy_coef = self.settings.algorithm.entropy_weight(metrics, target)
                metrics |= self.update(samples, step, entropy_coef)  # loss, optimizer
                self.sync_weights()  # the sampler gets the new weights
            metrics |= speeds(self.clock.seconds, metrics, world_size()) | memory_metrics()
            metrics |= actor_mfu(self.policy.model.config, samples, self.clock.seconds, world_size())
            if trainer.eval_every and self.is_due(step, trainer.eval_every):
                metrics |= self.evaluate(step)
            epoch = (self.position - 1) // len(self.inputs.problems)
            metrics |= {"training/global_step": step, "training/epoch": epoch}
            self.row = {"step": step, **self.flops.add(metrics)}
            # Samples, then the checkpoint, then the row: a row that a crash loses is in the checkpoint.
            if self.report is not None:
                self.report.write_samples(step, self.shown, self.inputs.tokenizer)
            if self.is_due(step, trainer.save_every):
                self.save(step)
            self.log(self.row)

    def is_due(self, step: int, every: int) -> bool:
        """Return True after the last step; before it, every so many (0: after the last alone)."""
        return self.is_over(step) or (every > 0 and step % every == 0)

    def is_over(self, step: int) -> bool:
        """Return whether ``step`` is the last: all steps made, or all epochs used up."""
        return self.settings.is_over(step, self.position, len(self.inputs.problems))

    # -- rollout

    def collect(self, step: int) -> tuple[list[PromptGroup], dict[str, float]]:
        """Return the groups that enter the update (``is_useful``), and metrics of all that were sampled.

        With dynamic sampling, prompts are asked until the batch is full, or too many were (``too_few_groups`` says what
        then); what is sampled beyond it is dropped, as verl does.
        """
        settings, algorithm, needed = self.settings, self.settings.algorithm, self.settings.data.prompts_per_step
        sampled, useful = list[PromptGroup](), list[PromptGroup]()
        refills = Refills(needed, settings.generation_batch(), algorithm.max_generation_batches)
        next_position, n_prompts = self.position, refills.asked
        while n_prompts:
            groups = self.sample_groups(next_position, n_prompts)
            next_position += n_prompts
            sampled += groups
            useful += [group for group in groups if self.is_useful(group)]
            enough = len(useful) >= needed or not algorithm.dynamic_sampling
            n_prompts = 0 if enough else refills.next(len(useful))
        self.position = next_position
        if not enough and algorithm.too_few_groups == "stop":
            self.stop_without_signal(step, len(useful), len(sampled))
        self.shown = useful[:needed] or [group for group in sampled if group.is_judged()]
        metrics = rollout_metrics(sampled, useful[:needed], by_reward=settings.reward.by_reward())
        return useful[:needed], metrics | {"training/filter_groups/discarded_surplus_samples": len(useful[needed:])}

    def is_useful(self, group: PromptGroup) -> bool:
        """Return whether a group enters the update: judged, and with signal where groups without are left out."""
        drops = self.settings.algorithm.drops_equal_groups()
        return group.has_signal(by_reward=self.settings.reward.by_reward()) if drops else group.is_judged()

    def sample_groups(self, position: int, n_prompts: int) -> list[PromptGroup]:
        """Return groups for the next ``n_prompts`` prompts of the stream, from ``position`` on."""
        rollout, positions = self.settings.rollout, range(position, position + n_prompts)
        problems = [problem_at(place, self.inputs.problems, self.settings.data) for place in positions]
        groups = self.worker.generate(problems, positions, range(rollout.n))
        self.settings.reward.replace(groups, (rollout.seed, position))  # in a negative control
        return groups

    def stop_without_signal(self, step: int, useful: int, prompts: int) -> NoReturn:
        """Save the previous step's state again, past the prompts that gave nothing, and raise UserError."""
        if step > 1:  # at step 1 there is nothing to save
            self.save(step - 1)
        limit = f"algorithm.max_generation_batches={self.settings.algorithm.max_generation_batches}"
        raise UserError(too_few_groups(step, useful, self.settings.data.prompts_per_step, prompts, limit))

    # -- update

    def update(self, samples: Sequence[TrainSample], step: int, entropy_coef: float) -> dict[str, float]:
        """Go over the samples once, in ``updates_per_step`` optimizer steps, each with completions of any groups.

        Without samples, no step.
        """
        settings = self.settings
        rate = learning_rate_at(step - 1, settings.trainer.last_step(), settings.optim)
        set_learning_rate(self.optimizer, rate)
        order = np.random.default_rng([settings.data.seed, step, 1]).permutation(len(samples))
        parts = [part for part in np.array_split(order, settings.algorithm.updates_per_step) if len(part)]
        with self.clock("update_actor"):
            updates = [self.micro_batches([samples[row] for row in part]) for part in parts]
        if len(updates) > 1:  # with one update the old policy is the current one, and the ratio 1
            by_token = settings.algorithm.loss_aggregation == "token"
            sizes = [sum(len(samples[row].response_ids) for row in part) if by_token else len(part) for part in parts]
            with self.clock("old_log_prob"):
                self.compute_log_probs("old_logp_N", self.policy, updates, sizes)
        if self.reference is not None:
            with self.clock("ref"), without_adapters(self.reference):
                self.compute_log_probs("ref_logp_N", self.reference, updates)
        gap = RolloutGap()
        sums: list[dict[str, Tensor]] = []  # metrics of each micro-batch
        norms: list[float] = []  # of the gradient, for each optimizer step
        with self.clock("update_actor"):
            for batches in updates:
                sums += [self.backward(batch, entropy_coef, gap) for batch in batches]
                norms.append(self.optimizer_step(step))
        group = None if self.mesh is None else self.mesh["data"].get_group()
        metrics = update_metrics(sums, norms, gap, group, settings.algorithm.updates_per_step)
        if not math.isfinite(metrics.get("actor/pg_loss", 0.0)):
            raise UserError(f"step {step}: actor/pg_loss is not finite; the last checkpoint is kept; lower optim.lr")
        following = learning_rate_at(step, settings.trainer.last_step(), settings.optim)  # verl logs the next one
        return metrics | {"actor/lr": following, "actor/entropy_coef": entropy_coef}

    def micro_batches(self, samples: Sequence[TrainSample]) -> list[Batch]:
        """Return this rank's micro-batches of one update, the same number on every rank: passes are collective."""
        data, settings = self.mesh["data"] if self.mesh else None, self.settings
        return make_batches(
            samples,
            settings.algorithm.loss_aggregation,
            settings.rollout.max_tokens,
            settings.trainer.micro_batch_tokens,
            data_rank=data.get_local_rank() if data else 0,
            ranks=data.size() if data else 1,
        )

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def compute_log_probs(
        self, name: str, policy: Policy, updates: Sequence[Sequence[Batch]], sizes: Sequence[int] = ()
    ) -> None:
        """Add the log-probs by ``policy`` to all batches as ``name``, and with ``sizes`` parts of the step's entropy.

        That is aggregated as the loss, as verl's; ``sizes``: of the updates, in tokens or rows.
        """
        temperature = self.settings.rollout.temperature
        for number, batch in ((number, batch) for number, batches in enumerate(updates) for batch in batches):
            scores = policy(batch["tokens_BT"], batch["loss_mask_BT"], temperature, with_entropy=bool(sizes))
            batch[name] = scores[0]
            if sizes:
                batch["entropy"] = (batch["weight_N"] * scores[1]).sum() * (sizes[number] * len(sizes) / sum(sizes))

    def backward(self, batch: Batch, entropy_coef: float, gap: RolloutGap) -> dict[str, Tensor]:
        """Add up the gradients of a micro-batch's share of the loss, and ``gap``; return its shares of the metrics."""
        algorithm, weight_N, share_N = self.settings.algorithm, batch["weight_N"], batch["share_N"]
        logp_N, entropy_N = self.policy(batch["tokens_BT"], batch["loss_mask_BT"], self.settings.rollout.temperature)
        rollout_logp_N = batch["rollout_logp_N"]
        old_logp_N = batch.get("old_logp_N", logp_N.detach())  # one update a step: the ratio is 1
        loss_N, clipped_N = policy_loss(
            logp_N, old_logp_N, batch["advantage_N"], algorithm.clip_low, algorithm.clip_high
        )
        if algorithm.importance_cap is not None:
            loss_N = loss_N * importance_weight(old_logp_N, rollout_logp_N, algorithm.importance_cap)
        total_N = loss_N - entropy_coef * entropy_N
        metrics = {"pg_loss": (weight_N * loss_N).sum()}
        metrics["entropy"] = batch["entropy"] if "entropy" in batch else (weight_N * entropy_N).sum()
        if self.reference is not None:
            kl_N = kl_estimate(algorithm.kl, logp_N, batch["ref_logp_N"])
            total_N = total_N + algorithm.kl_coef * kl_N
            metrics["kl_loss"] = (weight_N * kl_N).sum()
        (weight_N * total_N).sum().backward()  # gradients add up over micro-batches and data ranks, see policy.shard
        metrics["pg_clipfrac"] = (share_N * clipped_N).sum()
        metrics["ppo_kl"] = (share_N * (old_logp_N - logp_N)).sum()
        gap.add(old_logp_N, rollout_logp_N, weight_N > 0)
        return {name: value.detach() for name, value in metrics.items()}

    def optimizer_step(self, step: int) -> float:
        """Update the weights and return the gradient norm. Raise UserError, before that, if it is not finite."""
        reduce_gradients(self.policy, self.mesh)
        norm = clip_gradients(trainable(self.policy), self.settings.optim.max_grad_norm)
        if not math.isfinite(norm):
            raise UserError(f"step {step}: actor/grad_norm is {norm}; the last checkpoint is kept; lower optim.lr")
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    # -- between steps

    def sync_weights(self) -> None:
        """Copy the policy's weights to the sampler; a server gets them at its next ``sample``. A collective call."""
        with self.clock("sync"):
            for bucket in weight_buckets(self.policy, self.settings.rollout.bucket_mb):
                self.sampler.load(bucket)

    def evaluate(self, step: int) -> dict[str, float]:
        """Sample as in training, record the score, and return accuracy and reasons by data source (level)."""
        problems = self.inputs.val_problems
        if not problems:
            return {}
        numbers = range(VALIDATION_SAMPLE, VALIDATION_SAMPLE - self.settings.trainer.eval_samples, -1)
        with self.clock("testing"):
            groups = self.worker.generate(problems, range(len(problems)), numbers)
        if self.report is not None:
            self.report.write_validation(step, problems, groups, self.inputs.tokenizer)
        scores = validation_metrics(problems, groups)
        if scores:
            self.folder.record_score(step, validation_score(scores))
        return validation_costs(groups, self.clock.seconds) | scores

    def log(self, row: Mapping[str, Any]) -> None:
        """Write metrics and a line of progress; on the first rank alone."""
        if self.report is not None:
            self.report.write(row)

    def save(self, step: int) -> None:
        """Write a checkpoint; older ones are deleted, see ``RunFolder.save``."""
        counts = on_every_rank(lambda: (self.worker.judges.judged, self.worker.judges.errors))
        judged, errors = map(sum, zip(*counts, strict=True))
        state = {"position": self.position, "judged": judged, "judge_errors": errors}
        self.folder.save(step, self.policy, self.optimizer, self.inputs.tokenizer, state=state, row=self.row)

    def restore(self, step: int) -> None:
        """Restore weights, optimizer, position and this rank's share of the judge's counts, as saved at ``step``."""
        state, self.row = self.folder.load(step, self.policy, self.optimizer)
        if not {"position", "judged", "judge_errors"} <= state.keys():
            checkpoint = self.folder.steps / f"global_step_{step}"
            raise UserError(f"{checkpoint}: of an earlier version; git checkout 10436686^ reads it, or --force")
        self.position, judges = state["position"], self.worker.judges
        judges.judged, judges.errors = (len(own_part(range(state[name]))) for name in ("judged", "judge_errors"))
        self.flops.restore(self.row)

    def close(self) -> None:
        self.worker.judges.close()
        if self.report is not None:
            self.report.close()
        self.sampler.close()


# ---- rollout: completions and their rewards


class RolloutWorker:
    """Samples completions and has them judged; each rank, tensor ranks too, samples a share, all get every group."""

    def __init__(self, settings: GrpoSettings, sampler: TokenSampler, tokenizer: Any, clock: Clock) -> None:
        self.settings, self.sampler, self.tokenizer, self.clock = settings, sampler, tokenizer, clock
        self.judges = settings.reward.judges()
        rollout = settings.rollout
        self.options = SamplingOptions(rollout.temperature, rollout.top_p, rollout.top_k, rollout.max_tokens)

    def generate(
        self, problems: Sequence[TokenizedProblem], positions: Sequence[int], sample_numbers: Sequence[int]
    ) -> list[PromptGroup]:
        """Return a completion of each problem for each of ``sample_numbers``, seeded by position and number.

        A collective call.
        """
        shares = on_every_rank(lambda: self._generate(own_part(problems), own_part(positions), sample_numbers))
        return [group for share in shares for group in share]

    def _generate(
        self, problems: Sequence[TokenizedProblem], positions: Sequence[int], sample_numbers: Sequence[int]
    ) -> list[PromptGroup]:
        repeated = [problem for problem in problems for _ in sample_numbers]
        seeds = completion_seeds(self.settings.rollout.seed, positions, sample_numbers)
        with self.clock("gen"):
            sampled = self.sampler.sample([problem.prompt_ids for problem in repeated], seeds, self.options)
        texts = self.tokenizer.batch_decode([completion.token_ids for completion in sampled], skip_special_tokens=True)
        completions = [replace(completion, text=text) for completion, text in zip(sampled, texts, strict=True)]
        with self.clock("reward"):
            verdicts = self.judges.judge([*map(TokenizedProblem.judge_input, repeated, completions)])
        groups, size = list[PromptGroup](), len(sample_numbers)
        for number, (place, problem) in enumerate(zip(positions, problems, strict=True)):
            rows = slice(number * size, (number + 1) * size)
            group = PromptGroup(
                position=place,
                prompt_ids=problem.prompt_ids,
                completions=completions[rows],
                rewards=[*map(self._reward, completions[rows], verdicts[rows])],
                correct=[verdict.reason is Reason.CORRECT for verdict in verdicts[rows]],
                metrics=[verdict.metrics for verdict in verdicts[rows]],
                reasons=[verdict.reason for verdict in verdicts[rows]],
            )
            groups.append(group)
        return groups

    def _reward(self, completion: Completion, verdict: Verdict) -> float | None:
        value = self.settings.reward.reward(verdict)
        if value is None:
            return None
        return value + self.settings.algorithm.penalty(completion.n_tokens, self.options.max_tokens)


# ---- advantages: one number for each completion, from rewards_GS and lengths_GS (in tokens)


def centred(rewards_GS: Tensor) -> Tensor:
    """Return rewards less the mean of their group; exactly 0 where all are equal, whose mean may be rounded."""
    equal_G1 = rewards_GS.amax(1, keepdim=True) == rewards_GS.amin(1, keepdim=True)
    return (rewards_GS - rewards_GS.mean(1, keepdim=True)).masked_fill(equal_G1, 0.0)


def grpo_advantage(rewards_GS: Tensor, _: Tensor) -> Tensor:
    """Return GRPO's advantages: (reward - group mean) / group standard deviation (unbiased); 0 if all are equal."""
    return centred(rewards_GS) / (rewards_GS.std(1, keepdim=True) + 1e-6)


def dr_grpo_advantage(rewards_GS: Tensor, _: Tensor) -> Tensor:
    """Return Dr. GRPO's advantages: not divided, which would favour groups that are nearly all right or all wrong."""
    return centred(rewards_GS)


def rloo_advantage(rewards_GS: Tensor, _: Tensor) -> Tensor:
    """Return RLOO's advantages: the baseline of a completion is the mean of the others' rewards."""
    size = rewards_GS.shape[1]
    return centred(rewards_GS) * size / (size - 1)


def raft_advantage(rewards_GS: Tensor, _: Tensor) -> Tensor:
    """Return RAFT's advantages: max(reward, 0). Completions with advantage 0 still count in the denominator."""
    return rewards_GS.clamp(min=0)


def reinforce_plus_plus_advantage(rewards_GS: Tensor, lengths_GS: Tensor) -> Tensor:
    """Return REINFORCE++'s advantages: the return (of each token alike) whitened over all tokens of the batch."""
    tokens = lengths_GS.sum()
    mean = (rewards_GS * lengths_GS).sum() / tokens
    variance = ((rewards_GS - mean).square() * lengths_GS).sum() / (tokens - 1).clamp(min=1)
    equal = rewards_GS.amax() == rewards_GS.amin()  # their mean may be rounded
    return ((rewards_GS - mean) * torch.rsqrt(variance + 1e-8)).masked_fill(equal, 0.0)


def reinforce_plus_plus_baseline_advantage(rewards_GS: Tensor, lengths_GS: Tensor) -> Tensor:
    """Return REINFORCE++'s advantages of the rewards less their group's mean."""
    return reinforce_plus_plus_advantage(dr_grpo_advantage(rewards_GS, lengths_GS), lengths_GS)


# One more is a line here, its name in Advantage (grpo_settings.py) and, for engine=verl, in train/verl/configure.py.
ADVANTAGES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "grpo": grpo_advantage,
    "dr_grpo": dr_grpo_advantage,
    "rloo": rloo_advantage,
    "raft": raft_advantage,
    "reinforce_plus_plus": reinforce_plus_plus_advantage,
    "reinforce_plus_plus_baseline": reinforce_plus_plus_baseline_advantage,
}


def to_samples(groups: Sequence[PromptGroup], kind: str) -> list[TrainSample]:
    """Return the completions that have tokens, with their advantages by the estimator ``kind``."""
    if not groups:
        return []
    rewards_GS = torch.tensor([group.rewards for group in groups], dtype=torch.float32)
    lengths_GS = torch.tensor([[completion.n_tokens for completion in group.completions] for group in groups])
    advantage_GS = ADVANTAGES[kind](rewards_GS, lengths_GS).tolist()
    return [
        TrainSample(group.prompt_ids, list(completion.token_ids), list(completion.log_probs), value)
        for group, values in zip(groups, advantage_GS, strict=True)
        for completion, value in zip(group.completions, values, strict=True)
        if completion.token_ids
    ]


# ---- micro-batches


def make_batches(
    samples: Sequence[TrainSample], aggregation: str, max_tokens: int, budget: int, data_rank: int = 0, ranks: int = 1
) -> list[Batch]:
    """Return one data rank's micro-batches of an update, of at most ``budget`` tokens with padding."""
    lengths_B = torch.tensor([len(sample.response_ids) for sample in samples])
    weights = token_weights(lengths_B, aggregation, max_tokens).tolist()
    share = 1 / max(int(lengths_B.sum()), 1)
    rounds = pack_rows(list(map(len, samples)), budget, ranks)
    parts = [batches[data_rank] for batches in rounds]
    return [to_batch([samples[row] for row in rows], [weights[row] for row in rows], share) for rows in parts]


def token_weights(lengths_B: Tensor, aggregation: str, max_tokens: int) -> Tensor:
    """Return what one token of each row weighs, so that the loss is a plain weighted sum over all rows of an update.

    ``token``: mean over tokens (DAPO). ``sequence``: mean over rows of the mean over their tokens (GRPO).
    ``dr_grpo``: sum over tokens / (rows × ``max_tokens``), so that length has no influence. Every row has a token.
    """
    ones_B, rows = torch.ones(len(lengths_B)), len(lengths_B)
    if aggregation == "token":
        return ones_B / lengths_B.sum()
    if aggregation == "sequence":
        return ones_B / (lengths_B * rows)
    return ones_B / (rows * max_tokens)


def pack_rows(lengths: Sequence[int], budget: int, ranks: int) -> list[list[list[int]]]:
    """Return rounds of one micro-batch (row numbers) for each rank; rows of like length share one.

    A micro-batch has at most ``budget`` tokens with padding, or one row that is longer.
    """
    # No more than a rank's share of all tokens and one row, so that few ranks are left without rows.
    budget = min(budget, sum(lengths) // ranks + max(lengths, default=0))
    batches: list[list[int]] = []
    width = 0
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row], reverse=True):
        if not batches or width * (len(batches[-1]) + 1) > budget:
            batches.append([])
            width = lengths[row]
        batches[-1].append(row)
    batches += [[]] * (-len(batches) % ranks)  # the last round has one for every rank
    return [batches[first : first + ranks] for first in range(0, len(batches), ranks)]


def to_batch(samples: Sequence[TrainSample], weights: Sequence[float], share: float) -> Batch:
    """Return samples as tensors on the device; ``weights``: of a token of each in the loss, ``share``: in means."""
    if not samples:  # a rank without rows joins collective calls with a token of weight 0
        samples, weights, share = [TrainSample([0], [0], [0.0], 0.0)], [0.0], 0.0
    lengths_B = torch.tensor([len(sample.response_ids) for sample in samples])
    width = max(map(len, samples))
    padded = [(sample, [0] * (width - len(sample))) for sample in samples]
    advantage_B = torch.tensor([sample.advantage for sample in samples], dtype=torch.float32)
    weight_B = torch.tensor(weights, dtype=torch.float32)
    logps = [logp for sample in samples for logp in sample.rollout_log_probs]
    batch = {
        "tokens_BT": torch.tensor([sample.prompt_ids + sample.response_ids + padding for sample, padding in padded]),
        "loss_mask_BT": torch.tensor([sample.loss_mask() + padding for sample, padding in padded]),
        "advantage_N": advantage_B.repeat_interleave(lengths_B),
        "weight_N": weight_B.repeat_interleave(lengths_B),
        "share_N": torch.full((int(lengths_B.sum()),), share),
        "rollout_logp_N": torch.tensor(logps, dtype=torch.float32),
    }
    return {name: tensor.to(device()) for name, tensor in batch.items()}


# ---- losses: one number for each token


def policy_loss(
    logp_N: Tensor, old_logp_N: Tensor, advantage_N: Tensor, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """Return PPO's clipped surrogate, its bounds separate (DAPO's clip-higher), and which tokens its bounds clip."""
    ratio_N = (logp_N - old_logp_N).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    gain_N, clipped_gain_N = ratio_N * advantage_N, ratio_N.clamp(1 - clip_low, 1 + clip_high) * advantage_N
    return -torch.minimum(gain_N, clipped_gain_N), clipped_gain_N < gain_N


def importance_weight(old_logp_N: Tensor, rollout_logp_N: Tensor, cap: float) -> Tensor:
    """Return truncated importance sampling: p(token) of the trainer over that of the sampler, at most ``cap``."""
    return (old_logp_N - rollout_logp_N).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp().clamp(max=cap)


def kl_estimate(kind: str, logp_N: Tensor, ref_logp_N: Tensor) -> Tensor:
    """Return Schulman's estimator k1, k2 or k3 of KL(policy || reference) for each sampled token; k3 capped at 10."""
    difference_N = logp_N - ref_logp_N
    if kind == "k1":
        return difference_N
    if kind == "k2":
        return 0.5 * difference_N.square()
    back_N = (-difference_N).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return (back_N.exp() - back_N - 1).clamp(max=10.0)


if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its names would hide those of packages. train_grpo checks, then calls train above
    from compositionality.config.cli import run
    from compositionality.train.engines import show_verl, train_grpo

    run(GrpoSettings, train_grpo, __doc__, show_verl)
