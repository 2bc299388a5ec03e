"""Rollout tokens/s (vLLM and transformers on the same tiny model) and judged answers/s. Run with -s to see the figures.

pytest -s -m slow tests/benchmarks/test_rollout_speed.py
"""

import json
import random
import time

import pytest

from compositionality.reward import judge_response
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.rollout.engines.base import SamplingOptions, request_seed

pytestmark = pytest.mark.slow


def short_answers(count, style):
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghij", k=8)) for _ in range(count)]
    gold = [json.dumps({"ref_output": word, "style": style}) for word in words]
    text = "func_7,func_3:abc={}" if style == "compact" else '{{"output": "{}"}}'
    return [
        JudgeInput("string-trained-level2", text.format(word), truth) for word, truth in zip(words, gold, strict=True)
    ]


@pytest.mark.parametrize("style", ["compact", "json"])
def test_judged_answers_per_second(style):
    items = short_answers(50_000, style)
    start = time.perf_counter()
    inline = [judge_response(*item) for item in items]
    inline_s = time.perf_counter() - start
    with JudgePool(1) as pool:
        pool.judge(items[:1000])
        start = time.perf_counter()
        pooled = pool.judge(items)
        pool_s = time.perf_counter() - start
    print(f"\njudged {style}: {len(items) / inline_s:,.0f}/s inline, {len(items) / pool_s:,.0f}/s through one worker")
    assert pooled == inline


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
