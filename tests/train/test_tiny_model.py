"""The tiny model's folder loads again as what it was."""

import pytest

from compositionality.train.tiny.corpus import definition_names
from compositionality.train.tiny.model import TinyConfig, build_model
from compositionality.train.tiny.tokenizer import build_tokenizer


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tokenizer = build_tokenizer(definition_names())
    model = build_model(TinyConfig(), tokenizer, seed=3)
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    return model, tokenizer, folder


def test_p13_reloaded_model_gives_the_same_logits(saved):
    import torch
    from transformers import AutoModelForCausalLM

    model, tokenizer, folder = saved
    loaded = AutoModelForCausalLM.from_pretrained(folder)
    tokens = torch.tensor([tokenizer("<|user|>other_30:abc<|assistant|>,other_30:abc=bc")["input_ids"]])
    with torch.no_grad():
        assert torch.equal(loaded(tokens).logits, model(tokens).logits)


def test_config_agrees_with_the_tokenizer(saved):
    from transformers import AutoConfig, GenerationConfig

    _, tokenizer, folder = saved
    config, generation = AutoConfig.from_pretrained(folder), GenerationConfig.from_pretrained(folder)
    assert config.vocab_size == len(tokenizer)
    assert str(config.dtype).removeprefix("torch.") == "float32"
    for values in (config, generation):
        assert (values.eos_token_id, values.pad_token_id) == (tokenizer.eos_token_id, tokenizer.pad_token_id)


def test_size_suits_the_tiny_profile(saved):
    model, _, _ = saved
    assert 150_000 < model.num_parameters() < 250_000
    assert model.config.head_dim * model.config.num_attention_heads == model.config.hidden_size


def test_p01_the_seed_alone_decides_the_weights(saved):
    import torch

    model, tokenizer, _ = saved
    torch.manual_seed(12345)
    same, other = (build_model(TinyConfig(), tokenizer, seed) for seed in (3, 4))
    for weight, twin, stranger in zip(model.parameters(), same.parameters(), other.parameters(), strict=True):
        assert torch.equal(weight, twin)
        assert weight.dim() == 1 or not torch.equal(weight, stranger)
