"""vLLM as the trainer's rollout engine (the CPU build here): log-probs, weights in place, seeds."""

import pytest
from assets import random_model, save

from compositionality.errors import UserError
from compositionality.rollout.engines.vllm import VllmOptions
from compositionality.train.tiny.model import build_tokenizer
from compositionality.train.vllm_sampler import VllmSampler
from compositionality.types import LENGTH, STOP, SamplingOptions

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
END = 3
PROMPTS = [[1, *range(10 + row, 20 + row), 2] for row in range(24) for _ in range(2)]
SEEDS = list(range(1000, 1000 + len(PROMPTS)))
SAMPLED = SamplingOptions(temperature=0.7, max_tokens=24)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"))


def make_model(folder):
    tokenizer = build_tokenizer([])
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 64, "head_dim": 32, "num_key_value_heads": 2}
    return save(folder, random_model("Llama", **sizes, eos_token_id=END, tie_word_embeddings=False), tokenizer)


@pytest.fixture(scope="module")
def sampler(model):
    sampler = VllmSampler(model, [END], VllmOptions(64, dtype="float32"))
    yield sampler
    sampler.close()


@pytest.fixture
def policy(model, sampler):
    """The model that the sampler holds, in transformers."""
    from transformers import LlamaForCausalLM

    policy = LlamaForCausalLM.from_pretrained(model).eval()
    sampler.load(policy.named_parameters())
    return policy


def gaps(policy, samples, temperature):
    """Absolute differences between the sampler's log-probs and those of a forward pass."""
    import torch

    for prompt, sample in zip(PROMPTS, samples, strict=True):
        with torch.no_grad():
            logits = policy(torch.tensor([prompt + sample.token_ids])).logits[0, len(prompt) - 1 : -1]
        logps = (logits / temperature).log_softmax(-1)[range(len(sample.token_ids)), sample.token_ids]
        yield from (logps - torch.tensor(sample.log_probs)).abs().tolist()


def change(policy):
    import torch

    torch.manual_seed(1)
    with torch.no_grad():
        for weight in policy.parameters():
            weight += 0.1 * torch.randn_like(weight)


def test_p09_log_probs_are_those_of_the_weights_before_and_after_a_load(policy, sampler):
    before = sampler.sample(PROMPTS, SEEDS, SAMPLED)
    assert max(gaps(policy, before, 0.7)) <= 1e-4
    assert {sample.finish_reason for sample in before} == {STOP, LENGTH}
    assert all((sample.token_ids[-1] == END) == (sample.finish_reason == STOP) for sample in before)
    assert all(len(sample.token_ids) == 24 for sample in before if sample.finish_reason == LENGTH)
    change(policy)
    assert max(gaps(policy, before, 0.7)) > 0.1
    named = list(policy.named_parameters())
    for start in range(0, len(named), 4):
        sampler.load(named[start : start + 4])
    after = sampler.sample(PROMPTS, SEEDS, SAMPLED)
    assert max(gaps(policy, after, 0.7)) <= 1e-4


def test_greedy_answers_are_those_of_transformers(policy, sampler):
    import torch

    greedy = sampler.sample(PROMPTS, SEEDS, SamplingOptions(temperature=0.0, max_tokens=16))
    assert max(gaps(policy, greedy, 1.0)) <= 1e-4
    for prompt, sample in zip(PROMPTS, greedy, strict=True):
        theirs = policy.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=16, eos_token_id=END)
        assert theirs[0, len(prompt) :].tolist() == sample.token_ids


def test_p07_an_answer_hangs_on_its_seed_and_not_on_its_neighbours(policy, sampler):
    answers = sampler.sample(PROMPTS, SEEDS, SAMPLED)
    assert answers[0] != answers[1]
    assert sampler.sample(PROMPTS[6:9], SEEDS[6:9], SAMPLED) == answers[6:9]
    assert sampler.sample(PROMPTS[:1], [SEEDS[0] + 2**63], SAMPLED) == answers[:1]


def test_weights_that_do_not_fit_are_one_line(sampler):
    import torch

    with pytest.raises(UserError, match="does not take the weights"):
        sampler.load([("model.layers.0.no.weight", torch.zeros(2))])
    with pytest.raises(UserError, match="does not take the weights"):
        sampler.load([("model.norm.weight", torch.zeros(2))])


@pytest.mark.full
def test_other_engines_start_in_the_process_of_a_run_that_is_over(tmp_path):
    """As where a notebook trains, then evaluates: each leaves no process group that the next one takes for its own."""
    from compositionality.rollout.engines.vllm import VllmEngine
    from compositionality.train.dist import stop_processes

    model, chat = make_model(tmp_path), [[{"role": "user", "content": "a"}]]
    for _ in range(2):
        sampler = VllmSampler(model, [END], VllmOptions(64, dtype="float32"))
        sampler.close()
        stop_processes()
        engine = VllmEngine(model, VllmOptions(64))
        assert len(engine.generate(chat, [1], SAMPLED)) == 1
        engine.close()
