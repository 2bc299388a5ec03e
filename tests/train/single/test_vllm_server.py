"""A real vLLM server, started as the documentation says, answers rollouts and takes RL's weights.

As a judge: tests/evaluate/test_failures_judge.py.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bash_runs import warm_python
from fake_engine import write_problems
from test_samplers_vllm import END, PROMPTS, SAMPLED, SEEDS, change, gaps, make_model
from vllm_server import serving

from compositionality.config.verbs import helps
from compositionality.errors import UserError
from compositionality.rollout.collect import collect
from compositionality.rollout.settings import CollectSettings
from compositionality.rollout.store import read_rollouts
from compositionality.train.launch import free_port
from compositionality.train.server_sampler import ServerSampler
from compositionality.types import LENGTH, STOP

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(1800)]
FOR_RL = (Path(__file__).parents[3] / "bash/single_file/README.md").read_text()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model"))


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
    with serving(["bash", "-c", f"exec env {variables} {command} {options}"], port, env=own) as url:
        yield f"{url}/v1"


def test_it_answers_rollouts(server: str, model: Path, tmp_path: Path) -> None:
    problems, output = write_problems(tmp_path / "problems.parquet", 32), tmp_path / "out"
    given = {"problems": problems, "output": output, "model": str(model), "base_url": server}
    collect(CollectSettings(**given, n_samples=4, max_tokens=24))
    rows = [row for table in read_rollouts(output) for row in table.to_pylist()]
    assert len(rows) == 128
    assert all(1 <= row["n_tokens"] <= 24 for row in rows)
    assert {row["finish_reason"] for row in rows} == {STOP, LENGTH}


def test_it_takes_the_weights_of_rl_and_tells_their_log_probs(server: str, model: Path) -> None:
    """The last test: it changes the weights."""
    from transformers import LlamaForCausalLM

    policy, sampler = LlamaForCausalLM.from_pretrained(model).eval(), ServerSampler(server, model, [END], tied=False)
    before = sampler.sample(PROMPTS, SEEDS, SAMPLED)
    assert max(gaps(policy, before, SAMPLED.temperature)) <= 1e-4
    assert {sample.finish_reason for sample in before} == {STOP, LENGTH}
    with pytest.raises(UserError, match="tied embeddings"):
        ServerSampler(server, model, [END], tied=True)
    change(policy)
    sampler.load(policy.named_parameters())
    assert max(gaps(policy, sampler.sample(PROMPTS, SEEDS, SAMPLED), SAMPLED.temperature)) <= 1e-4
