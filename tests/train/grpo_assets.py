"""A model for verl's GRPO whose groups have signal, and problems for it."""

from pathlib import Path

import pyarrow.parquet as pq

from compositionality.data.problems import to_table


def make(folder: Path) -> Path:
    """In ``folder``: problems, and a model that has seen gold traces of such for some seconds."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from compositionality.tasks.string.clean import StringGenerator, StringOptions
    from compositionality.tasks.string.wording import compact_trace
    from compositionality.train.tiny.model import TinyConfig, build_model
    from compositionality.train.tiny.tokenizer import build_tokenizer

    options = StringOptions(
        ids=(16, 17, 22), levels=(1, 2), alphabet="abcdefghij" * 4 + "123", input_length=(3, 4), max_length=6,
        frozen_parameters=True, style="compact",
    )  # fmt: skip
    task = StringGenerator(options)
    for name, rows in (("train", 300), ("test", 24)):
        pq.write_table(to_table([task.problem(name, 0, row) for row in range(rows)], name), folder / f"{name}.parquet")
    tokenizer = build_tokenizer([function.name for function in task.functions])
    shape = TinyConfig(layers=2, width=64, heads=2, head_width=32)
    for part in (build_model(shape, tokenizer, 0), tokenizer):
        part.save_pretrained(folder / "raw")
    model = AutoModelForCausalLM.from_pretrained(folder / "raw", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder / "raw")
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    tokenizer.padding_side = "right"
    for step in range(250):
        items = [task.item("train", 9, 32 * step + row) for row in range(32)]
        chats = [
            tokenizer.apply_chat_template(
                [
                    {"role": "user", "content": task.render(item, 9).prompt},
                    {"role": "assistant", "content": compact_trace(item.chain, item.input)},
                ],
                tokenize=False,
            )
            for item in items
        ]
        batch = tokenizer(chats, padding=True, return_tensors="pt", add_special_tokens=False)
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        model(**batch, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder
