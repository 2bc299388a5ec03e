"""Judged mathematics: ours beside math-verify on the same answers. Run with -s to see the figures.

pytest -s --benchmark-enable tests/benchmarks/test_math_judge_speed.py
"""

import logging
import time

import pytest
from math_answers import RIGHT, WRONG

from compositionality.domains.math.judge import judge_math

CASES = [
    case for case in [*RIGHT, *WRONG] if len(case[1]) < 40 and not any(sign in case[1] for sign in ("^", "*", "!"))
]


@pytest.mark.benchmark
def test_answers_per_second(benchmark):
    """Both in this process; one call judges all labelled answers on which math-verify ends."""
    from math_verify import parse, verify

    logging.getLogger("math_verify").setLevel(logging.ERROR)

    def ours():
        return [judge_math(f"\\boxed{{{answer}}}", [gold]).score for gold, answer in CASES]

    def theirs():
        start = time.perf_counter()
        found = [verify(parse(f"${gold}$"), parse(f"\\boxed{{{answer}}}")) for gold, answer in CASES]
        return found, time.perf_counter() - start

    first = theirs()[1]
    scores = benchmark(ours)
    if not benchmark.disabled:
        seconds = min(first, *(theirs()[1] for _ in range(3)))
        mine = benchmark.stats.stats.min
        print(f"\n{len(CASES) / mine:,.0f}/s; math-verify {len(CASES) / seconds:,.0f}/s: {seconds / mine:.1f} times")
    assert len(scores) == len(CASES)
