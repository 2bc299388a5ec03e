"""P1 for the source of randomness: pinned, uniform for any size."""

from collections import Counter

import pytest

from compositionality.tasks.draws import Draws


def test_p01_draws_are_pinned() -> None:
    draws = Draws(b"name")
    assert [draws.below(1000) for _ in range(5)] == [789, 746, 113, 96, 125]
    assert draws.text("abc", 4) == "bcca"


@pytest.mark.parametrize("n", [2, 3, 1000, 55**8, 55**60, 2**600])
def test_draws_are_uniform(n: int) -> None:
    draws = Draws(b"uniform")
    tenths = Counter(draws.below(n) * 2 // n for _ in range(4000))
    assert set(tenths) <= {0, 1}
    assert abs(tenths[0] - 4000 * ((n + 1) // 2) / n) < 4 * 32  # four standard deviations


def test_names_give_other_draws() -> None:
    assert Draws(b"a").below(10**9) != Draws(b"b").below(10**9)
