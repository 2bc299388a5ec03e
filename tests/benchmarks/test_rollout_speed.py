"""Rollout tokens/s of vLLM and transformers on the same tiny model. Run with -s to see the figures.

pytest -s -m slow tests/benchmarks/test_rollout_speed.py
"""

import time

import pytest

from compositionality.rollout.engines.base import SamplingOptions, request_seed

pytestmark = pytest.mark.slow


def test_rollout_tokens_per_second(tmp_path):
    from random_models import make_tiny_model

    from compositionality.rollout.engines.transformers import TransformersEngine
    from compositionality.rollout.engines.vllm import VllmEngine, VllmOptions

    model = make_tiny_model(tmp_path)
    prompts = [[{"role": "user", "content": f"w{i // 4}"}] for i in range(1024)]
    seeds = [request_seed(0, i // 4, i % 4) for i in range(1024)]
    rates = {}
    for name, open_engine in (
        ("transformers", lambda: TransformersEngine(model)),
        ("vllm", lambda: VllmEngine(model, VllmOptions(max_model_len=128))),
    ):
        engine = open_engine()
        rates[name] = tokens_per_second(engine, prompts, seeds)
        engine.close()
    print(
        "\nrollouts, random Llama of 0.1 M: " + ", ".join(f"{name} {rate:,.0f} tok/s" for name, rate in rates.items())
    )
    assert rates.keys() == {"transformers", "vllm"}


def tokens_per_second(engine, prompts, seeds):
    """The second of two equal calls: the first warms up."""
    for _ in range(2):
        start = time.perf_counter()
        completions = engine.generate(prompts, seeds, SamplingOptions(max_tokens=64))
        seconds = time.perf_counter() - start
    return sum(one.n_tokens for one in completions) / seconds
