# ruff: noqa
"""Problem tensors by division: npz per division. Run with PYTHONPATH=repo."""

import sys
from hashlib import blake2b
from itertools import count
from multiprocessing import Pool
import numpy as np

sys.path.insert(0, ".")
from compositionality.tasks.string import functions as F
from compositionality.tasks.string.clean import StringGenerator
from compositionality.tasks.string.options import StringOptions
from compositionality.tasks.string.prompts import compact_trace, compact_prompt
from compositionality.train.tiny import tokenizer as T
from compositionality.train.tiny.corpus import definition_names

DROP = [0, 3]
OPTS = dict(
    style="compact", drop=tuple(DROP), frozen_parameters=True, alphabet="abcdefghij", input_length=(3, 6), max_length=10
)


def tokenizer():
    names = ["func", "op", *(f"_{n}" for n in range(64))]
    return T.build_tokenizer(definition_names(), names)


def division(split, kept):
    """ids trained, heldout"""
    if split == 0:
        return F.side("trained", 0, DROP), F.side("heldout", 0, DROP)
    everything = F.side("all", 0, DROP)
    sizes = len(F.side("trained", 0, DROP))
    for attempt in count():
        order = sorted(everything, key=lambda id: blake2b(f"function split {split}/{attempt}/{id}".encode()).digest())
        order.sort(key=lambda id: id not in kept)
        trained, heldout = set(order[:sizes]), set(order[sizes:])
        if heldout & F.ENDLESS or not everything & F.ENDLESS:
            return trained, heldout


def encode(tok, texts):
    return [e.ids for e in tok.backend_tokenizer.encode_batch(texts, add_special_tokens=False)]


def make(args):
    split, kept, name = args
    tok = tokenizer()
    trained, heldout = division(split, kept)
    out = {}

    def gen(ids, levels, n, split_name, seed, skip=()):
        g = StringGenerator(
            StringOptions(levels=tuple(levels), function_split=0, **OPTS), [F.ATOMS[i] for i in sorted(ids)]
        )
        items, i = [], 0
        while len(items) < n:
            it = g.item(split_name, seed, i)
            i += 1
            items.append(it)
        return items

    def add(key, items):
        prompts = encode(tok, [f"{T.USER}{compact_prompt(it.chain, it.input)}{T.ASSISTANT}" for it in items])
        golds = encode(tok, [f"{compact_trace(it.chain, it.input)}{T.END}" for it in items])
        tails = encode(tok, [f"={it.output}{T.END}" for it in items])
        out[key + "_p"], out[key + "_g"], out[key + "_t"] = pad(prompts), pad(golds), pad(tails)

    def pad(rows):
        w = max(map(len, rows))
        a = np.full((len(rows), w), -1, np.int16)
        for i, r in enumerate(rows):
            a[i, : len(r)] = r
        return a

    add("stage1", gen(trained | heldout, [1], 5900, "train", 1))
    add("rl", gen(trained, [2], 6400, "train", 2))
    for side, ids in (("trained", trained), ("heldout", heldout)):
        for level in (1, 2, 3, 4, 5):
            add(f"{side}{level}", gen(ids, [level], 200 if level < 5 else 100, "validation", 5151))
    np.savez_compressed(
        f".lab/div_{name}.npz", trained=np.array(sorted(trained)), heldout=np.array(sorted(heldout)), **out
    )
    print(
        name,
        sorted(trained),
        sorted(heldout),
        {k: v.shape for k, v in out.items() if k in ("rl_p", "rl_g", "heldout4_g", "heldout5_g")},
        flush=True,
    )


if __name__ == "__main__":
    jobs = (
        [(0, (), "p0")] + [(s, (), f"p{s}") for s in range(1, 9)] + [(s, (1, 5, 9, 11), f"k{s}") for s in range(1, 9)]
    )
    with Pool(2) as pool:
        pool.map(make, jobs, chunksize=1)
