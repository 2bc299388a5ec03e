"""Batches of supervised training as a function of the step, cut into as many micro-batches for every rank.

Names of tensors: B rows, T tokens.
"""

# ruff: noqa: N806

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from compositionality.rollout.prompts import ChatRow
from compositionality.seeds import row_at


class MicroBatch(NamedTuple):
    """What goes through the model at once: ``tokens`` (int64, BT, padded at the ends), ``loss_mask``
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
        """See :class:`Batches`."""
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
