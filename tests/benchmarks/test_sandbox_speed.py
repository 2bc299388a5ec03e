"""Trivial programs in the sandbox beside a bare interpreter, same machine, same run: ``--benchmark-enable -s``.

Wall time on one worker: the programs run in other processes, one after the other.
"""

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compositionality.tasks.code.sandbox import containment, run_script, run_tests

GOAL = 20
COUNT = 20
WAYS: dict[str, Callable[[], bool]] = {
    "a script": lambda: [run.output for run in run_script("print(1)", [""])] == ["1\n", ""],
    "eight inputs": lambda: len(list(run_script("print(1)", [""] * 8))) == 9,
    "tests": lambda: run_tests("def f(x):\n    return x", "assert f(1) == 1").end == "passed",
}


@pytest.mark.parametrize("way", WAYS)
def test_programs_per_second(benchmark: BenchmarkFixture, way: str) -> None:
    """The peer, ``subprocess.run([python, "-I", "-c", …])``, contains nothing."""
    containment()
    count = COUNT if benchmark.enabled else 1
    command = [sys.executable, "-I", "-c", "print(1)"]

    def run_all() -> bool:
        return all(WAYS[way]() for _ in range(count))

    def run_bare() -> bool:
        return all(subprocess.run(command, capture_output=True, check=True).stdout for _ in range(count))

    assert benchmark.pedantic(run_all, rounds=3 if benchmark.enabled else 1)
    seconds = []
    for work in (run_all, run_bare):
        begin = time.perf_counter()
        assert work()
        seconds.append(time.perf_counter() - begin)
    ours, bare = (count / each for each in seconds)
    print(f"\n{way}: {ours:.1f} programs/s (goal: {GOAL}), a bare interpreter {bare:.1f}/s: {ours / bare:.2f} x")
