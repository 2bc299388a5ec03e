"""The split by prompt: exact in number, random, and independent of the order of the rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize("kept", range(1, 51))
def test_something_stays_to_train_on(kept: int) -> None:
    for val_prompts in (0, 1, 7, 50, 1000):
        assert validation_count(kept, val_prompts, 0.5) == min(val_prompts, kept - 1)
    for fraction in (0.0, 0.01, 0.02, 0.5, 0.99):
        count = validation_count(kept, None, fraction)
        assert 0 <= count < kept
        assert abs(count - fraction * kept) <= 1
        assert (count > 0) == (fraction > 0 and kept > 1)
