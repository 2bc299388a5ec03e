"""What the two engines of this process have in common: answers end, repeat, and do not depend on their neighbours."""

import math

import pytest
import torch
from fake_engine import write_problems

from compositionality.rollout.collect import collect
from compositionality.rollout.engines import transformers
from compositionality.rollout.engines.base import SamplingOptions
from compositionality.rollout.engines.builtin import BuiltinEngine
from compositionality.rollout.engines.transformers import SeededSampler, TransformersEngine
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import read_rollouts, rollout_manifest
from compositionality.tasks.draws import request_seed

ENGINES = {"builtin": BuiltinEngine, "transformers": TransformersEngine}
GREEDY = SamplingOptions(temperature=0.0, max_tokens=30)


def inputs(last, first=0, run_seed=0):
    """Prompts ``first`` to ``last`` and their seeds."""
    prompts = [[{"role": "user", "content": "x" * (i % 9) + str(i)}] for i in range(first, last)]
    return prompts, [request_seed(run_seed, i, 0) for i in range(first, last)]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request, tiny_model):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transformers, "BATCH", 16)
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
