import io
import os
import random
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import fake_engine
import pyarrow.parquet as pq
import pytest
from fake_engine import FakeEngine, contents, fake_settings, write_problems
from held import held
from rich.console import Console

from compositionality.data.artefact import exclusive
from compositionality.errors import UserError
from compositionality.rollout.collect import Meter, calls_of, check, collect
from compositionality.rollout.engines.base import run_calls
from compositionality.rollout.store import (
    SCHEMA,
    layout,
    read_by_problem,
    read_rollouts,
    rollout_manifest,
    working_path,
)
from compositionality.seeds import request_seed


@pytest.fixture
def problems(tmp_path):
    return write_problems(tmp_path / "problems.parquet", 100)


@pytest.fixture
def output(tmp_path):
    return tmp_path / "rollouts"


def test_rows_come_back_by_problem_across_shards(problems, output):
    """And in order, every sample of every problem once."""
    collect(fake_settings(problems, output, n_samples=3, rows_per_shard=64), FakeEngine())
    tables = list(read_rollouts(output))
    assert [table.num_rows for table in tables] == [64, 64, 64, 64, 44]
    assert all(table.schema.equals(SCHEMA) for table in tables)
    pairs = [pair for t in tables for pair in zip(t["problem"].to_pylist(), t["sample"].to_pylist(), strict=True)]
    assert pairs == [(problem, sample) for problem in range(100) for sample in range(3)]
    groups = [(problem, table.select(["problem", "sample"]).to_pydict()) for problem, table in read_by_problem(output)]
    assert groups == [(problem, {"problem": [problem] * 3, "sample": [0, 1, 2]}) for problem in range(100)]


def test_answers_are_judged_and_counted(problems, output, capsys):
    collect(fake_settings(problems, output, n_samples=4), FakeEngine())
    rows = [row for table in read_rollouts(output) for row in table.to_pylist()]
    for row in rows:
        seed = request_seed(0, row["problem"], row["sample"])
        expected = "overlong" if seed % 7 == 0 else "correct" if seed % 2 else "wrong"
        assert (row["reason"], row["score"]) == (expected, float(expected == "correct"))
    assert all((row["group"], row["level"]) == ("trained", 1 + row["problem"] % 2) for row in rows)
    facts, right = rollout_manifest(output).facts, Counter(row["level"] for row in rows if row["reason"] == "correct")
    levels = [{"group": "trained", "level": level, "n": 200, "correct": right[level]} for level in (1, 2)]
    assert (facts["rows"], facts["levels"], facts["reasons"]["correct"]) == (400, levels, right.total())
    assert f"trained  2      200  {right[2] / 2:.1f}" in capsys.readouterr().out


def test_a_second_run_does_nothing_and_other_settings_are_refused(problems, output, capsys):
    collect(fake_settings(problems, output), FakeEngine())
    engine = FakeEngine()
    collect(fake_settings(problems, output, judge_workers=2), engine)
    assert engine.calls == []
    assert "is already there" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"temperature: 1\.0 then, 0\.5 now"):
        collect(fake_settings(problems, output, temperature=0.5), engine)
    collect(fake_settings(problems, output, temperature=0.5, force=True), engine)
    assert rollout_manifest(output).settings["temperature"] == 0.5


def test_limit_takes_the_first_problems(problems, output):
    collect(fake_settings(problems, output, limit=5, n_samples=2), FakeEngine())
    assert [table["problem"].to_pylist() for table in read_rollouts(output)] == [[0, 0, 1, 1, 2, 2, 3, 3, 4, 4]]


def test_two_collectors_on_one_output_are_refused(problems, output):
    with exclusive(output), pytest.raises(UserError, match="another process is writing it"):
        collect(fake_settings(problems, output), FakeEngine())


