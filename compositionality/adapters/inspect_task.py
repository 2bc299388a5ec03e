"""A problem file as a task of inspect_ai, which evaluates any model behind an API."""

from pathlib import Path
from typing import Any

from compositionality.data.problems import read_problems
from compositionality.errors import UserError, installed
from compositionality.reward.pool import JudgeInput, SharedJudge
from compositionality.reward.shapes import Shape, reward
from compositionality.types import LENGTH, STOP

with installed("inspect_ai", "inspect_ai>=0.3.285"):
    from anyio import to_thread
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
    from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, Score, Scorer, Target, accuracy, grouped, scorer, stderr
    from inspect_ai.solver import TaskState

MESSAGES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
BY_LEVEL = grouped(accuracy(), "level", all=False, name_template="level {group_name}")
CUT_OFF = ("max_tokens", "model_length")
VALUES = {1.0: CORRECT, 0.0: INCORRECT, -1.0: NOANSWER}
"""Reward of the shape ``paper`` → value of the score."""


def inspect_task(problems: Path | str, *, workers: int = 1, max_error_rate: float = 0.01, **settings: Any) -> Task:
    """Return a task with a sample for each row of the problem file; it reports accuracy overall and by level.

    If the judge fails, the sample has an error and no score. The evaluation fails if this happens on more than
    ``max_error_rate`` of all samples. ``workers``: judging processes. ``settings`` are further arguments of
    ``inspect_ai.Task`` (``epochs``, ``solver``, ``config``, …). UserError for a file that is no problem file.
    """
    path = Path(problems)
    rows = read_problems(path).to_pylist()
    samples = [_sample(number, row) for number, row in enumerate(rows)]
    dataset = MemoryDataset(samples, name=path.stem, location=str(path))
    return Task(dataset=dataset, scorer=verdict(workers), **{"fail_on_error": max_error_rate, **settings})


def _sample(number: int, row: dict[str, Any]) -> Sample:
    try:
        turns = [MESSAGES[turn["role"]](content=turn["content"]) for turn in row["prompt"]]
    except KeyError as error:
        raise UserError(f"row {number}: a turn has the role {error}; inspect_ai takes {', '.join(MESSAGES)}") from error
    metadata = {name: row[name] for name in ("data_source", "level", "group")}
    return Sample(id=number, input=turns, target=row["reward_model"]["ground_truth"], metadata=metadata)


@scorer(metrics=[accuracy(), stderr(), BY_LEVEL])  # type: ignore[untyped-decorator]
def verdict(workers: int = 1) -> Scorer:
    """Return a scorer: C, I, or N for a response without a readable or finished answer.

    ``Score.metadata["reason"]`` is the verdict's reason, ``Score.answer`` the answer that was read. If the judge fails,
    the scorer raises RuntimeError, an error of the sample.
    """
    judge = SharedJudge(workers)

    async def score(state: TaskState, target: Target) -> Score:
        finish = LENGTH if state.output.stop_reason in CUT_OFF else STOP
        item = JudgeInput(state.metadata["data_source"], state.output.completion, target.text, finish)
        judged = await to_thread.run_sync(judge.judge, item)
        value = reward(judged, Shape.PAPER)
        if value is None:
            raise RuntimeError("the judge failed on this response; it is neither right nor wrong")
        return Score(value=VALUES[value], answer=judged.answer, metadata={"reason": judged.reason.value})

    return score
