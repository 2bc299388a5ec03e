"""GRPO in one file: rollout, advantage, loss, update. The model, its mesh and its optimizer are in ``policy.py``.

Read ``GrpoTrainer.run`` first: it is the loop. Above it, what it is made of: rollouts and rewards, advantages and
losses (one formula, one function), the batch cut into micro-batches. ``train/README.md`` names the papers.

    python compositionality/train/grpo.py model.path=… data.train_files=[…] trainer.output=…
    torchrun --standalone --nproc_per_node=4 compositionality/train/grpo.py mesh.tensor=2 …

Names of tensors: B samples, T tokens, N response tokens of a batch, G groups, S samples of a group.
"""

# ruff: noqa: N803, N806

import contextlib
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from compositionality.data.artefact import exclusive
from compositionality.data.json_files import read_json_object
from compositionality.data.problems import row_at
from compositionality.errors import UserError
from compositionality.reward.controls import replace_rewards, shape_of
from compositionality.reward.shapes import reward
from compositionality.rollout.engines.base import SamplingOptions, request_seed
from compositionality.rollout.model_folder import resolve_model
from compositionality.train.checkpoint import MODEL_FOLDER, load_checkpoint, save_checkpoint, weight_buckets
from compositionality.train.dist import (
    device,
    memory_metrics,
    on_every_rank,
    on_first_rank,
    rank,
    start_processes,
)
from compositionality.train.grpo_inputs import read_grpo_inputs
from compositionality.train.grpo_report import Report, n_tokens, new_meter, rollout_metrics, speeds
from compositionality.train.grpo_settings import AlgorithmSettings, GrpoSettings, check_settings, make_recipe
from compositionality.train.log import Clock
from compositionality.train.lora import trainable
from compositionality.train.metrics import (
    DAMAGED,
    ENTROPY,
    EVALUATED_TOKENS,
    NO_SIGNAL,
    ROLLOUT_ENTROPY,
    STEP_ROW,
    UPDATES,
)
from compositionality.train.policy import (
    Policy,
    clip_gradients,
    learning_rate_at,
    load_model,
    new_optimizer,
    reduce_gradients,
    set_learning_rate,
    shard,
)
from compositionality.train.prompts import TokenizedProblem, refill_size, too_few_groups
from compositionality.train.run_folder import (
    complete_steps,
    folder,
    is_finished,
    prune,
    prune_all_but_best,
    publish_models,
    record_score,
    resume,
)
from compositionality.types import Completion, PromptGroup, Reason, TrainSample, Verdict

VALIDATION = -1  # number of the completion in validation: seeds of its own
LONGEST_LOG_RATIO = 20.0
SMALLEST_ADVANTAGE = 1e-6  # what is less is rounding


# ---- rollout: completions and their rewards


def overlong_penalty(length: int, settings: AlgorithmSettings, max_tokens: int) -> float:
    """DAPO: from 0 down to -penalty, linearly, over the last ``overlong_buffer`` tokens that are allowed."""
    if not settings.overlong_buffer:
        return 0.0
    over = length - (max_tokens - settings.overlong_buffer)
    return -settings.overlong_penalty * min(max(over / settings.overlong_buffer, 0.0), 1.0)


