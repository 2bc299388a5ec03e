"""GRPO in one file: rollout, advantage, loss, update. The model, its mesh and its optimizer are in ``policy.py``.

Read ``GrpoTrainer.run`` first: it is the loop. Above it, what it is made of: rollouts and rewards, advantages and
losses (one formula, one function), the batch cut into micro-batches. ``train/README.md`` names the papers.

    python compositionality/train/grpo.py CONFIG.yaml model.path=… data.train_files=[…] trainer.output=…
    torchrun --standalone --nproc_per_node=4 compositionality/train/grpo.py CONFIG.yaml mesh.tensor=2 …

Names of tensors: B rows, T tokens, D width, V vocabulary (this rank's slice of it), N response tokens of a batch.
"""

# ruff: noqa: N803, N806

import contextlib
import json
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from omegaconf import OmegaConf
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from compositionality.data.artefact import Recipe, exclusive, is_done, new_artefact
from compositionality.errors import UserError
from compositionality.reward.pool import Item, JudgePool
from compositionality.reward.shapes import reward
from compositionality.rollout.engines.base import SamplingOptions, request_seed
from compositionality.rollout.model_folder import check_model
from compositionality.train.common.checkpoints import best_step, folder, mend, record_score, scores, sealed_steps
from compositionality.train.common.command import die_with_parent, on_first_rank, read_settings, run_in_one_line
from compositionality.train.common.metrics import STEP_ROW
from compositionality.train.common.processes import device, on_every_rank, rank, start_processes, stop_processes
from compositionality.train.common.prompt_stream import Question, place_in_file, read_questions
from compositionality.train.common.run_folder import claim, latest_step, prune
from compositionality.train.common.saving import MODEL_FOLDER, load_checkpoint, save_checkpoint, weight_buckets
from compositionality.train.grpo_report import Clock, Report, rollout_metrics, speeds
from compositionality.train.grpo_settings import (
    AlgorithmSettings,
    GrpoSettings,
    check_positions,
    check_settings,
    make_recipe,
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
from compositionality.types import STOP, Completion, Reason, Verdict

HEADROOM = 1.25  # a generation batch asks for some more prompts than the share of groups with signal would need
LONGEST_LOG_RATIO = 20.0


# ---- rollout: questions, answers, rewards


@dataclass
class Answer:
    """One sampled answer; ``logps`` of its tokens as the sampler saw them; ``reward`` None: the judge failed."""

    tokens: list[int]
    logps: list[float]
    finished: bool
    reward: float | None
    correct: bool


@dataclass
class Group:
    """All answers to one prompt, sampled in step ``step``; ``position`` is its place in the stream of prompts."""

    position: int
    step: int
    prompt: list[int]
    answers: list[Answer]

    def has_signal(self) -> bool:
        """True if some answers are correct and some are not: equal ones say nothing about each other."""
        return 0 < sum(answer.correct for answer in self.answers) < len(self.answers)

    def judged(self) -> bool:
        """False if the judge failed on an answer: the others would be a biased sample."""
        return all(answer.reward is not None for answer in self.answers)


def overlong_penalty(length: int, settings: AlgorithmSettings, max_tokens: int) -> float:
    """DAPO: from 0 down to -penalty, linearly, over the last ``overlong_buffer`` tokens that are allowed."""
    if not settings.overlong_buffer:
        return 0.0
    over = length - (max_tokens - settings.overlong_buffer)
    return -settings.overlong_penalty * min(max(over / settings.overlong_buffer, 0.0), 1.0)


def deal_out(answers: Sequence[Answer], seed: Sequence[int]) -> None:
    """A control, with nothing in it to learn: the rewards of all answers, dealt out among them anew."""
    order = np.random.default_rng(seed).permutation(len(answers))
    dealt = [(answers[place].reward, answers[place].correct) for place in order]
    for answer, one in zip(answers, dealt, strict=True):
        answer.reward, answer.correct = one


class Asker:
    """Asks the sampler and has the answers judged; each rank does a share, all get everything."""

    def __init__(self, settings: GrpoSettings, sampler: Any, tokenizer: Any, clock: Clock) -> None:
        self.settings, self.sampler, self.tokenizer, self.clock = settings, sampler, tokenizer, clock
        self.judges = JudgePool(1, settings.reward.judge_seconds, settings.reward.max_error_rate)
        rollout = settings.rollout
        self.options = SamplingOptions(rollout.temperature, rollout.top_p, rollout.top_k, rollout.max_tokens)

    def ask(self, questions: Sequence[Question], seeds: Sequence[Sequence[int]]) -> list[list[Answer]]:
        """Answers to each question, one for each of its seeds. A collective call."""
        world = dist.get_world_size() if dist.is_initialized() else 1
        first, last = (len(questions) * share // world for share in (rank(), rank() + 1))
        shares = on_every_rank(lambda: self._answers(questions[first:last], seeds[first:last]))
        return [answers for share in shares for answers in share]

    def _answers(self, questions: Sequence[Question], seeds: Sequence[Sequence[int]]) -> list[list[Answer]]:
        asked = [question for question, own in zip(questions, seeds, strict=True) for _ in own]
        flat = [seed for own in seeds for seed in own]
        with self.clock("gen"):
            samples = self.sampler.sample([question.prompt for question in asked], flat, self.options)
        texts = self.tokenizer.batch_decode([sample.token_ids for sample in samples], skip_special_tokens=True)
        items = [
            Item(question.data_source, text, question.ground_truth, sample.finish_reason)
            for question, text, sample in zip(asked, texts, samples, strict=True)
        ]
        with self.clock("reward"):
            verdicts = self.judges.judge(items)
        answers = iter(self._answer(*pair) for pair in zip(samples, verdicts, strict=True))
        return [[next(answers) for _ in own] for own in seeds]

    def _answer(self, sampled: Completion, verdict: Verdict) -> Answer:
        value = reward(verdict, self.settings.reward.shape)
        if value is not None:
            value += overlong_penalty(sampled.n_tokens, self.settings.algorithm, self.options.max_tokens)
        tokens, logps = list(sampled.token_ids), list(sampled.log_probs)
        return Answer(tokens, logps, sampled.finish_reason == STOP, value, verdict.reason is Reason.CORRECT)


# ---- advantages: one number for each answer, from rewards_GS (groups, samples)


def grpo_advantage(rewards_GS: Tensor) -> Tensor:
    """GRPO: distance from the group's mean in its (unbiased) standard deviations; 0 where all are equal."""
    centred_GS = rewards_GS - rewards_GS.mean(1, keepdim=True)
    return centred_GS / (rewards_GS.std(1, keepdim=True) + 1e-6)


def dr_grpo_advantage(rewards_GS: Tensor) -> Tensor:
    """Dr. GRPO: without the division, which favours groups that are nearly all right or all wrong."""
    return rewards_GS - rewards_GS.mean(1, keepdim=True)


def rloo_advantage(rewards_GS: Tensor) -> Tensor:
    """RLOO: the baseline of an answer is the mean of the others."""
    samples = rewards_GS.shape[1]
    return (rewards_GS - rewards_GS.mean(1, keepdim=True)) * samples / (samples - 1)


def reinforce_plus_plus_advantage(rewards_GS: Tensor, lengths_GS: Tensor) -> Tensor:
    """REINFORCE++: the return (of each token alike) whitened over all tokens of the batch."""
    tokens = lengths_GS.sum()
    mean = (rewards_GS * lengths_GS).sum() / tokens
    variance = ((rewards_GS - mean).square() * lengths_GS).sum() / (tokens - 1).clamp(min=1)
    return (rewards_GS - mean) * torch.rsqrt(variance + 1e-8)


def advantages(kind: str, rewards_GS: Tensor, lengths_GS: Tensor) -> Tensor:
    """The advantage of each answer, by the estimator named."""
    if kind == "reinforce_plus_plus":
        return reinforce_plus_plus_advantage(rewards_GS, lengths_GS)
    by_name = {"grpo": grpo_advantage, "dr_grpo": dr_grpo_advantage, "rloo": rloo_advantage}
    return by_name[kind](rewards_GS)


# ---- losses: one number for each token; how much each token weighs


def policy_loss(logp_N: Tensor, old_N: Tensor, advantage_N: Tensor, clip_low: float, clip_high: float) -> Tensor:
    """PPO's clipped surrogate, with bounds of their own below and above (DAPO's clip-higher)."""
    ratio_N = (logp_N - old_N).clamp(-LONGEST_LOG_RATIO, LONGEST_LOG_RATIO).exp()
    clipped_N = ratio_N.clamp(1 - clip_low, 1 + clip_high)
    return -torch.minimum(ratio_N * advantage_N, clipped_N * advantage_N)


def importance_weight(old_N: Tensor, sampler_N: Tensor, cap: float) -> Tensor:
    """Truncated importance sampling: how much likelier the trainer finds a token than the sampler that drew it."""
    return (old_N - sampler_N).clamp(-LONGEST_LOG_RATIO, LONGEST_LOG_RATIO).exp().clamp(max=cap)


def kl_estimate(kind: str, logp_N: Tensor, reference_N: Tensor) -> Tensor:
    """Schulman's estimators of KL(policy || reference) from the tokens drawn."""
    difference_N = logp_N - reference_N
    if kind == "k1":
        return difference_N
    if kind == "k2":
        return 0.5 * difference_N.square()
    back_N = (-difference_N).clamp(-LONGEST_LOG_RATIO, LONGEST_LOG_RATIO)
    return (back_N.exp() - back_N - 1).clamp(max=10.0)


def token_weights(lengths_B: Tensor, aggregation: str, max_tokens: int) -> Tensor:
    """What one token of each row weighs, so that the loss is a plain weighted sum over the global batch.

    ``token``: mean over tokens (DAPO). ``sequence``: mean over rows of the mean over their tokens (GRPO).
    ``dr_grpo``: sum over tokens by rows × ``max_tokens``, so that length has no influence. Empty rows weigh nothing.
    """
    rows = (lengths_B > 0).sum().clamp(min=1)
    if aggregation == "token":
        return (lengths_B > 0) / lengths_B.sum().clamp(min=1)
    if aggregation == "sequence":
        return (lengths_B > 0) / (lengths_B.clamp(min=1) * rows)
    return (lengths_B > 0) / (rows * max_tokens)


# ---- the batch, cut


@dataclass
class Row:
    """One answer on its way through an update. ``old``: log-probs of the policy that drew it; None: the present one.

    A token weighs ``weight`` in the loss and ``share`` in means. ``fresh``: drawn in this very step.
    """

    prompt: list[int]
    tokens: list[int]
    sampler: list[float]
    advantage: float = 0.0
    fresh: bool = False
    old: list[float] | None = None
    reference: list[float] | None = None
    weight: float = 0.0
    share: float = 0.0

    def __len__(self) -> int:
        return len(self.prompt) + len(self.tokens)


def to_rows(groups: Sequence[Group], step: int, advantage: str) -> list[Row]:
    """The answers with their advantages; those left over from an earlier step keep the sampler's log-probs as old."""
    if not groups:
        return []
    rewards_GS = torch.tensor([[answer.reward for answer in group.answers] for group in groups], dtype=torch.float32)
    lengths_GS = torch.tensor([[len(answer.tokens) for answer in group.answers] for group in groups])
    advantage_GS = advantages(advantage, rewards_GS, lengths_GS).tolist()
    return [
        Row(group.prompt, answer.tokens, answer.logps, value, fresh, None if fresh else answer.logps)
        for group, values in zip(groups, advantage_GS, strict=True)
        for fresh in [group.step == step]
        for answer, value in zip(group.answers, values, strict=True)
        if answer.tokens
    ]


def weigh(rows: Sequence[Row], aggregation: str, max_tokens: int) -> None:
    """Set what a token of each row weighs in the loss, and its share of all tokens (for means)."""
    lengths_B = torch.tensor([len(row.tokens) for row in rows])
    weights = token_weights(lengths_B, aggregation, max_tokens).tolist()
    for row, weight in zip(rows, weights, strict=True):
        row.weight, row.share = weight, 1 / int(lengths_B.sum())


def micro_batches(rows: Sequence[Row], budget: int, ranks: int) -> list[list[list[Row]]]:
    """Rounds of one batch for each rank: rows of like length, at most ``budget`` tokens with padding (or one row)."""
    budget = min(budget, sum(map(len, rows)) // ranks + max(map(len, rows), default=0))
    batches: list[list[Row]] = []
    width = 0
    for row in sorted(rows, key=len, reverse=True):
        if not batches or width * (len(batches[-1]) + 1) > budget:
            batches.append([])
            width = len(row)
        batches[-1].append(row)
    batches += [[]] * (-len(batches) % ranks)
    return [batches[first : first + ranks] for first in range(0, len(batches), ranks)]


class Batch:
    """Rows as tensors on the device; ``tokens_BT`` and ``mask_BT`` padded at the ends, the others flat over N."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows or [Row([0], [0], [0.0])]  # a rank without rows still takes part in collective calls
        width = max(map(len, self.rows))
        tokens = [row.prompt + row.tokens + [0] * (width - len(row)) for row in self.rows]
        mask = [[0] * len(row.prompt) + [1] * len(row.tokens) + [0] * (width - len(row)) for row in self.rows]
        self.tokens_BT = torch.tensor(tokens, device=device())
        self.mask_BT = torch.tensor(mask, device=device())
        self.lengths_B = torch.tensor([len(row.tokens) for row in self.rows], device=device())
        self.sampler_N = self.flat([row.sampler for row in self.rows])

    def spread(self, values: Sequence[float]) -> Tensor:
        """One value for each row → one for each token."""
        return torch.tensor(values, dtype=torch.float32, device=device()).repeat_interleave(self.lengths_B)

    def flat(self, values: Sequence[Sequence[float]]) -> Tensor:
        """One list for each row → one tensor."""
        return torch.tensor([value for row in values for value in row], dtype=torch.float32, device=device())

    def old(self, logp_N: Tensor) -> Tensor:
        """Log-probs of the policy that drew the tokens: the present one unless the row knows another."""
        if all(row.old is None for row in self.rows):
            return logp_N
        known_N = self.flat([row.old or [0.0] * len(row.tokens) for row in self.rows])
        return torch.where(self.spread([row.old is None for row in self.rows]).bool(), logp_N, known_N)


# ---- the run


class GrpoTrainer:
    """A run of GRPO: what it holds between steps, one step, and what is written about it."""

    def __init__(self, settings: GrpoSettings, mesh: DeviceMesh | None) -> None:
        self.settings, self.mesh = settings, mesh
        self.out = Path(settings.trainer.output)
        self.steps = self.out / "steps"
        model = check_model(Path(settings.model.path))
        check_positions(settings, model.max_positions)
        self.tokenizer = model.tokenizer
        longest = settings.data.max_prompt_tokens
        self.questions = read_questions(settings.data.train_files, self.tokenizer, longest)
        self.exam = read_questions(settings.data.val_files, self.tokenizer, longest, settings.trainer.eval_limit)
        self.policy = self.load(entropy_gradient=settings.algorithm.entropy_coef != 0)
        self.reference = None if settings.algorithm.kl == "none" else self.load().requires_grad_(False)
        self.optimizer = new_optimizer(self.policy, settings.optim)
        self.clock = Clock()
        self.sampler = new_sampler(settings, self.policy.model.config, model.eos_ids)
        self.asker = Asker(settings, self.sampler, self.tokenizer, self.clock)
        self.position, self.signal_share, self.surplus = 0, 1.0, list[Group]()
        self.row: dict[str, Any] = {}
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
        self.sync()
        if not first:
            self.tell({"step": 0, **self.evaluate(0)})
        for step in range(first + 1, settings.trainer.steps + 1):
            self.clock.seconds.clear()
            with self.clock("step"):
                groups, metrics = self.collect(step)  # rollout and reward
                rows = to_rows(groups, step, settings.algorithm.advantage)  # advantage
                metrics |= self.update(rows, step)  # loss and update
                self.sync()  # the sampler gets the new weights
            metrics |= speeds(self.clock.seconds, metrics)
            if settings.trainer.eval_every and self.is_due(step, settings.trainer.eval_every):
                metrics |= self.evaluate(step)
            self.row = {"step": step, **metrics}
            if self.is_due(step, settings.trainer.save_every):
                self.save(step)
            self.tell(self.row, groups)

    def collect(self, step: int) -> tuple[list[Group], dict[str, float]]:
        """The groups of this step: sampled, judged, those without signal left out; and figures about all of them."""
        data, algorithm = self.settings.data, self.settings.algorithm
        position, share, kept, asked = self.position, self.signal_share, list(self.surplus), list[Group]()
        limit = algorithm.max_generation_batches if algorithm.dynamic_sampling else 1
        while len(kept) < data.prompts_per_step and limit > 0:
            wanted = data.prompts_per_step
            if algorithm.dynamic_sampling:
                missing = data.prompts_per_step - len(kept)
                wanted = min(wanted, math.ceil(HEADROOM * missing / max(share, 1 / wanted)))
            groups = self.sample(position, wanted, step)
            useful = [g for g in groups if g.judged() and (g.has_signal() or not algorithm.drop_equal_groups)]
            position, share, limit = position + wanted, len(useful) / len(groups), limit - 1
            kept, asked = kept + useful, asked + groups
        if algorithm.dynamic_sampling and len(kept) < data.prompts_per_step:
            if step > 1 and step - 1 not in sealed_steps(self.steps):
                self.save(step - 1)
            raise UserError(
                f"step {step}: only {len(kept)} of the {data.prompts_per_step} groups needed had answers that differ, "
                f"after {len(asked)} prompts (algorithm.max_generation_batches={algorithm.max_generation_batches}): "
                "the problems are too easy or too hard for this model; the state so far is saved"
            )
        self.position, self.signal_share = position, share
        batch, self.surplus = kept[: data.prompts_per_step], kept[data.prompts_per_step :]
        return batch, rollout_metrics(asked, batch) | {"training/filter_groups/surplus": len(self.surplus)}

    def sample(self, position: int, prompts: int, step: int) -> list[Group]:
        """Groups for the next prompts of the stream. An answer hangs on the seed, its prompt's place and its number."""
        rollout = self.settings.rollout
        places = range(position, position + prompts)
        asked = [self.questions[place_in_file(place, len(self.questions), self.settings.data.seed)] for place in places]
        seeds = [[request_seed(rollout.seed, place, sample) for sample in range(rollout.n)] for place in places]
        answers = self.asker.ask(asked, seeds)
        if self.settings.reward.shuffle:
            deal_out([answer for own in answers for answer in own], (rollout.seed, position))
        return [Group(place, step, one.prompt, own) for place, one, own in zip(places, asked, answers, strict=True)]

    def update(self, rows: list[Row], step: int) -> dict[str, float]:
        """One pass over the rows in ``updates_per_step`` optimizer steps; nothing happens without rows."""
        settings, sums = self.settings, list[dict[str, Tensor]]()
        rate = learning_rate_at(step - 1, settings.trainer.steps, settings.optim)
        set_learning_rate(self.optimizer, rate)
        order = np.random.default_rng([settings.data.seed, step, 1]).permutation(len(rows))
        parts = [part for part in np.array_split(order, settings.algorithm.updates_per_step) if len(part)]
        norms: list[float] = []
        with self.clock("update_actor"):
            plans = [self.plan([rows[place] for place in part]) for part in parts]
            if len(plans) > 1:
                self.note_log_probs(self.policy, plans, "old")
            if self.reference is not None:
                self.note_log_probs(self.reference, plans, "reference")
            for plan in plans:
                sums += [self.backward(batch, first=plan is plans[0]) for batch in plan]
                norms.append(self.optimizer_step(step))
        metrics = self.update_metrics(sums, norms)
        if not math.isfinite(metrics.get("actor/pg_loss", 0.0)):
            raise UserError(f"step {step}: actor/pg_loss is no number; the last checkpoint is kept; lower optim.lr")
        return metrics | {"actor/lr": rate}

    def plan(self, rows: list[Row]) -> list[Batch]:
        """This rank's micro-batches of one update; every rank makes the same plan, so that none waits for another."""
        weigh(rows, self.settings.algorithm.loss_aggregation, self.settings.rollout.max_tokens)
        ranks, mine = (self.mesh["data"].size(), self.mesh["data"].get_local_rank()) if self.mesh else (1, 0)
        rounds = micro_batches(rows, self.settings.trainer.micro_batch_tokens, ranks)
        return [Batch(batches[mine]) for batches in rounds]

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def note_log_probs(self, policy: Policy, plans: list[list[Batch]], name: str) -> None:
        """Write the log-probs under ``policy`` into the rows that have none under ``name``."""
        for batch in (batch for plan in plans for batch in plan):
            logp_N, _ = policy(batch.tokens_BT, batch.mask_BT, self.settings.rollout.temperature)
            for row, logps in zip(batch.rows, logp_N.split(batch.lengths_B.tolist()), strict=True):
                if getattr(row, name) is None:
                    setattr(row, name, logps.tolist())

    def backward(self, batch: Batch, first: bool) -> dict[str, Tensor]:
        """Gradients of one micro-batch's share of the loss; its shares of the figures."""
        algorithm = self.settings.algorithm
        logp_N, entropy_N = self.policy(batch.tokens_BT, batch.mask_BT, self.settings.rollout.temperature)
        old_N = batch.old(logp_N.detach())
        advantage_N = batch.spread([row.advantage for row in batch.rows])
        weight_N, share_N = (batch.spread([getattr(row, name) for row in batch.rows]) for name in ("weight", "share"))
        loss_N = policy_loss(logp_N, old_N, advantage_N, algorithm.clip_low, algorithm.clip_high)
        if algorithm.importance_cap is not None:
            loss_N = loss_N * importance_weight(old_N, batch.sampler_N, algorithm.importance_cap)
        total_N = loss_N - algorithm.entropy_coef * entropy_N
        figures = {"actor/pg_loss": (weight_N * loss_N).sum(), "actor/entropy": (share_N * entropy_N).sum()}
        if self.reference is not None:
            kl_N = kl_estimate(algorithm.kl, logp_N, batch.flat([row.reference or [0.0] for row in batch.rows]))
            total_N = total_N + algorithm.kl_coef * kl_N
            figures["actor/kl_loss"] = (weight_N * kl_N).sum()
        (weight_N * total_N).sum().backward()
        ratio_N = (logp_N - old_N).detach().exp()
        outside_N = (ratio_N < 1 - algorithm.clip_low) | (ratio_N > 1 + algorithm.clip_high)
        figures["actor/pg_clipfrac"] = (share_N * outside_N).sum()
        figures["actor/ppo_kl"] = (share_N * (old_N - logp_N)).sum()
        fresh_N = batch.spread([row.fresh and first for row in batch.rows])
        figures["actor/rollout_gap"] = ((logp_N - batch.sampler_N).abs() * fresh_N).max()
        return {name: value.detach() for name, value in figures.items()}

    def optimizer_step(self, step: int) -> float:
        """Move the weights; the norm of the gradient. UserError if it is no number: nothing has moved then."""
        reduce_gradients(self.policy, self.mesh)
        norm = clip_gradients(self.policy.parameters(), self.settings.optim.max_grad_norm)
        if not math.isfinite(norm):
            raise UserError(f"step {step}: actor/grad_norm is {norm}; the last checkpoint is kept; lower optim.lr")
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def update_metrics(self, sums: Sequence[Mapping[str, Tensor]], norms: Sequence[float]) -> dict[str, float]:
        """Figures of the whole batch from the shares of all micro-batches and data ranks, as means over updates."""
        if not sums:
            return {"training/no_signal": 1.0, "actor/grad_norm": 0.0}
        gap = torch.stack([figures["actor/rollout_gap"] for figures in sums]).max()
        names = [name for name in sums[0] if name != "actor/rollout_gap"]
        totals = torch.stack([torch.stack([figures[name] for name in names]) for figures in sums]).sum(0)
        if self.mesh is not None:
            dist.all_reduce(totals, group=self.mesh["data"].get_group())
            dist.all_reduce(gap, dist.ReduceOp.MAX, group=self.mesh["data"].get_group())
        means = dict(zip(names, (totals / len(norms)).tolist(), strict=True))
        return {**means, "actor/rollout_gap": float(gap), "actor/grad_norm": sum(norms) / len(norms)}

    def sync(self) -> None:
        """Give the sampler the present weights. A collective call."""
        with self.clock("sync"):
            for bucket in weight_buckets(self.policy, self.settings.rollout.bucket_mb):
                self.sampler.load(bucket)

    def evaluate(self, step: int) -> dict[str, float]:
        """Accuracy on the validation files by data source (level), one answer to each problem."""
        if not self.exam:
            return {}
        seeds = [[request_seed(self.settings.rollout.seed, row, -1)] for row in range(len(self.exam))]
        training = dict(self.clock.seconds)
        with self.clock("testing"):
            answers = self.asker.ask(self.exam, seeds)
        self.clock.seconds = training | {"testing": self.clock.seconds["testing"]}
        correct: dict[str, list[bool]] = {}
        for question, (answer,) in zip(self.exam, answers, strict=True):
            correct.setdefault(question.data_source, []).append(answer.correct)
        accuracy = {source: sum(right) / len(right) for source, right in sorted(correct.items())}
        if rank() == 0:
            record_score(self.steps, step, sum(accuracy.values()) / len(accuracy))
        return {"timing_s/testing": self.clock.seconds["testing"]} | {
            f"val-core/{source}/acc/mean@1": share for source, share in accuracy.items()
        }

    def is_due(self, step: int, every: int) -> bool:
        """True every so many steps (0: never) and after the last."""
        return step == self.settings.trainer.steps or (every > 0 and step % every == 0)

    def tell(self, row: Mapping[str, Any], groups: Sequence[Group] = ()) -> None:
        """Metrics, a line on the screen, and now and then some answers; by the first rank, after the checkpoint."""
        if self.report is None:
            return
        self.report.write(row)
        every = self.settings.trainer.samples_every
        if groups and every and row["step"] % every == 0:
            self.report.write_samples(row["step"], groups, self.tokenizer)

    def save(self, step: int) -> None:
        """A sealed checkpoint; those that are neither among the last nor the best are deleted."""
        state = {
            "position": self.position,
            "signal_share": self.signal_share,
            "surplus": [asdict(group) for group in self.surplus],
        }
        save_checkpoint(self.steps, step, self.policy, self.optimizer, self.tokenizer, state=state, row=self.row)
        if rank() == 0:
            best = best_step(self.steps) if self.settings.trainer.keep_best else None
            prune(self.steps, self.settings.trainer.keep, spare=frozenset([best] if best is not None else []))

    def restore(self, step: int) -> None:
        """Everything as it was after ``step``."""
        state = load_checkpoint(folder(self.steps, step), self.policy, self.optimizer)
        self.position, self.signal_share = state["position"], state["signal_share"]
        self.surplus = [
            Group(**{**group, "answers": [Answer(**answer) for answer in group["answers"]]})
            for group in state["surplus"]
        ]
        self.row = json.loads((folder(self.steps, step) / STEP_ROW).read_text())

    def close(self) -> None:
        """End the judges and close what is written to."""
        self.asker.judges.close()
        if self.report is not None:
            self.report.close()


# ---- start and end


def new_sampler(settings: GrpoSettings, config: Any, eos_ids: Sequence[int]) -> Any:
    """The rollout engine that is asked for."""
    if settings.rollout.engine == "builtin":
        from compositionality.rollout.sampler.sampler import Sampler

        dtype = getattr(torch, settings.model.dtype)
        return Sampler(config, eos_ids, device=device(), dtype=dtype, max_rows=settings.rollout.max_rows)
    from compositionality.train.common.samplers import open_sampler

    path, longest = Path(settings.model.path), settings.data.max_prompt_tokens
    return open_sampler(settings.rollout, path, eos_ids, device(), longest, settings.model.dtype)


def train(settings: GrpoSettings, *, force: bool = False) -> Path:
    """Train, or go on where a killed run stood; the run folder. ``force`` starts anew."""
    check_settings(settings)
    out = Path(settings.trainer.output)
    mesh = start_processes(settings.mesh, settings.trainer.threads)
    recipe = make_recipe(settings)
    if on_first_rank(lambda: is_done(out / "final", recipe, force=force)):
        if rank() == 0:
            print(f"{out / 'final'} is already there", flush=True)
        return out
    with contextlib.ExitStack() as held:
        on_first_rank(lambda: held.enter_context(exclusive(out)))
        trainer = GrpoTrainer(settings, mesh)
        held.callback(trainer.close)
        trainer.run(on_first_rank(lambda: take_over(out, recipe, force=force)))
        on_first_rank(lambda: publish(out, recipe, keep_best=settings.trainer.keep_best))
    return out


def take_over(out: Path, recipe: Recipe, *, force: bool) -> int:
    """The step to go on from in the run folder, which is this recipe's from now on."""
    if not force:
        mend(out / "steps")
    first = claim(out, recipe, force=force)
    if first:
        print(f"{out}: going on from step {first}", flush=True)
    return first


def publish(out: Path, recipe: Recipe, *, keep_best: bool) -> None:
    """Model folders of the best step by validation and of the last; final/ comes last: it says that all is done."""
    steps = out / "steps"
    best = best_step(steps) if keep_best else None
    wanted = {} if best is None else {"best": best}
    for name, step in {**wanted, "final": latest_step(steps)}.items():
        score = scores(steps).get(step)
        with new_artefact(out / name, recipe, {"step": step, "validation": score}) as partial:
            shutil.copytree(folder(steps, step) / MODEL_FOLDER, partial)
        print(f"{out / name}: step {step}" + ("" if score is None else f", accuracy {score:.3f}"), flush=True)


def main(words: Sequence[str]) -> None:
    """One rank of the command."""
    if {"-h", "--help"} & set(words) or not words:
        print(__doc__)
        return
    die_with_parent()
    options = {word for word in words if word.startswith("--")}
    unknown = options - {"--force", "--dry-run"}
    if unknown:
        raise UserError(f"unknown option {min(unknown)}; known: --force --dry-run")
    config, *overrides = [word for word in words if not word.startswith("--")]
    settings = read_settings(GrpoSettings, Path(config), overrides)
    if "--dry-run" in options:
        check_settings(settings)
        print(OmegaConf.to_yaml(OmegaConf.structured(settings)), end="")
        return
    train(settings, force="--force" in options)
    stop_processes()


if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its names would hide those of packages
    from compositionality.train import grpo  # the module that its pickled objects name

    run_in_one_line(lambda: grpo.main(sys.argv[1:]))
