"""The tiny model and its tokenizer load again as what they were; the tokenizer loses nothing."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_tiny_corpus import SINGLE

from compositionality.tasks.string.prior import prior_functions
from compositionality.train.tiny.corpus import Corpus, Mix, corpus_tokenizer, definition_names
from compositionality.train.tiny.model import (
    ASSISTANT,
    END,
    PAD,
    SPECIALS,
    USER,
    TinyConfig,
    build_model,
    build_tokenizer,
    render,
)

ALPHABET = "".join(chr(code) for code in range(32, 127)) + "\n«»"
PIECES = st.one_of(
    st.text(ALPHABET, max_size=8), st.sampled_from(["func", "other", "_1", "_12", "other_63", *definition_names()])
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tokenizer = build_tokenizer(definition_names())
    model = build_model(TinyConfig(), tokenizer, seed=3)
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    return model, tokenizer, folder


@pytest.fixture(scope="module")
def tokenizers(saved):
    """The tokenizer as built, and as AutoTokenizer reads it from a model folder."""
    from transformers import AutoTokenizer

    return saved[1], AutoTokenizer.from_pretrained(saved[2])


@settings(max_examples=300)
@given(pieces=st.lists(PIECES, max_size=12))
def test_any_text_of_the_alphabet_survives(tokenizers, pieces):
    text = "".join(pieces)
    assume(not any(special in text for special in SPECIALS))
    for tokenizer in tokenizers:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_names_and_brackets_are_whole_tokens(tokenizers):
    for tokenizer in tokenizers:
        tokens = tokenizer.convert_ids_to_tokens(tokenizer("func_24other_32:«a»")["input_ids"])
        assert tokens[:4] == ["func", "_24", "other_32", ":"]  # and no token is part of other_2
        assert len(tokens) == 7
        assert not [token for token in tokenizer.get_vocab() if token.startswith("oth") and "_" not in token]
        for name in definition_names():
            assert len(tokenizer(name)["input_ids"]) == 1, name
        assert tokenizer.decode(tokenizer("aéb")["input_ids"]) == "ab", "characters outside the alphabet vanish"


def test_vocabulary_special_tokens_and_config_agree(saved, tokenizers):
    from transformers import AutoConfig, GenerationConfig

    built, loaded = tokenizers
    assert sorted(loaded.get_vocab().values()) == list(range(len(loaded)))
    assert loaded.get_vocab() == built.get_vocab() == corpus_tokenizer(Mix()).get_vocab()
    for tokenizer in tokenizers:
        assert len(tokenizer) == built.backend_tokenizer.get_vocab_size()
        assert (tokenizer.pad_token, tokenizer.eos_token) == (PAD, END)
        assert set(tokenizer.all_special_tokens) == set(SPECIALS)
    config, generation = (schema.from_pretrained(saved[2]) for schema in (AutoConfig, GenerationConfig))
    assert config.vocab_size == len(built)
    assert str(config.dtype).removeprefix("torch.") == "float32"
    for values in (config, generation):
        assert (values.eos_token_id, values.pad_token_id) == (built.eos_token_id, built.pad_token_id)


def test_template_is_prefix_stable_with_one_end_token(tokenizers):
    chat = [
        {"role": "user", "content": "func_3:ab"},
        {"role": "assistant", "content": ",func_3:ab=ba\n"},
        {"role": "user", "content": "func_4:ab"},
        {"role": "assistant", "content": ",func_4:ab=ab"},
    ]
    for tokenizer in tokenizers:
        texts = [tokenizer.apply_chat_template(chat[:turns], tokenize=False) for turns in range(1, 5)]
        assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
        assert texts[1] == f"{USER}func_3:ab{ASSISTANT},func_3:ab=ba\n{END}"
        opened = tokenizer.apply_chat_template(chat[:1], tokenize=False, add_generation_prompt=True)
        assert (opened, texts[1].removeprefix(opened)) == render(chat[0]["content"], chat[1]["content"])


def test_the_single_profiles_text_survives_and_signs_stay_characters():
    tokenizer = corpus_tokenizer(SINGLE)
    corpus, rng = Corpus(SINGLE), Random(0)
    for _ in range(500):
        text = "".join(render(*corpus.exchange(rng)))
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    for function in prior_functions(SINGLE.prior_functions):
        assert len(tokenizer(function.alias)["input_ids"]) == len(tokenizer(function.name)["input_ids"]) == 1
    assert tokenizer.tokenize("func_13[_]other_179[abc]:a_1_2") == [
        "func_13", "[", "_", "]", "other_179", "[", "a", "b", "c", "]", ":", "a", "_", "1", "_", "2",
    ]  # fmt: skip


def test_p01_the_seed_alone_decides_the_weights(saved):
    import torch

    model, tokenizer, _ = saved
    torch.manual_seed(12345)
    same, other = (build_model(TinyConfig(), tokenizer, seed) for seed in (3, 4))
    for weight, twin, stranger in zip(model.parameters(), same.parameters(), other.parameters(), strict=True):
        assert torch.equal(weight, twin)
        assert weight.dim() == 1 or not torch.equal(weight, stranger)
