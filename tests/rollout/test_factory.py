"""Which engine a model gets, which models vLLM does not take, and whether sampling fits this machine (P22)."""

import importlib.util
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fake_engine import write_problems
from fake_gpus import fake_torch, install_nvidia_smi
from transformers import LlamaConfig, LlamaForCausalLM

from compositionality import memory
from compositionality.errors import UserError
from compositionality.evaluate.collect import EvaluationSettings, evaluate
from compositionality.memory import GPU, HOST, Vllm, builtin_parts, check_needs
from compositionality.rollout.collect import collect
from compositionality.rollout.engines import factory, vllm
from compositionality.rollout.engines.factory import check_engine, choose_engine, open_engine, sampling_needs
from compositionality.rollout.model_folder import known_shape, shape_of, shape_of_model
from compositionality.rollout.sampler.decoder import Decoder
from compositionality.rollout.sampler.kv_cache import prefill
from compositionality.rollout.sampler.sampler import _rows_that_fit
from compositionality.rollout.settings import CollectSettings, SamplingSettings, check_settings
from compositionality.rollout.store import rollout_manifest


def edited(model, folder, **changes):
    """A copy of the model folder with another config."""
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    return folder


@pytest.fixture
def machine(monkeypatch):
    """Says what the machine has: a GPU, vLLM, and whether it is vLLM's build for CPUs."""

    def has(*, gpu, installed):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: int(gpu))
        monkeypatch.setattr(vllm, "is_cpu_build", lambda: installed and not gpu)
        real = importlib.util.find_spec
        found = object() if installed else None
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: found if name == "vllm" else real(name))

    return has


def test_auto_takes_what_serves_the_models(tiny_model, tmp_path, machine, monkeypatch):
    small = str(tiny_model)
    narrow = str(edited(tiny_model, tmp_path / "narrow", head_dim=16))
    foreign = str(edited(tiny_model, tmp_path / "foreign", model_type="gemma"))
    both = str(edited(tiny_model, tmp_path / "both", model_type="gemma", head_dim=16))
    cases = [(small, "builtin"), (narrow, "builtin"), (foreign, "vllm"), (both, "transformers")]
    machine(gpu=False, installed=True)
    assert [(model, choose_engine("auto", "", [model])) for model, _ in cases] == cases
    assert choose_engine("auto", "", [small, foreign]) == "vllm"
    assert choose_engine("auto", "http://host/v1", ["name"]) == "openai"
    assert choose_engine("ray", "http://host/v1", ["name"]) == "ray"
    monkeypatch.setattr(factory, "SMALL", 1000)
    assert [choose_engine("auto", "", [model]) for model in (small, narrow)] == ["vllm", "builtin"]
    machine(gpu=True, installed=True)
    assert {choose_engine("auto", "", [model]) for model, _ in cases} == {"vllm"}
    machine(gpu=False, installed=False)
    assert [choose_engine("auto", "", [model]) for model in (small, foreign)] == ["builtin", "transformers"]
    with pytest.raises(UserError, match="no such model folder"):
        choose_engine("auto", "", ["/no/model"])


def test_the_recipes_hold_the_engine_that_auto_stands_for(tiny_model, tmp_path, machine):
    machine(gpu=False, installed=False)
    problems = write_problems(tmp_path / "problems.parquet", 4)
    collect(CollectSettings(problems=problems, output=tmp_path / "out", model=str(tiny_model), max_tokens=4))
    assert rollout_manifest(tmp_path / "out").settings["engine"] == "builtin"
    shared = {"models": [f"m:{tiny_model}"], "problems": [f"p:{problems}"], "max_tokens": 4}
    evaluate(EvaluationSettings(output=tmp_path / "table", **shared))
    assert rollout_manifest(tmp_path / "table/rollouts/m/p").settings["engine"] == "builtin"


@pytest.mark.parametrize("engine", ["builtin", "vllm", "transformers", "ray"])
def test_p18_a_gpu_with_an_old_driver_is_one_line(tiny_model, tmp_path, monkeypatch, engine):
    install_nvidia_smi(tmp_path, monkeypatch, 1, "550.54.14")
    fake_torch(monkeypatch, usable=0, found=1)
    with pytest.raises(UserError, match=r"driver is 550\.54\.14, .* needs 580\.65 .*CUDA_VISIBLE_DEVICES= \(empty\)"):
        open_engine(CollectSettings(model=str(tiny_model), engine=engine), 20)


