"""Each rule of the filter, on an example made by hand; and the split by prompt: exact, random, independent of order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositionality.rft.filter import FilterSettings, validation_count, validation_keys
from compositionality.rft.rows import (
    END_OF_TURN,
    KEPT,
    OUTCOMES,
    PADDING,
    Candidate,
    decide,
    prompt_key,
    strip_end_of_turn,
)
from compositionality.types import Reason


def right(text: str, tokens: int = 5, length: int = 0) -> Candidate:
    return Candidate(text, tokens, "stop", "correct", length)


WRONG = Candidate("w", 5, "stop", "wrong")
ERROR = Candidate("e", 5, "stop", "error")
UNFINISHED = Candidate("u", 5, "length", "overlong")
SILENT = Candidate("n", 5, "stop", "no_answer")
RIGHT_BUT_CUT_OFF = Candidate("a", 5, "length", "correct")
TWICE = [right("a"), right("a"), right("b"), WRONG]
BY_TOKENS = [right("a", tokens=9), right("b", tokens=10), right("c", tokens=11), WRONG]


@pytest.mark.parametrize(
    ("samples", "changes", "outcomes"),
    [
        ([right("a"), WRONG, SILENT, ERROR, UNFINISHED], {}, ["kept", "wrong", "no_answer", "error", "unfinished"]),
        ([RIGHT_BUT_CUT_OFF, WRONG], {}, ["unfinished", "wrong"]),
        ([right("a"), WRONG, right("b"), right("c")], {"max_per_prompt": 2}, ["kept", "wrong", "kept", "over_cap"]),
        (TWICE, {"max_per_prompt": 2}, ["kept", "duplicate", "kept", "wrong"]),
        (TWICE, {"deduplicate": False}, ["kept", "kept", "kept", "wrong"]),
        (BY_TOKENS, {"max_tokens": 10}, ["kept", "kept", "too_long", "wrong"]),
        ([right("a", length=20), right("b", length=21), WRONG], {"max_length": 20}, ["kept", "too_long", "wrong"]),
        ([right("a<|eot_id|>b"), right("c"), WRONG], {}, ["end_inside", "kept", "wrong"]),
    ],
    ids=["verdicts", "cut off", "cap", "equal ones use up no cap", "equal ones", "tokens", "chat's tokens", "an end"],
)
def test_each_rule_of_the_filter(samples: list[Candidate], changes: dict[str, Any], outcomes: list[str]) -> None:
    assert decide(samples, FilterSettings(**changes)) == outcomes


@pytest.mark.parametrize(
    ("correct", "wrong", "ratio", "kept"),
    [(2, 0, 1.0, 0), (1, 1, 1.0, 1), (1, 1, 0.5, 0), (1, 2, 0.5, 1), (2, 0, None, 2), (1, 0, 1.0, 0), (0, 2, 1.0, 0)],
)
def test_prompts_that_are_solved_too_often_go(correct: int, wrong: int, ratio: float | None, kept: int) -> None:
    samples = [right(str(n)) for n in range(correct)] + [WRONG] * wrong
    outcomes = decide(samples, FilterSettings(max_correct_ratio=ratio))
    assert outcomes.count(KEPT) == kept
    assert outcomes.count("too_easy") == correct - kept


def test_p05_a_verifier_failure_is_no_wrong_answer() -> None:
    assert decide([right("a"), ERROR], FilterSettings()) == ["too_easy", "error"]


@given(
    st.lists(
        st.builds(
            Candidate, st.sampled_from("abc"), st.integers(1, 9), st.sampled_from(["stop", "length"]),
            st.sampled_from([reason.value for reason in Reason]),
        )
    ),
    st.none() | st.floats(0.1, 1.0),
    st.none() | st.integers(1, 3),
)  # fmt: skip
def test_every_response_has_one_known_outcome(samples: list[Candidate], ratio: float | None, cap: int | None) -> None:
    outcomes = decide(samples, FilterSettings(max_correct_ratio=ratio, max_per_prompt=cap, max_tokens=6))
    assert len(outcomes) == len(samples)
    assert set(outcomes) <= set(OUTCOMES)
    for sample, outcome in zip(samples, outcomes, strict=True):
        if outcome == KEPT:
            assert (sample.reason, sample.finish_reason) == ("correct", "stop")


@given(st.text(alphabet="ab \n"), st.lists(st.sampled_from([*END_OF_TURN, *PADDING, " ", "\n"])))
def test_every_end_of_turn_at_the_end_goes(text: str, ends: list[str]) -> None:
    assert strip_end_of_turn(text + "".join(ends)) == text.rstrip()


def test_the_identity_of_a_prompt_depends_on_roles_and_text() -> None:
    user = prompt_key([{"role": "user", "content": "a"}])
    assert user == prompt_key([{"content": "a", "role": "user"}])
    assert user != prompt_key([{"role": "system", "content": "a"}])
    assert user != prompt_key([{"role": "user", "content": "b"}])


KEYS = st.lists(st.text(min_size=1), min_size=2, unique=True)


@given(KEYS, st.integers(0, 1000), st.data())
def test_the_split_is_exact_and_independent_of_order(keys: list[str], seed: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(keys) - 1))
    chosen = validation_keys(keys, count, seed)
    assert len(chosen) == count
    assert chosen <= set(keys)
    assert chosen == validation_keys(data.draw(st.permutations(keys)) + keys, count, seed)


def test_seeds_choose_differently_and_fairly() -> None:
    keys = [str(number) for number in range(1000)]
    first, second = (validation_keys(keys, 100, seed) for seed in (1, 2))
    assert first != second
    times = sum("7" in validation_keys(keys, 100, seed) for seed in range(200))
    assert 5 <= times <= 40  # 20 expected


@pytest.mark.parametrize("kept", [1, 2, 3, 7, 8, 49, 50])
def test_something_stays_to_train_on(kept: int) -> None:
    for val_prompts in (0, 1, 7, 50, 1000):
        assert validation_count(kept, val_prompts, 0.5) == min(val_prompts, kept - 1)
    for fraction in (0.0, 0.01, 0.02, 0.5, 0.99):
        count = validation_count(kept, None, fraction)
        assert 0 <= count < kept
        assert abs(count - fraction * kept) <= 1
        assert (count > 0) == (fraction > 0 and kept > 1)
