"""What the base model is, and is not, told."""

import re
import string
from collections import Counter, defaultdict
from hashlib import sha256
from random import Random

import pytest

from compositionality.errors import UserError
from compositionality.tasks.string.functions import ATOMS, TWINS
from compositionality.tasks.string.prior import prior_functions
from compositionality.tasks.string.program import chain_of, frozen_call
from compositionality.tasks.string.wording import compact_trace
from compositionality.train.tiny.corpus import Corpus, Mix, corpus_tokenizer, definition_names
from compositionality.train.tiny.model import render
from compositionality.train.tiny.pretrain import PackedBatches
from compositionality.train.tiny.settings import Packing

PRIOR = {function.id: function for function in prior_functions()}
DROP = (0, 3)
MIX = Mix()
SINGLE = Mix(
    deepest=8, letters=string.ascii_lowercase, longest_input=10, max_length=24, prior_functions=150,
    frozen_parameters=False,
)  # fmt: skip
CALL = re.compile(r"(?:(?:func|other)_\d+(?:\[[^]]*\])?)*,(?:func|other)_(\d+)(?:\[([^]]*)\])?:([^=]+)=([^=]+)")


@pytest.fixture(scope="module")
def exchanges():
    corpus, rng = Corpus(MIX, DROP), Random(1)
    return [corpus.exchange(rng) for _ in range(10_000)]


def shown(prompt):
    """Definitions by the id of the name that stands for them."""
    return {int(number): name for number, name in re.findall(r"func_(\d+)=(\w+);", prompt)}


def chains(prompt):
    """Of every call: ids of its functions, outermost first."""
    calls = prompt.rpartition(";")[2].split("&")
    return [[int(number) for number in re.findall(r"(?:func|other)_(\d+)", call.partition(":")[0])] for call in calls]


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


def test_a_name_says_whether_it_is_a_targets(exchanges):
    named = {match for text in exchanges for match in re.findall(r"(func|other)_(\d+)(?!\w)", " ".join(text))}
    assert {(kind, int(number) in ATOMS) for kind, number in named} == {("func", True), ("other", False)}


def test_no_result_is_handed_on_between_calls(exchanges):
    several = [(prompt, response) for prompt, response in tasks(exchanges) if "&" in prompt]
    assert len(several) > 2_500
    for prompt, response in several:
        inputs = [call.partition(":")[2] for call in prompt.rpartition(";")[2].split("&")]
        stated = [line.rpartition(":")[2].partition("=")[0] for line in response.split("\n")]
        assert stated == inputs[::-1], prompt


