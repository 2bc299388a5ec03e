"""Judging Countdown answers beside reasoning-gym's scorer, same answers, same run: ``--benchmark-enable -s``.

Processor time is measured, so that a busy machine does not change the ratio much.
"""

import json
import time
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compositionality.tasks.countdown.judge import judge_countdown
from compositionality.tasks.countdown.task import TASK, CountdownPaperOptions
from compositionality.tasks.countdown.wording import ground_truth

GOAL = 5.0
STEPS = "Let me try 3 * 5 = 15 first, then add the rest.\n"
COMPACT = ground_truth([3, 5, 7], 22, style="compact")


def fastest(work: Callable[[], object], rounds: int) -> float:
    """Seconds of processor time of the fastest round."""
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        seconds.append(time.process_time() - begin)
    return min(seconds)


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("level", [3, 4, 5])
def test_judged_answers_per_second(benchmark: BenchmarkFixture, level: int) -> None:
    """512 answers to problems of the paper; where a plus can become a minus, every second answer is wrong."""
    countdown = pytest.importorskip("reasoning_gym.games.countdown", reason="the yardstick comes with the full set-up")
    problems = list(TASK.problems(CountdownPaperOptions((level,)), "train", 0, 512))
    golds = [problem.metadata["expression"] for problem in problems]
    answers = [gold.replace(" + ", " - ", 1) if index % 2 else gold for index, gold in enumerate(golds)]
    cases = [
        (f"{STEPS}<answer>{answer}</answer>", problem.ground_truth)
        for answer, problem in zip(answers, problems, strict=True)
    ]
    entries = [{"metadata": json.loads(problem.ground_truth)} for problem in problems]
    library = countdown.CountdownDataset(countdown.CountdownConfig(seed=0, size=1))

    def judge_all() -> int:
        return sum([judge_countdown(*case).score == 1 for case in cases])

    def score_all() -> int:
        return sum([library.score_answer(*case) == 1 for case in zip(answers, entries, strict=True)])

    rounds = 9 if benchmark.enabled else 1
    assert benchmark.pedantic(judge_all, rounds=rounds) == score_all()
    theirs, ours = fastest(score_all, 3), fastest(judge_all, rounds)
    print(
        f"\n{level} numbers: {512 / ours:,.0f} answers/s, the library's scorer {512 / theirs:,.0f}/s: "
        f"{theirs / ours:.1f} x (goal: {GOAL:.0f} x)"
    )


def test_judged_traces_per_second() -> None:
    cases = ["7,3*5=15\n,7+15=22", "7,3*5=15\n,7+15=23"] * 2500
    seconds = fastest(lambda: [judge_countdown(response, COMPACT) for response in cases], 3)
    print(f"\n{len(cases) / seconds:,.0f} compact responses/s (the library has no such style)")
