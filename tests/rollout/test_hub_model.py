"""A model by its Hub id, from a local Hugging Face cache that the test lays out as huggingface_hub does."""

import shutil
from pathlib import Path

import pytest
from fake_engine import contents, write_problems
from huggingface_hub import constants

from compositionality.data.artefact import tree_hash
from compositionality.errors import UserError
from compositionality.rollout.collect import collect
from compositionality.rollout.model_folder import _snapshot, check_model, load_tokenizer, resolve_model
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import rollout_manifest

ID, COMMIT = "some-lab/Tiny-0.1M", "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def offline(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without the Hub behind it: blobs, snapshots/COMMIT with links to them, and refs/main."""
    repository = tmp_path / "hub" / f"models--{ID.replace('/', '--')}"
    for path in tiny_model.iterdir():
        blob, link = repository / "blobs" / path.name, repository / "snapshots" / COMMIT / path.name
        for file in (blob, link):
            file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, blob)
        link.symlink_to(blob)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    _snapshot.cache_clear()
    return tmp_path / "hub"


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


@pytest.mark.usefixtures("offline")
def test_rollouts_of_a_hub_model_are_those_of_its_folder(tiny_model: Path, tmp_path: Path) -> None:
    problems = write_problems(tmp_path / "problems.parquet", 6)
    settings = {"engine": "builtin", "problems": problems, "max_tokens": 4}
    hub, folder = (
        collect(CollectSettings(output=tmp_path / name, model=model, **settings))
        for name, model in (("of the hub", ID), ("of the folder", str(tiny_model)))
    )
    assert contents(hub) == contents(folder)
    assert rollout_manifest(hub).inputs["model"] == tree_hash(tiny_model)
    with pytest.raises(UserError, match="hf download no-lab/none"):
        collect(CollectSettings(output=tmp_path / "out", model="no-lab/none", **settings))
    assert not (tmp_path / "out").exists()