class RolloutWorker:
    """Samples completions and has them judged; each rank does a share of the problems, all get every group."""

    def __init__(self, settings: GrpoSettings, sampler: Any, tokenizer: Any, clock: Clock) -> None:
        self.settings, self.sampler, self.tokenizer, self.clock = settings, sampler, tokenizer, clock
        self.judges = settings.reward.judges()
        rollout = settings.rollout
        self.options = SamplingOptions(rollout.temperature, rollout.top_p, rollout.top_k, rollout.max_tokens)

    def generate(
        self, problems: Sequence[TokenizedProblem], positions: Sequence[int], samples: Sequence[int], step: int
    ) -> list[PromptGroup]:
        """A completion of each problem for each number in ``samples``; the seed is a function of position and number.

        A collective call.
        """
        world = dist.get_world_size() if dist.is_initialized() else 1
        mine = slice(*(len(problems) * share // world for share in (rank(), rank() + 1)))
        shares = on_every_rank(lambda: self._generate(problems[mine], positions[mine], samples, step))
        return [group for share in shares for group in share]

    def _generate(
        self, problems: Sequence[TokenizedProblem], positions: Sequence[int], samples: Sequence[int], step: int
    ) -> list[PromptGroup]:
        repeated = [problem for problem in problems for _ in samples]
        seeds = [request_seed(self.settings.rollout.seed, place, number) for place in positions for number in samples]
        with self.clock("gen"):
            sampled = self.sampler.sample([problem.prompt_ids for problem in repeated], seeds, self.options)
        texts = self.tokenizer.batch_decode([one.token_ids for one in sampled], skip_special_tokens=True)
        completions = [replace(one, text=text) for one, text in zip(sampled, texts, strict=True)]
        with self.clock("reward"):
            verdicts = self.judges.judge([*map(TokenizedProblem.judge_input, repeated, completions)])
        rewards = [*map(self._reward, completions, verdicts)]
        correct = [verdict.reason is Reason.CORRECT for verdict in verdicts]
        metrics = [verdict.metrics for verdict in verdicts]
        own = [slice(start, start + len(samples)) for start in range(0, len(repeated), len(samples))]
        return [
            PromptGroup(place, step, problem.prompt_ids, completions[part], rewards[part], correct[part], metrics[part])
            for place, problem, part in zip(positions, problems, own, strict=True)
        ]

    def _reward(self, completion: Completion, verdict: Verdict) -> float | None:
        value = reward(verdict, shape_of(self.settings.reward.control, self.settings.reward.shape))
        if value is None:
            return None
        return value + overlong_penalty(completion.n_tokens, self.settings.algorithm, self.options.max_tokens)


# ---- advantages: one number for each completion, from rewards_GS (groups, samples)


def grpo_advantage(rewards_GS: Tensor) -> Tensor:
    """GRPO: (reward - group mean) / group standard deviation (unbiased); 0 where all rewards are equal."""
    centred_GS = rewards_GS - rewards_GS.mean(1, keepdim=True)
    return centred_GS / (rewards_GS.std(1, keepdim=True) + 1e-6)


def dr_grpo_advantage(rewards_GS: Tensor) -> Tensor:
    """Dr. GRPO: not divided by the deviation, which favours groups that are nearly all right or all wrong."""
    return rewards_GS - rewards_GS.mean(1, keepdim=True)


def rloo_advantage(rewards_GS: Tensor) -> Tensor:
    """RLOO: the baseline of a completion is the mean of the others' rewards."""
    samples = rewards_GS.shape[1]
    return (rewards_GS - rewards_GS.mean(1, keepdim=True)) * samples / (samples - 1)


def raft_advantage(rewards_GS: Tensor) -> Tensor:
    """RAFT: right completions alone, all with one weight, whatever the rest of their group is."""
    return rewards_GS.clamp(min=0)


def reinforce_plus_plus_advantage(rewards_GS: Tensor, lengths_GS: Tensor) -> Tensor:
    """REINFORCE++: the return (of each token alike) whitened over all tokens of the batch."""
    tokens = lengths_GS.sum()
    mean = (rewards_GS * lengths_GS).sum() / tokens
    variance = ((rewards_GS - mean).square() * lengths_GS).sum() / (tokens - 1).clamp(min=1)
    return (rewards_GS - mean) * torch.rsqrt(variance + 1e-8)


def advantages(kind: str, rewards_GS: Tensor, lengths_GS: Tensor) -> Tensor:
    """The advantage of each completion, by the estimator ``kind``."""
    if kind == "reinforce_plus_plus":
        return reinforce_plus_plus_advantage(rewards_GS, lengths_GS)
    if kind == "reinforce_plus_plus_baseline":
        return reinforce_plus_plus_advantage(dr_grpo_advantage(rewards_GS), lengths_GS)
    own = {"grpo": grpo_advantage, "dr_grpo": dr_grpo_advantage, "rloo": rloo_advantage, "raft": raft_advantage}
    return own[kind](rewards_GS)


# ---- losses: one number for each token; how much each token weighs


def policy_loss(logp_N: Tensor, old_N: Tensor, advantage_N: Tensor, clip_low: float, clip_high: float) -> Tensor:
    """PPO's clipped surrogate for each token, with separate lower and upper bounds (DAPO's clip-higher)."""
    ratio_N = (logp_N - old_N).clamp(-LONGEST_LOG_RATIO, LONGEST_LOG_RATIO).exp()
    clipped_N = ratio_N.clamp(1 - clip_low, 1 + clip_high)
    return -torch.minimum(ratio_N * advantage_N, clipped_N * advantage_N)


def importance_weight(old_N: Tensor, sampler_N: Tensor, cap: float) -> Tensor:
    """Truncated importance sampling: p(token) of the trainer over that of the sampler, at most ``cap``."""
    return (old_N - sampler_N).clamp(-LONGEST_LOG_RATIO, LONGEST_LOG_RATIO).exp().clamp(max=cap)


def kl_estimate(kind: str, logp_N: Tensor, reference_N: Tensor) -> Tensor:
    """Schulman's estimators k1, k2, k3 of KL(policy || reference) for each sampled token."""
    difference_N = logp_N - reference_N
    if kind == "k1":
        return difference_N
    if kind == "k2":
        return 0.5 * difference_N.square()
    back_N = (-difference_N).clamp(-LONGEST_LOG_RATIO, LONGEST_LOG_RATIO)
    return (back_N.exp() - back_N - 1).clamp(max=10.0)


def entropy_weight(settings: AlgorithmSettings, wanted: float, found: float) -> float:
    """The weight of the entropy that leads it to ``wanted``: negative where it is too high."""
    return settings.entropy_coef * (wanted - found)


def token_weights(lengths_B: Tensor, aggregation: str, max_tokens: int) -> Tensor:
    """What one token of each row weighs, so that the loss is a plain weighted sum over the global batch.

    ``token``: mean over tokens (DAPO). ``sequence``: mean over rows of the mean over their tokens (GRPO).
    ``dr_grpo``: sum over tokens by rows × ``max_tokens``, so that length has no influence. Empty rows have weight 0.
    """
    rows = (lengths_B > 0).sum().clamp(min=1)
    if aggregation == "token":
        return (lengths_B > 0) / lengths_B.sum().clamp(min=1)
    if aggregation == "sequence":
        return (lengths_B > 0) / (lengths_B.clamp(min=1) * rows)
    return (lengths_B > 0) / (rows * max_tokens)


# ---- the batch, cut


def to_samples(groups: Sequence[PromptGroup], step: int, advantage: str) -> list[TrainSample]:
    """The completions with their advantages; those of an earlier step keep the sampler's log-probs as the old ones."""
    if not groups:
        return []
    rewards_GS = torch.tensor([group.rewards for group in groups], dtype=torch.float32)
    lengths_GS = torch.tensor([[completion.n_tokens for completion in group.completions] for group in groups])
    advantage_GS = advantages(advantage, rewards_GS, lengths_GS).tolist()
    return [
        to_sample(group, completion, value, fresh=group.step == step)
        for group, values in zip(groups, advantage_GS, strict=True)
        for completion, value in zip(group.completions, values, strict=True)
        if completion.n_tokens
    ]


def to_sample(group: PromptGroup, completion: Completion, advantage: float, *, fresh: bool) -> TrainSample:
    """One completion for the update."""
    log_probs = list(completion.log_probs)
    old_log_probs = None if fresh else log_probs
    return TrainSample(group.prompt_ids, list(completion.token_ids), log_probs, advantage, fresh, old_log_probs)


def set_loss_weights(samples: Sequence[TrainSample], aggregation: str, max_tokens: int) -> None:
    """Set what a token of each sample weighs in the loss, and its share of all tokens (for means)."""
    lengths_B = torch.tensor([len(sample.response_ids) for sample in samples])
    weights = token_weights(lengths_B, aggregation, max_tokens).tolist()
    for sample, weight in zip(samples, weights, strict=True):
        sample.loss_weight, sample.token_share = weight, 1 / int(lengths_B.sum())


def micro_batches(samples: Sequence[TrainSample], budget: int, ranks: int) -> list[list[list[TrainSample]]]:
    """Rounds of one batch for each rank: samples of like length, at most ``budget`` tokens with padding (or one)."""
    budget = min(budget, sum(map(len, samples)) // ranks + max(map(len, samples), default=0))
    batches: list[list[TrainSample]] = []
    width = 0
    for sample in sorted(samples, key=len, reverse=True):
        if not batches or width * (len(batches[-1]) + 1) > budget:
            batches.append([])
            width = len(sample)
        batches[-1].append(sample)
    batches += [[]] * (-len(batches) % ranks)
    return [batches[first : first + ranks] for first in range(0, len(batches), ranks)]


class Batch:
    """Samples as tensors on the device: ``tokens_BT``, ``loss_mask_BT`` padded at the ends, the others flat over N."""

    def __init__(self, samples: Sequence[TrainSample]) -> None:
        self.samples = samples or [TrainSample([0], [0], [0.0])]  # a rank without any still joins collective calls
        width = max(map(len, self.samples))
        padded = [[0] * (width - len(sample)) for sample in self.samples]
        both = [*zip(self.samples, padded, strict=True)]
        tokens = [sample.prompt_ids + sample.response_ids + padding for sample, padding in both]
        self.tokens_BT = torch.tensor(tokens, device=device())
        self.loss_mask_BT = torch.tensor([sample.loss_mask() + padding for sample, padding in both], device=device())
        self.lengths_B = torch.tensor([len(sample.response_ids) for sample in self.samples], device=device())
        self.rollout_logp_N = self.flat([sample.rollout_log_probs for sample in self.samples])

    def spread(self, values: Sequence[float]) -> Tensor:
        """One value for each sample → one for each token."""
        return torch.tensor(values, dtype=torch.float32, device=device()).repeat_interleave(self.lengths_B)

    def flat(self, values: Sequence[Sequence[float]]) -> Tensor:
        """One list for each sample → one tensor."""
        return torch.tensor([value for row in values for value in row], dtype=torch.float32, device=device())

    def old_log_probs(self, logp_N: Tensor) -> Tensor:
        """Log-probs of the old policy: the present one's, ``logp_N``, unless the sample has others."""
        old = [sample.old_log_probs for sample in self.samples]
        if all(values is None for values in old):
            return logp_N
        known_N = self.flat([s.old_log_probs or [0.0] * len(s.response_ids) for s in self.samples])
        return torch.where(self.spread([values is None for values in old]).bool(), logp_N, known_N)


# ---- the run


class GrpoTrainer:
    """A run of GRPO: its state between steps, one step, validation and checkpoints."""

    def __init__(self, settings: GrpoSettings, mesh: DeviceMesh | None) -> None:
        self.settings, self.mesh = settings, mesh
        self.out = Path(settings.trainer.output)
        self.steps = self.out / "steps"
        inputs = read_grpo_inputs(settings)
        assert inputs is not None, "a dry run trains nothing"
        self.tokenizer = inputs.model.tokenizer
        self.problems, self.val_problems = inputs.problems, inputs.val_problems
        self.policy = self.load(entropy_gradient=settings.algorithm.entropy_coef != 0)
        self.reference = None if settings.algorithm.kl == "none" else self.load().requires_grad_(False)
        self.optimizer = new_optimizer(self.policy, settings.optim)
        self.clock = Clock()
        self.sampler = new_sampler(settings, self.policy.model.config, inputs.model.eos_ids)
        self.rollout = RolloutWorker(settings, self.sampler, self.tokenizer, self.clock)
        self.position, self.signal_share, self.surplus = 0, 1.0, list[PromptGroup]()
        self.entropies, self.entropy_coef = inputs.entropies, settings.algorithm.entropy_coef
        self.row: dict[str, Any] = {}
        self.compute = new_meter(self.policy.named_parameters(), settings.algorithm)
        self.report: Report | None = None

    def load(self, *, entropy_gradient: bool = False) -> Policy:
        """The model that the run starts from, on the mesh."""
        model = self.settings.model
        return shard(load_model(model), self.mesh, self.settings.mesh, model.dtype, entropy_gradient=entropy_gradient)

    def run(self, first: int) -> None:
        """Train from the checkpoint of step ``first`` (0: the start) to the last step."""
        settings = self.settings
        self.report = Report(self.out, settings.trainer, first, asdict(settings)) if rank() == 0 else None
        if first:
            self.restore(first)
        self.sync_weights()
        if not first:
            self.log({"step": 0, **self.compute.add(self.evaluate(0))})
        step = first
        while not self.is_over(step):
            step += 1
            self.clock.seconds.clear()
            with self.clock("step"):
                groups, metrics = self.collect(step)  # rollout and reward
                samples = to_samples(groups, step, settings.algorithm.advantage)  # advantage
                if self.entropies:
                    self.entropy_coef = entropy_weight(
                        settings.algorithm, self.entropies[step - 1], metrics[ROLLOUT_ENTROPY]
                    )
                metrics |= self.update(samples, step)  # loss and update
                self.sync_weights()  # the sampler gets the new weights
            metrics |= speeds(self.clock.seconds, metrics) | memory_metrics()
            if settings.trainer.eval_every and self.is_due(step, settings.trainer.eval_every):
                metrics |= self.evaluate(step)
            self.row = {"step": step, **self.compute.add(metrics)}
            if self.is_due(step, settings.trainer.save_every):
                self.save(step)
            self.log(self.row, groups)

    def collect(self, step: int) -> tuple[list[PromptGroup], dict[str, float]]:
        """The groups of this step, those without signal left out, and metrics of all that were sampled.

        With dynamic sampling, prompts are sampled until the batch is full (UserError if that takes too many) and
        surplus groups are kept for the next step.
        """
        data, algorithm, by_reward = self.settings.data, self.settings.algorithm, self.settings.reward.by_reward()
        position, share, kept, sampled = self.position, self.signal_share, list(self.surplus), list[PromptGroup]()
        limit = algorithm.max_generation_batches if algorithm.dynamic_sampling else 1
        while len(kept) < data.prompts_per_step and limit > 0:
            prompts = data.prompts_per_step
            if algorithm.dynamic_sampling:
                prompts = refill_size(prompts - len(kept), share, largest=prompts)
            groups = self.sample(position, prompts, step)
            drops = algorithm.drops_equal_groups()
            useful = [g for g in groups if g.is_judged() and (not drops or g.has_signal(by_reward=by_reward))]
            position, share, limit = position + prompts, len(useful) / len(groups), limit - 1
            kept, sampled = kept + useful, sampled + groups
        if algorithm.dynamic_sampling and len(kept) < data.prompts_per_step:
            self.stop_without_signal(step, len(kept), len(sampled))
        self.position, self.signal_share = position, share
        batch, self.surplus = kept[: data.prompts_per_step], kept[data.prompts_per_step :]
        metrics = rollout_metrics(sampled, batch, by_reward=by_reward)
        return batch, metrics | {"training/filter_groups/surplus": len(self.surplus)}

    def stop_without_signal(self, step: int, kept: int, prompts: int) -> NoReturn:
        """UserError, after the state before ``step`` is saved."""
        if step > 1 and step - 1 not in complete_steps(self.steps):
            self.save(step - 1)
        limit = f"algorithm.max_generation_batches={self.settings.algorithm.max_generation_batches}"
        raise UserError(too_few_groups(step, kept, self.settings.data.prompts_per_step, prompts, limit))

    def sample(self, position: int, prompts: int, step: int) -> list[PromptGroup]:
        """Groups for the next ``prompts`` prompts of the stream, from ``position`` on."""
        rollout, data, count = self.settings.rollout, self.settings.data, len(self.problems)
        positions = range(position, position + prompts)
        problems = [self.problems[row_at(place, count, data.seed, shuffle=data.shuffle)] for place in positions]
        groups = self.rollout.generate(problems, positions, range(rollout.n), step)
        replace_rewards(self.settings.reward.control, groups, (rollout.seed, position))
        return groups

    def update(self, samples: list[TrainSample], step: int) -> dict[str, float]:
        """One pass over the samples in ``updates_per_step`` optimizer steps (none without samples); its metrics."""
        settings, sums = self.settings, list[dict[str, Tensor]]()
        rate = learning_rate_at(step - 1, settings.trainer.last_step(), settings.optim)
        set_learning_rate(self.optimizer, rate)
        order = np.random.default_rng([settings.data.seed, step, 1]).permutation(len(samples))
        parts = [part for part in np.array_split(order, settings.algorithm.updates_per_step) if len(part)]
        norms: list[float] = []
        with self.clock("update_actor"):
            plans = [self.plan([samples[place] for place in part]) for part in parts]
            if len(plans) > 1:
                self.compute_log_probs(self.policy, plans, "old_log_probs")
            if self.reference is not None:
                self.compute_log_probs(self.reference, plans, "ref_log_probs")
            for plan in plans:
                sums += [self.backward(batch, first=plan is plans[0]) for batch in plan]
                norms.append(self.optimizer_step(step))
        metrics = self.update_metrics(sums, norms)
        if not math.isfinite(metrics.get("actor/pg_loss", 0.0)):
            raise UserError(f"step {step}: actor/pg_loss is not finite; the last checkpoint is kept; lower optim.lr")
        signal = any(abs(sample.advantage) > SMALLEST_ADVANTAGE for sample in samples)
        counts = {UPDATES: len(norms) or settings.algorithm.updates_per_step, NO_SIGNAL: int(not signal)}
        return metrics | counts | {"actor/lr": rate}

    def plan(self, samples: list[TrainSample]) -> list[Batch]:
        """This rank's micro-batches of one update; every rank makes the same plan, so that none waits for another."""
        set_loss_weights(samples, self.settings.algorithm.loss_aggregation, self.settings.rollout.max_tokens)
        ranks, mine = (self.mesh["data"].size(), self.mesh["data"].get_local_rank()) if self.mesh else (1, 0)
        rounds = micro_batches(samples, self.settings.trainer.micro_batch_tokens, ranks)
        return [Batch(batches[mine]) for batches in rounds]

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def compute_log_probs(self, policy: Policy, plans: list[list[Batch]], name: str) -> None:
        """Set ``name`` (``old_log_probs`` or ``ref_log_probs``) by ``policy`` in the samples where it is None."""
        for batch in (batch for plan in plans for batch in plan):
            logp_N, _ = policy(batch.tokens_BT, batch.loss_mask_BT, self.settings.rollout.temperature)
            for sample, log_probs in zip(batch.samples, logp_N.split(batch.lengths_B.tolist()), strict=True):
                if getattr(sample, name) is None:
                    setattr(sample, name, log_probs.tolist())

    def backward(self, batch: Batch, first: bool) -> dict[str, Tensor]:
        """Add the gradients of one micro-batch's share of the loss; returns its shares of the metrics."""
        algorithm = self.settings.algorithm
        logp_N, entropy_N = self.policy(batch.tokens_BT, batch.loss_mask_BT, self.settings.rollout.temperature)
        old_N = batch.old_log_probs(logp_N.detach())
        advantage_N = batch.spread([sample.advantage for sample in batch.samples])
        weight_N = batch.spread([sample.loss_weight for sample in batch.samples])
        share_N = batch.spread([sample.token_share for sample in batch.samples])
        loss_N = policy_loss(logp_N, old_N, advantage_N, algorithm.clip_low, algorithm.clip_high)
        if algorithm.importance_cap is not None:
            loss_N = loss_N * importance_weight(old_N, batch.rollout_logp_N, algorithm.importance_cap)
        total_N = loss_N - self.entropy_coef * entropy_N
        metrics = {"actor/pg_loss": (weight_N * loss_N).sum(), ENTROPY: (share_N * entropy_N).sum()}
        if self.reference is not None:
            ref_N = batch.flat([sample.ref_log_probs or [0.0] for sample in batch.samples])
            kl_N = kl_estimate(algorithm.kl, logp_N, ref_N)
            total_N = total_N + algorithm.kl_coef * kl_N
            metrics["actor/kl_loss"] = (weight_N * kl_N).sum()
        (weight_N * total_N).sum().backward()
        ratio_N = (logp_N - old_N).detach().exp()
        outside_N = (ratio_N < 1 - algorithm.clip_low) | (ratio_N > 1 + algorithm.clip_high)
        metrics["actor/pg_clipfrac"] = (share_N * outside_N).sum()
        metrics["actor/ppo_kl"] = (share_N * (old_N - logp_N)).sum()
        fresh_N = batch.spread([sample.fresh and first for sample in batch.samples])
        metrics["actor/rollout_gap"] = ((logp_N - batch.rollout_logp_N).abs() * fresh_N).max()
        return {name: value.detach() for name, value in metrics.items()}

    def optimizer_step(self, step: int) -> float:
        """Update the weights; returns the gradient norm. UserError, before any update, if it is not finite."""
        reduce_gradients(self.policy, self.mesh)
        norm = clip_gradients(trainable(self.policy), self.settings.optim.max_grad_norm)
        if not math.isfinite(norm):
            raise UserError(f"step {step}: actor/grad_norm is {norm}; the last checkpoint is kept; lower optim.lr")
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def update_metrics(self, sums: Sequence[Mapping[str, Tensor]], norms: Sequence[float]) -> dict[str, float]:
        """Metrics of the whole batch: shares of all micro-batches and data ranks added up, means over updates."""
        if not sums:
            return {"actor/grad_norm": 0.0}
        gap = torch.stack([figures["actor/rollout_gap"] for figures in sums]).max()
        names = [name for name in sums[0] if name != "actor/rollout_gap"]
        totals = torch.stack([torch.stack([figures[name] for name in names]) for figures in sums]).sum(0)
        if self.mesh is not None:
            dist.all_reduce(totals, group=self.mesh["data"].get_group())
            dist.all_reduce(gap, dist.ReduceOp.MAX, group=self.mesh["data"].get_group())
        means = dict(zip(names, (totals / len(norms)).tolist(), strict=True))
        return {**means, "actor/rollout_gap": float(gap), "actor/grad_norm": sum(norms) / len(norms)}

    def sync_weights(self) -> None:
        """Copy the policy's weights to the sampler. A collective call."""
        with self.clock("sync"):
            for bucket in weight_buckets(self.policy, self.settings.rollout.bucket_mb):
                self.sampler.load(bucket)

    def evaluate(self, step: int) -> dict[str, float]:
        """Accuracy on the validation files by data source (level), one completion of each problem."""
        if not self.val_problems:
            return {}
        training = dict(self.clock.seconds)
        with self.clock("testing"):
            groups = self.rollout.generate(self.val_problems, range(len(self.val_problems)), (VALIDATION,), step)
        self.clock.seconds = training | {"testing": self.clock.seconds["testing"]}
        correct: dict[str, list[bool]] = {}
        for problem, group in zip(self.val_problems, groups, strict=True):
            correct.setdefault(problem.data_source, []).extend(group.correct)
        accuracy = {source: sum(values) / len(values) for source, values in sorted(correct.items())}
        if rank() == 0:
            record_score(self.steps, step, sum(accuracy.values()) / len(accuracy))
        tokens = {EVALUATED_TOKENS: n_tokens(groups), "timing_s/testing": self.clock.seconds["testing"]}
        return tokens | {f"val-core/{source}/acc/mean@1": share for source, share in accuracy.items()}

    def is_due(self, step: int, every: int) -> bool:
        """True every so many steps (0: never) and after the last."""
        return self.is_over(step) or (every > 0 and step % every == 0)

    def is_over(self, step: int) -> bool:
        """Whether ``step``, whose problems have been asked, was the last."""
        return self.settings.is_over(step, self.position, len(self.problems))

    def log(self, row: Mapping[str, Any], groups: Sequence[PromptGroup] = ()) -> None:
        """Write metrics, a line of progress, and now and then some completions; on the first rank alone."""
        if self.report is None:
            return
        self.report.write(row)
        every = self.settings.trainer.samples_every
        if groups and every and row["step"] % every == 0:
            self.report.write_samples(row["step"], groups, self.tokenizer)

    def save(self, step: int) -> None:
        """Write a checkpoint; complete ones that are neither among the last nor the best are deleted."""
        state = {
            "position": self.position,
            "signal_share": self.signal_share,
            "surplus": [asdict(group) for group in self.surplus],
        }
        save_checkpoint(self.steps, step, self.policy, self.optimizer, self.tokenizer, state=state, row=self.row)
        if rank() == 0:
            delete = prune_all_but_best if self.settings.trainer.keep_best else prune
            delete(self.steps, self.settings.trainer.keep)

    def restore(self, step: int) -> None:
        """Restore weights, optimizer, position in the prompts and surplus groups from the checkpoint of ``step``."""
        state = load_checkpoint(folder(self.steps, step), self.policy, self.optimizer)
        self.position, self.signal_share = state["position"], state["signal_share"]
        self.surplus = [
            PromptGroup(**{**group, "completions": [Completion(**one) for one in group["completions"]]})
            for group in state["surplus"]
        ]
        self.row = read_json_object(folder(self.steps, step) / STEP_ROW, DAMAGED)
        self.compute.restore(self.row)

    def close(self) -> None:
        """End the judges' processes and close the report."""
        self.rollout.judges.close()
        if self.report is not None:
            self.report.close()


# ---- start and end


def new_sampler(settings: GrpoSettings, config: Any, eos_ids: Sequence[int]) -> Any:
    """The rollout engine of ``rollout.engine``."""
    if settings.rollout.engine == "builtin":
        from compositionality.rollout.sampler.sampler import Sampler

        dtype = getattr(torch, settings.model.dtype)
        return Sampler(config, eos_ids, device=device(), dtype=dtype, max_rows=settings.rollout.max_rows)
    from compositionality.train.samplers import open_sampler

    path, longest = Path(settings.model.path), settings.data.max_prompt_tokens
    return open_sampler(settings.rollout, path, eos_ids, device(), longest, settings.model.dtype)


def train(settings: GrpoSettings, *, force: bool = False) -> Path:
    """Train, or continue a run that was killed; returns the run folder. ``force`` starts over.

    UserError for settings, files or a model that do not fit, and for a loss that is not finite.
    """
    check_settings(settings)
    out = Path(settings.trainer.output)
    mesh = start_processes(settings.mesh, settings.trainer.threads)
    model = on_first_rank(lambda: resolve_model(settings.model.path))
    settings = replace(settings, model=replace(settings.model, path=str(model)))
    recipe = make_recipe(settings)
    if on_first_rank(lambda: is_finished(out / "final", recipe, force=force)):
        return out
    with contextlib.ExitStack() as held:
        on_first_rank(lambda: held.enter_context(exclusive(out)))
        trainer = GrpoTrainer(settings, mesh)
        held.callback(trainer.close)
        trainer.run(on_first_rank(lambda: resume(out, recipe, force=force)))
        on_first_rank(lambda: publish_models(out, recipe, copy_model, keep_best=settings.trainer.keep_best))
    return out


def copy_model(checkpoint: Path, target: Path) -> dict[str, Any]:
    """Copy the model folder that every checkpoint holds."""
    shutil.copytree(checkpoint / MODEL_FOLDER, target)
    return {}


if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its names would hide those of packages
    from compositionality.config.cli import run
    from compositionality.train.engines import show_verl, train_grpo

    run(GrpoSettings, train_grpo, __doc__, show_verl)