def test_a_half_finished_folder_of_another_recipe_is_kept_unless_forced(problems, output):
    with pytest.raises(RuntimeError, match="dead"):
        collect(fake_settings(problems, output, n_samples=2, rows_per_shard=50), DyingEngine(calls=2))
    assert len(list((working_path(output) / "shards").iterdir())) == 2
    with pytest.raises(UserError, match="half-finished rollouts of other settings"):
        collect(fake_settings(problems, output, n_samples=3, rows_per_shard=50), FakeEngine())
    engine = FakeEngine()
    collect(fake_settings(problems, output, n_samples=2, rows_per_shard=50), engine)
    assert engine.calls == [50, 50]
    assert not working_path(output).exists()


def test_a_collection_that_made_no_shard_does_not_block_another(problems, output):
    """A wrong address of a server or a model that the engine cannot load is corrected, and the command run again."""
    with pytest.raises(RuntimeError, match="dead"):
        collect(fake_settings(problems, output), DyingEngine(calls=0))
    corrected = fake_settings(problems, output, n_samples=2)
    check(corrected)
    collect(corrected, FakeEngine())
    assert rollout_manifest(output).settings["n_samples"] == 2


@pytest.mark.parametrize("damage", ["truncated", "another shard's rows", "a flipped bit", "an altered response"])
def test_p08_a_damaged_shard_is_made_again(problems, output, damage):
    settings = fake_settings(problems, output, n_samples=2, rows_per_shard=50)
    with pytest.raises(RuntimeError, match="dead"):
        collect(settings, DyingEngine(calls=3))
    other, shard = (working_path(output) / "shards" / f"shard-0000{i}.parquet" for i in (0, 1))
    if damage == "truncated":
        os.truncate(shard, shard.stat().st_size - 20)
    elif damage == "another shard's rows":
        shard.write_bytes(other.read_bytes())
    elif damage == "a flipped bit":
        flip(shard, shard.stat().st_size // 2)
    else:
        table = pq.read_table(shard)
        place = table.column_names.index("response")
        pq.write_table(table.set_column(place, "response", [["altered"] * table.num_rows]), shard)
    engine = FakeEngine()
    collect(settings, engine)
    assert engine.calls == [50, 50]


def test_p21_a_foreign_folder_in_the_place_of_unfinished_shards_is_refused(problems, output):
    (working_path(output) / "mine").mkdir(parents=True)
    with pytest.raises(UserError, match="mine: does not belong to a collection of rollouts"):
        collect(fake_settings(problems, output), FakeEngine())


def test_p08_an_altered_shard_is_refused_by_name(problems, output):
    collect(fake_settings(problems, output), FakeEngine())
    flip(output / "shard-00000.parquet", 100)
    with pytest.raises(UserError, match=r"shard-00000\.parquet: altered"):
        list(read_rollouts(output))


def test_p07_kill_at_random_moments_gives_the_same_files(problems, tmp_path):
    fake_engine.main(problems, tmp_path / "whole", 0, 4, 50)
    output, chance = tmp_path / "killed", random.Random(7)
    for shards in (0, 3, 6):
        program = held("shard", 7, Path(fake_engine.__file__))
        process = subprocess.Popen(
            [sys.executable, *program, problems, output, "0.2", "4", "50"], stdout=subprocess.DEVNULL
        )
        while not (finished_shards(output) >= shards and working_path(output).exists()):
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.2))
        process.kill()
        process.wait()
        assert not output.exists()
    fake_engine.main(problems, output, 0, 4, 50)
    assert contents(tmp_path / "whole") == contents(output)
    assert not working_path(output).exists()


def test_p07_a_kill_while_publishing_leaves_nothing_behind(problems, output):
    settings = fake_settings(problems, output, n_samples=2, rows_per_shard=50)
    with pytest.raises(RuntimeError, match="dead"):
        collect(settings, DyingEngine(calls=3))
    for stray in ("manifest.json", ".manifest.json.partial"):
        (working_path(output) / "shards" / stray).write_text("{")
    collect(settings, FakeEngine())
    assert sorted(path.name for path in output.iterdir()) == ["manifest.json", *sorted(rollout_manifest(output).files)]


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def finished_shards(output):
    return len(list((working_path(output) / "shards").glob("shard-*.parquet")))


