"""What the base model is, and is not, told."""

import re
import string
from collections import Counter, defaultdict
from random import Random

import pytest

from compositionality.errors import UserError
from compositionality.tasks.string.functions import ATOMS, TWINS
from compositionality.tasks.string.prior import PRIOR, prior_functions
from compositionality.train.tiny.batches import PackedBatches
from compositionality.train.tiny.corpus import Corpus, Mix, corpus_tokenizer, definition_names
from compositionality.train.tiny.settings import Packing
from compositionality.train.tiny.tokenizer import render

DROP = (0, 3)
MIX = Mix()


@pytest.fixture(scope="module")
def exchanges():
    corpus, rng = Corpus(MIX, DROP), Random(1)
    return [corpus.exchange(rng) for _ in range(20_000)]


def shown(prompt):
    """Definitions by the id of the name that stands for them."""
    return {int(number): name for number, name in re.findall(r"func_(\d+)=(\w+);", prompt)}


def chains(prompt):
    """Of every call: ids of its functions, outermost first."""
    calls = prompt.rpartition(";")[2].split("&")
    return [[int(number) for number in re.findall(r"func_(\d+)", call.partition(":")[0])] for call in calls]


def called(prompt):
    """Ids of the functions that a prompt calls."""
    return [number for chain in chains(prompt) for number in chain]


def tasks(exchanges):
    return [(prompt, response) for prompt, response in exchanges if not prompt.startswith('"')]


def test_targets_are_never_composed(exchanges):
    priors, seen = {function.name for function in PRIOR.values()}, Counter()
    for prompt, _ in tasks(exchanges):
        definitions = shown(prompt)
        for chain in chains(prompt):
            if len(chain) > 1:
                assert all(definitions.get(number) in priors if number in ATOMS else True for number in chain), prompt
                assert "&" not in prompt, prompt
                seen["under names of targets" if definitions else "by name"] += 1
    assert len(seen) == 2


def test_no_result_is_handed_on_between_calls(exchanges):
    several = [(prompt, response) for prompt, response in tasks(exchanges) if "&" in prompt]
    assert len(several) > 5_000
    for prompt, response in several:
        inputs = [call.partition(":")[2] for call in prompt.rpartition(";")[2].split("&")]
        stated = [line.rpartition(":")[2].partition("=")[0] for line in response.split("\n")]
        assert stated == inputs[::-1], prompt


def test_targets_stand_under_their_own_names_as_often_as_the_mix_says(exchanges):
    named = [prompt for prompt, _ in tasks(exchanges) if ";" not in prompt and called(prompt)[0] in ATOMS]
    assert abs(len(named) / len(exchanges) - MIX.target_calls) < 0.01
    without, rng = Corpus(Mix(target_calls=0.0), DROP), Random(2)
    for prompt, _ in tasks(without.exchange(rng) for _ in range(5000)):
        assert ";" in prompt or called(prompt)[0] in PRIOR, prompt


def test_a_targets_name_says_nothing_about_its_definition(exchanges):
    seen = Counter(pair for prompt, _ in tasks(exchanges) for pair in shown(prompt).items())
    right = sum(count for (number, definition), count in seen.items() if ATOMS[number].name == definition)
    assert 0.01 < right / sum(seen.values()) < 0.06  # about 1/25 of the target definitions


def test_traces_are_right(exchanges):
    functions = ATOMS | PRIOR
    by_name = {function.name: function for function in functions.values()}
    for prompt, response in tasks(exchanges)[:3000]:
        definitions = shown(prompt)
        for line in response.split("\n"):
            name, before, after = re.fullmatch(r"[^,]*,func_(\d+):([^=]+)=(.+)", line).groups()
            number = int(name)
            function = by_name[definitions[number]] if number in definitions else functions[number]
            arguments = () if function.frozen is None else (function.frozen,)
            assert function.run(before, *arguments) == after


def test_strings_keep_to_the_limits(exchanges):
    for _, response in tasks(exchanges):
        for line in response.split("\n"):
            assert 1 <= len(line.rpartition("=")[2]) <= MIX.max_length


def test_every_kind_and_every_definition_occurs(exchanges):
    text = "\n".join(prompt for prompt, _ in exchanges)
    hidden = {ATOMS[number].name for number in {*DROP, *TWINS}}
    for name in definition_names():
        assert (f"={name};" in text) == (name not in hidden), name
    assert {len(chain) for prompt, _ in tasks(exchanges) for chain in chains(prompt)} == set(range(1, MIX.deepest + 1))
    assert {len(chains(prompt)) for prompt, _ in tasks(exchanges)} == set(range(1, MIX.most_calls + 1))
    assert abs(sum(prompt.startswith('"') for prompt, _ in exchanges) / len(exchanges) - MIX.echo) < 0.01


def packed(seed=0, steps=40, packing=None, workers=0):
    corpus = Corpus(MIX, DROP)
    return PackedBatches(corpus, corpus_tokenizer(MIX), packing or Packing(), seed, steps, workers)


