"""Speed of the string task. ``pytest tests/benchmarks --benchmark-enable -s`` prints the figures.

Processor time is measured, so that a busy machine does not change the figures much.
"""

import json
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.tasks.string import TASK
from compositionality.tasks.string.clean import StringOptions
from compositionality.tasks.string.judge import judge_string
from compositionality.tasks.string.paper import PaperFile, paper_problems

ORIGINAL = "the original: 4,500-5,900 rows/s"
ROWS = 10_000


def report(what: str, count: int, seconds: float, beside: str) -> None:
    print(f"\n{what}: {count / seconds:,.0f}/s of one core's time ({beside})")


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("mode", ["clean", "clean with parquet", "paper stage 1", "paper stage 2"])
def test_rows_per_second(benchmark: BenchmarkFixture, tmp_path: Path, mode: str) -> None:
    def make() -> int:
        if mode.startswith("paper"):
            return sum(1 for _ in paper_problems(PaperFile(int(mode[-1]), "train", 1, 2, ROWS)))
        problems = list(TASK.problems(StringOptions(levels=(1, 2)), "train", 1, ROWS))
        if mode.endswith("parquet"):
            write_table(to_table(problems, "train"), tmp_path / "rows.parquet")
        return len(problems)

    begin = time.process_time()
    assert benchmark.pedantic(make, rounds=3 if benchmark.enabled else 1) == ROWS
    seconds = benchmark.stats.stats.min if benchmark.enabled else time.process_time() - begin
    report(f"{mode}, levels 1-2", ROWS, seconds, ORIGINAL)


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("style", ["json", "compact"])
def test_judged_responses_per_second(benchmark: BenchmarkFixture, style: str) -> None:
    truths = [json.dumps({"ref_output": f"abc{i}", "style": style}) for i in range(100)]
    answer = (
        'Reversing "cba" gives abc.\n```json\n{{"output": "abc{}"}}\n```' if style == "json" else ",func_3:cab=abc{}"
    )
    cases = [(answer.format(i % 50), truth) for i, truth in enumerate(truths)] * (ROWS // 100)

    def judge_all() -> float:
        return sum([judge_string(response, truth).score for response, truth in cases])

    begin = time.process_time()
    assert benchmark.pedantic(judge_all, rounds=5 if benchmark.enabled else 1) == ROWS / 2
    seconds = benchmark.stats.stats.min if benchmark.enabled else time.process_time() - begin
    report(f"judged {style} responses", ROWS, seconds, "goal: 100,000/s")
