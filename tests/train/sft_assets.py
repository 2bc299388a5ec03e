"""A model of a few thousand weights and rows to fine-tune it on."""

import random
from pathlib import Path

import pyarrow as pa
from assets import save, tiny_model

from compositionality.data.parquet import read_table, write_table


def make_model(folder: Path, seed: int = 0) -> Path:
    """A freshly initialised tiny model folder."""
    return save(folder, *tiny_model(["reverse", "repeat"], seed))


def chat(question: str, answer: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def make_rows(path: Path, rows: int, seed: int = 0) -> Path:
    """Questions like ``reverse:abc`` with their answers, of different lengths."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefg", k=rng.randint(2, 12))) for _ in range(rows)]
    messages = [chat(f"reverse:{word}", f"{word}={word[::-1]}") for word in words]
    write_table(pa.table({"messages": messages, "data_source": ["string-train-level1"] * rows}), path)
    return path


def split_in_two(path: Path, folder: Path) -> str:
    """The rows of a file in two files, as a value of data.train_files."""
    table = read_table(path)
    parts = (table.slice(0, table.num_rows // 2), table.slice(table.num_rows // 2))
    files = [folder / f"half{number}.parquet" for number in range(2)]
    for part, file in zip(parts, files, strict=True):
        write_table(part, file)
    return f"[{files[0]},{files[1]}]"


def overrides(model: Path, rows: Path, out: Path, *more: str) -> list[str]:
    """What a tiny CPU run needs."""
    return [
        "engine=verl", "run.device=cpu", f"model.path={model}", f"data.train_files=[{rows}]", f"trainer.output={out}",
        "trainer.batch_rows=16", "data.max_length=64", "optim.lr=3e-3", *more,
    ]  # fmt: skip
