"""Chat rows for SFT with either engine: read from a file, checked, and made into tokens with a loss mask."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.rft.rows import strip_end_of_turn
from compositionality.rollout.model_folder import text_template
from compositionality.rollout.prompts import readable
from compositionality.types import Message

Messages = list[Message]
COLUMNS = ("messages", "prompt", "response")
"""Of an SFT file: whole chats or, where there is no such column, prompts and responses."""
OPENED_THOUGHT = re.compile(r"<think>\s*\Z")


@dataclass(frozen=True, slots=True)
class ChatRow:
    """Tokens of one row; ``loss_mask`` has a 1 for each token of an assistant's turn, its EOS included."""

    tokens: list[int]
    loss_mask: list[int]


def too_long(path: Path, rows: Sequence[ChatRow], limit: int) -> str:
    """Say, for a message, how many rows of a file are over ``limit`` tokens; empty if none is."""
    lengths = [len(row.tokens) for row in rows]
    over = [number for number, length in enumerate(lengths) if length > limit]
    if not over:
        return ""
    count, longest = f"{len(over)} of {len(rows)}", f"longest {max(lengths)}, first is row {over[0]}"
    return f"{path}: {count} rows are longer than data.max_length={limit} tokens ({longest})"


def load_rows(path: Path, tokenizer: Any, limit: int, columns: Sequence[str] = COLUMNS) -> list[ChatRow]:
    """Return all rows of an SFT file as tokens. UserError for a bad row, or for rows over ``limit`` tokens."""
    rows = read_rows(path, tokenizer, columns)
    if message := too_long(path, rows, limit):
        raise UserError(f"{message}; raise data.max_length or filter the rows")
    return rows


def read_rows(path: Path, tokenizer: Any, columns: Sequence[str]) -> list[ChatRow]:
    """Return all rows of an SFT file as tokens, of any length. UserError names the row."""
    rows = []
    for number, messages in enumerate(read_messages(path, tokenizer, columns)):
        try:
            rows.append(chat_row(messages, tokenizer))
        except UserError as error:
            raise UserError(f"{path}: row {number}: {error}") from error
    return rows


def read_messages(path: Path, tokenizer: Any, columns: Sequence[str] = COLUMNS) -> list[Messages]:
    """Return the chats of a file; UserError names the first row that is no question with an answer."""
    rows = _chats(read_table(path), path, columns)
    for number, messages in enumerate(rows):
        problem = row_problem(messages, tokenizer)
        if problem:
            raise UserError(f"{path}: row {number}: {problem}")
    return list(readable(rows, tokenizer, str(path)))


def _chats(table: pa.Table, path: Path, columns: Sequence[str]) -> list[Any]:
    """Return the chats of a table; prompts and responses, each a text or turns, are put together.

    A response of others may end in an end of turn, which the chat template writes.
    """
    whole, *parts = columns
    if whole in table.column_names:
        return table[whole].to_pylist()  # type: ignore[no-any-return]
    if not {*parts} <= {*table.column_names}:
        raise UserError(
            f"{path}: has no column {whole}, nor {' and '.join(parts)}; it has {', '.join(table.column_names)}: "
            "give data.messages_key, or data.prompt_key and data.response_key"
        )
    pairs = zip(*(table[name].to_pylist() for name in parts), strict=True)
    return [[*_turns("user", prompt), *_turns("assistant", response)] for prompt, response in pairs]


def _turns(role: str, content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    text = strip_end_of_turn(content) if role == "assistant" and isinstance(content, str) else content
    return [{"role": role, "content": text}]


def row_problem(messages: Any, tokenizer: Any) -> str | None:
    """Return what is wrong with one row, or None."""
    if not isinstance(messages, list) or len(messages) < 2:
        return "messages must hold a user's and an assistant's turn"
    if not all(isinstance(turn, dict) and isinstance(turn.get("content"), str | None) for turn in messages):
        return "every one of its messages must have a role and a content of text"
    last = messages[-1]
    if last.get("role") != "assistant" or not last.get("content"):
        return "the last of its messages must be an assistant's, with content"
    if tokenizer.eos_token in last["content"]:
        return f"the answer holds the EOS token {tokenizer.eos_token}; the chat template adds it: leave it out"
    return None


def chat_row(messages: Messages, tokenizer: Any) -> ChatRow:
    """Return the tokens of a checked row. Each assistant's turn is cut off behind its EOS; what follows is context.

    The cut at the start of a turn is made in the text, before it is tokenised, as in a rollout.
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


def _opened_and_closed(messages: Messages, tokenizer: Any) -> tuple[str, str]:
    """Return the text of a chat up to where its last turn, the assistant's, begins, and with it.

    Templates that open a thought in the prompt, or leave thoughts out of what is past, do not render an answer as it
    was sampled. It then follows the prompt as it is, with an EOS.
    """
    opened = chat_text(tokenizer, messages[:-1], add_generation_prompt=True)
    closed, answer = chat_text(tokenizer, messages), messages[-1]["content"] or ""
    if closed.startswith(opened) and answer.strip() in closed[len(opened) :]:
        return opened, closed
    thought = OPENED_THOUGHT.search(opened)  # the response may open it once more
    return opened, opened + answer.removeprefix(thought[0] if thought else "") + tokenizer.eos_token


def check_generation_prompt(path: Path, tokenizer: Any) -> None:
    """Raise UserError unless the chat template has a generation prompt, which tells a model that it is asked.

    The template that adds nothing to a prompt is chosen as such, for prompts that ask by themselves.
    """
    if tokenizer.chat_template == text_template(tokenizer):
        return
    question = [Message(role="user", content="1")]
    if chat_text(tokenizer, question) == chat_text(tokenizer, question, add_generation_prompt=True):
        raise UserError(
            f"{path}: the chat template has no generation prompt (add_generation_prompt changes nothing); fix the "
            "template, or choose one with examples/set_chat_template.py"
        )


def check_template(path: Path, tokenizer: Any) -> None:
    """Raise UserError unless the chat template asks for an answer and ends it with one EOS, so that models stop."""
    check_generation_prompt(path, tokenizer)
    try:
        chat_row([Message(role="user", content="1"), Message(role="assistant", content="1")], tokenizer)
    except UserError as error:
        raise UserError(f"{path}: the chat template does not end an answer with exactly one EOS: {error}") from error


def chat_text(tokenizer: Any, messages: Messages, *, add_generation_prompt: bool = False) -> str:
    """Return ``messages`` rendered by the chat template."""
    text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=add_generation_prompt)
    return text
