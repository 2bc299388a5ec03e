"""Chat rows as tokens, and how a batch is cut."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.rollout.prompts import ChatRow, chat_row
from compositionality.train.rows import COLUMNS, load_rows
from compositionality.train.sft import ChatBatches, micro_batches, new_batches
from compositionality.train.sft_settings import SftTrainerSettings
from compositionality.train.tiny.model import build_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer(["reverse"])


def turns(*texts: Any) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]


def trained(row: ChatRow, tokenizer: Any) -> str:
    return str(tokenizer.decode([token for token, mark in zip(row.tokens, row.loss_mask, strict=True) if mark]))


def test_every_assistants_turn_is_trained_on(tokenizer: Any) -> None:
    row = chat_row(turns("a", "b", "c", "d"), tokenizer)
    assert tokenizer.decode(row.tokens) == "<|user|>a<|assistant|>b<|end|><|user|>c<|assistant|>d<|end|>"
    assert trained(row, tokenizer) == "b<|end|>d<|end|>"


def some_rows(count: int) -> list[ChatRow]:
    rng = Random(1)
    lengths = [rng.randint(3, 40) for _ in range(count)]
    return [ChatRow([number + 1] * length, [0] + [1] * (length - 1)) for number, length in enumerate(lengths)]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("budget", [1, 64, 10_000])
def test_ranks_share_a_batch_in_equally_many_parts(ranks: int, budget: int) -> None:
    rows = some_rows(17)
    shares = [micro_batches(rows, budget, rank, ranks) for rank in range(ranks)]
    assert len({len(parts) for parts in shares}) == 1
    seen = [
        (int(tokens[row, 0]), int(loss_mask[row].sum()))
        for parts in shares
        for tokens, loss_mask, _ in parts
        for row in range(len(tokens))
        if loss_mask[row].any()
    ]
    assert sorted(seen) == sorted((row.tokens[0], sum(row.loss_mask)) for row in rows)
    assert sum(part.real for parts in shares for part in parts) == sum(len(row.tokens) for row in rows)
    for parts in shares:
        for tokens, _, real in parts:
            assert real <= tokens.numel()
            assert tokens.numel() <= budget or len(tokens) == 1


def test_an_epoch_holds_every_row_once_in_an_order_of_its_own() -> None:
    batches = ChatBatches(some_rows(10), steps=8, batch_rows=3, budget=1000, seed=5)
    assert batches.epoch_steps == 4
    steps = [
        [int(token) for tokens, _, _ in parts for token in tokens[:, 0]] for parts in batches.stream(0, rank=0, ranks=1)
    ]
    first, second = ([token for step in epoch for token in step] for epoch in (steps[:4], steps[4:]))
    assert sorted(first) == sorted(second) == list(range(1, 11))
    assert [sorted(step) for step in steps[:4]] != [sorted(step) for step in steps[4:]]
    resumed = [
        [int(token) for tokens, _, _ in parts for token in tokens[:, 0]] for parts in batches.stream(4, rank=0, ranks=1)
    ]
    assert resumed == steps[4:]
    again = ChatBatches(some_rows(10), steps=4, batch_rows=3, budget=1000, seed=6)
    assert [int(t) for tokens, _, _ in next(again.stream(0, 0, 1)) for t in tokens[:, 0]] != steps[0]


def test_batches_by_tokens_are_equally_large_to_the_end() -> None:
    """The loss of every update is taken on about as many tokens, over the ends of epochs, however few the rows are."""
    rows = some_rows(10)
    for wanted in (1, 7, 20, 100):
        batches = new_batches(rows, SftTrainerSettings("out", steps=30, batch_tokens=wanted), seed=5)
        numbers = [batches.numbers(step) for step in range(30)]
        assert {*map(len, numbers)} == {batches.batch_rows}
        together = [number for step in numbers for number in step]
        passes = [together[start : start + 10] for start in range(0, len(together) - 9, 10)]
        assert all(sorted(one) == list(range(10)) for one in passes)
        trained = sum(sum(rows[number].loss_mask[1:]) for number in together)
        one_row = sum(sum(row.loss_mask[1:]) for row in rows) / len(rows)
        assert abs(trained / 30 - wanted) <= max(one_row, 0.05 * wanted)


@pytest.mark.parametrize(("n_rows", "batch"), [(130, 900), (130, 70), (10, 50), (7, 200)])
def test_a_run_by_tokens_sees_so_many(n_rows: int, batch: int) -> None:
    """With batches of equal size a pass over the rows is no whole number of them: to half a batch."""
    rows = some_rows(n_rows)
    size = sum(len(row.tokens) for row in rows)
    asked = [(passes, {"tokens": int(passes * size)}) for passes in (1, 2.5, 20)] + [(3, {"epochs": 3})]
    for passes, given in asked:
        batches = new_batches(rows, SftTrainerSettings("out", **given, batch_tokens=batch), seed=5)
        seen, wanted = batches.steps * batches.batch_rows, passes * n_rows
        assert batches.steps == 1 or abs(seen - wanted) <= batches.batch_rows / 2 + 1


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (turns("a", "é"), "row 2: the tokenizer has no tokens for é"),
        (turns("ß", "b"), "row 2: the tokenizer has no tokens for ß"),
        ([None, *turns("a", "b")], "row 2: every one of its messages must have a role and a content of text"),
        (None, "row 2: messages must hold"),
        (turns("a"), "row 2: messages must hold a user's and an assistant's turn"),
        (turns("a", ""), "row 2: the last of its messages must be an assistant's, with content"),
        ([{"role": "usr", "content": "a"}, *turns("a", "b")], "row 2: the role of one of its messages is 'usr'"),
        (turns("a", "b")[::-1], "row 2: the first of its messages is an assistant's"),
        (turns("a", "b", "c"), "row 2: the last of its messages must be an assistant's"),
        (turns("a", None, "c", "d"), "row 2: every one of its messages must have a role and a content of text"),
        ([{"role": None, "content": "a"}, *turns("a", "b")], "row 2: every one of its messages must have a role"),
        (turns("a", "b<|end|>"), r"row 2: the answer holds the EOS token <\|end\|>"),
    ],
)
def test_p18_a_bad_row_is_named(tmp_path: Path, tokenizer: Any, bad: Any, said: str) -> None:
    path = tmp_path / "rows.parquet"
    write_table(pa.table({"messages": [turns("a", "b"), turns("«", "»"), bad]}), path)
    with pytest.raises(UserError, match=f"rows.parquet: {said}"):
        load_rows(path, tokenizer, 40)
    write_table(pa.table({"messages": ["a", "b"]}), path)
    with pytest.raises(UserError, match=r"rows.parquet: row 0: messages must hold"):
        load_rows(path, tokenizer, 40)


CHAT = [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}]


@pytest.mark.parametrize("name", ["rows.parquet", "rows.jsonl"])
@pytest.mark.parametrize(
    ("prompt", "response"),
    [
        ("a", "b"),
        ("a", "b<|eot_id|>"),  # as the original's rollouts end
        (CHAT[1:], "b"),
        (CHAT, "b\n"),
        (CHAT[1:], [{"role": "assistant", "content": "b"}]),
    ],
)
def test_prompts_and_responses_are_chats(tmp_path: Path, tokenizer: Any, name: str, prompt: Any, response: Any) -> None:
    """Text or turns, of parquet or JSON lines, under other names too."""
    chat = [*(turns(prompt) if isinstance(prompt, str) else prompt), {"role": "assistant", "content": "b"}]
    expected = [chat_row(chat, tokenizer)] * 2
    for columns in (COLUMNS, ("chat", "question", "answer")):
        path = write_rows(tmp_path / name, [{columns[1]: prompt, columns[2]: response, "data_source": "x"}] * 2)
        assert load_rows(path, tokenizer, 40, columns) == expected
    path = write_rows(tmp_path / name, [{"chat": chat, "prompt": "c"}] * 2)
    assert load_rows(path, tokenizer, 40, ("chat", "prompt", "response")) == expected


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"question": "a", "response": "b"}',
            "has no column messages, nor prompt and response; it has question, response",
        ),
        (
            '{"prompt": "a", "response": "b"}\n{"prompt": "a", "response": null}',
            "row 1: every one of its messages must have a role and a content of text",
        ),
        ('{"prompt": 1, "response": "b"}', "row 0: every one of its messages must have a role and a content of text"),
        ('{"prompt": "a", "response": ', "line 1: damaged"),
        ("", "has no rows"),
    ],
)
def test_p18_a_bad_file_of_prompts_and_responses_is_named(tmp_path: Path, tokenizer: Any, text: str, said: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=f"rows.jsonl: {said}"):
        load_rows(path, tokenizer, 40)
