"""The laboratory from Python, in a notebook: problems, verdicts, samples, exact probabilities, pass@k, training.

Every function raises UserError, a line that says what to correct, where the command of the same purpose would print it.

    from compositionality import gold_log_prob, judge, pass_at_k, problems, sample, train

    rows = problems("string", levels=[1, 2], count=64, style="compact", max_length=20)
    answers = sample("checkpoints/base", rows["prompt"], n=4, max_tokens=64)
    right = [judge(rows.iloc[row.prompt], row.response).score for row in answers.itertuples()]
    model = train("grpo", "checkpoints/base", rows, "checkpoints/rl", profile="smoke")
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compositionality.data.create_problems import draw_problems, problem_settings
from compositionality.errors import UserError
from compositionality.evaluate.gold import GoldSolution, load, read_solution, score
from compositionality.gpus import count_gpus
from compositionality.ranges import validated
from compositionality.reward.judge import judge_response
from compositionality.rollout.collect import check_chats, settle_engine
from compositionality.rollout.engines.base import Chat, request_seed
from compositionality.rollout.engines.factory import open_engine
from compositionality.rollout.model_folder import check_model, shape_of_model
from compositionality.rollout.settings import CollectSettings
from compositionality.stats import pass_at_k as unbiased
from compositionality.train import train as train
from compositionality.types import Message, Problem, Verdict

Row = Problem | Mapping[str, Any]
SMALL = 5_000_000
"""Parameters up to which one thread computes on a CPU: of many, small matrices make most wait for the others."""


def problems(task: str, mode: str = "", **settings: Any) -> pd.DataFrame:
    """Return problems of a task, a row each with the fields of ``Problem``: prompt, ground_truth, level, group …

    ``settings`` are the keys of ``compositionality create_problems task=TASK --help``: count, split, seed, levels …
    The same settings give the same rows, on any machine. UserError for an unknown task, mode or key.
    """
    schema = problem_settings([f"task={task}", f"mode={mode}"])
    drawn = draw_problems(validated(schema, {"task": task, "mode": mode, "output": "none", **settings}))
    return pd.DataFrame([asdict(problem) for problem in drawn])


def judge(problem: Row | str, response: str, data_source: str = "") -> Verdict:
    """Return score (1.0: right), reason and answer that was read of a response to a problem.

    ``problem``: a row of ``problems``, or a ground truth, then with the ``data_source`` that says which task judges.
    A thought before the last ``</think>`` is cut. UserError for a data source that no task has.
    """
    if isinstance(problem, str):
        return judge_response(data_source, response, problem)
    asked = _problem(problem)
    return judge_response(asked.data_source, response, asked.ground_truth)


def sample(model: str | Path, prompts: Sequence[str | Chat] | pd.Series, n: int = 1, **settings: Any) -> pd.DataFrame:
    """Return ``n`` completions of each prompt: prompt (its place, from 0), sample, response, n_tokens, finish_reason.

    ``model``: a folder in Hugging Face format, or a Hub id. ``prompts``: texts, each a user's turn, or chats.
    ``settings`` are keys of ``compositionality collect_rollouts --help``: temperature (0: greedy), top_p, max_tokens,
    seed, engine … A finish_reason "length" says that max_tokens ended the response. UserError for a model or prompts
    that cannot be sampled here.
    """
    values = {"model": str(model), "n_samples": n, "problems": ".", "output": ".", **settings}
    asked = settle_engine(validated(CollectSettings, values))
    chats = [_chat(prompt) for prompt in prompts]
    if not chats:
        raise UserError("prompts: there are none")
    remote = asked.engine == "openai"
    longest = 0 if remote else check_chats(asked, check_model(model), chats, "prompts")
    units = [(prompt, number) for prompt in range(len(chats)) for number in range(n)]
    with _threads_for(None if remote else model), closing(open_engine(asked, longest)) as engine:
        seeds = [request_seed(asked.seed, *unit) for unit in units]
        done = engine.generate([chats[prompt] for prompt, _ in units], seeds, asked.sampling())
    return pd.DataFrame(
        {
            "prompt": [prompt for prompt, _ in units],
            "sample": [number for _, number in units],
            "response": [completion.text for completion in done],
            "n_tokens": [completion.n_tokens for completion in done],
            "finish_reason": [completion.finish_reason for completion in done],
        }
    )


def gold_log_prob(model: str | Path, problems: pd.DataFrame) -> pd.Series:
    """Return the exact log-probability (natural, temperature 1, EOS included) of each problem's gold solution.

    One forward pass in float32, no sampling; with the index of ``problems``. NaN: the task writes no gold solution, or
    it does not fit the model's window or template. UserError for a folder that holds no model.
    """
    folder = check_model(model)
    rows = [_problem(row) for _, row in problems.iterrows()]
    solutions = [read_solution(_chat(row.prompt), row, folder) for row in rows]
    known = {place: gold.row for place, gold in enumerate(solutions) if isinstance(gold, GoldSolution)}
    with _threads_for(folder.path):
        scored = score(load(folder.path), [*known.values()]) if known else []
    values = np.full(len(rows), np.nan)
    values[[*known]] = [logp_T.sum() for logp_T, _ in scored]
    return pd.Series(values, index=problems.index, name="gold_log_prob")


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that k of n samples, c of them right, hold a right one (unbiased; Chen et al. 2021).

    UserError unless 0 ≤ c ≤ n and 1 ≤ k ≤ n.
    """
    if not 0 <= c <= n:
        raise UserError(f"c={c}: must lie between 0 and the number of samples, {n}")
    return float(unbiased.pass_at_k(np.array([c]), np.array([n]), [k])[0, 0])


def _problem(row: Row) -> Problem:
    """Return the problem of a row; columns of the user's own are left out."""
    return row if isinstance(row, Problem) else Problem(**{entry.name: row[entry.name] for entry in fields(Problem)})


def _chat(prompt: str | Chat) -> Chat:
    return [Message(role="user", content=prompt)] if isinstance(prompt, str) else prompt


@contextmanager
def _threads_for(model: str | Path | None) -> Iterator[None]:
    """Compute with one thread where the model is small and on a CPU, then with as many as before."""
    if model is None or count_gpus() or shape_of_model(model).parameters > SMALL:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
