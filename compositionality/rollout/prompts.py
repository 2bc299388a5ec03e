"""Tokenise chats by the tokenizer's own template, and check that they fit and lose no characters."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from compositionality.errors import UserError
from compositionality.rollout.engines.base import Chat
from compositionality.types import Message

AnyChat = TypeVar("AnyChat", bound=Chat)
SHOWN = 5  # maximum of characters listed in a message
OPENED_THOUGHT = re.compile(r"<think>\s*\Z")


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


def tokenized(chats: Iterable[Chat], tokenizer: Any, source: str) -> Iterator[list[int]]:
    """Yield the token ids of each chat; equal neighbours (samples of one problem) are encoded once.

    UserError for the first row that loses characters, has no tokens, or that the chat template refuses.
    """
    tokens: list[int] = []
    last: Chat | None = None
    for row, chat in enumerate(readable(chats, tokenizer, source)):
        if chat != last:
            try:
                tokens, last = prompt_tokens(tokenizer, chat), chat
            except Exception as error:  # an expression of a template can raise anything
                reason = " ".join(str(error).split())[:200]
                raise UserError(
                    f"{source}: row {row}: the chat template does not render this prompt: {reason}; change the row, "
                    "or choose another template with examples/set_chat_template.py"
                ) from error
        if not tokens:
            raise UserError(f"{source}: row {row}: the prompt has no tokens with this chat template; remove the row")
        yield tokens


def check_prompt_lengths(lengths: Iterable[int], limit: int, source: str) -> int:
    """Return the length of the longest prompt in tokens. UserError if any is over ``limit``."""
    lengths = list(lengths)
    longest = max(lengths, default=0)
    if over := sum(length > limit for length in lengths):
        raise UserError(
            f"{source}: {over} prompts are longer than max_prompt_tokens={limit} "
            f"(the longest, row {lengths.index(longest)}, has {longest}); raise the limit or remove them"
        )
    return longest


def readable(chats: Iterable[AnyChat], tokenizer: Any, source: str) -> Iterator[AnyChat]:
    """Yield the chats unchanged. UserError for the first row with characters that ``tokenizer`` drops."""
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
    """Return the characters of ``text`` that are lost when it is encoded and decoded; ASCII is assumed to survive.

    A change of composition, case, width or kind of space is no loss.
    """
    if text.isascii():
        return ""
    written_back = set(_folded(tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"])))
    lost = {char for char in _folded(text) if char not in written_back and char.isprintable() and not char.isspace()}
    return "".join(sorted(char for char in set(text) if lost & set(_folded(char))) or sorted(lost))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


# ---- chats with answers


@dataclass(frozen=True, slots=True)
class ChatRow:
    """Tokens of one row; ``loss_mask`` has a 1 for each token of an assistant's turn, its EOS included."""

    tokens: list[int]
    loss_mask: list[int]


def chat_row(messages: list[Message], tokenizer: Any) -> ChatRow:
    """Return the tokens of a checked row. Each assistant's turn ends with its EOS; tokens after it are context.

    The text is cut at the start of a turn before it is tokenised, as in a rollout.
    """
    tokens: list[int] = []
    loss_mask: list[int] = []
    text = ""
    for turn, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        last = turn == len(messages) - 1
        opened, closed = _opened_and_closed(messages[: turn + 1], tokenizer)
        if not opened.startswith(text):
            raise UserError("the chat template rewrites earlier turns; split the conversation into rows of one answer")
        prompt_ids = tokenizer(opened[len(text) :], add_special_tokens=False)["input_ids"]
        answer = tokenizer(closed[len(opened) :], add_special_tokens=False)["input_ids"]
        if answer.count(tokenizer.eos_token_id) != 1:
            raise UserError(f"turn {turn} does not hold exactly one EOS ({tokenizer.eos_token}) once it is tokenised")
        end = answer.index(tokenizer.eos_token_id) + 1
        tokens += prompt_ids + (answer[:end] if last else answer)
        loss_mask += [0] * len(prompt_ids) + [1] * end + [0] * (0 if last else len(answer) - end)
        text = closed
    return ChatRow(tokens, loss_mask)


def _opened_and_closed(messages: list[Message], tokenizer: Any) -> tuple[str, str]:
    """Return the text of a chat without and with its last turn, the assistant's.

    Templates that open a thought in the prompt, or drop earlier thoughts, do not render an answer as it was sampled.
    The answer is then appended to the prompt unchanged, with an EOS.
    """
    opened = chat_text(tokenizer, messages[:-1], add_generation_prompt=True)
    closed, answer = chat_text(tokenizer, messages), messages[-1]["content"] or ""
    if closed.startswith(opened) and answer.strip() in closed[len(opened) :]:
        return opened, closed
    thought = OPENED_THOUGHT.search(opened)  # the response may open it once more
    return opened, opened + answer.removeprefix(thought[0] if thought else "") + tokenizer.eos_token


def chat_text(tokenizer: Any, messages: list[Message], *, add_generation_prompt: bool = False) -> str:
    text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=add_generation_prompt)
    return text
