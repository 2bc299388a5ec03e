"""Making and judging problems of each task beside a peer: ``pytest -s --benchmark-enable``, in the same run.

Processor time of one core is measured, so that a busy machine does not change the ratios much. Without the option one
round of a tenth of the work shows that all of it runs.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pytest
from math_answers import RIGHT, WRONG

from compositionality.domains.math.judge import judge_math
from compositionality.tasks.countdown.clean import CountdownOptions
from compositionality.tasks.countdown.solve import solve
from compositionality.tasks.countdown.task import CountdownPaperOptions
from compositionality.tasks.countdown.wording import ground_truth, judge_countdown
from compositionality.tasks.igsm.generate import IgsmOptions
from compositionality.tasks.registry import find_task
from compositionality.tasks.string.clean import StringOptions
from compositionality.tasks.string.paper import StringPaperOptions, paper_problems
from compositionality.tasks.string.wording import judge_string

SIX = [([25, 50, 75, 100, 3, 6], 952), ([1, 2, 3, 4, 5, 6], 100), ([2, 2, 3, 3, 4, 4], 24)]
STRING = {
    "json": 'Reversing "cba" gives abc.\n```json\n{{"output": "abc{}"}}\n```',
    "compact": ",func_3:cab=abc{}",
}


@pytest.fixture
def scale(pytestconfig: pytest.Config) -> tuple[int, int]:
    """Rounds, and by what the work is divided."""
    return (5, 1) if pytestconfig.getoption("benchmark_enable") else (1, 10)


def per_second(count: int, work: Callable[[], object], rounds: int) -> float:
    """The best of some rounds."""
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        seconds.append(time.process_time() - begin)
    return count / min(seconds)


def library(name: str, **options: Any) -> Callable[[int], Iterable[object]]:
    """A data set of reasoning-gym of so many problems."""
    gym = pytest.importorskip("reasoning_gym", reason="the yardstick comes with the full set-up")
    return lambda count: list(gym.create_dataset(name, size=count, seed=42, **options))


def made(task: Any, options: Any) -> Callable[[int], Iterable[object]]:
    return lambda count: list(task.problems(options, "train", 1, count))


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_strings_per_second(stage: int, scale: tuple[int, int]) -> None:
    """Clean, or a stage of the paper's, whose original makes 4,500 to 5,900 rows a second."""
    rounds, part = scale
    clean = made(find_task("string"), StringOptions(levels=(1, 2)))
    make = (lambda count: list(paper_problems(StringPaperOptions(stage, 1, 2), "train", count))) if stage else clean
    count = 10_000 // part
    print(f"\n{f'paper, stage {stage}' if stage else 'clean'}: {per_second(count, lambda: make(count), rounds):,.0f}/s")


@pytest.mark.parametrize("numbers", [3, 4, 5])
def test_countdown_problems_per_second(numbers: int, scale: tuple[int, int]) -> None:
    """Ours are proved solvable, all solutions counted; the library's are built from one. Goal: 100 times as fast."""
    theirs, ours = library("countdown", min_numbers=numbers, max_numbers=numbers), CountdownOptions(levels=(numbers,))
    beside(made(find_task("countdown"), ours), {3: 8000, 4: 4000, 5: 100}[numbers], theirs, 200, scale)


@pytest.mark.parametrize("style", ["text", "compact"])
def test_igsm_problems_per_second(style: str, scale: tuple[int, int]) -> None:
    """Of 15 to 20 operations, beside the library's filled templates. Goal: 300 a second."""
    theirs, ours = library("gsm_symbolic"), made(find_task("igsm"), IgsmOptions(law="min-of-two", style=style))
    ours(40)  # the frequency of answers is known from then on
    beside(ours, 200, theirs, 200, scale)


