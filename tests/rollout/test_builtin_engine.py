"""The built-in engine: its weights, in any usual form, unaltered, in the data type asked for."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_engines import inputs

from compositionality.errors import UserError
from compositionality.rollout.engines.base import SamplingOptions
from compositionality.rollout.engines.builtin import BuiltinEngine, read_weights
from compositionality.rollout.engines.factory import open_engine
from compositionality.rollout.settings import CollectSettings, check_settings


@pytest.fixture(scope="module")
def engine(tiny_model):
    return BuiltinEngine(tiny_model)


def test_settings_open_it_with_their_dtype(tiny_model, engine):
    settings = CollectSettings(model=str(tiny_model), engine="builtin", dtype="bfloat16")
    coarse = open_engine(settings, 20)
    options = SamplingOptions(temperature=0.0, max_tokens=1)
    one, other = coarse.generate(*inputs(40), options), engine.generate(*inputs(40), options)
    assert sum(a == b for a, b in zip(one, other, strict=True)) >= 35
    assert open_engine(settings, 20)._sampler.model.dtype is torch.bfloat16
    assert engine._sampler.model.dtype is torch.float32
    with pytest.raises(UserError, match="dtype=flaot32: must be one of"):
        check_settings(replace(settings, problems=tiny_model, output=tiny_model, dtype="flaot32"))


@pytest.mark.parametrize("form", ["two safetensors files", "pytorch_model.bin"])
def test_weights_are_read_from_any_usual_form(tiny_model, tmp_path, form):
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    if form == "pytorch_model.bin":
        torch.save(weights, folder / form)
    else:
        names = sorted(weights)
        parts = {f"model-0000{i + 1}-of-00002.safetensors": names[i::2] for i in range(2)}
        for file, part in parts.items():
            save_file({name: weights[name] for name in part}, folder / file)
        found = {name: file for file, part in parts.items() for name in part}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": found}))
    read = dict(read_weights(folder))
    assert read.keys() == weights.keys()
    assert all(torch.equal(read[name], weights[name]) for name in weights)
    options = SamplingOptions(max_tokens=5)
    assert BuiltinEngine(folder).generate(*inputs(5), options) == BuiltinEngine(tiny_model).generate(
        *inputs(5), options
    )
