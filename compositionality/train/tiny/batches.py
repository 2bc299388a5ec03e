"""Exchanges packed into rows of tokens, as a function of the seed, the step and the row."""

import os
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import numpy as np
import torch

from compositionality.train.launch import die_with_parent
from compositionality.train.sft import MicroBatch
from compositionality.train.tiny.corpus import Corpus
from compositionality.train.tiny.model import ASSISTANT, render
from compositionality.train.tiny.settings import Packing

CHAPTER = 64
"""Steps whose rows are made together."""

POOL = 32
"""Exchanges from which a row is filled: enough to fill 95 % of it."""


class PackedBatches:
    """Batches by step, for ``sft.Fit.run``.

    Row *n* of a chapter of 64 steps is a stream of its own, seeded by (seed, chapter, *n*). So every rank makes its own
    rows alone, and all ranks together train on the same batches, however many they are.
    """

    def __init__(self, corpus: Corpus, tokenizer: Any, packing: Packing, seed: int, steps: int, workers: int = 0):
        self.corpus, self.packing, self.seed, self.steps, self.workers = corpus, packing, seed, steps, workers
        self.epoch_steps = steps
        self.backend, self.pad = tokenizer.backend_tokenizer, tokenizer.pad_token_id
        self.answer_begins = tokenizer.convert_tokens_to_ids(ASSISTANT)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads would take the trainer's cores

    def stream(self, start: int, rank: int = 0, ranks: int = 1) -> Iterator[list[MicroBatch]]:
        """Yield this rank's part of the batches from ``start`` on: one micro-batch of rows ``rank``, ``rank + ranks`` …

        Made in passing, or ahead of time by ``workers`` processes.
        """
        from torch.utils.data import DataLoader

        numbers = range(start // CHAPTER, -(-self.steps // CHAPTER))
        chapters = DataLoader(
            range(numbers.stop),
            batch_size=None,
            sampler=numbers,
            num_workers=self.workers,
            collate_fn=partial(self.chapter, rank=rank, ranks=ranks),
            worker_init_fn=lambda _: die_with_parent(),
        )
        for number, chapter in zip(numbers, chapters, strict=True):
            first = number * CHAPTER
            for step in range(max(start, first), min(first + CHAPTER, self.steps)):
                yield [chapter[step - first]]

    def chapter(self, number: int, rank: int = 0, ranks: int = 1) -> list[MicroBatch]:
        """Return this rank's batches of one chapter."""
        numbers = range(rank, self.packing.rows, ranks)
        columns = self.packing.length + 1  # the model reads all but the last; on a CPU 192 are faster than 191
        tokens = np.full((CHAPTER, len(numbers), columns), self.pad)
        loss_mask = np.zeros(tokens.shape, np.int8)
        for place, row in enumerate(numbers):
            for step, (ids, mask) in enumerate(self._rows(Random(f"{self.seed}/{number}/{row}"))):
                tokens[step, place, : len(ids)] = ids
                loss_mask[step, place, : len(ids)] = mask
        real = (tokens != self.pad).sum((1, 2)).tolist()
        return [*map(MicroBatch, torch.from_numpy(tokens), torch.from_numpy(loss_mask), real)]

    def _rows(self, rng: Random) -> Iterator[tuple[list[int], list[int]]]:
        """Yield token ids and loss mask of a chapter's rows. A row takes what fits, oldest first: none is left out."""
        pool: list[tuple[list[int], int]] = []
        for _ in range(CHAPTER):
            ids: list[int] = []
            loss_mask: list[int] = []
            while True:
                if len(pool) < POOL:
                    pool += self._exchanges(rng)
                room = self.packing.length - len(ids)
                place = next((place for place, (exchange, _) in enumerate(pool[:POOL]) if len(exchange) <= room), None)
                if place is None:
                    break
                exchange, n_prompt = pool.pop(place)
                ids += exchange
                loss_mask += [0] * n_prompt + [1] * (len(exchange) - n_prompt)
            yield ids, loss_mask

    def _exchanges(self, rng: Random) -> list[tuple[list[int], int]]:
        """Return some exchanges as (token ids, number of them in the prompt), without those longer than a row."""
        texts = ["".join(render(*self.corpus.exchange(rng))) for _ in range(POOL)]
        encoded = [entry.ids for entry in self.backend.encode_batch(texts, add_special_tokens=False)]
        return [(ids, ids.index(self.answer_begins) + 1) for ids in encoded if len(ids) <= self.packing.length]