def test_p01_a_batch_depends_on_seed_and_step_alone():
    whole = [batch.tokens for [batch] in packed().stream(0)]
    assert len(whole) == 40
    for start in (1, 15, 16, 39):
        [batch] = next(packed().stream(start))
        assert batch.tokens.equal(whole[start])
    assert not whole[0].equal(whole[1])
    assert not whole[0].equal(next(packed(seed=1).stream(0))[0].tokens)
    assert [batch.tokens.tolist() for [batch] in packed(workers=2).stream(7)] == [step.tolist() for step in whole[7:]]


def test_p10_the_rows_of_all_ranks_are_those_of_one():
    whole = [batch for [batch] in packed(steps=20).stream(0)]
    parts = [[batch for [batch] in packed(steps=20).stream(0, rank, 3)] for rank in range(3)]
    for step, (tokens, loss_mask, real) in enumerate(whole):
        assert real == sum(mine[step].real for mine in parts)
        for rank, mine in enumerate(parts):
            assert mine[step].tokens.equal(tokens[rank::3])
            assert mine[step].loss_mask.equal(loss_mask[rank::3])


def test_rows_are_full_and_leave_no_exchange_out():
    batches = packed(steps=192)
    tokens = [batch.tokens for [batch] in batches.stream(0)]
    assert sum((step != batches.pad).float().mean() for step in tokens) / len(tokens) > 0.94
    asked = Counter()
    for step in tokens:
        for row in step.tolist():
            text = batches.backend.decode(row, skip_special_tokens=False)
            asked.update(len(called(prompt)) for prompt in re.findall(r"<\|user\|>([^<]*)<\|assistant\|>", text))
    rng, corpus = Random(0), Corpus(MIX, DROP)
    drawn = Counter(len(called(corpus.exchange(rng)[0])) for _ in range(20_000))
    for level in range(2, MIX.deepest + 1):  # the longest exchanges are those that find a place least easily
        assert abs(asked[level] / asked.total() - drawn[level] / drawn.total()) < 0.025, level


def test_loss_is_on_responses_alone():
    batches = packed(steps=1)
    tokenizer = corpus_tokenizer(MIX)
    tokens, mask, _ = batches.chapter(0)[0]
    assert tokens.shape == mask.shape == (8, 193)
    user, assistant = (tokenizer.convert_tokens_to_ids(token) for token in ("<|user|>", "<|assistant|>"))
    for row, loss_mask in zip(tokens.tolist(), mask.tolist(), strict=True):
        inside = False
        for token, mark in zip(row, loss_mask, strict=True):
            if token == user:
                inside = False
            assert mark == (inside and token != tokenizer.pad_token_id)
            if token == assistant:
                inside = True


def test_dropping_everything_is_refused():
    with pytest.raises(UserError, match="at least one"):
        Corpus(MIX, range(25))


SINGLE = Mix(
    deepest=8,
    letters=string.ascii_lowercase,
    longest_input=10,
    max_length=24,
    prior_functions=150,
    frozen_parameters=False,
)


@pytest.fixture(scope="module")
def single_exchanges():
    corpus, rng = Corpus(SINGLE), Random(3)
    return [corpus.exchange(rng) for _ in range(8_000)]


def test_free_parameters_stand_in_brackets_and_are_obeyed(single_exchanges):
    functions = ATOMS | {function.id: function for function in prior_functions(SINGLE.prior_functions)}
    by_name = {function.name: function for function in functions.values()}
    parameters = defaultdict(set)
    for prompt, response in tasks(single_exchanges):
        definitions = shown(prompt)
        for line in response.split("\n"):
            call = r"(?:func_\d+(?:\[[^]]*\])?)*,func_(\d+)(?:\[([^]]*)\])?:([^=]+)=([^=]+)"
            name, parameter, before, after = re.fullmatch(call, line).groups()
            number = int(name)
            function = by_name[definitions[number]] if number in definitions else functions[number]
            assert function.parametrised == (parameter is not None)
            arguments = [] if parameter is None else [int(parameter) if parameter.isdigit() else parameter]
            assert function.run(before, *arguments) == after
            parameters[function.id].update(arguments)
    assert parameters[1] == {2, 3, 4}
    assert parameters[13] == {"-", "_", "|"}
    assert {len(text) for text in parameters[5]} == {2, 3, 4}
    assert len(parameters[5]) > 50


def test_every_function_and_level_of_the_single_mix_occurs(single_exchanges):
    assert {len(chain) for prompt, _ in tasks(single_exchanges) for chain in chains(prompt)} == set(range(1, 9))
    assert {number for prompt, _ in tasks(single_exchanges) for number in called(prompt)} >= {
        function.id for function in prior_functions(SINGLE.prior_functions)
    }


def test_the_single_mix_packs_without_loss():
    corpus, packing = Corpus(SINGLE), Packing(rows=4, length=1024)
    batches = PackedBatches(corpus, corpus_tokenizer(SINGLE), packing, seed=0, steps=16)
    backend, rng = corpus_tokenizer(SINGLE).backend_tokenizer, Random(5)
    lengths = [len(backend.encode("".join(render(*corpus.exchange(rng)))).ids) for _ in range(4_000)]
    assert max(lengths) <= packing.length
    for tokens, loss_mask, real in batches.chapter(0):
        assert tokens.shape == loss_mask.shape == (4, 1025)
        assert real > 0.9 * tokens.numel()
