"""The largest micro-batch of an update, cut as the trainers cut, from rows of heavy-tailed lengths."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

UPDATES = 10
SHORTEST = 16


@dataclass(frozen=True)
class BatchSize:
    """``rows`` of ``tokens`` in all, the longest of ``longest``. ``packed``: one after the other, without padding."""

    rows: int
    tokens: int
    longest: int
    packed: bool

    @property
    def computed(self) -> int:
        """Tokens that go through the model, padding included."""
        return self.tokens if self.packed else self.rows * self.longest

    @property
    def mask(self) -> int:
        """Entries of an attention mask: packed rows have one of all tokens by all tokens."""
        return self.tokens**2 if self.packed else self.rows * self.longest**2


@dataclass(frozen=True)
class Tail:
    """Lengths of rows in tokens: exponential of mean ``mean``, a share ``at_limit`` as long as is allowed."""

    mean: float = 300.0
    at_limit: float = 0.01

    def lengths(self, rows: int, limit: int, seed: int) -> list[int]:
        """``rows`` lengths up to ``limit``; of an update with any row at the limit if ``at_limit`` is positive."""
        draw = random.Random(seed)
        usual = [min(limit, max(SHORTEST, round(draw.expovariate(1 / self.mean)))) for _ in range(rows)]
        return [limit if draw.random() < self.at_limit else length for length in usual]


def largest_of_verl(rows: int, limit: int, budget: int, tail: Tail, *, packed: bool) -> BatchSize:
    """The largest micro-batch among those of 10 updates of ``rows`` rows on a rank, cut by verl's own function.

    ``rearrange_micro_batches`` (verl/utils/seqlen_balancing.py) cuts by real tokens; where padding is not removed
    (workers/engine/fsdp/transformer_impl.py, prepare_model_inputs) each is padded to its longest row.
    """
    if packed:  # the budget is a limit that verl holds, and long rows reach it
        return BatchSize(rows, min(max(budget, limit), rows * limit), limit, packed=True)
    found = []
    for seed in range(UPDATES):
        lengths = tail.lengths(rows, limit, seed)
        for part in cut_by_verl(lengths, budget):
            found.append(BatchSize(len(part), sum(part), max(part), packed=False))
    return max(found, key=lambda one: (one.computed, one.mask))


def cut_by_verl(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """The lengths of each micro-batch that verl makes of rows of these ``lengths``."""
    import torch
    from tensordict import TensorDict
    from verl.utils.seqlen_balancing import rearrange_micro_batches

    rows = [torch.zeros(length, dtype=torch.int8) for length in lengths]
    ids = torch.nested.nested_tensor(rows, layout=torch.jagged)
    _, parts = rearrange_micro_batches(TensorDict({"input_ids": ids}, [len(rows)]), max(budget, *lengths))
    return [[lengths[number] for number in part] for part in parts]


def largest_of_single(rows: int, limit: int, budget: int) -> BatchSize:
    """The largest micro-batch of the single-file trainers: padded rows within the budget, or one row.

    (``micro_batches`` in train/grpo.py and train/batches.py.)
    """
    widths = {count: limit if count == 1 else min(limit, budget // count) for count in range(1, rows + 1)}
    found = [BatchSize(count, count * width, width, packed=False) for count, width in widths.items()]
    return max(found, key=lambda one: one.computed)