def test_the_bar_is_one_line_with_every_number_in_a_terminal_of_60_columns():
    console = Console(width=60, file=io.StringIO(), force_terminal=True, color_system=None)
    with Meter(1234567, 0, console) as meter:
        meter._start -= 1000
        meter.tick(34567, 1_500_000)
    last = console.file.getvalue().split("\x1b[2K")[-1]
    assert re.match(r"[━╸╺ ]+ 34567/1234567 1,[45]\d\d tok/s 0:00:\d\d -:--:--\n", last)
    assert len(last.partition("\n")[0]) <= 60


@pytest.mark.parametrize("parallel_calls", [1, 2, 5])
def test_parallel_calls_are_each_made_once(parallel_calls):
    calls = [(shard, range(shard, shard + 1)) for shard in range(20)]
    pairs = list(run_calls(lambda call: [call], calls, parallel_calls))
    assert sorted(pairs, key=str) == sorted(((call, [call]) for call in calls), key=str)


def test_memory_does_not_grow_with_the_number_of_samples(tmp_path):
    """30,000 answers of 3 kB (90 MB of text) pass through; a collector that kept them would show it."""
    problems = write_problems(tmp_path / "few.parquet", 100)
    collect(fake_settings(problems, tmp_path / "warm", n_samples=40, rows_per_shard=2000), FakeEngine(words=1000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    settings = fake_settings(problems, tmp_path / "many", n_samples=300, rows_per_shard=2000, judge_workers=2)
    collect(settings, FakeEngine(words=1000))
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert pq.read_metadata(tmp_path / "many" / "shard-00014.parquet").num_rows == 2000
    assert grown_mb < 30


@pytest.mark.parametrize(
    ("rows", "size", "replicas", "call"),
    [
        *[(20_000, 2500, 1, 2500), (1000, 1024, 1, 1000), (2_048_000, 8192, 1, 8192), (0, 1024, 1, 0)],
        *[(2048, 1024, 8, 256), (500_000, 8192, 62, 2017), (500_000, 8192, 128, 977), (64_000, 8000, 8, 2000)],
    ],
)
def test_files_are_cut_by_the_number_of_completions_and_calls_for_every_replica(rows, size, replicas, call):
    files = layout(rows)
    assert {len(file) for file in files[:-1]} <= {size}
    calls = [part for file in files for part in calls_of(file, rows, replicas)]
    assert [number for part in calls for number in part] == list(range(rows))
    assert max(map(len, calls), default=0) == call
    assert len(calls) >= min(4 * replicas, rows // 256) or replicas == 1
    assert layout(1000, 300)[-1] == range(900, 1000)


def test_p07_p10_a_collection_goes_on_with_another_number_of_replicas_and_judges(tmp_path):
    """Five replicas make the files that two of them began and one ended."""
    problems = write_problems(tmp_path / "problems.parquet", 1100)
    settings = fake_settings(problems, tmp_path / "out", n_samples=2)
    collect(fake_settings(problems, tmp_path / "whole", n_samples=2, judge_workers=2), FakeEngine(parallel_calls=5))
    dying = DyingEngine(calls=8)
    dying.parallel_calls = 2
    with pytest.raises(RuntimeError, match="dead"):
        collect(settings, dying)
    assert finished_shards(tmp_path / "out") >= 1
    engine = FakeEngine(parallel_calls=1)
    collect(settings, engine)
    assert set(engine.calls) <= {1024, 152}
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


class DyingEngine(FakeEngine):
    def __init__(self, calls):
        super().__init__()
        self.left = calls

    def generate(self, prompts, seeds, options, tick=None):
        if not self.left:
            raise RuntimeError("dead")
        self.left -= 1
        return super().generate(prompts, seeds, options)
