"""A model folder is checked before it is used; prompts are what the model's own template makes, and lose nothing."""

import json
import os
import shutil
from pathlib import Path

import pytest
from assets import random_model, save
from fake_engine import contents, write_problems
from huggingface_hub import constants
from safetensors.numpy import load_file, save_file

from compositionality import sample
from compositionality.data.artefact import tree_hash
from compositionality.errors import UserError
from compositionality.rollout.collect import collect
from compositionality.rollout.model_folder import _snapshot, check_model, load_causal_lm, load_tokenizer, resolve_model
from compositionality.rollout.prompts import (
    check_prompt_lengths,
    lost_characters,
    prompt_tokens,
    prompts_as_tokens,
    readable,
)
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import rollout_manifest
from compositionality.train.tiny.model import build_tokenizer


@pytest.fixture
def copy(tiny_model, tmp_path):
    return shutil.copytree(tiny_model, tmp_path / "copy")


def edit_json(path, **changes):
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def test_a_good_folder_passes_and_every_end_of_answer_counts(copy):
    model = check_model(copy)
    assert (model.eos_ids, model.max_positions) == ((3,), 512)
    edit_json(copy / "generation_config.json", eos_token_id=[3, 0])
    assert check_model(copy).eos_ids == (0, 3)


def write(name, content):
    return lambda folder: (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def remove(pattern):
    return lambda folder: [path.unlink() for path in folder.glob(pattern)]


def edit(name, **changes):
    return lambda folder: edit_json(folder / name, **changes)


def shortened(by):
    return lambda folder: os.truncate(folder / WEIGHTS, (folder / WEIGHTS).stat().st_size - by)


def header(text):
    return write(WEIGHTS, len(text).to_bytes(8, "little") + text)


WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
NO_OBJECT = (b"[]", b'{"vocab_size":')  # other damages: tests/data/test_damaged_files.py
OFFSETS = (b'{"a": {"data_offsets": []}}', b'{"a": {"data_offsets": [0, "x"]}}')
HEADERS = (b"[]", b'{"a": 1}', b'{"a": {}}', *OFFSETS, b"\xff")
DAMAGES = [  # what is done to a folder, and what is said of it
    (shutil.rmtree, "no such model folder"),
    (remove("*"), r"config\.json is missing"),
    (remove(WEIGHTS), "no weights"),
    (shortened(100), "damaged weights"),
    (write(WEIGHTS, b""), "damaged weights"),
    (write(INDEX, '{"weight_map": {"a": "model-2.safetensors"}}'), r"model-2\.safetensors: weights are missing"),
    (remove("tokenizer*"), "no tokenizer"),
    (remove("chat_template.jinja"), "no chat template"),
    (edit("tokenizer_config.json", eos_token=None), "no EOS token"),
    (edit("config.json", tie_word_embeddings=False), r"copy: lm_head\.weight is missing"),
    (write("adapter_config.json", "{}"), r"copy: holds an adapter \(adapter_config.json\)"),
    *(
        (edit("generation_config.json", eos_token_id=ids), rf"generation_config\.json: eos_token_id is {told}; give ")
        for ids, told in (("3", "'3'"), ([3, "4"], r"\[3, '4'\]"), (True, "True"), (3.5, r"3\.5"))
    ),
    (edit("config.json", hidden_size="wide"), r"copy/config\.json does not load: .*'hidden_size'"),
    (edit("config.json", vocab_size=100), "the tokenizer has 260 tokens, the model only 100"),
    *(
        (write(name, content), rf"{name}: .*; download or export the model again")
        for name in ("config.json", "generation_config.json", INDEX)
        for content in NO_OBJECT
    ),
    *((write(INDEX, f'{{"weight_map": {files}}}'), "has no weight_map of") for files in ("null", "[]", '{"a": 1}')),
    *((header(text), r"model\.safetensors: damaged weights") for text in HEADERS),
    *(
        (write(name, content), r"copy: the tokenizer")
        for name in ("tokenizer.json", "tokenizer_config.json")
        for content in ("[]", "7", '{"model": 1}')
    ),
]


@pytest.mark.parametrize(("damage", "told"), DAMAGES, ids=range(len(DAMAGES)))
def test_p18_a_damaged_folder_is_one_line(copy, damage, told):
    damage(copy)
    with pytest.raises(UserError, match=told):
        check_model(copy)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("change", ["missing", "another shape"])
def test_p18_a_weight_that_would_be_random_is_one_line(tmp_path, change, tied):
    """transformers makes one up, and goes on."""
    tokenizer = build_tokenizer([])
    sizes = {"vocab_size": len(tokenizer), "tie_word_embeddings": tied}
    folder = save(tmp_path / "model", random_model("Llama", **sizes), tokenizer)
    load_causal_lm(folder)
    weights, name = load_file(folder / WEIGHTS), "model.norm.weight"
    weights |= {name: weights[name][:1]}
    save_file(
        {one: weights[one] for one in weights if one != name or change != "missing"}, folder / WEIGHTS, {"format": "pt"}
    )
    with pytest.raises(UserError, match=rf"model: {name} is missing or has another shape .*; download or export"):
        load_causal_lm(folder)


def test_p18_prompts_over_the_limit_are_counted():
    assert check_prompt_lengths([3, 9, 4], 9, "p.parquet") == 9
    with pytest.raises(UserError, match=r"p\.parquet: 2 prompts .*max_prompt_tokens=5 \(the longest, row 1, has 9\)"):
        check_prompt_lengths([3, 9, 6], 5, "p.parquet")


def test_the_models_own_template_makes_the_prompt(tiny_model):
    tokenizer = check_model(tiny_model).tokenizer
    chat = ({"role": "user", "content": "héllo"},)
    tokens = prompt_tokens(tokenizer, chat)
    assert tokenizer.decode(tokens) == "<|user|>héllo<|assistant|>"
    assert prompts_as_tokens(tokenizer, [chat, chat]) == [tokens, tokens]


REFUSES = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
WITH_SYSTEM = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "1"}]


