"""Judging and counting the responses of a large pass@k: processor time and memory; ``-s`` shows them."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.evaluate.collect import EvaluationSettings, count_samples, open_evaluation
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.rollout.store import STEP, layout, shard_name, shard_table
from compositionality.types import Completion, Problem, Reason, Verdict

PROBLEMS, SAMPLES, GOAL_S, GOAL_MB = 2048, 1000, 90.0, 1024


def test_a_whole_collection_is_judged_and_counted_in_time(tmp_path: Path) -> None:
    """2,048 × 1,000 responses: a twentieth with the real judge, a tenth read and counted from shards, both scaled."""
    judging = (judging_seconds(PROBLEMS * SAMPLES // 20) - judging_seconds(0)) * 20
    make_collection(tmp_path, PROBLEMS // 10)
    code = f"from test_passk_speed import count; count({str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    tenth, megabytes = map(float, done.stdout.split())
    counting = tenth * 10
    print(f"\n2,048 × 1,000: judged in {judging:.0f} s, read and counted in {counting:.0f} s (goal: {GOAL_S:.0f} s)")
    print(f"peak of counting {megabytes:.0f} MB (goal: {GOAL_MB} MB)")
    assert megabytes < GOAL_MB


def judging_seconds(responses: int) -> float:
    """Processor time of this process and of one judging process, start included."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    begin = sum(sum(resource.getrusage(one)[:2]) for one in whose)
    with JudgePool(1) as pool:
        for start in range(0, responses, SAMPLES):
            truth = json.dumps({"ref_output": f"abc{start}", "style": "compact"})
            some = range(start, min(start + SAMPLES, responses))
            verdicts = pool.judge([JudgeInput("string-heldout-level3", f",func_3:cab=abc{row}", truth) for row in some])
            assert verdicts[0].reason is Reason.CORRECT
    return sum(sum(resource.getrusage(one)[:2]) for one in whose) - begin


def make_collection(folder: Path, n_problems: int) -> None:
    """A problem file and a rollout folder of ``n_problems`` × 1,000 responses."""
    made = [
        Problem("string-heldout-level3", 3, "heldout", f"func_3:{row}", '{"ref_output": "ab"}', row)
        for row in range(n_problems)
    ]
    write_table(to_table(made, "test"), folder / "test.parquet")
    settings = {"n_samples": SAMPLES, "temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_tokens": 64}
    kinds = [(Completion(f",func_3:cab={'abc' * row}", 40, "stop"), row % 5 == 0) for row in range(50)]
    with new_artefact(folder / "rollouts", Recipe(STEP, settings, {"problems": folder / "test.parquet"})) as partial:
        for shard, numbers in enumerate(layout(n_problems * SAMPLES)):
            units = [divmod(number, SAMPLES) for number in numbers]
            answers = [kinds[(problem + sample) % 50] for problem, sample in units]
            verdicts = [Verdict(float(right), Reason.CORRECT if right else Reason.WRONG, "ab") for _, right in answers]
            table = shard_table(units, [(3, "heldout")] * len(units), [answer for answer, _ in answers], verdicts)
            write_table(table, partial / shard_name(shard))


def count(folder: str) -> None:
    """Print the seconds that counting took, and the peak of this process in MB."""
    begin = time.process_time()
    words = {"rollouts": [f"m:{folder}/rollouts"], "problems": [f"test:{folder}/test.parquet"]}
    evaluation = open_evaluation(EvaluationSettings(**words, output=Path(folder), n_samples=SAMPLES), "passk")
    counts = count_samples(Path(folder) / "rollouts", evaluation.problems["test"], SAMPLES)
    assert counts["right"].sum() == counts["judged"].sum() / 5
    peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]  # ru_maxrss starts at the parent's
    print(time.process_time() - begin, int(peak) / 1024)
