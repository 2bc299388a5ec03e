"""What the two engines of this process have in common: answers end, repeat, and do not depend on their neighbours."""

import json
import math
import shutil
from dataclasses import replace

import pytest
import torch
from fake_engine import write_problems
from safetensors.torch import load_file, save_file

from compositionality.errors import UserError
from compositionality.rollout.collect import collect
from compositionality.rollout.engines import local
from compositionality.rollout.engines.factory import open_engine
from compositionality.rollout.engines.local import BuiltinEngine, SeededSampler, TransformersEngine, read_weights
from compositionality.rollout.settings import CollectSettings, check_settings
from compositionality.rollout.store import read_rollouts, rollout_manifest
from compositionality.seeds import request_seed
from compositionality.types import SamplingOptions

ENGINES = {"builtin": BuiltinEngine, "transformers": TransformersEngine}
GREEDY = SamplingOptions(temperature=0.0, max_tokens=30)


def inputs(last, first=0, run_seed=0):
    """Prompts ``first`` to ``last`` and their seeds."""
    prompts = [[{"role": "user", "content": "x" * (i % 9) + str(i)}] for i in range(first, last)]
    return prompts, [request_seed(run_seed, i, 0) for i in range(first, last)]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request, tiny_model):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "BATCH", 16)
        yield ENGINES[request.param](tiny_model)


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


def test_temperature_zero_is_greedy_whatever_the_seed_and_the_engine(engine, tiny_model):
    answers = engine.generate(*inputs(40), GREEDY)
    assert answers == engine.generate(*inputs(40, run_seed=3), GREEDY)
    assert answers == TransformersEngine(tiny_model).generate(*inputs(40), GREEDY)


def test_sampling_defaults_of_the_model_folder_do_not_count(tiny_model, tmp_path):
    """Qwen2.5-Instruct's generation_config.json has a repetition penalty, which ``generate`` would apply."""
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 3, "repetition_penalty": 1.3}))
    assert TransformersEngine(folder).generate(*inputs(8), GREEDY) == BuiltinEngine(folder).generate(*inputs(8), GREEDY)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_p18_logits_of_nan_are_one_line(tiny_model, tmp_path, name, temperature):
    """A diverged model would answer with nothing, and count as one that is always wrong."""
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    save_file({key: weight * math.nan for key, weight in weights.items()}, folder / "model.safetensors")
    with pytest.raises(UserError, match="the model's logits are NaN; its weights are damaged, or its training diverge"):
        ENGINES[name](folder).generate(*inputs(4), replace(GREEDY, temperature=temperature))


def test_tables_of_rotations_in_old_checkpoints_are_passed_over(tiny_model, tmp_path):
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    weights = load_file(folder / "model.safetensors") | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(16)}
    save_file(weights, folder / "model.safetensors")
    assert BuiltinEngine(folder).generate(*inputs(5), GREEDY) == BuiltinEngine(tiny_model).generate(*inputs(5), GREEDY)


@pytest.mark.parametrize("name", ENGINES)
def test_a_whole_collection_with_a_real_model(name, tiny_model, tmp_path, capsys):
    problems, output = write_problems(tmp_path / "problems.parquet", 10), tmp_path / "out"
    sampling = {"n_samples": 3, "max_tokens": 8}
    collect(CollectSettings(name, problems=problems, output=output, model=str(tiny_model), **sampling))
    assert sum(table.num_rows for table in read_rollouts(output)) == 30
    assert {*rollout_manifest(output).inputs} == {"problems", "model"}
    assert "tok/s" in capsys.readouterr().out


def test_draws_of_the_transformers_engine_follow_the_tempered_softmax():
    logits = torch.tensor([2.0, 0.0, 1.0, -1.0])
    sampler = SeededSampler(range(20_000), SamplingOptions(temperature=2.0), "cpu")
    drawn = sampler(None, logits.expand(20_000, 4)).argmax(-1)
    shares = torch.bincount(drawn, minlength=4) / 20_000
    expected = (logits / 2).softmax(-1)
    assert torch.allclose(shares, expected, atol=4 * math.sqrt(0.25 / 20_000))


# ---- the built-in engine alone


def test_settings_open_the_builtin_engine_with_their_dtype(tiny_model):
    settings = CollectSettings(model=str(tiny_model), engine="builtin", dtype="bfloat16")
    coarse, fine = open_engine(settings, 20), BuiltinEngine(tiny_model)
    assert (coarse._model.model.dtype, fine._model.model.dtype) == (torch.bfloat16, torch.float32)
    answers = (engine.generate(*inputs(40), replace(GREEDY, max_tokens=1)) for engine in (coarse, fine))
    assert sum(a == b for a, b in zip(*answers, strict=True)) >= 35
    with pytest.raises(UserError, match="dtype=flaot32: must be one of"):
        check_settings(replace(settings, problems=tiny_model, output=tiny_model, dtype="flaot32"))


@pytest.mark.parametrize("form", ["two safetensors files", "pytorch_model.bin"])
def test_the_builtin_engine_reads_weights_from_any_usual_form(tiny_model, tmp_path, form):
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
    read = dict(read_weights(folder))
    assert read.keys() == weights.keys()
    assert all(torch.equal(read[name], weights[name]) for name in weights)
    assert BuiltinEngine(folder).generate(*inputs(5), GREEDY) == BuiltinEngine(tiny_model).generate(*inputs(5), GREEDY)
