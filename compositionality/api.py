"""The laboratory from Python, in a notebook: problems, verdicts, samples, exact probabilities, pass@k, training.

For bad input every function raises UserError: one line that says what to correct.

    from compositionality import gold_log_prob, judge, pass_at_k, problems, sample, train

    rows = problems("string", levels=[1, 2], count=64, style="compact", max_length=20)
    answers = sample("checkpoints/base", rows["prompt"], n=4, max_tokens=64)
    right = [judge(rows.iloc[row.prompt], row.response).score for row in answers.itertuples()]
    model = train("grpo", "checkpoints/base", rows, "checkpoints/rl", profile="smoke")
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compositionality.data.create_problems import draw_problems, problem_settings
from compositionality.data.problems import problem_of
from compositionality.data.row_format import RowSettings
from compositionality.errors import UserError
from compositionality.evaluate.gold import GoldSolution, load, read_solution, score
from compositionality.gpus import count_gpus
from compositionality.reward.judge import judge_response
from compositionality.rollout.collect import check_chats, settle_engine
from compositionality.rollout.engines.base import Chat
from compositionality.rollout.engines.factory import open_engine
from compositionality.rollout.model_folder import check_model, shape_of_model
from compositionality.rollout.settings import CollectSettings
from compositionality.seeds import request_seed
from compositionality.stats import pass_at_k as unbiased
from compositionality.train.call import train as train
from compositionality.types import Message, Problem, Verdict, storable
from compositionality.validation import validated

Row = Problem | Mapping[str, Any]
FILE_KEYS = (
    *(entry.name for entry in fields(RowSettings)),
    *("problems", "output", "n_samples", "limit", "force", "rows_per_shard", "reward", "max_error_rate"),
    *("judge_workers", "judge_timeout_s"),
)
"""Keys of ``collect_rollouts`` about files and judges."""
MOST_SAMPLES = 10_000_000
"""Limit of ``pass_at_k``, which keeps a number for each sample in memory."""
SMALL = 5_000_000
"""Models up to this number of parameters use one thread on a CPU: for small matrices more threads are slower."""


def problems(task: str, mode: str = "", **settings: Any) -> pd.DataFrame:
    """Return problems of a task, one per row, with the fields of ``Problem``: prompt, ground_truth, level, group …

    ``settings`` are the keys of ``compositionality create_problems task=TASK --help``: count, split, seed, levels …
    The same settings give the same rows on any machine. UserError for an unknown task, mode or key.
    """
    _refuse(settings, ("output", "avoid", "force"))
    schema = problem_settings([f"task={task}", f"mode={mode}"])
    stream = draw_problems(validated(schema, {"task": task, "mode": mode, "output": "none", **settings}))
    return pd.DataFrame([asdict(problem) for problem in stream])


def judge(problem: Row | str, response: str, data_source: str = "") -> Verdict:
    """Judge a response to a problem: return its score (1.0: right), the reason, and the answer read from it.

    ``problem``: a row of ``problems``; or a ground truth, with the ``data_source`` whose task is to judge.
    A thought before the last ``</think>`` is cut. UserError for an unknown data source, and if ``problem`` is not a
    problem or ``response`` not a text.
    """
    if not isinstance(response, str):
        raise UserError(f"response={response!r}: is not a text; give a string")
    if not isinstance(data_source, str):
        raise UserError(f"data_source={data_source!r}: is not a text; give a string")
    if isinstance(problem, str):
        return judge_response(data_source, response, problem)
    row, _ = _read_row(problem)
    if data_source not in ("", row.data_source):
        raise UserError(f"data_source={data_source}: the problem has its own, {row.data_source}; leave this one out")
    return judge_response(row.data_source, response, row.ground_truth)


def sample(model: str | Path, prompts: Sequence[str | Chat] | pd.Series, n: int = 1, **settings: Any) -> pd.DataFrame:
    """Sample ``n`` completions of each prompt: prompt (its index, from 0), sample, response, n_tokens, finish_reason.

    ``model``: a folder in Hugging Face format, or a Hub id. ``prompts``: texts, each a user's turn, or chats.
    ``settings`` are keys of ``compositionality collect_rollouts --help``: temperature (0: greedy), top_p, max_tokens,
    seed, engine … A finish_reason "length" means that max_tokens ended the response. UserError for a model or prompts
    that cannot be sampled here.
    """
    _refuse(settings, FILE_KEYS)
    if isinstance(prompts, str | pd.DataFrame) or not isinstance(prompts, Iterable):
        raise UserError("prompts: give a list of texts or chats, or the column of a frame")
    chats = [_chat(prompt, f"prompts: number {number}") for number, prompt in enumerate(prompts)]
    if not chats:
        raise UserError("prompts: empty; give at least one")
    values = {"model": str(model), "n_samples": n, "problems": ".", "output": ".", **settings}
    collect = settle_engine(validated(CollectSettings, values))
    remote = collect.engine == "openai"
    longest = 0 if remote else check_chats(collect, check_model(model), chats, "prompts")
    units = [*product(range(len(chats)), range(collect.n_samples))]
    with _threads_for(None if remote else model), closing(open_engine(collect, longest)) as engine:
        seeds = [request_seed(collect.seed, *unit) for unit in units]
        completions = engine.generate([chats[prompt] for prompt, _ in units], seeds, collect.sampling())
    return pd.DataFrame(units, columns=["prompt", "sample"]).assign(
        response=[completion.text for completion in completions],
        n_tokens=[completion.n_tokens for completion in completions],
        finish_reason=[completion.finish_reason for completion in completions],
    )


def gold_log_prob(model: str | Path, problems: pd.DataFrame) -> pd.Series:
    """Return the exact log-probability (natural, temperature 1, EOS included) of each problem's gold solution.

    One forward pass in float32, no sampling; the result has the index of ``problems``, a frame from ``problems`` or a
    problem file. NaN: the task writes no gold solution, or it does not fit the model's window or template. UserError
    for a folder without a model, and for rows that are not problems.
    """
    folder = check_model(str(model))
    if not isinstance(problems, pd.DataFrame):
        raise UserError(f"problems: {type(problems).__name__} is not a frame; give one from problems()")
    rows = [_read_row(row) for _, row in problems.iterrows()]
    for row, _ in rows:
        if not isinstance(row.ground_truth, str):
            raise UserError(f"problem: its ground_truth is {row.ground_truth!r}, not a text; give a string")
    solutions = [read_solution(chat, row, folder) for row, chat in rows]
    rows_by_place = {place: gold.row for place, gold in enumerate(solutions) if isinstance(gold, GoldSolution)}
    with _threads_for(folder.path):
        scored = score(load(folder.path), [*rows_by_place.values()]) if rows_by_place else []
    values = np.full(len(rows), np.nan)
    values[[*rows_by_place]] = [logp_T.sum() for logp_T, _ in scored]
    return pd.Series(values, index=problems.index, name="gold_log_prob")


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that k of n samples, c of them right, include a right one (unbiased; Chen et al. 2021).

    UserError unless n, c, k are whole numbers with 0 ≤ c ≤ n, 1 ≤ k ≤ n and n ≤ 10,000,000.
    """
    n, c, k = (_whole(name, value) for name, value in (("n", n), ("c", c), ("k", k)))
    if n > MOST_SAMPLES:
        raise UserError(f"n={n}: must be at most {MOST_SAMPLES:,}")
    if not 0 <= c <= n:
        raise UserError(f"c={c}: must lie between 0 and the number of samples, {n}")
    return float(unbiased.pass_at_k(np.array([c]), np.array([n]), [k])[0, 0])


