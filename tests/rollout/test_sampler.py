"""The built-in sampler says what transformers would say, whoever is asked beside whom, and draws what it should."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from assets import random_model
from scipy.stats import chisquare, kstest

from compositionality.errors import UserError
from compositionality.rollout.engines.base import SamplingOptions
from compositionality.rollout.sampler import kv_cache
from compositionality.rollout.sampler.sampler import Sampler, draw, uniforms
from compositionality.types import LENGTH, STOP

EOS = 1
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 10_000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
CONFIGS = {
    "llama": ("Llama", {}),
    "llama-gqa-tied": ("Llama", {"num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True}),
    "llama-all-biases": ("Llama", {"num_key_value_heads": 1, "attention_bias": True, "mlp_bias": True}),
    "llama3-rope": ("Llama", {"num_key_value_heads": 2, "rope_parameters": LLAMA3}),
    "qwen2": ("Qwen2", {"num_key_value_heads": 2}),
    "qwen2-tied": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"num_key_value_heads": 2, "head_dim": 16}),
    "qwen3-tied": ("Qwen3", {"num_key_value_heads": 4, "head_dim": 8, "tie_word_embeddings": True}),
}
SAMPLING = SamplingOptions(max_tokens=40)
GREEDY = SamplingOptions(temperature=0.0, max_tokens=24)


def make_model(family, spread=0.15, **changes):
    torch.set_num_threads(1)
    shape = {"vocab_size": 97, "num_hidden_layers": 3, "num_key_value_heads": 4, "eos_token_id": EOS}
    return random_model(family, spread, **shape | changes)


@pytest.fixture(scope="module", params=CONFIGS, ids=str)
def any_model(request):
    family, changes = CONFIGS[request.param]
    return make_model(family, **changes)


@pytest.fixture(scope="module")
def model():
    return make_model("Llama", num_key_value_heads=2)


def sampler_of(model, eos_ids=(EOS,), max_rows=12):
    sampler = Sampler(model.config, eos_ids, max_rows=max_rows)
    sampler.load(model.state_dict().items())
    return sampler


def some_prompts(count=37, longest=40):
    chance = np.random.default_rng(1)
    prompts = [chance.integers(2, 97, chance.integers(1, longest + 1)).tolist() for _ in range(count)]
    prompts[5:9] = [prompts[4]] * 4
    return prompts


def reference_logps(model, prompt, tokens, temperature=1.0):
    """Tempered log-probs of ``tokens`` by one full forward pass of transformers."""
    with torch.no_grad():
        logits = model(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1]
    return (logits / temperature).log_softmax(-1).gather(1, torch.tensor(tokens)[:, None]).squeeze(1)


def test_logps_are_those_of_a_full_forward_pass(any_model):
    prompts = some_prompts(20)
    for prompt, answer in zip(prompts, ask(any_model, prompts, replace(SAMPLING, temperature=0.7)), strict=True):
        expected = reference_logps(any_model, prompt, answer.token_ids, 0.7)
        assert torch.allclose(torch.tensor(answer.log_probs), expected, atol=2e-5, rtol=0)


def ask(model, prompts, options, max_rows=12, seeds=None, eos_ids=(EOS,)):
    seeds = range(len(prompts)) if seeds is None else seeds
    return sampler_of(model, eos_ids, max_rows).sample(prompts, seeds, options)


@pytest.mark.parametrize("max_rows", [1, 7, 64])
def test_an_answer_does_not_depend_on_neighbours_order_or_batch(model, max_rows):
    prompts = some_prompts()
    answers = ask(model, prompts, SAMPLING)
    order = np.random.default_rng(2).permutation(len(prompts)).tolist()
    shuffled = ask(model, [prompts[row] for row in order], SAMPLING, max_rows, seeds=order)
    for row, answer in zip(order, shuffled, strict=True):
        assert answer.token_ids == answers[row].token_ids
        assert answer.finish_reason == answers[row].finish_reason
        assert np.allclose(answer.log_probs, answers[row].log_probs, atol=1e-5, rtol=0)
    alone = ask(model, prompts[9:10], SAMPLING, max_rows, seeds=[9])
    assert alone[0].token_ids == answers[9].token_ids


def test_another_seed_is_another_answer_and_the_same_call_the_same_bits(model):
    prompts = [some_prompts()[4]] * 16
    first, again = ask(model, prompts, SAMPLING), ask(model, prompts, SAMPLING)
    assert first == again
    assert len({tuple(answer.token_ids) for answer in first}) == 16
    assert ask(model, prompts[:2], SAMPLING, seeds=[3, 3])[0] == ask(model, prompts[:2], SAMPLING, seeds=[3, 3])[1]


def test_a_prompt_asked_sixteen_times_is_read_once(model):
    sampler, read = sampler_of(model, max_rows=64), []
    hidden = sampler.model.hidden
    sampler.model.hidden = lambda tokens, positions, attend: (
        read.append(len(tokens)) or hidden(tokens, positions, attend)
    )
    answers = sampler.sample([[5, 6, 7, 8]] * 16, range(16), replace(SAMPLING, max_tokens=2))
    assert read[0] == 4
    assert len(answers) == 16


@pytest.mark.parametrize("max_tokens", [1, 3, 5, 6])
def test_a_smaller_limit_cuts_the_same_answers(model, max_tokens):
    """And an EOS behind the limit, where the rows of a batch have come further than others, ends none of them."""
    prompts, enders = some_prompts(), range(12)
    whole = ask(model, prompts, SAMPLING, eos_ids=enders)
    shorter = ask(model, prompts, replace(SAMPLING, max_tokens=max_tokens), eos_ids=enders)
    for short, answer in zip(shorter, whole, strict=True):
        assert short.token_ids == answer.token_ids[:max_tokens]
        assert short.finish_reason == (STOP if short.token_ids[-1] in enders else LENGTH)


def test_several_eos_ids_and_eos_as_the_first_token(model):
    prompts = some_prompts()
    whole = ask(model, prompts, SAMPLING)
    enders = {whole[0].token_ids[0], whole[2].token_ids[3], EOS}
    for cut, answer in zip(ask(model, prompts, SAMPLING, eos_ids=tuple(enders)), whole, strict=True):
        end = next((place for place, token in enumerate(answer.token_ids) if token in enders), len(answer.token_ids))
        assert cut.token_ids == answer.token_ids[: end + 1]
    every = ask(model, prompts, SAMPLING, eos_ids=range(97))
    assert [answer.token_ids for answer in every] == [answer.token_ids[:1] for answer in whole]
    assert all(answer.finish_reason == STOP for answer in every)


def test_no_prompt_no_answer_and_every_answer_is_told_once(model):
    assert ask(model, [], SAMPLING) == []
    told = []
    sampler_of(model).sample(some_prompts(), range(37), SAMPLING, told.append)
    assert sum(told) == 37
    assert len(told) > 3


def test_new_weights_count_from_the_next_call_on(model):
    other = make_model("Llama", num_key_value_heads=2, spread=0.1)
    sampler, prompts = sampler_of(model), some_prompts()
    first = sampler.sample(prompts, range(37), GREEDY)
    weights = list(other.state_dict().items())
    sampler.load(weights[:7])
    sampler.load(iter(weights[7:]))
    second = sampler.sample(prompts, range(37), GREEDY)
    assert second == ask(other, prompts, GREEDY)
    assert second != first


def test_the_cache_grows_and_lots_unite_without_a_trace(model):
    """Long answers with rows that end at all times, few rows at once: the cache is laid out anew many times."""
    prompts = some_prompts(40, longest=12)
    options = SamplingOptions(max_tokens=140)
    for prompt, answer in zip(prompts, ask(model, prompts, options, 16, eos_ids=(EOS, 2)), strict=True):
        expected = reference_logps(model, prompt, answer.token_ids)
        assert torch.allclose(torch.tensor(answer.log_probs), expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("prefill_tokens", [60, 16384])
def test_what_new_memory_held_before_changes_nothing(model, prefill_tokens, monkeypatch):
    """A GPU hands out memory as it was left, NaN included; prompts are read in passes of less and less width."""
    prompts, new_cache = some_prompts(), kv_cache._new_cache
    expected = ask(model, prompts, SAMPLING, 24)
    monkeypatch.setattr(kv_cache, "PREFILL_TOKENS", prefill_tokens)
    monkeypatch.setattr(kv_cache, "_new_cache", lambda *args: tuple(x.fill_(torch.nan) for x in new_cache(*args)))
    for one, answer in zip(expected, ask(model, prompts, SAMPLING, 24), strict=True):
        assert answer.token_ids == one.token_ids
        assert np.allclose(answer.log_probs, one.log_probs, atol=1e-5, rtol=0)


def test_uniforms_are_uniform_and_independent():
    seeds, counters = np.arange(300, dtype=np.uint64), np.arange(300)[:, None]
    numbers = uniforms(seeds, counters)
    assert numbers.min() > 0
    assert numbers.max() < 1
    assert kstest(numbers.ravel(), "uniform").pvalue > 0.01
    for one, other in ((numbers[:, 1:], numbers[:, :-1]), (numbers[1:], numbers[:-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4 / 300
    assert np.array_equal(uniforms(seeds[7:8], counters[4:5]), numbers[4:5, 7:8])


SHARES = np.array([0.4, 0.05, 0.25, 0.1, 0.2])


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (SamplingOptions(), [0, 1, 2, 3, 4]),
        (SamplingOptions(top_k=2), [0, 2]),
        (SamplingOptions(top_k=9), [0, 1, 2, 3, 4]),
        (SamplingOptions(top_p=0.6), [0, 2]),
        (SamplingOptions(top_p=0.66), [0, 2, 4]),
        (SamplingOptions(top_p=1e-9), [0]),
        (SamplingOptions(top_p=0.8, top_k=3), [0, 2, 4]),
        (SamplingOptions(temperature=0.5), [0, 1, 2, 3, 4]),
    ],
)
def test_draws_follow_the_tempered_and_truncated_distribution(options, kept):
    count, shares = 20_000, SHARES ** (1 / options.temperature)
    logits = torch.from_numpy(np.log(SHARES)).float().expand(count, -1)
    numbers = torch.from_numpy(uniforms(np.arange(count, dtype=np.uint64), np.zeros(count, np.int64)))
    tokens, logps = draw(logits, numbers, options)
    seen = np.bincount(tokens, minlength=5)
    assert np.flatnonzero(seen).tolist() == kept
    assert len(kept) == 1 or chisquare(seen[kept], shares[kept] / shares[kept].sum() * count).pvalue > 0.01
    assert np.allclose(logps, np.log(shares / shares.sum())[tokens], atol=1e-6)


def test_a_draw_never_falls_outside():
    logits = torch.tensor([[0.0, -200.0, 0.0, -torch.inf]]).expand(2, -1)
    edges = torch.tensor([2.0**-33, 1 - 2.0**-33], dtype=torch.float64)
    tokens, logps = draw(logits, edges, SamplingOptions())
    assert tokens.tolist() == [0, 2]
    assert logps.isfinite().all()


@pytest.mark.parametrize("options", [SamplingOptions(max_tokens=2), SamplingOptions(max_tokens=2, top_k=3)])
def test_two_tokens_of_a_model_follow_their_joint_distribution(options):
    tiny = make_model("Qwen3", 0.3, vocab_size=6, head_dim=8)
    count, prompt = 4_000, [3, 4, 2]
    answers = ask(tiny, [prompt] * count, options, max_rows=512, eos_ids=())
    seen = Counter(tuple(answer.token_ids) for answer in answers)
    with torch.no_grad():
        logits = tiny(torch.tensor([[*prompt, token] for token in range(6)])).logits[:, -2:]
    if options.top_k:
        logits = logits.masked_fill(logits < logits.topk(options.top_k).values[..., -1:], -torch.inf)
    joint = logits[0, 0].softmax(-1)[:, None] * logits[:, 1].softmax(-1)
    pairs = [(int(a), int(b)) for a, b in joint.nonzero()]
    assert set(seen) <= set(pairs)
    expected = np.array([joint[pair].item() for pair in pairs]) * count
    observed, common = np.array([seen[pair] for pair in pairs]), expected >= 5
    assert expected[common].sum() > 0.95 * count
    observed, expected = observed[common], expected[common]
    assert chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 0.01


def test_p18_a_prompt_that_cannot_be_answered_is_refused(model):
    sampler = sampler_of(model)
    for prompts, text in (
        ([[5] * 10, [5] * 121], r"prompt 1 has 121 tokens and max_tokens is 40, but the model takes 160"),
        ([[]], "prompt 0 is empty"),
        ([[5], [96, 97]], "prompt 1 holds token 97; the model knows 0 to 96"),
        ([[-1]], "prompt 0 holds token -1"),
    ):
        with pytest.raises(UserError, match=text):
            sampler.sample(prompts, range(len(prompts)), SAMPLING)
    with pytest.raises(UserError, match="max_tokens=0"):
        sampler.sample([[5]], [0], SamplingOptions(max_tokens=0))
    assert len(sampler.sample([[5] * 120], [0], SAMPLING)) == 1


def test_p18_weights_that_do_not_fit_are_refused(model):
    sampler = Sampler(model.config, [EOS])
    weights = model.state_dict()
    for bad, text in (
        ({"model.layers.9.mlp.up_proj.weight": torch.zeros(1)}, r"no weight named model\.layers\.9\.mlp\.up_proj"),
        ({"model.norm.weight": torch.zeros(47)}, r"model\.norm\.weight has shape \[47\], the model \[48\]"),
    ):
        with pytest.raises(UserError, match=text):
            sampler.load(bad.items())
    sampler.load((name, weight) for name, weight in weights.items() if "layers.1.mlp.down" not in name)
    with pytest.raises(UserError, match=r"model\.layers\.1\.mlp\.down_proj\.weight was never loaded"):
        sampler.sample([[5]], [0], SAMPLING)


@pytest.mark.parametrize("options", [SAMPLING, GREEDY])
def test_p18_a_model_of_nan_is_refused(options):
    broken = make_model("Llama")
    with torch.no_grad():
        broken.model.layers[1].mlp.up_proj.weight[3, 4] = torch.nan
    with pytest.raises(UserError, match="logits are NaN"):
        ask(broken, [[5, 6]], options)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"hidden_act": "gelu"}, "hidden_act gelu"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding-window attention"),
        ({"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, "rope_type longrope"),
    ],
)
def test_p18_an_unknown_architecture_is_refused(changes, text):
    config = make_model("Qwen2").config
    for name, value in changes.items():
        config.__dict__[name] = value
    with pytest.raises(UserError, match=text):
        Sampler(config, [EOS])
