"""SFT rows: one kept response each, as chat messages; the loss is on the assistant turn."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from compositionality.data.problems import MESSAGES
from compositionality.types import Message

EXTRA_INFO = pa.struct(
    [
        ("index", pa.int64()),
        ("split", pa.string()),
        ("sample", pa.int32()),
        ("skills", pa.list_(pa.string())),
    ]
)
SCHEMA = pa.schema(
    [
        ("messages", MESSAGES),
        ("data_source", pa.string()),
        ("level", pa.int32()),
        ("group", pa.string()),
        ("problem", pa.int64()),
        ("extra_info", EXTRA_INFO),
    ]
)

END_OF_TURN = (
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|end|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)
PADDING = ("<|finetune_right_pad_id|>", "<|pad|>", "<pad>")


def strip_end_of_turn(response: str, markers: Sequence[str] = END_OF_TURN + PADDING) -> str:
    """``response`` without the end-of-turn and padding text at its end, and without trailing blanks.

    The chat template writes one end of turn; one more in the text would teach the model to end twice.
    """
    text = response.rstrip()
    while True:
        marker = next((marker for marker in markers if text.endswith(marker)), None)
        if marker is None:
            return text
        text = text.removesuffix(marker).rstrip()


def has_end_of_turn(text: str) -> bool:
    """True if ``text`` holds an end-of-turn marker: the tokenizer would read it as the end of the response."""
    return any(marker in text for marker in END_OF_TURN)


def prompt_key(messages: Sequence[Message]) -> str:
    """Identity of a prompt: sha256 over its turns, so that equal prompts agree wherever they come from."""
    turns = [[message["role"], message["content"]] for message in messages]
    return hashlib.sha256(json.dumps(turns).encode("utf-8", "surrogatepass")).hexdigest()


def to_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """SFT rows as an arrow table of ``SCHEMA``."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)
