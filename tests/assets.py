"""What tests of several packages start from: problems on strings, tiny models, one that solves some of the problems."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from compositionality.data.problems import to_table
from compositionality.tasks.string.clean import StringGenerator, StringOptions


def string_task(levels: tuple[int, ...] = (1,), **changes: Any) -> StringGenerator:
    """Three functions on strings of three or four characters, in the compact style."""
    options = StringOptions(ids=(16, 17, 22), levels=levels, input_length=(3, 4), style="compact", **changes)
    return StringGenerator(options)


def write_strings(path: Path, rows: int, split: str = "train", task: StringGenerator | None = None) -> Path:
    """A file with the first problems of a stream."""
    problems = [(task or string_task()).problem(split, 0, row) for row in range(rows)]
    pq.write_table(to_table(problems, split), path)
    return path


def tiny_model(names: list[str], seed: int = 0, **shape: int) -> tuple[Any, Any]:
    """A freshly initialised model and its tokenizer; the heads are as wide as vLLM's attention on a CPU wants them."""
    from compositionality.train.tiny.model import TinyConfig, build_model, build_tokenizer

    tokenizer = build_tokenizer(names)
    sizes = {"layers": 2, "width": 32, "heads": 2, "head_width": 32, **shape}
    return build_model(TinyConfig(**sizes), tokenizer, seed), tokenizer


def random_model(family: str, spread: float = 0.2, **sizes: Any) -> Any:
    """A "Llama", "Qwen2" or "Qwen3" whose next tokens are far from uniform; its norms are about 1."""
    import torch
    import transformers

    shape = {
        "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 160, "bos_token_id": None, "pad_token_id": 0, **sizes,
    }  # fmt: skip
    torch.manual_seed(0)
    model = getattr(transformers, f"{family}ForCausalLM")(getattr(transformers, f"{family}Config")(**shape)).float()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, mean=float(weight.dim() == 1), std=spread)
    return model.eval()


def save(folder: Path, *parts: Any) -> Path:
    for part in parts:
        part.save_pretrained(folder)
    return folder


def teach(
    model: Any, tokenizer: Any, pairs: Callable[[int], tuple[str, str]], steps: int, lr: float, *, answers_alone: bool
) -> None:
    """Show the model for some seconds the questions and answers that ``pairs`` gives by their numbers, 32 a step."""
    import torch

    from compositionality.train.policy import Policy

    policy, optimizer = Policy(model), torch.optim.AdamW(model.parameters(), lr, fused=True)
    for step in range(steps):
        rows = []
        for question, answer in map(pairs, range(32 * step, 32 * step + 32)):
            chat = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
            prompt = tokenizer.apply_chat_template(chat[:1], add_generation_prompt=True, return_dict=True)["input_ids"]
            tokens = tokenizer.apply_chat_template(chat, return_dict=True)["input_ids"]
            rows.append((len(prompt) if answers_alone else 1, tokens))
        width = max(len(whole) for _, whole in rows)
        tokens = torch.tensor([whole + [0] * (width - len(whole)) for _, whole in rows])
        mask = torch.tensor([[start <= place < len(whole) for place in range(width)] for start, whole in rows])
        logp, _ = policy(tokens, mask)
        (-logp.mean()).backward()
        optimizer.step()
        optimizer.zero_grad()


def taught(
    folder: Path, files: dict[str, int], steps: int, lr: float = 6e-3, *, answers_alone: bool = True, **shape: int
) -> Path:
    """In ``folder`` model/, which solves some problems of level 1 and fewer of level 2, and a file of each split."""
    import torch

    from compositionality.tasks.string.wording import compact_trace

    torch.set_num_threads(1)
    task = string_task((1, 2), alphabet="abcdefghij" * 4 + "123", max_length=6, frozen_parameters=True)
    for split, rows in files.items():
        write_strings(folder / f"{split}.parquet", rows, split, task)

    def pair(number: int) -> tuple[str, str]:
        item = task.item("train", 9, number)
        return task.render(item, 9).prompt, compact_trace(item.program, item.input)

    model, tokenizer = tiny_model([function.name for function in task.functions], **shape)
    teach(model, tokenizer, pair, steps, lr, answers_alone=answers_alone)
    save(folder / "model", model, tokenizer)
    return folder


class Attack:
    """Unpickled, it makes a folder."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.trace),)
