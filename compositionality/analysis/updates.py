"""The update of one query: minus the gradient of the GRPO loss on its completions, as features.

Names of tensors: Q queries, F features.
"""

# ruff: noqa: N806

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from compositionality.analysis.projection import Projection
from compositionality.data.problems import iterate_problems, read_problems
from compositionality.errors import UserError
from compositionality.rollout.store import read_by_problem
from compositionality.train.common.chat_rows import ChatRow, chat_row
from compositionality.train.grpo import Batch, advantages, micro_batches, policy_loss, set_loss_weights
from compositionality.train.policy import Policy
from compositionality.types import CORRECT, STOP, Message, Problem, TrainSample


@dataclass(frozen=True)
class Query:
    """One problem with its judged completions, as tokens."""

    number: int  # row of the problem file
    problem: Problem
    rows: tuple[ChatRow, ...]
    correct: tuple[bool, ...]

    @property
    def n_correct(self) -> int:
        return sum(self.correct)

    @property
    def is_mixed(self) -> bool:
        """Some completions are correct and some are not: else its update is 0."""
        return 0 < self.n_correct < len(self.correct)


def read_queries(rollouts: Path, problems: Path, tokenizer: object, limit: int = 0) -> Iterator[Query]:
    """The first ``limit`` problems (0: all) of a folder of rollouts. UserError if it answers no such problem.

    Completions that were cut off (wrong ones, to RL), and those on which the judge failed, are left out.
    """
    known = list(iterate_problems(read_problems(problems)))
    for number, table in read_by_problem(rollouts):
        if limit and number >= limit:
            return
        if number >= len(known):
            raise UserError(f"{rollouts}: answers problem {number}, but {problems} has {len(known)}")
        problem = known[number]
        kept = [row for row in table.to_pylist() if row["finish_reason"] == STOP and row["reason"] != "error"]
        asked = Message(role="user", content=problem.prompt)
        rows = [chat_row([asked, Message(role="assistant", content=row["response"])], tokenizer) for row in kept]
        yield Query(number, problem, tuple(rows), tuple(row["reason"] == CORRECT for row in kept))


def update(policy: Policy, query: Query, projection: Projection, settings: "UpdateSettings") -> Tensor:
    """u(q): minus the gradient of the loss on the query's completions, fresh ones, as features (F)."""
    samples = samples_of(query, settings.advantage)
    set_loss_weights(samples, settings.aggregation, settings.max_tokens)
    named = [(name, parameter) for name, parameter in policy.named_parameters() if parameter.requires_grad]
    totals = [torch.zeros_like(parameter) for _, parameter in named]
    for (batch,) in micro_batches(samples, settings.micro_batch_tokens, 1):
        loss = _loss(policy, Batch(batch), settings.temperature)
        gradients = torch.autograd.grad(loss, [parameter for _, parameter in named])
        torch._foreach_sub_(totals, list(gradients))
    return projection({name: total for (name, _), total in zip(named, totals, strict=True)})


@dataclass(frozen=True)
class UpdateSettings:
    """What of the trainer's settings decides an update on fresh completions."""

    advantage: str = "grpo"  # as algorithm.advantage of train_grpo.py
    aggregation: str = "token"  # as algorithm.loss_aggregation
    temperature: float = 1.0  # as rollout.temperature
    max_tokens: int = 1024  # as rollout.max_tokens
    micro_batch_tokens: int = 16384  # tokens with padding in one pass


def samples_of(query: Query, advantage: str) -> list[TrainSample]:
    """Its completions with their advantages, as fresh ones."""
    rewards_GS = torch.tensor([[float(value) for value in query.correct]])
    lengths_GS = torch.tensor([[sum(row.loss_mask) for row in query.rows]])
    values = advantages(advantage, rewards_GS, lengths_GS)[0].tolist()
    found = []
    for row, value in zip(query.rows, values, strict=True):
        start = len(row.tokens) - sum(row.loss_mask)
        response = row.tokens[start:]
        found.append(TrainSample(row.tokens[:start], response, [0.0] * len(response), value, fresh=True))
    return found


def _loss(policy: Policy, batch: Batch, temperature: float) -> Tensor:
    logp_N, _ = policy(batch.tokens_BT, batch.loss_mask_BT, temperature)
    advantage_N = batch.spread([sample.advantage for sample in batch.samples])
    weight_N = batch.spread([sample.loss_weight for sample in batch.samples])
    return (weight_N * policy_loss(logp_N, logp_N.detach(), advantage_N, 0.2, 0.2)).sum()


def entropy(policy: Policy, query: Query, settings: UpdateSettings) -> float | None:
    """Mean −log π of the tokens of its completions, in nats: an estimate of the entropy. None if there are none."""
    samples, found = samples_of(query, settings.advantage) if query.rows else [], []
    for (batch,) in micro_batches(samples, settings.micro_batch_tokens, 1) if samples else ():
        one = Batch(batch)
        with torch.no_grad():
            logp_N, _ = policy(one.tokens_BT, one.loss_mask_BT, settings.temperature)
        found.append(logp_N)
    return -float(torch.cat(found).mean()) if found else None


def updates(
    policy: Policy, queries: Sequence[Query], projection: Projection, settings: UpdateSettings
) -> Iterator[Tensor]:
    """u(q) of each query, 0 where its completions are all alike."""
    zero: Tensor | None = None
    for query in queries:
        if query.is_mixed:
            found = update(policy, query, projection, settings).cpu()
            zero = torch.zeros_like(found)
            yield found
        else:
            if zero is None:
                trained = ((name, one) for name, one in policy.named_parameters() if one.requires_grad)
                zero = projection({name: torch.zeros_like(one) for name, one in trained}).cpu()
            yield zero
