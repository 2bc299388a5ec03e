"""Useful tokens/s of the built-in sampler and of transformers' generate, and their ratio, in one run.

``pytest tests/benchmarks/test_sampler_speed.py --benchmark-enable -s`` prints the figures. Same tiny model, prompts
and length distribution, one thread; tokens after an answer's end do not count. Processor time is measured, in turns,
so that a busy machine does not change the ratio much; each side has its best of three batch sizes.
"""

import random
import time

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from compositionality.rollout.sampler.sampler import Sampler
from compositionality.types import SamplingOptions

EOS = (3, 50, 120, 200)  # 4 of 229 nearly equal chances: lengths of 1 to 150, 52 on average
MAX_TOKENS = 150
BATCHES = (128, 256, 512)


def make_model():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=229, hidden_size=64, intermediate_size=176, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=4, head_dim=16, max_position_embeddings=512, bos_token_id=None, eos_token_id=EOS[0],
        pad_token_id=0, rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
    )  # fmt: skip
    torch.manual_seed(0)
    return LlamaForCausalLM(config).float().eval()


def make_prompts(rows, copies=16):
    chance = random.Random(0)
    different = [[chance.randrange(4, 229) for _ in range(chance.randint(15, 25))] for _ in range(rows // copies)]
    return [prompt for prompt in different for _ in range(copies)]


def lengths_of_generate(model, prompts, batch):
    """Useful tokens of every answer of ``generate``, in left-padded batches of similar length."""
    ordered, lengths = sorted(prompts, key=len), []
    for start in range(0, len(ordered), batch):
        rows = ordered[start : start + batch]
        width = max(map(len, rows))
        tokens = torch.tensor([[0] * (width - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        with torch.inference_mode():
            output = model.generate(
                tokens, attention_mask=mask, max_new_tokens=MAX_TOKENS, do_sample=True, top_k=0, eos_token_id=list(EOS)
            )
        ended = torch.isin(output[:, width:], torch.tensor(EOS)).int()
        before = (ended.cumsum(1) - ended == 0).sum(1)
        lengths += before.tolist()
    return lengths


def lengths_of_sampler(model, prompts, batch):
    sampler = Sampler(model.config, EOS, max_rows=batch)
    sampler.load(model.state_dict().items())
    answers = sampler.sample(prompts, range(len(prompts)), SamplingOptions(max_tokens=MAX_TOKENS))
    return [answer.n_tokens for answer in answers]


@pytest.mark.slow
def test_useful_tokens_per_second_beside_generate(benchmark: BenchmarkFixture) -> None:
    torch.set_num_threads(1)
    model = make_model()
    rounds, prompts = (3, make_prompts(1024)) if benchmark.enabled else (1, make_prompts(128))
    sides = {"built-in": lengths_of_sampler, "generate": lengths_of_generate}
    rates, lengths = {name: dict.fromkeys(BATCHES, 0.0) for name in sides}, {}

    def take_turns() -> None:
        for batch in BATCHES:
            for name, ask in sides.items():
                start = time.process_time()
                lengths[name] = ask(model, prompts, batch)
                rate = sum(lengths[name]) / (time.process_time() - start)
                rates[name][batch] = max(rates[name][batch], rate)

    benchmark.pedantic(take_turns, rounds=rounds)
    for name, found in rates.items():
        each = ", ".join(f"{rate:,.0f} in batches of {batch}" for batch, rate in found.items())
        print(f"\n{name}: lengths {spread(lengths[name])}; useful tokens/s: {each}", end="")
    ratio = max(rates["built-in"].values()) / max(rates["generate"].values())
    print(f"\nbuilt-in : generate = {ratio:.1f} (goal: 2)")
    means = [sum(found) / len(found) for found in lengths.values()]
    assert 0.7 < means[0] / means[1] < 1.4


def spread(lengths):
    ordered = sorted(lengths)
    middle, high = ordered[len(ordered) // 2], ordered[len(ordered) * 9 // 10]
    return f"{ordered[0]} to {ordered[-1]}, mean {sum(ordered) / len(ordered):.0f}, median {middle}, 90 % {high}"