def _refuse(settings: Mapping[str, Any], names: Iterable[str]) -> None:
    for name in names:
        if name in settings:
            raise UserError(f"{name}: has no effect here; leave it out")


def _whole(name: str, value: float) -> int:
    """Return ``value`` as int: sums of scores are whole numbers stored as floats."""
    if not isinstance(value, int | float | np.integer | np.floating) or value % 1 != 0:  # NaN and infinity, too
        raise UserError(f"{name}={value!r}: give a whole number")
    return int(value)


def _read_row(row: Row) -> tuple[Problem, Chat]:
    """Return problem and prompt of a row of ``problems`` or of a problem file; other columns are ignored."""
    if isinstance(row, Problem):
        return row, _chat(row.prompt, "prompt")
    if not isinstance(row, Mapping | pd.Series):
        raise UserError(f"problem: {type(row).__name__} given; give a row of problems() or of a problem file")
    if isinstance(row, pd.Series) and row.index.has_duplicates:
        raise UserError(f"problem: has two columns {row.index[row.index.duplicated()][0]}; rename one")
    names = [entry.name for entry in fields(Problem)]
    in_file = "reward_model" in row and "ground_truth" not in row
    required = ["data_source", "level", "group", "prompt", "reward_model", "extra_info"] if in_file else names
    if missing := [name for name in required if name not in row]:
        raise UserError(f"problem: has no {missing[0]}; give a row of problems() or of a problem file")
    if not isinstance(row["data_source"], str):
        raise UserError(f"problem: its data_source is {row['data_source']!r}, not a text; give a string")
    if not in_file:
        problem = Problem(**{name: row[name] for name in names})
        return problem, _chat(problem.prompt, "prompt")
    if not isinstance(row["reward_model"], Mapping) or "ground_truth" not in row["reward_model"]:
        raise UserError(f"problem: its reward_model is {row['reward_model']!r}; give one with a ground_truth")
    if isinstance(row["prompt"], str):
        raise UserError(f"prompt: {row['prompt']!r}: give a chat, [{{role: user, content: text}}, …]")
    chat = _chat([*row["prompt"]] if isinstance(row["prompt"], np.ndarray) else row["prompt"], "prompt")
    return problem_of({**row, "prompt": chat}), chat


def _chat(prompt: object, where: str) -> Chat:
    """Return a prompt as a chat. UserError, which begins with ``where``, if it is neither a text nor a chat."""
    chat = [Message(role="user", content=prompt)] if isinstance(prompt, str) else prompt
    if not isinstance(chat, list) or not chat or not all(map(_is_turn, chat)):
        raise UserError(f"{where}: {prompt!r}: give a text or a chat, [{{role: user, content: text}}, …]")
    return chat


def _is_turn(turn: object) -> bool:
    texts = [turn.get(key) for key in ("role", "content")] if isinstance(turn, dict) else [None]
    return all(isinstance(text, str) and storable(text) == text for text in texts)


@contextmanager
def _threads_for(model: str | Path | None) -> Iterator[None]:
    """Use one thread inside the block if the model is small and on a CPU."""
    if model is None or count_gpus() or shape_of_model(model).parameters > SMALL:
        yield
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
