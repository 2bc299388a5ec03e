"""Chats to prompt tokens, by the tokenizer's own template, and the check that they fit."""

from collections.abc import Iterable
from typing import Any

from compositionality.errors import UserError
from compositionality.rollout.engines.base import Chat


def prompt_tokens(tokenizer: Any, messages: Chat) -> list[int]:
    """Token ids of a chat up to the point where the assistant's turn begins."""
    encoded = tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, return_dict=True)
    tokens: list[int] = encoded["input_ids"]
    return tokens


def prompts_as_tokens(tokenizer: Any, chats: Iterable[Chat]) -> list[list[int]]:
    """Token ids of many chats; equal neighbours (samples of one problem) are encoded once."""
    encoded: list[list[int]] = []
    last: Chat | None = None
    for chat in chats:
        encoded.append(encoded[-1] if encoded and chat == last else prompt_tokens(tokenizer, chat))
        last = chat
    return encoded


def check_prompt_lengths(lengths: Iterable[int], limit: int, source: str) -> int:
    """The longest prompt in tokens; UserError with count and longest if any is over ``limit``."""
    longest, longest_row, over = 0, 0, 0
    for row, length in enumerate(lengths):
        over += length > limit
        if length > longest:
            longest, longest_row = length, row
    if over:
        raise UserError(
            f"{source}: {over} prompts are longer than max_prompt_tokens={limit} "
            f"(the longest, row {longest_row}, has {longest}); raise the limit or drop them"
        )
    return longest