@pytest.mark.parametrize(
    ("template", "chat", "told"),
    [
        (REFUSES + "{{ messages[0]['content'] }}", WITH_SYSTEM, "does not render this prompt: no system role; change"),
        ("{{ messages[0]['content'] }}", [{"role": "user", "content": ""}], "the prompt has no tokens"),
    ],
    ids=["refused by the template", "empty"],
)
def test_p18_a_prompt_that_no_engine_takes_is_one_line(copy, template, chat, told):
    (copy / "chat_template.jinja").write_text(template)
    with pytest.raises(UserError, match=rf"^prompts: row 1: .*{told}"):
        sample(copy, ["2", chat], engine="transformers", max_tokens=4)


@pytest.fixture(scope="module")
def ascii_tokenizer():
    from compositionality.train.tiny.model import build_tokenizer

    return build_tokenizer([])


def test_p18_characters_that_the_tokenizer_loses_are_named(ascii_tokenizer, tiny_model):
    chats = [[{"role": "user", "content": text}] for text in ("hello", "«hello»", "héllo ✓")]
    assert list(readable(chats[:2], ascii_tokenizer, "p.parquet")) == chats[:2]
    with pytest.raises(UserError, match=r"^p\.parquet: row 2: the tokenizer has no tokens for é \(U\+00E9\), ✓"):
        list(readable(chats, ascii_tokenizer, "p.parquet"))
    assert list(readable(chats, check_model(tiny_model).tokenizer, "p.parquet")) == chats


@pytest.mark.parametrize("normalizer", ["NFC", "NFD", "NFKC", "NFKD", "Lowercase"])
def test_a_tokenizer_that_normalises_loses_nothing(tiny_model, normalizer):
    from tokenizers import normalizers

    tokenizer = load_tokenizer(tiny_model)
    tokenizer.backend_tokenizer.normalizer = getattr(normalizers, normalizer)()
    text = "Caf\u00e9 Cafe\u0301 ÅÉ ﬁ ２ 한\u00a0글 x²"
    assert lost_characters(text, tokenizer) == ""
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("é", "")
    assert lost_characters("Caf\u00e9", tokenizer) == "é"


# ---- a model by its Hub id, from a local cache that is laid out as huggingface_hub does

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
