"""The real vLLM (CPU build or GPU), its Ray replicas and its server, with a tiny random model."""

import contextlib
import os
import random
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from fake_engine import contents, write_problems
from held import held

from compositionality.config.cli import parse
from compositionality.rollout.collect import collect
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import read_rollouts, working_path
from compositionality.seeds import request_seed
from compositionality.train.launch import free_port
from compositionality.types import SamplingOptions

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(1800)]
PROGRAM = Path(__file__).parents[2] / "examples" / "collect_rollouts.py"
COLLECT = [sys.executable, str(PROGRAM)]


@pytest.fixture(scope="module")
def engine(tiny_model):
    from compositionality.rollout.engines.vllm import VllmEngine, VllmOptions

    engine = VllmEngine(tiny_model, VllmOptions(max_model_len=256))
    yield engine
    engine.close()


def inputs(last, first=0, run_seed=0):
    """Prompts ``first`` to ``last``, every fourth a new problem, and their seeds."""
    prompts = [[{"role": "user", "content": "x" * (i % 150) + str(i // 4)}] for i in range(first, last)]
    return prompts, [request_seed(run_seed, i // 4, i % 4) for i in range(first, last)]


def test_p07_seeded_requests_repeat_themselves(engine):
    """More than run at a time, and prompt tokens of many steps: where vLLM would cut one, its CPU engine would die."""
    ticks, options = [], SamplingOptions(max_tokens=64)
    answers = engine.generate(*inputs(768), options, ticks.append)
    assert sum(ticks) == 768
    assert {answer.finish_reason for answer in answers} == {"stop", "length"}
    assert all(answer.n_tokens == 64 for answer in answers if answer.finish_reason == "length")
    assert engine.generate(*inputs(768), options) == answers
    assert engine.generate(*inputs(340, 300), options) == answers[300:340]
    assert engine.generate(*inputs(40, run_seed=1), options) != answers[:40]


def test_p13_greedy_answers_agree_with_transformers(engine, tiny_model):
    from compositionality.rollout.engines.transformers import TransformersEngine

    options = SamplingOptions(temperature=0.0, max_tokens=24)
    theirs = TransformersEngine(tiny_model).generate(*inputs(64), options)
    same = sum(a == b for a, b in zip(engine.generate(*inputs(64), options), theirs, strict=True))
    assert same >= 62  # a random model has near ties


def words_of(problems, output, model):
    settings = {"problems": problems, "output": output, "model": model, "engine": "vllm", "n_samples": 4}
    return [*(f"{key}={value}" for key, value in settings.items()), "max_tokens=32", "rows_per_shard=256"]


def test_p07_vllm_killed_and_through_ray_gives_the_same_files(engine, tiny_model, tmp_path):
    """Begun by a vLLM that is killed, ended by two of Ray: as one makes them by itself."""
    problems, begun = write_problems(tmp_path / "problems.parquet", 512), tmp_path / "begun"
    words = words_of(problems, tmp_path / "whole", tiny_model)
    collect(parse(CollectSettings, words), engine)
    again = words_of(problems, begun, tiny_model)
    kill_after([sys.executable, *held("shard", 6, PROGRAM), *again], working_path(begun), shards=3)
    done = [path.name for path in working_path(begun).glob("shards/shard-*")]
    assert 3 <= len(done) < 8, "neither vLLM nor Ray made all of them"
    subprocess.run([*COLLECT, *again, "engine=ray", "replicas=2"], check=True)
    assert contents(tmp_path / "whole") == contents(begun)


def kill_after(command, working, shards):
    """SIGKILL a run soon after it has so many shards."""
    process = subprocess.Popen(command)
    while process.poll() is None and len(list(working.glob("shards/shard-*"))) < shards:
        time.sleep(0.02)
    time.sleep(random.Random(shards).uniform(0, 0.3))
    process.kill()
    process.wait()


def test_the_documented_server_answers(tiny_model, tmp_path):
    problems, output = write_problems(tmp_path / "problems.parquet", 32), tmp_path / "out"
    with served(tiny_model, tmp_path) as url:
        settings = CollectSettings(
            base_url=f"{url}/v1", problems=problems, output=output, model=str(tiny_model), n_samples=2
        )
        settings.max_tokens = 16
        collect(settings)
    rows = [row for table in read_rollouts(output) for row in table.to_pylist()]
    assert len(rows) == 64
    assert all(1 <= row["n_tokens"] <= 16 for row in rows)
    assert {row["finish_reason"] for row in rows} == {"stop", "length"}


def served(model, folder):
    """vLLM's server on a free port of this machine, started as ``collect_rollouts --help`` says."""
    port = free_port()
    said = subprocess.run([*COLLECT, "--help"], check=True, capture_output=True, text=True).stdout
    documented = re.search(r"^ +(VLLM_CPU_KVCACHE_SPACE=.* -m vllm.*)$", said, re.MULTILINE)[1]
    command = documented.replace("MODEL", str(model)).replace("8000", str(port))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return serving(["bash", "-c", f"exec env {command}"], port, cwd=folder, env=os.environ | {"PATH": path})


@contextlib.contextmanager
def serving(command, port, **settings):
    """The address of a server, once it answers."""
    process, url, end = subprocess.Popen(command, **settings), f"http://127.0.0.1:{port}", time.monotonic() + 900
    try:
        while not is_up(f"{url}/health"):
            assert process.poll() is None, "the server does not start"
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        process.wait(300)


def is_up(url):
    with contextlib.suppress(OSError):  # a busy server may also answer too late
        urllib.request.urlopen(url, timeout=10)
        return True
    return False
