"""Exact probabilities without sampling: one forward pass over prompt and gold solution of a fixed part of the problems.

Natural log-probabilities at temperature 1, tokenised as a completion, including the EOS. Only the solution of
``Task.gold`` counts: other right chains are not added. The rank of a token is 1 for the most likely.
Names of tensors: B rows, T tokens, V vocabulary.
"""
# ruff: noqa: N803, N806

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from compositionality.data.artefact import Recipe, make
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import iterate_problems
from compositionality.errors import UserError
from compositionality.evaluate.table import SCHEMA as COLUMNS
from compositionality.evaluate.table import problem_sets
from compositionality.rollout.engines.base import Chat
from compositionality.rollout.model_folder import ModelFolder, check_model, load_causal_lm
from compositionality.rollout.prompts import ChatRow, chat_row, prompt_tokens
from compositionality.stats.estimate import Counts, Floats
from compositionality.tasks.diagnosis import ROLES, Span
from compositionality.tasks.registry import known_task
from compositionality.types import Message, Problem

GOLD_PROBLEMS = 200  # number of problems to measure of each group, level and data source of a file
TOKENS_AT_ONCE = 4096  # in one pass, including padding
SCHEMA = pa.schema(
    [
        ("problem", pa.int64()),
        COLUMNS.field("gold_log_prob"),
        COLUMNS.field("gold_log_prob_by_step_role"),
        COLUMNS.field("gold_rank_by_step_role"),
        ("why_not", pa.string()),  # why one or both are null
    ]
)
NO_GOLD, NO_STEPS = "the task writes no gold solution", "the gold solution is not written step by step"
TOO_LONG, CROSSED = "longer than the model's window", "a token holds parts of two roles"
CUT_OTHERWISE = "the chat template or tokenizer cuts the solution otherwise than sampling does"


class GoldSolution(NamedTuple):
    """Prompt, solution and EOS; ``cells``: roles × step + role for each token after the prompt; empty: unknown."""

    row: ChatRow
    cells: Sequence[int]
    why_not: str | None


def measure_gold(model: str, files: Iterable[tuple[Path, Path, pa.Table]]) -> None:
    """Write the missing values of one model; print how many problems cannot be measured, and why.

    ``files``: (file for the values, problem file, its problems).
    """
    folder = check_model(model)
    loaded = cache(partial(load, folder.path))
    for path, problems, table in files:
        inputs = {"model": folder.path, "problems": problems}
        recipe = Recipe("gold_log_probs", {"problems": GOLD_PROBLEMS, "columns": SCHEMA.names}, inputs)
        make(path, recipe, partial(_write, table, folder, loaded), follows=True, wait=600)
        for why, rows in read_gold(path).groupby("why_not", sort=False):
            print(f"{path}: {len(rows)} problems, the first in row {rows['problem'].iloc[0]}: {why}")


def read_gold(path: Path) -> pd.DataFrame:
    """Read the output of ``measure_gold``: ``SCHEMA``, a row for each problem of the fixed part."""
    return read_table(path, SCHEMA.names, types=SCHEMA, gaps=SCHEMA.names).to_pandas()


def load(folder: Path) -> Any:
    """Return a causal language model of any family in float32, on the GPU if there is one."""
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = load_causal_lm(folder, dtype=torch.float32)
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def _write(problems: pa.Table, folder: ModelFolder, loaded: Callable[[], Any], path: Path) -> None:
    """Write the rows of SCHEMA; the model is loaded only if there is something to measure."""
    keys = ["group", "level", "data_source"]
    numbers = problem_sets(problems).groupby(keys, sort=False).head(GOLD_PROBLEMS)["problem"].tolist()
    part = problems.take(numbers)
    pairs = zip(part["prompt"].to_pylist(), iterate_problems(part), strict=True)
    solutions = [read_solution(chat, problem, folder) for chat, problem in pairs]
    measurable = [solution for solution in solutions if isinstance(solution, GoldSolution)]
    scored = iter(score(loaded(), [solution.row for solution in measurable]) if measurable else ())
    rows = []
    for number, solution in zip(numbers, solutions, strict=True):
        if isinstance(solution, str):
            rows.append({"problem": number, "why_not": solution})
            continue
        logp_T, rank_T = next(scored)
        row = {"problem": number, "gold_log_prob": float(logp_T.sum()), "why_not": solution.why_not}
        if solution.cells:
            sums = np.round(100 * np.bincount(solution.cells, logp_T))  # clipped at −327.68 nats
            row["gold_log_prob_by_step_role"] = [int(value) for value in sums.clip(np.iinfo(np.int16).min, 0)]
            row["gold_rank_by_step_role"] = worst_by_cell(rank_T, solution.cells)
        rows.append(row)
    write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)


