"""A problem file as an environment of verifiers, for training and evaluation with prime-rl and others.

For verifiers an environment is a module with a taskset in ``__all__``, such as examples/adapters/verifiers_problems.py.
"""

import asyncio
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from compositionality.data.problems import BATCH, read_problems
from compositionality.errors import UserError, installed
from compositionality.reward.pool import JudgeInput, SharedJudge
from compositionality.reward.shapes import Shape, reward
from compositionality.types import LENGTH, STOP, Reason, Verdict

with installed("verifiers", "verifiers>=0.4"):
    import verifiers.v1 as vf

VERDICT = "verdict"
"""Key of ``Trace.info`` for the verdict: reason, answer, score."""


class JudgeConfig(vf.TaskConfig):  # type: ignore[misc]
    """Settings of judging (``--env.taskset.task.*``)."""

    shape: Shape = Shape.BINARY
    """The reward's shape: binary, paper or format."""
    workers: int = 1
    """Judging processes."""


class ProblemData(vf.TaskData):  # type: ignore[misc]
    """One row of the problem file: the prompt and the fields that the judge needs."""

    data_source: str
    ground_truth: str
    level: int
    group: str


class ProblemTask(vf.Task[ProblemData, vf.State, JudgeConfig]):  # type: ignore[misc]
    """One problem, answered in one turn."""

    @vf.metric  # type: ignore[untyped-decorator]
    async def reasons(self, trace: vf.Trace) -> dict[str, float]:
        """Return an indicator for each reason; store the verdict in ``trace.info`` for the reward."""
        finish = LENGTH if trace.is_truncated else STOP
        item = JudgeInput(self.data.data_source, trace.last_reply, self.data.ground_truth, finish)
        verdict = await asyncio.to_thread(_shared_judge(self.config.workers).judge, item)
        trace.info[VERDICT] = {"reason": verdict.reason.value, "answer": verdict.answer, "score": verdict.score}
        return {reason.value: float(verdict.reason is reason) for reason in Reason}

    @vf.reward  # type: ignore[untyped-decorator]
    async def verdict(self, trace: vf.Trace) -> float:
        """Return the reward of the verdict. If the judge failed, RuntimeError, an error of the rollout."""
        stored = trace.info[VERDICT]
        value = reward(Verdict(stored["score"], Reason(stored["reason"]), stored["answer"]), self.config.shape)
        if value is None:
            raise RuntimeError("the judge failed on this response; it is neither right nor wrong")
        return value


class ProblemConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Settings of the taskset (``--env.taskset.*``)."""

    problems: Path = Path()
    """A problem file (parquet); required."""
    task: JudgeConfig = JudgeConfig()


class ProblemTaskset(vf.Taskset[ProblemTask, ProblemConfig]):  # type: ignore[misc]
    """The rows of a problem file, in its order. UserError for a file that is no problem file."""

    def load(self) -> Iterator[ProblemTask]:
        for batch in read_problems(self.config.problems).to_batches(max_chunksize=BATCH):
            for row in batch.to_pylist():
                yield ProblemTask(_data(row), self.config.task)


def _data(row: Mapping[str, Any]) -> ProblemData:
    turns = row["prompt"]
    system = turns[0]["content"] if turns[0]["role"] == "system" else None
    dialogue = turns[1:] if system is not None else turns
    if not dialogue:
        raise UserError("a prompt has only a system turn; add a user turn")
    is_question = len(dialogue) == 1 and dialogue[0]["role"] == "user"
    return ProblemData(
        prompt=dialogue[0]["content"] if is_question else dialogue,
        system_prompt=system,
        data_source=row["data_source"],
        ground_truth=row["reward_model"]["ground_truth"],
        level=row["level"],
        group=row["group"],
    )


@cache
def _shared_judge(workers: int) -> SharedJudge:
    return SharedJudge(workers)
