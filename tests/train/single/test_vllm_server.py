"""A real vLLM server, started as the documentation says: it answers rollouts, takes RL's weights, judges failures."""

import json
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from bash_runs import warm_python
from failure_runs import evaluation, first_line_only, problem_file, rows_of, settings, wrong_at_the_end
from fake_engine import write_problems
from random_models import make_tiny_model
from test_samplers_vllm import END, PROMPTS, SAMPLED, SEEDS, change, gaps

from compositionality.config.verbs import helps
from compositionality.evaluate.failures import find_failures
from compositionality.evaluate.llm_judge import NAMES, agreement
from compositionality.rollout.collect import collect
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import read_rollouts
from compositionality.train.launch import free_port
from compositionality.train.server_sampler import ServerSampler
from compositionality.types import LENGTH, STOP

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(1800)]
FOR_RL = ServerSampler.__doc__ or ""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With places enough for what a judge is asked."""
    folder = make_tiny_model(tmp_path_factory.mktemp("model"))
    config = json.loads((folder / "config.json").read_text()) | {"max_position_embeddings": 8192}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address. What collect_rollouts --help says, with what RL needs besides, in float32."""
    port, folder = free_port(), tmp_path_factory.mktemp("bin")
    (documented,) = re.findall(r"^ +(VLLM_CPU_KVCACHE_SPACE=.* -m vllm.*)$", helps()["collect_rollouts"], re.MULTILINE)
    variables, options = (re.findall(form, FOR_RL)[0] for form in (r"VLLM_\w+=1", r"--logprobs-mode \w+"))
    options += " --dtype float32 --no-enable-chunked-prefill"
    command = documented.replace("MODEL", str(model)).replace("8000", str(port))
    (folder / "python").symlink_to(warm_python())
    own = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    own["TORCH_COMPILE_DISABLE"] = "1"  # a schema's mask would be compiled, in ten seconds
    process = subprocess.Popen(["bash", "-c", f"exec env {variables} {command} {options}"], env=own)
    end = time.monotonic() + 900
    try:
        while not is_up(f"http://127.0.0.1:{port}/health"):
            assert process.poll() is None, "the server does not start"
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(300)


def is_up(url: str) -> bool:
    with suppress(OSError):  # a busy server may also answer too late
        urllib.request.urlopen(url, timeout=10)
        return True
    return False


def test_it_answers_rollouts(server: str, model: Path, tmp_path: Path) -> None:
    problems, output = write_problems(tmp_path / "problems.parquet", 32), tmp_path / "out"
    given = {"problems": problems, "output": output, "model": str(model), "base_url": server}
    collect(CollectSettings(**given, n_samples=2, max_tokens=16))
    rows = [row for table in read_rollouts(output) for row in table.to_pylist()]
    assert len(rows) == 64
    assert all(1 <= row["n_tokens"] <= 16 for row in rows)
    assert {row["finish_reason"] for row in rows} == {STOP, LENGTH}


def test_as_a_judge_it_keeps_to_the_classes(server: str, model: Path, tmp_path: Path) -> None:
    models = {"lazy": first_line_only, "slip": wrong_at_the_end}
    evaluation(tmp_path / "run", problem_file(tmp_path / "heldout.parquet"), models)
    given = {"judge_base_url": server, "judge_model": str(model), "judge_responses": 8}
    output = find_failures(settings(tmp_path, judge=True, **given)) / "judge.parquet"
    found = agreement(output)
    assert found["n"] + found["malformed"] == 16
    assert found["n"] >= 8  # a random model may still run out of tokens in front of the key
    assert {row["judge"] for row in rows_of(output)} <= {*NAMES, "malformed"}


def test_it_takes_the_weights_of_rl_and_tells_their_log_probs(server: str, model: Path) -> None:
    """The last test: it changes the weights."""
    from transformers import LlamaForCausalLM

    policy, sampler = LlamaForCausalLM.from_pretrained(model).eval(), ServerSampler(server, model, [END])
    before = sampler.sample(PROMPTS, SEEDS, SAMPLED)
    assert max(gaps(policy, before, SAMPLED.temperature)) <= 1e-4
    assert {sample.finish_reason for sample in before} == {STOP, LENGTH}
    change(policy)
    sampler.load(policy.named_parameters())
    assert max(gaps(policy, sampler.sample(PROMPTS, SEEDS, SAMPLED), SAMPLED.temperature)) <= 1e-4
