"""The forecast of sampling against what is measured here, within 20 % (P22)."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from compositionality import memory
from compositionality.errors import UserError
from compositionality.memory import GPU, HOST, Vllm, builtin_parts, check_needs
from compositionality.rollout.engines.factory import check_engine, sampling_needs
from compositionality.rollout.model_folder import known_shape, shape_of, shape_of_model
from compositionality.rollout.settings import SamplingSettings

CONFIG: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "tie_word_embeddings": False,
}  # fmt: skip


def test_p22_the_cache_of_the_built_in_sampler() -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    from compositionality.rollout.sampler.decoder import Decoder
    from compositionality.rollout.sampler.kv_cache import prefill

    config = LlamaConfig(**CONFIG)
    model = Decoder(config, torch.device("cpu"), torch.float32)
    model.load(LlamaForCausalLM(config).state_dict().items())
    batch, _ = prefill(model, range(16), [[1] * 500] * 16)
    grown = batch.with_capacity(64)
    held = sum(part.nbytes for one in (batch, grown) for part in (one.keys_LNGDT, one.values_LNGTD))
    parts = builtin_parts(shape_of({"model_type": "llama", **CONFIG}, "test"), 16, 500, 4, HOST)
    assert parts["cache"] == pytest.approx(held, rel=0.2)


def test_p18_not_one_completion_fits() -> None:
    shape = shape_of_model("Llama-3.1-8B")
    here = memory.Machine(1, 1, 24e9, 1e11, 1e12)
    small = Vllm(0.9, 2048, 1, 2, 8192, 64, "lower max_tokens")
    long = Vllm(0.9, 131072, 1, 2, 8192, 64, "lower max_tokens")
    check_needs([small.need(shape, "sampling")], here)
    assert (small.at_once(shape, 24e9) > 0, long.at_once(shape, 24e9)) == (True, 0)
    with pytest.raises(UserError, match=r"sampling: needs .* of memory of each GPU .* lower max_tokens"):
        check_needs([long.need(shape, "sampling")], here)
    assert long.need(shape, "sampling").place == GPU


def test_p18_an_engine_is_checked_before_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "host_bytes", lambda: 1e9)
    settings = SamplingSettings(engine="transformers", max_tokens=1024)
    with pytest.raises(UserError, match=r"sampling: needs [\d.]+ GB of memory of each node .*; lower max_tokens"):
        check_engine(settings, Path("Llama-3.1-8B"), 100)
    check_engine(SamplingSettings(engine="openai"), tmp_path, 100)


@pytest.mark.parametrize("by_variable", [True, False])
def test_the_memory_of_a_ray_cluster_elsewhere_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_variable: bool
) -> None:
    monkeypatch.setattr(memory, "host_bytes", lambda: 1e9)
    large = {"model_type": "llama", **CONFIG, "vocab_size": 10**7, "head_dim": 64}
    (tmp_path / "config.json").write_text(json.dumps(large))
    with pytest.raises(UserError, match=r"sampling: needs [\d.]+ GB of memory of each node"):
        check_engine(SamplingSettings(engine="ray"), tmp_path, 100)
    if by_variable:
        monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    check_engine(SamplingSettings(engine="ray", ray_address="" if by_variable else "head:6379"), tmp_path, 100)


def test_a_model_whose_sizes_are_not_known_is_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another family, or weights in four bits that config.json counts as sixteen."""
    monkeypatch.setattr(memory, "host_bytes", lambda: 1e9)
    quantised = {"model_type": "llama", **CONFIG, "quantization_config": {"bits": 4}}
    for number, config in enumerate(({"model_type": "mamba"}, quantised)):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "config.json").write_text(json.dumps(config))
        assert known_shape(tmp_path / str(number)) is None
        check_engine(SamplingSettings(engine="transformers", max_tokens=10**9), tmp_path / str(number), 100)
    assert shape_of({"model_type": "gpt2"}, "gpt2").feed_forward == 4 * 768


def test_on_a_gpu_the_built_in_sampler_takes_as_many_rows_as_fit() -> None:
    settings = SamplingSettings(engine="builtin", max_tokens=400)
    needs = sampling_needs(settings, shape_of_model("Llama-3.1-8B"), 150, gpu=True)
    check_needs(needs, memory.Machine(1, 1, 24e9, 1e11, 1e12))