@pytest.fixture
def started(monkeypatch):
    """Starts vLLM with a class and a platform that are made up; what it is given."""

    def start(model, options, *, cpu):
        given = {}
        platform = SimpleNamespace(is_cpu=lambda: cpu, get_device_total_memory=lambda: 80 << 20)
        monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(LLM=lambda _, **words: given.update(words)))
        monkeypatch.setitem(sys.modules, "vllm.platforms", SimpleNamespace(current_platform=platform))
        vllm.start_vllm(model, options)
        return given

    return start


@pytest.mark.parametrize("lanes", [1, 4])
def test_lanes_on_one_gpu_share_its_memory(tiny_model, monkeypatch, started, lanes):
    """vLLM gets a fixed share and a fixed cache: its own measurement fails if another process frees memory then."""
    monkeypatch.setenv("LANES_PER_GPU", str(lanes))
    given = started(tiny_model, vllm.VllmOptions(max_model_len=4096, gpu_memory=0.8), cpu=False)
    assert given["gpu_memory_utilization"] == pytest.approx(0.8 / lanes)
    assert given["kv_cache_memory_bytes"] == (None if lanes == 1 else (80 << 20) * 0.8 // 8)


@pytest.mark.parametrize(("lanes", "free", "rows"), [(1, 40, 10), (4, 40, 5), (4, 8, 2), (4, 0, 1)])
def test_the_built_in_sampler_keeps_to_its_share(monkeypatch, lanes, free, rows):
    """Of 80 GiB; a row is 1 GiB, and a quarter of what is free is for rows."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free << 30, 80 << 30))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 0)
    monkeypatch.setenv("LANES_PER_GPU", str(lanes))
    model = SimpleNamespace(device=torch.device("cuda"), layers=1, kv_heads=1, head_width=1, dtype=torch.float16)
    assert _rows_that_fit(model, 1 << 28) == rows


@pytest.mark.parametrize("engine", ["vllm", "ray"])
def test_p18_heads_that_vllm_does_not_take_on_a_cpu_are_one_line(tiny_model, tmp_path, machine, engine):
    machine(gpu=False, installed=True)
    narrow = edited(tiny_model, tmp_path / "narrow", head_dim=None, num_attention_heads=4)
    said = r"narrow: the head size is 16, vLLM on a CPU supports only 32, .*; give "
    with pytest.raises(UserError, match=f"{said}engine=builtin"):
        open_engine(CollectSettings(model=str(narrow), engine=engine), 20)


@pytest.mark.parametrize("temperature", [0.005, 2.5])
def test_p18_temperatures_that_vllm_changes_or_refuses_are_one_line(tmp_path, machine, monkeypatch, temperature):
    """It rounds small ones up to 0.01."""
    machine(gpu=False, installed=True)
    settings = CollectSettings("vllm", problems=tmp_path, output=tmp_path, model="m", temperature=temperature)
    for engine in ("vllm", "ray"):
        monkeypatch.setattr("compositionality.rollout.settings.check_installed", lambda *_: None)
        with pytest.raises(UserError, match=rf"^temperature={temperature}: vLLM takes 0 .* from 0.01 to 2; give "):
            check_settings(replace(settings, engine=engine))
        check_settings(replace(settings, engine=engine, temperature=0.0))
    check_settings(replace(settings, engine="builtin"))


@pytest.mark.full
def test_the_heads_are_those_of_the_installed_vllm():
    backend = pytest.importorskip("vllm.v1.attention.backends.cpu_attn", reason="vLLM is not installed")
    assert list(vllm.CPU_HEAD_WIDTHS) == backend.CPUAttentionBackend.get_supported_head_sizes()
    from vllm.platforms import current_platform

    assert vllm.is_cpu_build() == current_platform.is_cpu()


@pytest.mark.parametrize(
    ("cpu", "chunks"), [(True, {"enable_chunked_prefill": False, "max_num_batched_tokens": 9216}), (False, {})]
)
def test_prompts_are_cut_into_chunks_on_a_gpu_only(cpu, chunks, tiny_model, started):
    """On a GPU vLLM's own defaults hold."""
    given = started(tiny_model, vllm.VllmOptions(max_model_len=9216), cpu=cpu)
    names = ("enable_chunked_prefill", "max_num_batched_tokens")
    assert {name: given[name] for name in names if name in given} == chunks


# ---- the forecast of sampling

CONFIG: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "tie_word_embeddings": False,
}  # fmt: skip


def test_p22_the_cache_of_the_built_in_sampler() -> None:
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
