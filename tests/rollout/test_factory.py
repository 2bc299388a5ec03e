"""Which engine a model gets, and which models vLLM does not take."""

import importlib.util
import json
import shutil
import sys
from types import SimpleNamespace

import pytest
import torch
from fake_engine import write_problems
from fake_gpus import fake_torch, install_nvidia_smi

from compositionality.errors import UserError
from compositionality.evaluate.accuracy import evaluate
from compositionality.evaluate.collect import EvaluationSettings
from compositionality.rollout.collect import collect
from compositionality.rollout.engines import factory, vllm
from compositionality.rollout.engines.factory import choose_engine, open_engine
from compositionality.rollout.sampler.sampler import _rows_that_fit
from compositionality.rollout.settings import CollectSettings
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
    said = r"narrow: its heads are 16 wide, vLLM on a CPU takes 32, .* only; give "
    with pytest.raises(UserError, match=f"{said}engine=builtin"):
        open_engine(CollectSettings(model=str(narrow), engine=engine), 20)


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
