"""Exchanges packed into rows of tokens, as a function of the step."""

from dataclasses import dataclass
from random import Random
from typing import Any

from compositionality.train.tiny.corpus import Corpus
from compositionality.train.tiny.tokenizer import render

Pair = tuple[list[int], list[int]]
"""Token ids of a prompt and of its response."""


@dataclass
class Packing:
    """``rows`` rows of ``length`` tokens a step; exchanges follow one another in a row, attention is not reset."""

    rows: int = 8
    length: int = 192


class PackedBatches:
    """Batches by step: ``batches[step]`` is (token ids, loss mask), both int64 of shape (rows, length)."""

    def __init__(self, corpus: Corpus, tokenizer: Any, packing: Packing, seed: int, steps: int):
        self.corpus, self.packing, self.seed, self.steps = corpus, packing, seed, steps
        self.backend, self.pad = tokenizer.backend_tokenizer, tokenizer.pad_token_id

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, step: int) -> tuple[Any, Any]:
        """The batch of ``step``; depends on nothing else but the seed."""
        import torch

        rng = Random(f"{self.seed}/{step}")
        tokens = torch.full((self.packing.rows, self.packing.length), self.pad)
        mask = torch.zeros_like(tokens)
        pairs = self._encoded(rng)
        for row in range(self.packing.rows):
            ids, marks = self._row(rng, pairs)
            tokens[row, : len(ids)] = torch.tensor(ids)
            mask[row, : len(ids)] = torch.tensor(marks)
        return tokens, mask

    def _row(self, rng: Random, pairs: list[Pair]) -> Pair:
        """Take exchanges off ``pairs`` (drawing more when it is empty) until the next one would not fit."""
        ids: list[int] = []
        marks: list[int] = []
        while True:
            if not pairs:
                pairs.extend(self._encoded(rng))
            prompt, response = pairs[-1]
            if len(ids) + len(prompt) + len(response) > self.packing.length:
                return ids, marks
            pairs.pop()
            ids += prompt + response
            marks += [0] * len(prompt) + [1] * len(response)

    def _encoded(self, rng: Random) -> list[Pair]:
        """Exchanges enough for about one batch, as (prompt ids, response ids); those longer than a row are left out."""
        count = max(8, self.packing.rows * self.packing.length // 28)
        texts = [render(*self.corpus.exchange(rng)) for _ in range(count)]
        prompts = self.backend.encode_batch([prompt for prompt, _ in texts], add_special_tokens=False)
        responses = self.backend.encode_batch([response for _, response in texts], add_special_tokens=False)
        pairs = [(prompt.ids, response.ids) for prompt, response in zip(prompts, responses, strict=True)]
        return [pair for pair in pairs if len(pair[0]) + len(pair[1]) <= self.packing.length]
