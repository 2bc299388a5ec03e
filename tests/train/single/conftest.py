"""A tiny model that solves some problems of level 1 and fewer of level 2, and the problems."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model/, train.parquet and val.parquet."""
    import torch

    from compositionality.data.problems import to_table
    from compositionality.tasks.string.clean import StringGenerator, StringOptions
    from compositionality.train.tiny.model import TinyConfig, build_model
    from compositionality.train.tiny.tokenizer import build_tokenizer

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("small")
    task = StringGenerator(
        StringOptions(
            ids=(16, 17, 22), levels=(1, 2), alphabet="abcdefghij" * 4 + "123", input_length=(3, 4), max_length=6,
            frozen_parameters=True, style="compact",
        )
    )  # fmt: skip
    for name, split, rows in (("train", "train", 120), ("val", "validation", 24)):
        problems = [task.problem(split, 0, row) for row in range(rows)]
        pq.write_table(to_table(problems, split), folder / f"{name}.parquet")
    tokenizer = build_tokenizer([function.name for function in task.functions])
    model = build_model(TinyConfig(layers=2, width=32, heads=2, head_width=32, feed_forward=64), tokenizer, 0)
    imitate(model, tokenizer, task, steps=150)
    for part in (model, tokenizer):
        part.save_pretrained(folder / "model")
    return folder


def imitate(model: Any, tokenizer: Any, task: Any, steps: int) -> None:
    """Show the model right answers for some seconds."""
    import torch

    from compositionality.tasks.string.wording import compact_trace
    from compositionality.train.policy import Policy

    policy, optimizer = Policy(model), torch.optim.AdamW(model.parameters(), 6e-3, fused=True)
    for step in range(steps):
        items = [task.item("train", 9, 32 * step + row) for row in range(32)]
        rows = []
        for item in items:
            chat = [{"role": "user", "content": task.render(item, 9).prompt}]
            answer = {"role": "assistant", "content": compact_trace(item.chain, item.input)}
            prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True)["input_ids"]
            whole = tokenizer.apply_chat_template([*chat, answer], return_dict=True)["input_ids"]
            rows.append((len(prompt), whole))
        width = max(len(whole) for _, whole in rows)
        tokens = torch.tensor([whole + [0] * (width - len(whole)) for _, whole in rows])
        mask = torch.tensor([[start <= t < len(whole) for t in range(width)] for start, whole in rows])
        logp, _ = policy(tokens, mask)
        (-logp.mean()).backward()
        optimizer.step()
        optimizer.zero_grad()
