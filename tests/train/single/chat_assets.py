"""A model of a few thousand weights and chat rows to fine-tune it on."""

import random
from pathlib import Path

import pyarrow as pa

from compositionality.data.parquet import write_table


def make_model(folder: Path, seed: int = 0) -> Path:
    """A freshly initialised model folder."""
    from compositionality.train.tiny.model import TinyConfig, build_model
    from compositionality.train.tiny.tokenizer import build_tokenizer

    tokenizer = build_tokenizer(["reverse"])
    for part in (build_model(TinyConfig(layers=2, width=32, heads=2), tokenizer, seed), tokenizer):
        part.save_pretrained(folder)
    return folder


def chat(question: str, answer: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def make_rows(path: Path, rows: int, seed: int = 0) -> Path:
    """Questions like ``reverse:abc`` with their answers, of different lengths."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefg", k=rng.randint(2, 12))) for _ in range(rows)]
    write_table(pa.table({"messages": [chat(f"reverse:{word}", f"{word}={word[::-1]}") for word in words]}), path)
    return path
