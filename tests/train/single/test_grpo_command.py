"""The command: killed at any moment it ends with the same bytes; bad input is one line and exit code 2."""

import os
import random
import signal
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bash_runs import warm_python
from held import HELD, held
from runs import ROOT, assert_same_update, settings, weights, words

from compositionality.data.artefact import verify
from compositionality.errors import UserError
from compositionality.train.engines import train_on_rank as train
from compositionality.train.metrics import read_metrics
from compositionality.train.run_folder import scores

SCRIPT = ROOT / "compositionality" / "train" / "grpo.py"
STEPS = 6


def command(arguments: list[str], *launcher: str) -> list[str]:
    return [*(launcher or (warm_python(), str(SCRIPT))), *arguments]


def start(arguments: list[str], *launcher: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    return subprocess.Popen(
        command(arguments, *launcher), env=environment | {"OMP_NUM_THREADS": "1", "PYTHON_EXEC": warm_python()},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip


def finish(arguments: list[str], *launcher: str, code: int = 0) -> str:
    process = start(arguments, *launcher)
    printed, _ = process.communicate(timeout=900)
    assert process.returncode == code, printed[-3000:]
    return printed


def kill_somewhere(arguments: list[str], lines: int, spins: int) -> None:
    """SIGKILL after so many lines and a little more, before the last step: there the run waits for it."""
    process = start(arguments, warm_python(), *held("checkpoint", STEPS - 1, SCRIPT))
    assert process.stdout is not None
    for _ in range(lines):
        if process.stdout.readline() == f"{HELD}\n":
            break
    for _ in range(spins):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    said = process.stdout.read()  # to its end: no process of the run is left
    process.stdout.close()
    assert process.returncode == -signal.SIGKILL, said[-3000:]


@pytest.mark.slow
def test_p07_a_run_killed_at_random_moments_ends_with_the_same_bytes(small, tmp_path):
    more = [f"trainer.steps={STEPS}", "algorithm.dynamic_sampling=true", "algorithm.max_generation_batches=30"]
    train(settings(small, tmp_path / "whole", *more))
    rng = random.Random(5)
    arguments = words(small, tmp_path / "killed", *more)
    for _ in range(3):
        kill_somewhere(arguments, rng.randint(2, 5), rng.randint(0, 3_000_000))
    assert "going on from step" in finish(arguments)
    for name in ("final", "best"):
        assert verify(tmp_path / "killed" / name).files == verify(tmp_path / "whole" / name).files
    assert scores(tmp_path / "killed" / "steps") == scores(tmp_path / "whole" / "steps")
    assert [row["step"] for row in read_metrics(tmp_path / "killed" / "metrics.jsonl")] == list(range(STEPS + 1))


@pytest.mark.slow
def test_p10_torchrun_gives_what_one_process_gives(small, tmp_path):
    more = ["trainer.steps=2", "optim.lr=2e-4"]
    train(settings(small, tmp_path / "one", *more))
    launcher = [warm_python(), "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(SCRIPT)]
    printed = finish(words(small, tmp_path / "two", *more, "mesh.tensor=2"), *launcher)
    assert printed.count("step 2/2") == 1  # told by one rank
    assert_same_update(*(weights(tmp_path / run / "final") for run in ("one", "two")), weights(small / "model"))


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("data_source", "nobody/knows", "row 0: unknown data_source 'nobody/knows'; known: "),
        ("prompt", ["What is 1+1?"], "row 0: the prompt is list<"),
        ("prompt", [{"role": "user", "content": "func_16:é"}], "row 0: the tokenizer has no tokens for é"),
    ],
)
def test_p18_bad_problems_are_said_before_the_lengths(small, tmp_path, column, value, told):
    table = pq.read_table(small / "train.parquet")
    table = table.set_column(table.schema.get_field_index(column), column, pa.array([value] * table.num_rows))
    pq.write_table(table, tmp_path / "rows.parquet")
    files = f"data.train_files=[{tmp_path / 'rows.parquet'}]"
    assert told in refusal(small, tmp_path / "run", files, "rollout.max_tokens=5000")


def test_p18_what_is_not_there_is_one_line(small, tmp_path):
    """A dry run passes over it; what it refuses, too: tests/test_refusals.py."""
    for change in ("data.train_files=[missing.parquet]", "model.path=missing"):
        assert "missing" in refusal(small, tmp_path / "run", change)
        assert not (tmp_path / "run" / "recipe.json").exists()  # the folder is still free for another run


def refusal(small: Path, out: Path, *changes: str) -> str:
    """The one line of a run that must not start."""
    with pytest.raises(UserError) as error:
        train(settings(small, out, *changes))
    return str(error.value)
