# ruff: noqa
"""Text of a recipe: a Corpus with priors called op_N, of which some may be called func_25.. (own kind of chain)."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from dataclasses import replace
from random import Random
import numpy as np
from compositionality.tasks.string import functions as F


def _alias(self):
    return f"{'op' if self.id >= 30 else 'func'}_{self.id}"


F.Function.alias = property(_alias)
from compositionality.train.tiny import tokenizer as T
from compositionality.train.tiny.batches import PackedBatches
from compositionality.train.tiny.corpus import Corpus, Mix, definition_names
from compositionality.train.tiny.draws import pick, between, by_share
from compositionality.train.tiny.settings import Packing

NAMES = ["func", "op", *(f"_{n}" for n in range(64))]


def tokenizer():
    return T.build_tokenizer(definition_names(), NAMES)


class LabCorpus(Corpus):
    """own: options of the lab: func_priors K, func_chain share, func_single share; old_names: priors func_N."""

    def __init__(self, mix, drop, own):
        super().__init__(mix, drop)
        self.own = own
        k = min(5, own.get("func_priors", 0))
        self.func_priors = [
            replace(op, function=replace(op.function, id=25 + i)) for i, op in enumerate(self.priors[:k])
        ]
        if k:
            self.priors = self.priors[k:]
            self._all = self.targets + self.priors + self.func_priors
            self._named = self._named[:25] + self.func_priors + self.priors
        self.chain_levels = own.get("levels")  # weights of lengths 2..deepest for prior chains

    def _kinds(self):
        own = self.own
        kinds = list(super()._kinds())
        extra = []
        if self.func_priors:
            extra.append(
                (
                    own.get("func_chain", 0.0),
                    lambda rng: self.chain(rng, self._several(self.func_priors, own.get("func_deepest"))),
                )
            )
            extra.append(
                (
                    own.get("func_single", 0.0),
                    lambda rng: self.calls(rng, [self._draw(rng, self.func_priors) for _ in self._count(rng)]),
                )
            )
        return (*extra, *kinds)

    def _several(self, operations, deepest=None):
        top = deepest or self.mix.deepest
        if operations is self.bound_priors:
            top = self.own.get("visible_deepest", top)
        return lambda rng: tuple(self._draw(rng, operations) for _ in range(between(rng, 2, top)))


_cache = {}


def batches(recipe_key, mix, own, rows, seed, steps):
    key = (recipe_key, seed)
    if key not in _cache:
        corpus_key = ("corpus", recipe_key)
        if corpus_key not in _cache:
            _cache[corpus_key] = (LabCorpus(Mix(**mix), [0, 3], own), tokenizer())
        corpus, tok = _cache[corpus_key]
        _cache[key] = PackedBatches(corpus, tok, Packing(rows, 192), seed, steps)
    return _cache[key]


def chapter(task):
    """(recipe_key, mix, own, rows, seed, steps, number) -> int16 (64, rows, 193), +512 where trained."""
    recipe_key, mix, own, rows, seed, steps, number = task
    parts = batches(recipe_key, mix, own, rows, seed, steps).chapter(number)
    return np.stack([(p.tokens + 512 * p.loss_mask.long()).numpy().astype(np.int16) for p in parts])
