"""Problem files as the trainer asks them: tokens, in an order that is a function of the seed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from compositionality.data.problems import read_problems
from compositionality.rollout.prompts import check_prompt_lengths


@dataclass(frozen=True)
class Question:
    """A problem as the sampler and the judge see it."""

    prompt: list[int]
    data_source: str
    ground_truth: str


def read_questions(
    paths: Sequence[str | Path], tokenizer: Any, max_tokens: int, limit: int | None = None
) -> list[Question]:
    """The problems of all files (``limit`` of each data source); UserError if a prompt has over ``max_tokens``."""
    questions: list[Question] = []
    seen: Counter[str] = Counter()
    for path in map(Path, paths):
        rows = read_problems(path).select(["data_source", "prompt", "reward_model"]).to_pylist()
        texts = [
            tokenizer.apply_chat_template(row["prompt"], tokenize=False, add_generation_prompt=True) for row in rows
        ]
        prompts = tokenizer(texts, add_special_tokens=False)["input_ids"]
        check_prompt_lengths(map(len, prompts), max_tokens, str(path))
        for row, prompt in zip(rows, prompts, strict=True):
            seen[row["data_source"]] += 1
            if limit is None or seen[row["data_source"]] <= limit:
                questions.append(Question(prompt, row["data_source"], row["reward_model"]["ground_truth"]))
    return questions


def place_in_file(position: int, rows: int, seed: int) -> int:
    """Which of ``rows`` problems stands at ``position`` of an endless stream of passes, each in its own order."""
    epoch, offset = divmod(position, rows)
    return int(_order(rows, seed, epoch)[offset])


@lru_cache(maxsize=2)
def _order(rows: int, seed: int, epoch: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.random.default_rng([seed, epoch]).permutation(rows)
