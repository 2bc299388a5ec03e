"""The SFT command: the same weights however it is cut or killed; trouble in one line (P7, P10, P13, P18)."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from bash_runs import warm_python
from ranks import on_ranks
from runs import weights
from sft_assets import make_model, make_rows, split_in_two

from compositionality.config.cli import parse
from compositionality.data.artefact import verify
from compositionality.errors import UserError
from compositionality.rollout.model_folder import load_tokenizer
from compositionality.train import engines
from compositionality.train.engines import train_on_rank as train
from compositionality.train.metrics import read_metrics
from compositionality.train.policy import load_model, shard
from compositionality.train.rows import load_rows
from compositionality.train.run_folder import latest_step
from compositionality.train.settings import MeshSettings, ModelSettings, OptimSettings
from compositionality.train.sft import Fit, micro_batches, new_batches, read_sft_inputs
from compositionality.train.sft_settings import SftSettings, SftTrainerSettings
from compositionality.train.training_report import TrainingReport, report_of

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A model, 50 rows to train on and 20 to validate with."""
    home = tmp_path_factory.mktemp("sft")
    return make_model(home / "model"), make_rows(home / "rows.parquet", 50), make_rows(home / "val.parquet", 20, seed=1)


def words(made: tuple[Path, Path, Path], out: Path, *more: str) -> list[str]:
    """Two epochs of four steps, the last of which has two rows."""
    model, rows, val = made
    given = {
        "model.path": model, "data.train_files": rows, "data.val_files": val, "data.max_length": 64,
        "optim.lr": 1e-2, "optim.warmup_steps": 0,
        "trainer.output": out, "trainer.batch_rows": 16, "trainer.save_every": 2, "trainer.micro_batch_tokens": 128,
    }  # fmt: skip
    return [*(f"{key}={value}" for key, value in given.items()), *more]


def settings(made: tuple[Path, Path, Path], out: Path, *more: str) -> SftSettings:
    return parse(SftSettings, words(made, out, *more))


@pytest.fixture(scope="module")
def whole(made: tuple[Path, Path, Path]) -> Path:
    out = made[0].parent / "whole"
    assert train(settings(made, out)) == out / "final"
    return out


def bytes_of(out: Path) -> bytes:
    return (out / "final" / "model.safetensors").read_bytes()


def without_times(out: Path) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in row.items() if not key.startswith("perf/")}
        for row in read_metrics(out / "metrics.jsonl")
    ]


def test_p11_the_loss_falls_and_every_step_has_its_row(whole: Path) -> None:
    rows = read_metrics(whole / "metrics.jsonl")
    assert [row["step"] for row in rows] == list(range(1, 9))
    assert rows[-1]["train/loss"] < 0.75 * rows[0]["train/loss"]
    assert [row["step"] for row in rows if "val/loss" in row] == [4, 8]
    assert rows[7]["val/loss"] < rows[3]["val/loss"]
    assert all({"train/grad_norm", "train/lr", "perf/tokens_per_second"} <= row.keys() for row in rows)
    verify(whole / "final")
    assert sorted(path.name for path in (whole / "steps").glob("global_step_*")) == ["global_step_6", "global_step_8"]


def test_the_model_says_what_its_training_did(whole: Path, made: tuple[Path, Path, Path]) -> None:
    rows = load_rows(made[1], load_tokenizer(made[0]), 64)
    tokens = 2 * sum(sum(row.loss_mask) for row in rows)  # two epochs
    assert report_of(whole / "final") == TrainingReport(updates=8, tokens=tokens, rows=50)