def test_p01_a_share_that_is_not_given_changes_no_text():
    """The first 2,000 exchanges of three mixes, as they were before those shares, names and echoes of today."""
    for mix, digest in (
        (MIX, "8a10d6c833fa314c"),
        (Mix(target_calls=0.12, most_calls=6), "84ccd3222164c49a"),
        (Mix(frozen_parameters=False, prior_functions=150), "ff54eeae2611e451"),
    ):
        corpus, rng = Corpus(mix, DROP), Random(1)
        drawn = [corpus.exchange(rng) for _ in range(2000)]
        before = [(prompt, prompt[1:] if prompt.startswith('"') else response) for prompt, response in drawn]
        text = re.sub(r"other_(?=\d)", "func_", repr(before))
        assert sha256(text.encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("mix", [Mix(countdown=0.25), Mix(igsm=0.25)])
def test_numbers_and_graphs_have_their_share_of_the_text(mix):
    corpus, rng = Corpus(mix), Random(3)
    others = [not re.search(r"func|other", corpus.exchange(rng)[0]) for _ in range(4000)]
    assert abs(sum(others) / 4000 - 0.25) < 0.02


def test_the_frame_names_all_functions_first_and_hands_nothing_on():
    corpus, rng = Corpus(MIX, DROP), Random(4)
    for _ in range(500):
        prompt, response = corpus.frame(rng)
        names, strings = prompt.split(":")
        functions = re.findall(r"func_\d+", names)
        lines = [re.fullmatch(r"(.*),(func_\d+):(.+)=.+", line).groups() for line in response.split("\n")]
        assert [name for _, name, _ in lines] == functions[::-1]
        assert [rest for rest, *_ in lines] == ["".join(functions[:place]) for place in reversed(range(len(lines)))]
        assert [before for *_, before in lines] == strings.split("&")[::-1]


def test_of_targets_the_pairs_alone_are_composed_as_often_as_their_share():
    """Each as a problem of level 2 would be; the other exchanges compose none."""
    pairs = [[1, 5], [9, 11]]
    corpus, rng = Corpus(Mix(pair_chain=0.1, pairs=pairs), DROP), Random(5)
    drawn = tasks(corpus.exchange(rng) for _ in range(5000))
    composed = [
        (prompt, response) for prompt, response in drawn if {*chains(prompt)[0][1:]} & {*ATOMS} and ";" not in prompt
    ]
    assert abs(len(composed) / 5000 - 0.1) < 0.02
    assert {tuple(chains(prompt)[0]) for prompt, _ in composed} == {(1, 5), (9, 11)}
    for _, response in composed:
        first, second = response.split("\n")
        assert second.partition(":")[2].partition("=")[0] == first.partition("=")[2]
    told_of = (([[1, 3]], r"\[1, 3\]: give two"), ([[1]], r"\[1\]: give two"), ([], "give mix.pairs and their"))
    for wrong, told in told_of:
        with pytest.raises(UserError, match=told):
            Corpus(Mix(pair_chain=0.1, pairs=wrong), DROP)


@pytest.mark.parametrize(
    ("mix", "said"),
    [
        ({"letters": "éa"}, "mix.letters=éa: give letters from a to z"),
        ({"letters": "a:b"}, "mix.letters=a:b"),
        ({"letters": ""}, "mix.letters=: give"),
        ({"shortest_input": 7}, r"shortest_input, longest_input, max_length = 7, 6, 10: none may be above the next"),
        ({"max_length": 5}, r"shortest_input, longest_input, max_length = 3, 6, 5"),
        ({"longest_input": 1, "shortest_input": 1, "max_length": 1}, r"mix.max_length=1: too short for what"),
    ],
)
def test_p18_strings_that_cannot_be_are_one_line(mix, said):
    with pytest.raises(UserError, match=said):
        texts(Corpus(Mix(**mix), DROP), 50)


def texts(corpus, count):
    rng = Random(3)
    return [corpus.exchange(rng) for _ in range(count)]


def test_a_targets_name_says_nothing_about_its_definition(exchanges):
    seen = Counter(pair for prompt, _ in tasks(exchanges) for pair in shown(prompt).items())
    right = sum(count for (number, definition), count in seen.items() if ATOMS[number].name == definition)
    assert 0.01 < right / sum(seen.values()) < 0.06  # about 1/25 of the target definitions


def parameters_of(exchanges, mix):
    """Check every line of the answers; return the parameters in brackets by the id of the function."""
    functions = ATOMS | {function.id: function for function in prior_functions(mix.prior_functions)}
    by_name = {function.name: function for function in functions.values()}
    parameters = defaultdict(set)
    for prompt, response in tasks(exchanges):
        definitions = shown(prompt)
        for line in response.split("\n"):
            name, parameter, before, after = CALL.fullmatch(line).groups()
            number = int(name)
            function = by_name[definitions[number]] if number in definitions else functions[number]
            assert (parameter is not None) == (function.parametrised and not mix.frozen_parameters)
            if parameter is not None:
                parameters[function.id].add(int(parameter) if parameter.isdigit() else parameter)
            given = function.frozen if mix.frozen_parameters else parameter
            arguments = [] if given is None else [int(given) if str(given).isdigit() else given]
            assert function.run(before, *arguments) == after
            assert 1 <= len(after) <= mix.max_length
    return parameters


def test_traces_are_right(exchanges):
    assert not parameters_of(exchanges[:3000], MIX)


def test_free_parameters_stand_in_brackets_and_are_obeyed():
    corpus, rng = Corpus(SINGLE), Random(3)
    parameters = parameters_of([corpus.exchange(rng) for _ in range(4_000)], SINGLE)
    assert parameters[1] == {2, 3, 4}
    assert parameters[13] == {"-", "_", "|"}
    assert {len(text) for text in parameters[5]} == {2, 3, 4}
    assert len(parameters[5]) > 25


def test_every_kind_and_every_definition_occurs(exchanges):
    text = "\n".join(prompt for prompt, _ in exchanges)
    hidden = {ATOMS[number].name for number in {*DROP, *TWINS}}
    for name in definition_names():
        assert (f"={name};" in text) == (name not in hidden), name
    assert {len(chain) for prompt, _ in tasks(exchanges) for chain in chains(prompt)} == set(range(1, MIX.deepest + 1))
    assert {len(chains(prompt)) for prompt, _ in tasks(exchanges)} == set(range(1, MIX.most_calls + 1))
    echoes = [(prompt, response) for prompt, response in exchanges if prompt.startswith('"')]
    assert abs(len(echoes) / len(exchanges) - MIX.echo) < 0.01


def test_an_echo_is_the_head_of_the_answer_to_its_chain():
    corpus, rng = Corpus(MIX, DROP), Random(7)
    for prompt, response in (corpus.echo(rng) for _ in range(500)):
        chain = chain_of(frozen_call((ATOMS | PRIOR)[number]) for number in reversed(chains(prompt)[0]))
        assert response == compact_trace(chain, prompt.rpartition(":")[2]).partition("=")[0]


def packed(seed=0, steps=40, rows=8, workers=0):
    return PackedBatches(Corpus(MIX, DROP), corpus_tokenizer(MIX), Packing(rows), seed, steps, workers)


def test_p01_a_batch_depends_on_seed_and_step_alone():
    whole = [batch.tokens for [batch] in packed(rows=2).stream(0)]
    assert len(whole) == 40
    for start in (1, 15, 16, 39):
        [batch] = next(packed(rows=2).stream(start))
        assert batch.tokens.equal(whole[start])
    assert not whole[0].equal(whole[1])
    assert not whole[0].equal(next(packed(seed=1, rows=2).stream(0))[0].tokens)
    by_workers = [batch.tokens.tolist() for [batch] in packed(rows=2, workers=2).stream(7)]
    assert by_workers == [step.tolist() for step in whole[7:]]


def test_p10_the_rows_of_all_ranks_are_those_of_one():
    whole = [batch for [batch] in packed(steps=20, rows=5).stream(0)]
    parts = [[batch for [batch] in packed(steps=20, rows=5).stream(0, rank, 3)] for rank in range(3)]
    for step, (tokens, loss_mask, real) in enumerate(whole):
        assert real == sum(mine[step].real for mine in parts)
        for rank, mine in enumerate(parts):
            assert mine[step].tokens.equal(tokens[rank::3])
            assert mine[step].loss_mask.equal(loss_mask[rank::3])


def test_rows_are_full_and_leave_no_exchange_out(exchanges):
    batches = packed(steps=128)
    tokens = [batch.tokens for [batch] in batches.stream(0)]
    assert sum((step != batches.pad).float().mean() for step in tokens) / len(tokens) > 0.94
    asked = Counter()
    for step in tokens:
        for row in step.tolist():
            text = batches.backend.decode(row, skip_special_tokens=False)
            asked.update(len(called(prompt)) for prompt in re.findall(r"<\|user\|>([^<]*)<\|assistant\|>", text))
    drawn = Counter(len(called(prompt)) for prompt, _ in exchanges)
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


def test_the_single_mix_packs_without_loss():
    corpus, packing = Corpus(SINGLE), Packing(rows=4, length=1024)
    batches = PackedBatches(corpus, corpus_tokenizer(SINGLE), packing, seed=0, steps=16)
    backend, rng = corpus_tokenizer(SINGLE).backend_tokenizer, Random(5)
    lengths = [len(backend.encode("".join(render(*corpus.exchange(rng)))).ids) for _ in range(1_000)]
    assert max(lengths) <= packing.length
    for tokens, loss_mask, real in batches.chapter(0):
        assert tokens.shape == loss_mask.shape == (4, 1025)
        assert real > 0.9 * tokens.numel()