def beside(ours: Any, count: int, theirs: Any, other: int, scale: tuple[int, int]) -> None:
    """Print how fast both are."""
    rounds, part = scale
    mine, peer = (per_second(n // part, lambda n=n, work=work: work(n // part), rounds)
                  for work, n in ((ours, count), (theirs, other)))  # fmt: skip
    print(f"\nours {mine:,.0f}/s, the peer {peer:,.0f}/s: {mine / peer:,.1f} x")


@pytest.mark.parametrize("use", ["all", "any"])
def test_all_solutions_of_six_numbers(use: str) -> None:
    """Goal: a second a problem."""
    found = per_second(len(SIX), lambda: [solve(numbers, target, use=use) for numbers, target in SIX], 1)
    print(f"\n6 numbers, use={use}: {1 / found:.2f} s a problem")
    assert all(solve(numbers, target, use=use) for numbers, target in SIX)


@pytest.mark.parametrize("style", STRING)
def test_judged_strings_per_second(style: str, scale: tuple[int, int]) -> None:
    """Every second answer is right. Goal: 100,000 a second."""
    truths = [json.dumps({"ref_output": f"abc{i}", "style": style}) for i in range(100)]
    cases = [(STRING[style].format(i % 50), truth) for i, truth in enumerate(truths)] * 10
    print(f"\n{style}: {per_second(len(cases), lambda: [judge_string(*case) for case in cases], scale[0]):,.0f}/s")
    assert sum(judge_string(*case).score for case in cases) == len(cases) / 2


@pytest.mark.parametrize("level", [3, 4, 5])
def test_judged_countdown_answers_per_second(level: int, scale: tuple[int, int]) -> None:
    """Answers to the paper's problems, a plus of every second made a minus. Goal: 5 times the library's scorer."""
    peer = pytest.importorskip("reasoning_gym.games.countdown", reason="the yardstick comes with the full set-up")
    problems = list(islice(find_task("countdown").problems(CountdownPaperOptions((level,)), "train", 0, 512), 512))
    golds = [problem.metadata["expression"] for problem in problems]
    answers = [gold.replace(" + ", " - ", 1) if index % 2 else gold for index, gold in enumerate(golds)]
    scorer = peer.CountdownDataset(peer.CountdownConfig(seed=0, size=1))
    texts = [f"Let me try 3 * 5 = 15 first, then add the rest.\n<answer>{answer}</answer>" for answer in answers]
    ours = list(zip(texts, (problem.ground_truth for problem in problems), strict=True))
    theirs = [(answer, {"metadata": json.loads(truth)}) for answer, (_, truth) in zip(answers, ours, strict=True)]

    def judged(_: int) -> list[bool]:
        return [judge_countdown(*case).score == 1 for case in ours]

    def scored(_: int) -> list[bool]:
        return [scorer.score_answer(*case) == 1 for case in theirs]

    beside(judged, 512, scored, 512, (scale[0], 1))
    assert judged(0) == scored(0)


def test_judged_countdown_traces_per_second(scale: tuple[int, int]) -> None:
    """The library has no such style."""
    truth = ground_truth([3, 5, 7], 22, style="compact")
    cases = ["7,3*5=15\n,7+15=22", "7,3*5=15\n,7+15=23"] * 500
    print(f"\n{per_second(len(cases), lambda: [judge_countdown(case, truth) for case in cases], scale[0]):,.0f}/s")


def test_judged_mathematics_per_second(scale: tuple[int, int]) -> None:
    """All labelled answers on which math-verify ends, in this process."""
    from math_verify import parse, verify

    logging.getLogger("math_verify").setLevel(logging.ERROR)
    cases = [case for case in (*RIGHT, *WRONG) if len(case[1]) < 40 and not {*case[1]} & {"^", "*", "!"}]

    def ours(_: int) -> object:
        return [judge_math(f"\\boxed{{{answer}}}", [gold]) for gold, answer in cases]

    def theirs(_: int) -> object:
        return [verify(parse(f"${gold}$"), parse(f"\\boxed{{{answer}}}")) for gold, answer in cases]

    beside(ours, len(cases), theirs, len(cases), (scale[0], 1))
