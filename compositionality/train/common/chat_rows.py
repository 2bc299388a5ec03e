"""Chat rows for SFT: read from a parquet file's ``messages``, checked, and made into tokens with a loss mask."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.rollout.prompts import readable
from compositionality.types import Message

Messages = list[Message]


@dataclass(frozen=True)
class Lengths:
    """Token counts of an SFT file: rows, the longest, how many are over the limit and the first of those."""

    rows: int
    longest: int
    over: int
    first_over: int | None

    def describe(self, path: Path, limit: int) -> str:
        """How many rows are too long, for a message."""
        return (
            f"{path}: {self.over} of {self.rows} rows are longer than data.max_length={limit} tokens"
            f" (longest {self.longest}, first is row {self.first_over})"
        )


@dataclass(frozen=True, slots=True)
class ChatRow:
    """Tokens of one row; ``loss_mask`` has a 1 for each token of an assistant's turn, its EOS included."""

    tokens: list[int]
    loss_mask: list[int]


def measure(lengths: list[int], limit: int) -> Lengths:
    """Token counts of all rows, and how many are over ``limit``."""
    over = [number for number, length in enumerate(lengths) if length > limit]
    return Lengths(len(lengths), max(lengths), len(over), over[0] if over else None)


def check_rows(path: Path, tokenizer: Any, limit: int) -> Lengths:
    """Check every row of an SFT file: a user's turn, then an answer with exactly one EOS. UserError names the row."""
    return measure([len(token_ids(tokenizer, messages)) for messages in read_messages(path, tokenizer)], limit)


def load_rows(path: Path, tokenizer: Any, limit: int) -> list[ChatRow]:
    """All rows of an SFT file as tokens. UserError for a bad row, or for rows over ``limit`` tokens."""
    rows = []
    for number, messages in enumerate(read_messages(path, tokenizer)):
        try:
            rows.append(chat_row(messages, tokenizer))
        except UserError as error:
            raise UserError(f"{path}: row {number}: {error}") from error
    lengths = measure([len(row.tokens) for row in rows], limit)
    if lengths.over:
        raise UserError(f"{lengths.describe(path, limit)}; raise data.max_length or filter the rows")
    return rows


def read_messages(path: Path, tokenizer: Any) -> list[Messages]:
    """The column ``messages``; UserError names the first row that is no question with an answer."""
    rows: list[Messages] = read_table(path, ["messages"])["messages"].to_pylist()
    for number, messages in enumerate(rows):
        problem = row_problem(messages, tokenizer)
        if problem:
            raise UserError(f"{path}: row {number}: {problem}")
    return list(readable(rows, tokenizer, str(path)))


def row_problem(messages: Any, tokenizer: Any) -> str | None:
    """What is wrong with one row, or None."""
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
    """Tokens of a checked row. Each assistant's turn is cut off behind its EOS; what follows that is context.

    The cut at the start of a turn is made in the text, before it is tokenised, as in a rollout.
    """
    tokens: list[int] = []
    loss_mask: list[int] = []
    text = ""
    for turn, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        opened = chat_text(tokenizer, messages[:turn], add_generation_prompt=True)
        closed = chat_text(tokenizer, messages[: turn + 1])
        if not (opened.startswith(text) and closed.startswith(opened)):
            raise UserError("the chat template rewrites earlier turns; split the conversation into rows of one answer")
        prompt_ids = tokenizer(opened[len(text) :], add_special_tokens=False)["input_ids"]
        answer = tokenizer(closed[len(opened) :], add_special_tokens=False)["input_ids"]
        if answer.count(tokenizer.eos_token_id) != 1:
            raise UserError(f"turn {turn} does not hold exactly one EOS ({tokenizer.eos_token}) once it is tokenised")
        end = answer.index(tokenizer.eos_token_id) + 1
        last = turn == len(messages) - 1
        tokens += prompt_ids + (answer[:end] if last else answer)
        loss_mask += [0] * len(prompt_ids) + [1] * end + [0] * (0 if last else len(answer) - end)
        text = closed
    return ChatRow(tokens, loss_mask)


def check_template(path: Path, tokenizer: Any) -> None:
    """UserError unless the chat template ends an answer with exactly one EOS: a model must learn to stop."""
    question = Message(role="user", content="1")
    prompt = token_ids(tokenizer, [question], add_generation_prompt=True)
    whole = token_ids(tokenizer, [question, Message(role="assistant", content="1")])
    if whole[: len(prompt)] != prompt:
        raise UserError(
            f"{path}: the chat template renders a question differently once it is answered; fix the template"
        )
    count = whole[len(prompt) :].count(tokenizer.eos_token_id)
    if count != 1:
        raise UserError(f"{path}: the chat template ends an answer with {count} EOS ({tokenizer.eos_token}), not one")


def chat_text(tokenizer: Any, messages: Messages, *, add_generation_prompt: bool = False) -> str:
    """``messages`` rendered by the chat template."""
    text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=add_generation_prompt)
    return text


def token_ids(tokenizer: Any, messages: Messages, *, add_generation_prompt: bool = False) -> list[int]:
    """Token ids of ``messages`` rendered by the chat template."""
    text = chat_text(tokenizer, messages, add_generation_prompt=add_generation_prompt)
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids
