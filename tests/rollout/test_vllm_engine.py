"""The real vLLM (CPU build or GPU) and its Ray replicas, with a tiny random model; its server: test_vllm_server.py."""

import json
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from bash_runs import warm_verl
from fake_engine import contents, write_problems
from held import held

from compositionality.config.cli import parse
from compositionality.errors import UserError
from compositionality.rollout.collect import collect
from compositionality.rollout.engines.local import TransformersEngine
from compositionality.rollout.engines.vllm import VllmEngine, VllmOptions, is_cpu_build
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import working_path
from compositionality.seeds import request_seed
from compositionality.types import SamplingOptions

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(1800)]
PROGRAM = Path(__file__).parents[2] / "examples" / "collect_rollouts.py"


@pytest.fixture(scope="module")
def model(tiny_model, tmp_path_factory):
    """Ends completions by ordinary tokens, too, as some chat models do."""
    folder = shutil.copytree(tiny_model, tmp_path_factory.mktemp("vllm") / "model")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [3, 70, 80]}))
    return folder


@pytest.fixture(scope="module")
def engine(model):
    engine = VllmEngine(model, VllmOptions(max_model_len=256))
    yield engine
    engine.close()


def inputs(last, first=0, run_seed=0):
    """Prompts ``first`` to ``last``, every fourth a new problem, and their seeds."""
    prompts = [[{"role": "user", "content": "x" * (i % 150) + str(i // 4)}] for i in range(first, last)]
    return prompts, [request_seed(run_seed, i // 4, i % 4) for i in range(first, last)]


def test_p07_seeded_requests_repeat_themselves(engine):
    """More than run at a time, and prompt tokens of many steps: where vLLM would cut one, its CPU engine would die."""
    ticks, options = [], SamplingOptions(max_tokens=16)
    answers = engine.generate(*inputs(544), options, ticks.append)
    assert sum(ticks) == 544
    assert {answer.finish_reason for answer in answers} == {"stop", "length"}
    assert all(answer.n_tokens == 16 for answer in answers if answer.finish_reason == "length")
    assert engine.generate(*inputs(544), options) == answers
    assert engine.generate(*inputs(340, 300), options) == answers[300:340]
    assert engine.generate(*inputs(40, run_seed=1), options) != answers[:40]


def test_p13_greedy_answers_agree_with_transformers(engine, model):
    options = SamplingOptions(temperature=0.0, max_tokens=24)
    theirs = TransformersEngine(model).generate(*inputs(64), options)
    same = sum(a == b for a, b in zip(engine.generate(*inputs(64), options), theirs, strict=True))
    assert same >= 62  # a random model has near ties


@pytest.mark.skipif(not is_cpu_build(), reason="on a GPU the two draw otherwise")
def test_texts_are_decoded_as_by_the_other_engines(engine, model):
    """Also those that end by an ordinary token, or inside a character."""
    options = SamplingOptions(max_tokens=24)
    theirs = TransformersEngine(model).generate(*inputs(64), options)
    assert sum(a == b for a, b in zip(engine.generate(*inputs(64), options), theirs, strict=True)) >= 62


def words_of(problems, output, model):
    settings = {"problems": problems, "output": output, "model": model, "engine": "vllm", "n_samples": 4}
    return [*(f"{key}={value}" for key, value in settings.items()), "max_tokens=16", "rows_per_shard=32"]


def test_p07_vllm_killed_and_through_ray_gives_the_same_files(engine, model, tmp_path):
    """Begun by a vLLM that is killed, ended by two of Ray: as one makes them by itself."""
    problems, begun = write_problems(tmp_path / "problems.parquet", 64), tmp_path / "begun"
    words = words_of(problems, tmp_path / "whole", model)
    collect(parse(CollectSettings, words), engine)
    again, warm = words_of(problems, begun, model), warm_verl()
    kill_after([warm["PYTHON"], *held("shard", 6, PROGRAM), *again], working_path(begun), shards=3)
    done = [path.name for path in working_path(begun).glob("shards/shard-*")]
    assert 3 <= len(done) < 8, "neither vLLM nor Ray made all of them"
    command = [warm["PYTHON"], PROGRAM, *again, "engine=ray", "replicas=2"]
    subprocess.run(command, check=True, env={**os.environ, **warm})
    assert contents(tmp_path / "whole") == contents(begun)


def kill_after(command, working, shards):
    """SIGKILL a run soon after it has so many shards."""
    process = subprocess.Popen(command)
    while process.poll() is None and len(list(working.glob("shards/shard-*"))) < shards:
        time.sleep(0.02)
    time.sleep(random.Random(shards).uniform(0, 0.3))
    process.kill()
    process.wait()


def test_p18_a_model_that_vllm_cannot_load_is_one_line(model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "deeper")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(UserError, match=r"deeper: vLLM does not start with this model: Following weights were not"):
        VllmEngine(folder, VllmOptions(max_model_len=64))
