"""Trivial programs in the sandbox beside a bare interpreter, same machine, same run: ``--benchmark-enable -s``.

Processor time of all processes is compared with the goal (programs per second and core); wall time is printed too.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compositionality.domains.code.sandbox import containment, run_script, run_tests

GOAL = 20
COUNT = 20
WAYS: dict[str, Callable[[], bool]] = {
    "a script": lambda: [run.output for run in run_script("print(1)", [""])] == ["1\n", ""],
    "eight inputs": lambda: len(list(run_script("print(1)", [""] * 8))) == 9,
    "tests": lambda: run_tests("def f(x):\n    return x", "assert f(1) == 1").end == "passed",
}


def measure(work: Callable[[], bool]) -> tuple[float, float]:
    """Seconds of processor time, of this process and of those that it waited for, and of wall time."""
    before, begin = processor_time(), time.perf_counter()
    assert work()
    return processor_time() - before, time.perf_counter() - begin


def processor_time() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


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
    (ours, wall), (bare, _) = measure(run_all), measure(run_bare)
    print(
        f"\n{way}: {count / ours:.1f} programs/s of processor time ({count / wall:.1f}/s of wall time; goal: {GOAL}), "
        f"a bare interpreter {count / bare:.1f}/s: {ours / bare:.2f} x its time"
    )
