"""Chats to prompt tokens, by the tokenizer's own template, and the checks that they fit and lose nothing."""

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from compositionality.errors import UserError
from compositionality.rollout.engines.base import Chat

AnyChat = TypeVar("AnyChat", bound=Chat)
SHOWN = 5  # characters in a message


def prompt_tokens(tokenizer: Any, messages: Chat) -> list[int]:
    """Return the token ids of a chat up to the point where the assistant's turn begins."""
    encoded = tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, return_dict=True)
    tokens: list[int] = encoded["input_ids"]
    return tokens


def prompts_as_tokens(tokenizer: Any, chats: Iterable[Chat]) -> list[list[int]]:
    """Return the token ids of many chats; equal neighbours (samples of one problem) are encoded once."""
    encoded: list[list[int]] = []
    last: Chat | None = None
    for chat in chats:
        encoded.append(encoded[-1] if encoded and chat == last else prompt_tokens(tokenizer, chat))
        last = chat
    return encoded


def check_prompt_lengths(lengths: Iterable[int], limit: int, source: str) -> int:
    """Return the longest prompt in tokens; UserError with count and longest if any is over ``limit``."""
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


def readable(chats: Iterable[AnyChat], tokenizer: Any, source: str) -> Iterator[AnyChat]:
    """Yield the chats as they are; UserError names the first row with characters that ``tokenizer`` leaves out."""
    for row, chat in enumerate(chats):
        lost = lost_characters("".join(turn["content"] or "" for turn in chat), tokenizer)
        if lost:
            shown = ", ".join(f"{char} (U+{ord(char):04X})" for char in lost[:SHOWN])
            raise UserError(
                f"{source}: row {row}: the tokenizer has no tokens for {shown} and would leave them out; "
                "write the text without them or take another model"
            )
        yield chat


def lost_characters(text: str, tokenizer: Any) -> str:
    """Return the characters of ``text`` that are gone once it is encoded and decoded; ASCII is taken to survive.

    Tokenizers may compose letters, or change their case or width: that is no loss. Nor is another kind of space.
    """
    if text.isascii():
        return ""
    written_back = set(_folded(tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"])))
    lost = {char for char in _folded(text) if char not in written_back and char.isprintable() and not char.isspace()}
    return "".join(sorted(char for char in set(text) if lost & set(_folded(char))) or sorted(lost))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
