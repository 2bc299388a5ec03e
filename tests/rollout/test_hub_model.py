"""A model by its Hub id, from a local Hugging Face cache that the test lays out as huggingface_hub does."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fake_engine import contents, write_problems
from huggingface_hub import constants

from compositionality.data.artefact import tree_hash
from compositionality.errors import UserError
from compositionality.rollout.model_folder import _snapshot, check_model, load_tokenizer, resolve_model

ID, COMMIT = "some-lab/Tiny-0.1M", "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tiny_model: Path, tmp_path: Path) -> Path:
    """Blobs, snapshots/COMMIT with links to them, and refs/main."""
    repository = tmp_path / "hub" / f"models--{ID.replace('/', '--')}"
    for path in tiny_model.iterdir():
        blob, link = repository / "blobs" / path.name, repository / "snapshots" / COMMIT / path.name
        for file in (blob, link):
            file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, blob)
        link.symlink_to(blob)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    return tmp_path / "hub"


@pytest.fixture
def offline(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    _snapshot.cache_clear()
    return cache


def test_a_hub_id_is_its_snapshot(offline: Path, tiny_model: Path) -> None:
    assert resolve_model(ID).relative_to(offline).parts[1:] == ("snapshots", COMMIT)
    assert check_model(ID).eos_ids == check_model(tiny_model).eos_ids
    assert len(load_tokenizer(ID)) == len(load_tokenizer(tiny_model))
    assert tree_hash(resolve_model(ID)) == tree_hash(tiny_model)


def test_a_folder_of_that_name_wins(
    offline: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_model, tmp_path / ID)
    monkeypatch.chdir(tmp_path)
    assert resolve_model(ID) == Path(ID)


def test_p18_a_model_that_cannot_be_had_is_one_line(offline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"no-lab/none: no such .*HF_HUB_OFFLINE is set.*hf download no-lab/none, or"):
        resolve_model("no-lab/none")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"no-lab/none: no such .*the Hub cannot be reached"):
        resolve_model("no-lab/none")
    for name in ("/no/lab", "no/lab/none", "none", "./no"):
        with pytest.raises(UserError, match=r"no such model folder; give a folder .* or a Hub id \(owner/name\)"):
            resolve_model(name)


def collect(problems: Path, output: Path, model: str, cache: Path) -> subprocess.CompletedProcess[str]:
    words = {"problems": problems, "output": output, "model": model, "engine": "builtin", "max_tokens": 4}
    command = [sys.executable, "examples/collect_rollouts.py", *(f"{key}={value}" for key, value in words.items())]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(cache)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_rollouts_of_a_hub_model_are_those_of_its_folder(cache: Path, tiny_model: Path, tmp_path: Path) -> None:
    problems = write_problems(tmp_path / "problems.parquet", 6)
    assert collect(problems, tmp_path / "hub-rollouts", ID, cache).returncode == 0
    assert collect(problems, tmp_path / "folder-rollouts", str(tiny_model), cache).returncode == 0
    assert contents(tmp_path / "hub-rollouts") == contents(tmp_path / "folder-rollouts")
    manifest = json.loads((tmp_path / "hub-rollouts" / "manifest.json").read_text())
    assert manifest["inputs"]["model"] == tree_hash(tiny_model)
    unknown = collect(problems, tmp_path / "out", "no-lab/none", cache)
    assert unknown.returncode == 2
    assert unknown.stderr.strip().count("\n") == 0
    assert "hf download no-lab/none" in unknown.stderr
    assert not (tmp_path / "out").exists()
