"""Speed of making and solving Countdown problems, beside reasoning-gym in the same run.

pytest tests/benchmarks/test_countdown_speed.py --benchmark-enable -s

Processor time of one core is measured, so that a busy machine does not change the figures much. Ours are proved
solvable, with all solutions counted; the library's are built from one solution.
"""

import time
from collections.abc import Callable

import pytest

from compositionality.tasks.countdown import TASK
from compositionality.tasks.countdown.clean import CountdownOptions
from compositionality.tasks.countdown.solve import solve

GOAL, SOLVING_GOAL = 100, 1.0


def per_second(count: int, make: Callable[[], object], rounds: int) -> float:
    """The best of some rounds, the first of which also warms up."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        make()
        times.append(time.process_time() - begin)
    return count / min(times)


def ours(levels: tuple[int, ...], count: int, rounds: int) -> float:
    options = CountdownOptions(levels=levels)
    return per_second(count, lambda: list(TASK.problems(options, "train", 1, count)), rounds)


def library(levels: tuple[int, int], count: int, rounds: int) -> float:
    countdown = pytest.importorskip("reasoning_gym.games.countdown")
    config = countdown.CountdownConfig(min_numbers=levels[0], max_numbers=levels[1], seed=42, size=count)
    return per_second(count, lambda: list(countdown.CountdownDataset(config)), rounds)


def test_generation_beside_the_librarys(pytestconfig: pytest.Config) -> None:
    """Where nothing is measured, one round of a tenth shows that both run."""
    mine, theirs, part = (3, 2, 1) if pytestconfig.getoption("benchmark_enable") else (1, 1, 10)
    beside, made = library((4, 6), 150 // part, theirs), ours((3, 4), 8000 // part, mine)
    print(f"\nours, 3-4 numbers: {made:,.0f}/s; the library, 4-6 (its default): {beside:,.0f}/s")
    print(f"{made / beside:,.0f} x (goal: {GOAL} x)")
    for n in (3, 4, 5):
        one, other = ours((n,), {3: 8000, 4: 4000, 5: 100}[n] // part, mine), library((n, n), 200 // part, theirs)
        print(f"{n} numbers: ours {one:,.0f}/s, the library {other:,.0f}/s, {one / other:,.0f} x")


@pytest.mark.parametrize("use", ["all", "any"])
def test_all_solutions_of_six_numbers(use: str) -> None:
    problems = [([25, 50, 75, 100, 3, 6], 952), ([1, 2, 3, 4, 5, 6], 100), ([2, 2, 3, 3, 4, 4], 24)]
    begin = time.process_time()
    found = [len(solve(numbers, target, use=use)) for numbers, target in problems]
    seconds = (time.process_time() - begin) / len(problems)
    print(f"\n6 numbers, use={use}: {found} solutions, {seconds:.2f} s a problem (goal: {SOLVING_GOAL} s)")
    assert all(found)
