"""Pretraining a small model from scratch, on one process or several; the text is generated on the fly.

Progress is saved every ``save_every`` steps beside the result, in ``OUTPUT.run``. The same command continues there, and
ends with the same bytes as a run that was never stopped, on the same machine with the same number of processes and
threads. Of a finished run, its metrics and settings stay there.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from compositionality.data.artefact import exclusive, remove
from compositionality.train.dist import on_first_rank, start_processes
from compositionality.train.launch import die_with_parent
from compositionality.train.muon import Muon
from compositionality.train.policy import shard
from compositionality.train.run_folder import RECIPE, is_finished, latest_step, resume, run_path
from compositionality.train.sft import Fit, MicroBatch
from compositionality.train.tiny.corpus import Corpus, corpus_tokenizer
from compositionality.train.tiny.model import ASSISTANT, build_model, render
from compositionality.train.tiny.settings import Packing, PretrainSettings, check, optim, trainer


def pretrain(settings: PretrainSettings) -> None:
    """Make the base model at ``settings.output`` unless it is already there.

    No ``artefact.make``, which begins anew after a kill: checkpoints lie in a run folder until the model is there.
    """
    recipe = check(settings)
    mesh = start_processes(settings.mesh, settings.threads)
    out, run = Path(settings.output), run_path(Path(settings.output))
    if on_first_rank(lambda: is_finished(out, recipe, force=settings.force)):
        return
    with ExitStack() as stack:
        on_first_rank(lambda: stack.enter_context(exclusive(run)))
        over = (run / RECIPE).is_file() and not latest_step(run / "steps")  # ended, or without a checkpoint
        start = on_first_rank(lambda: resume(run, recipe, force=settings.force or over))
        tokenizer, corpus = corpus_tokenizer(settings.mix), Corpus(settings.mix, settings.drop)
        batches = PackedBatches(corpus, tokenizer, settings.packing, settings.seed, settings.steps, settings.workers)
        policy = shard(build_model(settings.model, tokenizer, settings.seed), mesh, settings.mesh, settings.dtype)
        group = mesh["data"].get_group() if mesh is not None else None
        optimizer = Muon(policy, optim(settings), group) if settings.optimizer == "muon" else None
        fit = Fit(policy, tokenizer, optim(settings), trainer(settings), mesh, optimizer)
        loss = fit.run(batches, run, start, "pretrain", asdict(settings), result=out)
        fit.publish(out, recipe, {"steps": settings.steps, "loss": round(loss, 4)})
        on_first_rank(lambda: remove(run / "steps"))


# ---- exchanges packed into rows of tokens, as a function of the seed, the step and the row

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
