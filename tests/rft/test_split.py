"""The split by prompt: exact in number, random, and independent of the order of the rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositionality.errors import UserError
from compositionality.rft.filter import validation_count, validation_keys

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


def test_asking_for_too_many_is_refused() -> None:
    with pytest.raises(UserError, match="2 prompts"):
        validation_keys(["a", "b"], 2, 0)


def test_count_or_fraction() -> None:
    assert validation_count(100, 7, 0.5) == 7
    assert validation_count(100, None, 0.05) == 5
    assert validation_count(10, None, 0.01) == 1
    assert validation_count(10, None, 0.0) == 0
    with pytest.raises(UserError, match="val_fraction"):
        validation_count(10, None, 1.0)
