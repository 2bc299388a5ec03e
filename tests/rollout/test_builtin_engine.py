import json
import shutil
from dataclasses import replace

import pytest
import torch
from fake_engine import write_problems
from random_models import make_tiny_model
from safetensors.torch import load_file, save_file

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.errors import UserError
from compositionality.rollout.collect import collect
from compositionality.rollout.engines.base import SamplingOptions, request_seed
from compositionality.rollout.engines.builtin import BuiltinEngine, read_weights
from compositionality.rollout.engines.factory import open_engine
from compositionality.rollout.engines.transformers import TransformersEngine
from compositionality.rollout.settings import CollectSettings, check_settings
from compositionality.rollout.store import read_rollouts


def inputs(last, first=0, run_seed=0):
    """Prompts ``first`` to ``last`` and their seeds."""
    prompts = [[{"role": "user", "content": "x" * (i % 9) + str(i)}] for i in range(first, last)]
    return prompts, [request_seed(run_seed, i, 0) for i in range(first, last)]


@pytest.fixture(scope="module")
def engine(tiny_model):
    return BuiltinEngine(tiny_model, max_rows=16)


def test_answers_end_at_eos_or_at_the_limit(engine):
    ticks = []
    answers = engine.generate(*inputs(60), SamplingOptions(max_tokens=40), ticks.append)
    assert sum(ticks) == 60
    assert {answer.finish_reason for answer in answers} == {"stop", "length"}
    assert all((answer.n_tokens == 40) >= (answer.finish_reason == "length") for answer in answers)
    assert all(answer.n_tokens <= 40 and "<|" not in answer.text for answer in answers)


def test_p07_a_call_repeats_itself_and_another_seed_differs(engine):
    options = SamplingOptions(max_tokens=20)
    first = engine.generate(*inputs(40), options)
    assert engine.generate(*inputs(40), options) == first
    assert engine.generate(*inputs(40, run_seed=1), options) != first


def test_an_answer_does_not_depend_on_its_neighbours(engine):
    options = SamplingOptions(max_tokens=10)
    assert engine.generate(*inputs(20), options)[7] == engine.generate(*inputs(8, 7), options)[0]


def test_greedy_answers_are_those_of_the_transformers_engine(engine, tiny_model):
    options = SamplingOptions(temperature=0.0, max_tokens=30)
    assert engine.generate(*inputs(40), options) == TransformersEngine(tiny_model).generate(*inputs(40), options)


def test_a_whole_collection_with_a_real_model(tiny_model, tmp_path, capsys):
    problems = write_problems(tmp_path / "problems.parquet", 10)
    for name in ("one", "two"):
        settings = CollectSettings(
            "builtin", problems=problems, output=tmp_path / name, model=str(tiny_model), n_samples=3
        )
        settings.max_tokens = 8
        collect(settings)
    one, two = ((tmp_path / name / "shard-00000.parquet").read_bytes() for name in ("one", "two"))
    assert one == two
    assert sum(table.num_rows for table in read_rollouts(tmp_path / "one")) == 30
    assert "tok/s" in capsys.readouterr().out


def test_p21_a_flipped_bit_in_the_weights_is_refused(tiny_model, tmp_path):
    problems, model = write_problems(tmp_path / "problems.parquet", 3), tmp_path / "model"
    with new_artefact(model, Recipe("train", {})) as partial:
        shutil.copytree(tiny_model, partial)
    settings = CollectSettings("builtin", problems=problems, output=tmp_path / "out", model=str(model), max_tokens=4)
    collect(settings)
    weights = model / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    for output in ("out", "other"):
        with pytest.raises(UserError, match=r"model\.safetensors: altered or truncated since it was made"):
            collect(replace(settings, output=tmp_path / output))
    assert not (tmp_path / "other").exists()


def test_settings_open_it_with_their_dtype(tiny_model, engine):
    settings = CollectSettings(model=str(tiny_model), engine="builtin", dtype="bfloat16")
    coarse = open_engine(settings, 20)
    options = SamplingOptions(temperature=0.0, max_tokens=1)
    one, other = coarse.generate(*inputs(40), options), engine.generate(*inputs(40), options)
    assert sum(a == b for a, b in zip(one, other, strict=True)) >= 35
    assert open_engine(settings, 20)._sampler._model.dtype is torch.bfloat16
    assert engine._sampler._model.dtype is torch.float32
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


def test_p18_a_model_that_it_does_not_know_is_refused(tmp_path):
    folder = make_tiny_model(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "gemma"}))
    with pytest.raises(UserError, match="model_type gemma: the built-in sampler knows llama, qwen2, qwen3"):
        BuiltinEngine(folder)
    with pytest.raises(UserError, match="no such model folder"):
        BuiltinEngine(tmp_path / "nothing")
