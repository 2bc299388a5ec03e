"""What the base model is, and is not, told."""

import re
from collections import Counter
from random import Random

import pytest

from compositionality.errors import UserError
from compositionality.tasks.string.functions import ATOMS, TWINS
from compositionality.tasks.string.prior import PRIOR
from compositionality.train.tiny.batches import PackedBatches, Packing
from compositionality.train.tiny.corpus import Corpus, Mix, definition_names
from compositionality.train.tiny.tokenizer import build_tokenizer

DROP = (0, 3)
MIX = Mix()


@pytest.fixture(scope="module")
def exchanges():
    corpus, rng = Corpus(MIX, DROP), Random(1)
    return [corpus.exchange(rng) for _ in range(20_000)]


def called(prompt):
    """Ids of the functions that a prompt calls, outermost first."""
    return [int(number) for number in re.findall(r"func_(\d+)", prompt.rpartition(";")[2].partition(":")[0])]


def tasks(exchanges):
    return [(prompt, response) for prompt, response in exchanges if not prompt.startswith('"')]


def test_targets_are_never_composed(exchanges):
    for prompt, _ in tasks(exchanges):
        ids = called(prompt)
        if any(number in ATOMS for number in ids):
            assert len(ids) == 1, prompt
            assert prompt.count(";") <= 1, prompt


def test_targets_stand_under_their_own_names_as_often_as_the_mix_says(exchanges):
    named = [prompt for prompt, _ in tasks(exchanges) if ";" not in prompt and called(prompt)[0] in ATOMS]
    assert abs(len(named) / len(exchanges) - MIX.target_single) < 0.01
    without, rng = Corpus(Mix(target_single=0.0), DROP), Random(2)
    for prompt, _ in tasks(without.exchange(rng) for _ in range(5000)):
        assert ";" in prompt or called(prompt)[0] in PRIOR, prompt


def test_a_targets_name_says_nothing_about_its_definition(exchanges):
    shown = Counter()
    for prompt, _ in tasks(exchanges):
        if ";" in prompt:
            number, definition = re.match(r"func_(\d+)=(\w+);", prompt).groups()
            shown[definition, int(number)] += 1
    right = sum(count for (definition, number), count in shown.items() if ATOMS[number].name == definition)
    share = right / sum(shown.values())
    assert 0.005 < share < 0.06  # about 1/25 of the target definitions


def test_traces_are_right(exchanges):
    functions = ATOMS | PRIOR
    by_name = {function.name: function for function in functions.values()}
    for prompt, response in tasks(exchanges)[:3000]:
        shown = dict(re.findall(r"func_(\d+)=(\w+);", prompt))
        for line in response.split("\n"):
            name, before, after = re.fullmatch(r"[^,]*,func_(\d+):([^=]+)=(.+)", line).groups()
            function = by_name[shown[name]] if name in shown else functions[int(name)]
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
    levels = Counter(len(called(prompt)) for prompt, _ in tasks(exchanges))
    assert set(levels) == set(range(1, MIX.deepest + 1))
    assert 0.04 < sum(prompt.startswith('"') for prompt, _ in exchanges) / len(exchanges) < 0.08


def test_p01_a_batch_depends_on_seed_and_step_alone():
    tokenizer = build_tokenizer(definition_names())
    one, two, other = (PackedBatches(Corpus(MIX, DROP), tokenizer, Packing(), seed, 9) for seed in (0, 0, 1))
    one[0], one[1]
    assert all((a == b).all() for a, b in zip(one[7], two[7], strict=True))
    assert not (one[7][0] == other[7][0]).all()
    assert not (one[7][0] == one[6][0]).all()


def test_loss_is_on_responses_alone():
    tokenizer = build_tokenizer(definition_names())
    tokens, mask = PackedBatches(Corpus(MIX, DROP), tokenizer, Packing(), 0, 1)[0]
    assert tokens.shape == mask.shape == (8, 192)
    user, assistant = (tokenizer.convert_tokens_to_ids(token) for token in ("<|user|>", "<|assistant|>"))
    for row, marks in zip(tokens.tolist(), mask.tolist(), strict=True):
        inside = False
        for token, mark in zip(row, marks, strict=True):
            if token == user:
                inside = False
            assert mark == (inside and token != tokenizer.pad_token_id)
            if token == assistant:
                inside = True


def test_dropping_everything_is_refused():
    with pytest.raises(UserError, match="at least one"):
        Corpus(MIX, range(25))
