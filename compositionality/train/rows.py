"""Rows of files, read, checked and made into tokens: chats for SFT with a loss mask, problems of RL."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from compositionality.data.artefact import is_to_be_checked
from compositionality.data.parquet import read_table
from compositionality.data.problems import ROLES, read_problems
from compositionality.data.row_format import RL_SCHEMA, RowFormat
from compositionality.errors import UserError
from compositionality.rft.rows import strip_end_of_turn
from compositionality.rollout.engines.vllm import check_heads
from compositionality.rollout.model_folder import check_context, check_family, check_model, read_config, text_template
from compositionality.rollout.prompts import (
    ChatRow,
    chat_row,
    chat_text,
    check_prompt_lengths,
    readable,
    tokenized,
)
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.train.memory import check_training
from compositionality.train.metrics import entropies
from compositionality.train.prompts import GrpoInputs, TokenizedProblem
from compositionality.train.settings import check_split
from compositionality.types import Message

Messages = list[Message]
COLUMNS = ("messages", "prompt", "response")
"""Columns of an SFT file: whole chats or, where there is no such column, prompts and responses."""


def load_rows(
    path: Path, tokenizer: Any, limit: int, columns: Sequence[str] = COLUMNS, truncation: str = ""
) -> list[ChatRow]:
    """Return all rows of an SFT file as tokens. UserError for a bad row, or as ``check_lengths`` has it."""
    rows = []
    for number, messages in enumerate(read_messages(path, tokenizer, columns)):
        try:
            rows.append(chat_row(messages, tokenizer))
        except UserError as error:
            raise UserError(f"{path}: row {number}: {error}") from error
    check_lengths(path, rows, limit, truncation)
    return rows


def check_lengths(path: Path, rows: Sequence[ChatRow], limit: int, truncation: str = "") -> None:
    """Refuse rows over ``limit`` tokens, or say that they are cut; ``truncation``: of verl, which alone can cut."""
    lengths = [len(row.tokens) for row in rows]
    over = [number for number, length in enumerate(lengths) if length > limit]
    if not over:
        return
    count, longest = f"{len(over)} of {len(rows)}", f"longest {max(lengths)}, first is row {over[0]}"
    message = f"{path}: {count} rows are longer than data.max_length={limit} tokens ({longest})"
    if truncation not in ("", "error"):
        print(f"{message}; their {'ends' if truncation == 'right' else 'beginnings'} are cut", flush=True)
        return
    fix = (
        ", filter the rows, or cut their ends with verl.data.truncation=right" if truncation else " or filter the rows"
    )
    raise UserError(f"{message}; raise data.max_length{fix}")


def read_messages(path: Path, tokenizer: Any | None, columns: Sequence[str] = COLUMNS) -> list[Messages]:
    """Return the chats of a file; UserError names the first row that is no question with an answer.

    ``tokenizer``: None for that of a model that is not there yet; then what only it can tell is not checked.
    """
    rows = _chats(read_table(path), path, columns)
    for number, messages in enumerate(rows):
        problem = row_problem(messages, tokenizer)
        if problem:
            raise UserError(f"{path}: row {number}: {problem}")
    return list(readable(rows, tokenizer, str(path))) if tokenizer else rows


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


def row_problem(messages: Any, tokenizer: Any | None) -> str | None:
    """Return what is wrong with one row, or None."""
    if not isinstance(messages, list) or len(messages) < 2:
        return "messages must hold a user's and an assistant's turn"
    if not all(isinstance(turn, dict) and _is_text(turn, "role") and _is_text(turn, "content") for turn in messages):
        return "every one of its messages must have a role and a content of text"
    if unknown := {turn["role"] for turn in messages} - {*ROLES}:
        return f"the role of one of its messages is {min(unknown)!r}, none of {', '.join(ROLES)}"
    if messages[0]["role"] == "assistant":
        return "the first of its messages is an assistant's, which nothing asks for"
    answer = messages[-1]
    if answer["role"] != "assistant" or not answer["content"]:
        return "the last of its messages must be an assistant's, with content"
    if tokenizer and tokenizer.eos_token in answer["content"]:
        return f"the answer holds the EOS token {tokenizer.eos_token}; the chat template adds it: leave it out"
    return None


def _is_text(turn: dict[str, Any], key: str) -> bool:
    return isinstance(turn.get(key), str)


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


# ---- problems of RL


def read_grpo_inputs(settings: GrpoSettings) -> GrpoInputs:
    """Return tokenizer and problems; in a dry run of those files that are there.

    UserError for prompts that do not fit the model, and for a run that does not fit this machine.
    """
    from compositionality.train.lora import check_adapters

    data, dry, like = settings.data, settings.dry_run, settings.algorithm.entropy_like
    targets = entropies(Path(like), settings.trainer.last_step()) if like and is_to_be_checked(like, dry=dry) else []
    model = check_model(Path(settings.model.path), chat_template=data.apply_chat_template)
    check_generation_prompt(model.path, model.tokenizer)
    check_family(model.path)
    check_split(read_config(model.path), settings.mesh.tensor)
    check_adapters(model.path, settings.model.lora)
    if settings.rollout.engine == "vllm":
        check_heads(model.path, "rollout.engine=builtin")
    train = [path for path in data.train_files if is_to_be_checked(path, dry=dry)]
    held_out = [path for path in data.val_files if is_to_be_checked(path, dry=dry)]
    read = (model.tokenizer, data.max_prompt_tokens)
    problems = tokenize_problems(train, *read, data.train_limit, settings.row_format())
    val_problems = tokenize_problems(held_out, *read, settings.trainer.eval_limit, settings.row_format())
    longest = data.max_prompt_tokens + settings.rollout.max_tokens
    check_context(model, longest, "data.max_prompt_tokens + rollout.max_tokens")
    check_training(settings)
    return GrpoInputs(model.tokenizer, model.eos_ids, problems, val_problems, targets)


def tokenize_problems(
    paths: Sequence[str | Path],
    tokenizer: Any,
    max_tokens: int,
    limit: int | None = None,
    row_format: RowFormat = RL_SCHEMA,
) -> list[TokenizedProblem]:
    """Return all files' problems (``limit`` of each data source); UserError if a prompt has over ``max_tokens``."""
    problems: list[TokenizedProblem] = []
    counts: Counter[str] = Counter()
    columns = ("data_source", "prompt", "reward_model", *(["extra_info"] if row_format.any_source else []))
    for path in map(Path, paths):
        rows = read_problems(path, row_format).select([*columns]).to_pylist()
        prompts = [*tokenized((row["prompt"] for row in rows), tokenizer, str(path))]
        check_prompt_lengths(map(len, prompts), max_tokens, str(path))
        for row, prompt_ids in zip(rows, prompts, strict=True):
            counts[row["data_source"]] += 1
            if limit is None or counts[row["data_source"]] <= limit:
                truth = row["reward_model"]["ground_truth"]
                problems.append(TokenizedProblem(prompt_ids, row["data_source"], truth, row.get("extra_info")))
    return problems
