import json
import shutil

import pytest

from compositionality.errors import UserError
from compositionality.rollout.model_folder import check_model, load_tokenizer
from compositionality.rollout.prompts import (
    check_prompt_lengths,
    lost_characters,
    prompt_tokens,
    prompts_as_tokens,
    readable,
)


@pytest.fixture
def copy(tiny_model, tmp_path):
    return shutil.copytree(tiny_model, tmp_path / "copy")


def edit_json(path, **changes):
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def test_a_good_folder_passes(tiny_model):
    model = check_model(tiny_model)
    assert (model.eos_ids, model.max_positions) == ((3,), 512)


def test_every_end_of_answer_counts(copy):
    edit_json(copy / "generation_config.json", eos_token_id=[3, 0])
    assert check_model(copy).eos_ids == (0, 3)


def test_p18_a_file_is_missing(copy, tmp_path):
    with pytest.raises(UserError, match="no such model folder"):
        check_model(tmp_path / "nothing")
    with pytest.raises(UserError, match=r"config\.json is missing"):
        check_model(tmp_path)
    (copy / "model.safetensors").unlink()
    with pytest.raises(UserError, match="no weights"):
        check_model(copy)


def test_p18_weights_are_truncated(copy):
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(UserError, match="damaged weights"):
        check_model(copy)
    weights.write_bytes(b"")
    with pytest.raises(UserError, match="damaged weights"):
        check_model(copy)


def test_p18_an_index_names_absent_weights(copy):
    (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-2.safetensors"}}))
    with pytest.raises(UserError, match=r"model-2\.safetensors: weights are missing"):
        check_model(copy)


def test_p18_config_is_damaged(copy):
    (copy / "config.json").write_text('{"vocab_size":')
    with pytest.raises(UserError, match="not readable as JSON"):
        check_model(copy)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "model.safetensors.index.json"])
@pytest.mark.parametrize("content", [b"[]", b"7", b"\xff\xfe{}", b"[" * 100_000])
def test_p18_json_that_is_no_object_is_one_line(copy, name, content):
    (copy / name).write_bytes(content)
    with pytest.raises(UserError, match=rf"{name}: .*; download or export the model again"):
        check_model(copy)


@pytest.mark.parametrize("weight_map", [None, [], {"a": 1}])
def test_p18_an_index_without_files_is_one_line(copy, weight_map):
    (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(UserError, match="has no weight_map of file names"):
        check_model(copy)


@pytest.mark.parametrize(
    "header",
    [b"[]", b'{"a": 1}', b'{"a": {}}', b'{"a": {"data_offsets": []}}', b'{"a": {"data_offsets": [0, "x"]}}', b"\xff"],
)
def test_p18_a_header_of_another_shape_is_one_line(copy, header):
    (copy / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(UserError, match=r"model\.safetensors: damaged weights"):
        check_model(copy)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", ["[]", "7", '{"model": 1}'])
def test_p18_a_damaged_tokenizer_is_one_line(copy, name, content):
    (copy / name).write_text(content)
    with pytest.raises(UserError, match=r"copy: the tokenizer"):
        check_model(copy)


def test_p18_no_tokenizer(copy):
    for path in copy.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(UserError, match="no tokenizer"):
        check_model(copy)


def test_p18_no_chat_template(copy):
    (copy / "chat_template.jinja").unlink()
    with pytest.raises(UserError, match="no chat template"):
        check_model(copy)


def test_p18_no_eos(copy):
    edit_json(copy / "tokenizer_config.json", eos_token=None)
    with pytest.raises(UserError, match="no EOS token"):
        check_model(copy)


def test_p18_tokenizer_larger_than_the_model(copy):
    edit_json(copy / "config.json", vocab_size=100)
    with pytest.raises(UserError, match="the tokenizer has 260 tokens, the model only 100"):
        check_model(copy)


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


@pytest.fixture(scope="module")
def ascii_tokenizer():
    from compositionality.train.tiny.tokenizer import build_tokenizer

    return build_tokenizer([])


def test_p18_characters_that_the_tokenizer_loses_are_named(ascii_tokenizer, tiny_model):
    chats = [[{"role": "user", "content": text}] for text in ("hello", "«hello»", "héllo ✓")]
    assert list(readable(chats[:2], ascii_tokenizer, "p.parquet")) == chats[:2]
    with pytest.raises(UserError, match=r"^p\.parquet: row 2: the tokenizer has no tokens for é \(U\+00E9\), ✓"):
        list(readable(chats, ascii_tokenizer, "p.parquet"))
    assert list(readable(chats, check_model(tiny_model).tokenizer, "p.parquet")) == chats


@pytest.mark.parametrize(
    "normalizer",
    ["NFC", "NFD", "NFKC", "NFKD", "Lowercase"],
)
def test_a_tokenizer_that_normalises_loses_nothing(tiny_model, normalizer):
    from tokenizers import normalizers

    tokenizer = load_tokenizer(tiny_model)
    tokenizer.backend_tokenizer.normalizer = getattr(normalizers, normalizer)()
    text = "Caf\u00e9 Cafe\u0301 ÅÉ ﬁ ２ 한\u00a0글 x²"
    assert lost_characters(text, tokenizer) == ""
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("é", "")
    assert lost_characters("Caf\u00e9", tokenizer) == "é"
