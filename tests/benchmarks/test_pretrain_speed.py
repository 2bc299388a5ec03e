"""Pretraining against the shortest loop that PyTorch allows: the same model, text and optimizer, in one run.

Goal: at least nine tenths of its speed. Run on an idle machine, with -s to see the figures:
pytest -s -m slow tests/benchmarks/test_pretrain_speed.py
"""

import time
from itertools import islice

import pytest
import torch

from compositionality.train.policy import shard
from compositionality.train.settings import MeshSettings
from compositionality.train.sft import Fit
from compositionality.train.tiny.corpus import Corpus, corpus_tokenizer
from compositionality.train.tiny.model import build_model
from compositionality.train.tiny.pretrain import PackedBatches
from compositionality.train.tiny.settings import PretrainSettings, optim, trainer

STEPS, ROUNDS = 32, 5
RATE = 1e-3


def ours(settings, tokenizer):
    """A model and a function that trains it on one batch, as pretraining does."""
    policy = shard(build_model(settings.model, tokenizer, settings.seed), None, MeshSettings())
    fit = Fit(policy, tokenizer, optim(settings), trainer(settings), None)
    return policy.model, lambda parts: fit.update(parts, RATE)


def bare(settings, tokenizer):
    """The same in as few lines as it takes."""
    model = build_model(settings.model, tokenizer, settings.seed).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True)

    def step(parts):
        [(tokens, loss_mask, _)] = parts
        wanted = loss_mask[:, 1:].bool()
        hidden = model.model(input_ids=tokens[:, :-1], use_cache=False).last_hidden_state
        loss = torch.nn.functional.cross_entropy(model.lm_head(hidden[wanted]), tokens[:, 1:][wanted])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return model, step


@pytest.mark.slow
def test_tokens_per_second_against_a_bare_loop():
    torch.set_num_threads(1)
    settings = PretrainSettings(output="nowhere")
    tokenizer, corpus = corpus_tokenizer(settings.mix), Corpus(settings.mix, settings.drop)
    loops = {"ours": ours(settings, tokenizer), "bare": bare(settings, tokenizer)}
    seconds = {name: [] for name in loops}
    for turn in range(ROUNDS + 1):  # in turns, so that both meet the same machine; the first warms up
        for name, (_, step) in loops.items():
            batches = PackedBatches(corpus, tokenizer, settings.packing, turn, STEPS)
            begun = time.perf_counter()
            for parts in islice(batches.stream(0), STEPS):
                step(parts)
            seconds[name] += [time.perf_counter() - begun] if turn else []
    tokens = STEPS * settings.packing.rows * settings.packing.length
    speeds = {name: tokens / min(times) for name, times in seconds.items()}
    print("\npretraining on one thread: " + ", ".join(f"{name} {speed:,.0f} tok/s" for name, speed in speeds.items()))
    mine, theirs = (list(model.parameters()) for model, _ in loops.values())
    apart = max((a - b).abs().mean().item() for a, b in zip(mine, theirs, strict=True))
    assert apart < 0.1 * RATE, "not the same work"