def test_nothing_is_computed_that_nobody_reads(
    made: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compositionality.train.policy.entropy", None)
    train(settings(made, tmp_path / "out", "trainer.steps=1"))


def test_as_many_updates_as_come_closest_to_so_many_tokens(made: tuple[Path, Path, Path], tmp_path: Path) -> None:
    rows = load_rows(made[1], load_tokenizer(made[0]), 64)
    whole = sum(len(row.tokens) for row in rows)  # in four updates
    for tokens, steps in ((1, 1), (whole // 2, 2), (3 * whole, 12)):
        assert new_batches(rows, settings(made, tmp_path, f"trainer.tokens={tokens}").trainer, seed=1).steps == steps


def test_p13_the_export_reloads_and_the_loss_is_what_transformers_computes(
    made: tuple[Path, Path, Path], whole: Path
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    final = whole / "final"
    tokenizer, model = AutoTokenizer.from_pretrained(final), AutoModelForCausalLM.from_pretrained(final)
    total = count = 0.0
    with torch.no_grad():
        for row in load_rows(made[2], tokenizer, 64):
            logp = model(torch.tensor([row.tokens])).logits[0, :-1].log_softmax(-1)
            chosen = logp.gather(1, torch.tensor(row.tokens[1:])[:, None])[:, 0]
            total -= float(chosen[torch.tensor(row.loss_mask[1:]).bool()].sum())
            count += sum(row.loss_mask)
    assert read_metrics(whole / "metrics.jsonl")[-1]["val/loss"] == pytest.approx(total / count, abs=1e-5)


def test_two_files_are_read_as_one_and_the_loss_may_be_on_prompts_too(
    made: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    changes = ([], [f"data.train_files={split_in_two(made[1], tmp_path)}"], ["data.prompt_loss=true"])
    plain, joined, whole = (read_sft_inputs(settings(made, tmp_path, *more)) for more in changes)
    assert plain.rows == joined.rows
    for one, other in zip(plain.rows, whole.rows, strict=True):
        assert one.tokens == other.tokens
        assert sum(one.loss_mask) < sum(other.loss_mask) == len(other.tokens) - 1
    assert plain.val_rows == whole.val_rows


def test_p10_micro_batches_do_not_change_the_weights(
    made: tuple[Path, Path, Path], whole: Path, tmp_path: Path
) -> None:
    train(settings(made, tmp_path / "out", "trainer.micro_batch_tokens=100_000"))
    assert_close(whole, tmp_path / "out")


MESHES = {"replicated": "mesh.shard=false", "sharded": "mesh.shard=true", "tensor": "mesh.tensor=2"}


def train_in_this_mesh(made: tuple[Path, Path, Path], out: Path, mesh: list[str]) -> None:
    for name in mesh:
        train(settings(made, out / name, MESHES[name]))


@pytest.fixture(scope="module")
def by_two(made: tuple[Path, Path, Path]) -> Path:
    """The folder of the runs of two processes: one started by torchrun, two by the processes of a group."""
    out = made[0].parent / "by_two"
    run([*torchrun(2), *words(made, out / "tensor", MESHES["tensor"])])
    on_ranks(2, train_in_this_mesh, made, out, ["replicated", "sharded"])
    return out


@pytest.mark.slow
@pytest.mark.parametrize("mesh", MESHES)
def test_p10_two_processes_give_the_weights_of_one(whole: Path, by_two: Path, mesh: str) -> None:
    assert_close(whole, by_two / mesh)
    losses = [[row["val/loss"] for row in without_times(out) if "val/loss" in row] for out in (whole, by_two / mesh)]
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)


def assert_close(one: Path, other: Path) -> None:
    expected, found = (weights(out / "final") for out in (one, other))
    assert expected.keys() == found.keys()
    for name, weight in expected.items():
        gap = (weight - found[name]).abs()
        assert gap.max() < 2e-4, name  # Adam divides by small numbers: 2 % of one update of one weight
        assert gap.mean() < 1e-6, name


def torchrun(ranks: int) -> list[str]:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    return [warm_python(), *launcher, str(ROOT / "compositionality/train/sft.py")]


def run(command: list[str]) -> str:
    own = {**os.environ, "PYTHON_EXEC": command[0]}  # of torchrun's ranks
    done = subprocess.run(command, env=own, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


SLOWLY = """
import runpy, sys, time
from pathlib import Path
from torch.distributed.checkpoint import FileSystemWriter
mark, write = Path(sys.argv[1]), FileSystemWriter.write_data
def slowly(*arguments):
    mark.touch()
    while mark.exists():  # until the test has sent its signal
        time.sleep(0.01)
    return write(*arguments)
FileSystemWriter.write_data = slowly
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_p07_ctrl_c_within_a_checkpoint_is_quiet_and_the_same_command_goes_on(
    made: tuple[Path, Path, Path], whole: Path, tmp_path: Path, ranks: int
) -> None:
    """A real SIGINT to all processes, while the checkpoint of step 2 is written; its parts: test_checkpoint.py."""
    out, mark = tmp_path / "out", tmp_path / "mark"
    command = [str(ROOT / "examples/train_sft.py"), "engine=single", *words(made, out), f"run.processes={ranks}"]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOWLY, str(mark), *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # off in what runs in the background
    )  # fmt: skip
    while not mark.exists() and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    mark.unlink(missing_ok=True)
    _, said = process.communicate(timeout=300)
    assert (process.returncode, said) == (130, "interrupted; run the same command again to continue\n")
    assert not (out / "final").exists()
    run([warm_python(), *command])
    if ranks == 1:
        assert bytes_of(out) == bytes_of(whole)
    else:
        assert_close(whole, out)


def test_another_recipe_is_refused_unless_forced(
    made: tuple[Path, Path, Path], whole: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(engines, "_read_inputs", lambda _: pytest.fail("a finished run reads its inputs"))
        train(settings(made, whole, "trainer.threads=2", "trainer.keep=5"))
    assert "is already there" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"optim\.lr"):
        train(settings(made, whole, "optim.lr=1"))


def refused(made: tuple[Path, Path, Path], out: Path, *more: str) -> str:
    with pytest.raises(UserError) as error:
        train(settings(made, out, *more))
    assert not (out / "final").exists()
    return str(error.value)


def test_p18_a_loss_that_is_no_number_keeps_the_last_good_checkpoint(
    made: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    told = refused(made, out, "optim.lr=1e30", "optim.warmup_steps=1000000000", "trainer.save_every=1")
    last = latest_step(out / "steps")
    assert f"at step {last + 1}; the checkpoints before it are kept; try a lower optim.lr" in told
    saved = weights(out / "steps" / f"global_step_{last}" / "huggingface")
    assert all(torch.isfinite(weight).all() for weight in saved.values())


def test_p09_an_update_counts_tokens_not_rows_over_all_micro_batches(made: tuple[Path, Path, Path]) -> None:
    """One update by hand: the gradient of the mean over all trained tokens, clipped."""
    rows = load_rows(made[1], load_tokenizer(made[0]), 64)[:7]
    model = load_model(ModelSettings(path=str(made[0])))
    fit = Fit(
        shard(model, None, MeshSettings()), None, OptimSettings(lr=1.0, max_grad_norm=1e9), SftTrainerSettings(), None
    )
    sums, norm = fit.update(micro_batches(rows, 40), rate=0.0)
    ours = [parameter.grad.clone() for parameter in model.parameters()]
    losses = []
    for row in rows:
        logp = model(input_ids=torch.tensor([row.tokens])).logits[0, :-1].log_softmax(-1)
        chosen = logp.gather(1, torch.tensor(row.tokens[1:])[:, None])[:, 0]
        losses.append(-chosen[torch.tensor(row.loss_mask[1:]).bool()])
    model.zero_grad()
    mean = torch.cat(losses).mean()
    mean.backward()
    assert float(sums[0] / sums[1]) == pytest.approx(float(mean.detach()), abs=1e-5)
    assert norm == pytest.approx(
        float(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]).norm()), rel=1e-4
    )
    for gradient, parameter in zip(ours, model.parameters(), strict=True):
        assert torch.allclose(gradient, parameter.grad, atol=1e-6)