def read_solution(chat: Chat, problem: Problem, folder: ModelFolder) -> GoldSolution | str:
    """Return a problem's gold solution tokenised as a completion, or the reason why it cannot be measured."""
    gold, tokenizer = gold_of(problem), folder.tokenizer
    if gold is None:
        return NO_GOLD
    encoded = tokenizer(gold, add_special_tokens=False, return_offsets_mapping=tokenizer.is_fast)
    prompt, answer = prompt_tokens(tokenizer, chat), [*encoded["input_ids"], tokenizer.eos_token_id]
    row = ChatRow([*prompt, *answer], [0] * len(prompt) + [1] * len(answer))
    try:
        trained = chat_row([*chat, Message(role="assistant", content=gold)], tokenizer)
    except UserError:
        return CUT_OTHERWISE
    again = tokenizer.decode(encoded["input_ids"], clean_up_tokenization_spaces=False)
    if trained.tokens != row.tokens or again != gold:
        return CUT_OTHERWISE
    if folder.max_positions is not None and len(row.tokens) > folder.max_positions:
        return TOO_LONG
    spans = known_task(problem.data_source).gold_spans(problem)
    cells = cells_of(spans, encoded.get("offset_mapping", ())) if spans else []
    return GoldSolution(row, cells, None if cells else CROSSED if spans else NO_STEPS)


def gold_of(problem: Problem) -> str | None:
    """Return the gold solution of a problem, or None if its task writes none."""
    try:
        return known_task(problem.data_source).gold(problem)
    except UserError:
        return None


def cells_of(spans: Sequence[Span], offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Return the cell of each token by its characters, then the EOS's; empty if a token is in two cells."""
    starts, cells = [span.start for span in spans], list[int]()
    for start, end in offsets:
        span = spans[bisect_right(starts, start) - 1]
        if end > span.end:
            return []
        cells.append(span.step * len(ROLES) + ROLES.index(span.role))
    return [*cells, spans[-1].step * len(ROLES) + ROLES.index("end")] if cells else []


def score(model: Any, rows: Sequence[ChatRow], tokens_at_once: int = TOKENS_AT_ONCE) -> list[tuple[Floats, Counts]]:
    """Return log-probability and rank of the tokens in each row's loss mask, (T,), in the order of the rows."""
    import torch

    from compositionality.train.sft import micro_batches

    order = sorted(range(len(rows)), key=lambda number: -len(rows[number].tokens))
    scores = list[tuple[Floats, Counts]]()
    with torch.inference_mode():
        for batch in micro_batches([rows[number] for number in order], tokens_at_once):
            tokens_BT, marked_BT = batch.tokens.to(model.device), batch.loss_mask[:, 1:].bool()
            logits_BTV = model(input_ids=tokens_BT[:, :-1], use_cache=False).logits.float()
            chosen_BT1 = logits_BTV.gather(-1, tokens_BT[:, 1:, None])
            logp_BT = (chosen_BT1.squeeze(-1) - logits_BTV.logsumexp(-1)).double().cpu()
            rank_BT = ((logits_BTV > chosen_BT1).sum(-1) + 1).cpu()
            scores += [
                (logp_T[marked_T].numpy(), rank_T[marked_T].numpy())
                for logp_T, rank_T, marked_T in zip(logp_BT, rank_BT, marked_BT, strict=True)
            ]
    return [scores[place] for place in np.argsort(order)]


def worst_by_cell(rank_T: Counts, cells: Sequence[int]) -> list[int]:
    """Return the largest rank of a token by step and role; 0 without tokens."""
    ranks = np.zeros(cells[-1] + 1, np.int64)
    np.maximum.at(ranks, cells, rank_T)
    return ranks.tolist()
