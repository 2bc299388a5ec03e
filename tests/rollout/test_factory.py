"""Which engine a model gets, and which models vLLM does not take."""

import importlib.util
import json
import shutil

import pytest
import torch
from fake_engine import write_problems

from compositionality.errors import UserError
from compositionality.evaluate.accuracy.run import EvaluateSettings, evaluate
from compositionality.evaluate.passk.run import PasskSettings, passk
from compositionality.rollout.collect import collect
from compositionality.rollout.engines import factory, vllm
from compositionality.rollout.engines.factory import choose_engine, open_engine
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import rollout_manifest
from compositionality.train.common.samplers import open_sampler
from compositionality.train.grpo_settings import GrpoRolloutSettings


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
    shared = {"models": [f"m:{tiny_model}"], "problems": [f"p:{problems}"], "max_tokens": 4, "n_samples": 2}
    evaluate(EvaluateSettings(output=tmp_path / "table", **shared))
    passk(PasskSettings(output=tmp_path / "curves", probe=0, draws=200, **shared))
    for name in ("table", "curves"):
        assert rollout_manifest(tmp_path / name / "rollouts/m/p").settings["engine"] == "builtin"


@pytest.mark.parametrize("engine", ["vllm", "ray"])
def test_p18_heads_that_vllm_does_not_take_on_a_cpu_are_one_line(tiny_model, tmp_path, machine, engine):
    machine(gpu=False, installed=True)
    narrow = edited(tiny_model, tmp_path / "narrow", head_dim=None, num_attention_heads=4)
    said = r"narrow: its heads are 16 wide, vLLM on a CPU takes 32, .* only; give "
    with pytest.raises(UserError, match=f"{said}engine=builtin"):
        open_engine(CollectSettings(model=str(narrow), engine=engine), 20)
    with pytest.raises(UserError, match=f"{said}rollout.engine=builtin"):
        open_sampler(GrpoRolloutSettings("vllm"), narrow, [3], "cpu", 20)


@pytest.mark.full
def test_the_heads_are_those_of_the_installed_vllm():
    backend = pytest.importorskip("vllm.v1.attention.backends.cpu_attn", reason="vLLM is not installed")
    assert list(vllm.CPU_HEAD_WIDTHS) == backend.CPUAttentionBackend.get_supported_head_sizes()
    from vllm.platforms import current_platform

    assert vllm.is_cpu_build() == current_platform.is_cpu()
