"""Trouble of verl's SFT alone is said before it starts, in one line (P18); of both engines: test_sft_refusals.py."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from sft_assets import chat, make_model, make_rows, overrides

from compositionality import memory
from compositionality.config.cli import parse
from compositionality.data.parquet import write_table
from compositionality.errors import UserError
from compositionality.train.engines import settle_cluster, train_sft
from compositionality.train.sft_settings import SftSettings
from compositionality.train.verl import configure, preflight, sft

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("preflight") / "model")


def refusal(model: Path, rows: Path, out: Path, *more: str) -> str:
    with pytest.raises(UserError) as error:
        train_sft(parse(SftSettings, overrides(model, rows, out, *more)))
    assert "\n" not in str(error.value)
    assert not (out / "steps").exists()
    return str(error.value)


def test_p18_long_rows_are_counted_and_refused_or_cut(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.parquet"
    write_table(pa.table({"messages": [chat("a", "b" * length) for length in [1] * 30 + [100] * 2]}), rows)
    told = refusal(model, rows, tmp_path / "out")
    assert "2 of 32 rows are longer than data.max_length=64 tokens (longest 104, first is row 30)" in told
    assert "verl.data.truncation=right" in told
    lengths = preflight.Lengths(32, 104, 2, 30)
    preflight.check_lengths(rows, lengths, 64, "right")
    assert "their ends are cut" in capsys.readouterr().out


def test_p18_batches_that_cannot_be(model: Path, tmp_path: Path) -> None:
    rows = make_rows(tmp_path / "rows.parquet", 20)
    out = tmp_path / "out"
    assert "20 rows are less than one batch" in refusal(model, rows, out, "trainer.batch_rows=32")
    assert "not a multiple of the 3 processes" in refusal(model, rows, out, "run.processes=3")
    assert "trainer.micro_batch_tokens=32 is less than" in refusal(model, rows, out, "trainer.micro_batch_tokens=32")


def test_p18_too_little_disk_for_the_checkpoints(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10**5))
    rows = make_rows(tmp_path / "rows.parquet", 20)
    told = refusal(model, rows, tmp_path / "out")
    assert re.search(r"SFT: needs [\d.]+ MB of disk \(2 checkpoints .* 0\.1 MB are there; .*trainer\.keep", told)


def test_p18_too_little_memory(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "host_bytes", lambda: 1e9)
    rows = make_rows(tmp_path / "rows.parquet", 20)
    told = refusal(model, rows, tmp_path / "out")
    assert re.search(r"SFT: needs 1\.\d GB of memory of each node \(.* 1\.0 GB are there; .*micro_batch_tokens", told)


def test_another_recipe_does_not_take_over_an_unfinished_run(model: Path, tmp_path: Path) -> None:
    from compositionality.train.run_folder import resume

    rows, out = make_rows(tmp_path / "rows.parquet", 20), tmp_path / "out"

    def recipe(*more: str) -> Any:
        settings = parse(SftSettings, overrides(model, rows, out, *more))
        settle_cluster(settings, imagined=True)
        return sft.make_recipe(configure.sft_config(settings), ranks=1)

    assert resume(out, recipe(), force=False, repaired=False) == 0
    (out / "steps" / "global_step_4").mkdir(parents=True)
    (out / "steps" / "latest_checkpointed_iteration.txt").write_text("4")
    assert resume(out, recipe(), force=False, repaired=False) == 4
    with pytest.raises(UserError, match=r"optim.lr: 0.003 then, 0.1 now.*--force"):
        resume(out, recipe("optim.lr=0.1"), force=False, repaired=False)
    make_rows(rows, 21)
    with pytest.raises(UserError, match=r"train_files/.* has changed"):
        resume(out, recipe(), force=False, repaired=False)
    assert resume(out, recipe("optim.lr=0.1"), force=True, repaired=False) == 0
    assert not (out / "steps").exists()
