"""Seeds with splits and problems of their own: by hand, at the edges, and how often the intervals hold the truth."""

import math

import numpy as np
import pytest
from scipy import stats

from compositionality.stats.intervals import share
from compositionality.stats.nested import Answers, contrast_nested, share_nested
from compositionality.types import NESTED, PROBLEMS, Estimate


def answers(correct: int, n: int = 100) -> Answers:
    return Answers((np.arange(n) < correct).astype(np.int64), np.ones(n, np.int64))


def test_each_seed_is_one_value() -> None:
    found = share_nested([[answers(20), answers(40)], [answers(50), answers(70)], [answers(30), answers(36)]])
    assert found is not None
    assert found.by_split == ((0.2, 0.4), (0.5, 0.7), (0.3, 0.36))
    assert found.by_seed == pytest.approx((0.3, 0.6, 0.33))
    assert found.value == pytest.approx(0.41)
    assert (found.covers, found.n_problems) == (NESTED, 100)
    half = stats.t.ppf(0.975, 2) * np.std([0.3, 0.6, 0.33], ddof=1) / math.sqrt(3)
    assert found.high - found.low == pytest.approx(2 * half, rel=0.35)  # Wilson's form of it


def test_a_difference_is_students_over_the_seeds() -> None:
    base = [[answers(10)], [answers(20)], [answers(10)]]
    found = contrast_nested([[answers(40)], [answers(40)], [answers(50)]], base)
    assert found is not None
    low, high = stats.t.interval(0.95, 2, loc=0.3, scale=stats.sem([0.3, 0.2, 0.4]))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.over_problems.low > found.low


def test_seeds_count_alike_whatever_their_number_of_splits() -> None:
    found = share_nested([[answers(10), answers(20), answers(30)], [answers(60)]])
    assert found is not None
    assert found.value == pytest.approx(0.4)


def test_one_seed_has_the_interval_over_problems_of_its_splits() -> None:
    found = share_nested([[answers(20), answers(40)]])
    alone = [share(one.counted, one.judged) for one in (answers(20), answers(40))]
    assert found is not None
    assert (found.over_both, found.covers) == (None, PROBLEMS)
    below = math.sqrt(sum((one.value - one.low) ** 2 for one in alone if one)) / 2
    assert found.low == pytest.approx(0.3 - below)


@pytest.mark.parametrize("correct", [0, 100])
def test_where_nothing_varies_the_problems_decide(correct: int) -> None:
    found = share_nested([[answers(correct)], [answers(correct)]])
    assert found is not None
    assert found.over_both == found.over_problems
    assert found.high - found.low == pytest.approx(0.037 / math.sqrt(2), abs=1e-3)


def test_a_replicate_without_answers_is_no_estimate() -> None:
    nothing = Answers(np.zeros(4, np.int64), np.zeros(4, np.int64))
    assert share_nested([[answers(3)], [nothing]]) is None
    assert contrast_nested([[nothing]], [[nothing]]) is None


def study(rng: np.random.Generator, k: int, splits: int, n: int) -> tuple[list[list[Answers]], list[list[Answers]]]:
    """A model and its base: seeds, splits, and both arms in a split vary; the mean gain is 20 points."""
    model, base = [], []
    for seed in 0.06 * rng.standard_normal(k):
        gains = 0.2 + seed + 0.06 * rng.standard_normal(splits)
        starts = 0.3 + 0.05 * rng.standard_normal(splits)
        chances = [np.clip(start + 0.15 * rng.standard_normal(n), 0, 0.45) for start in starts]
        base.append([drawn(rng, chance) for chance in chances])
        model.append([drawn(rng, chance + gain) for chance, gain in zip(chances, gains, strict=True)])
    return model, base


def drawn(rng: np.random.Generator, chance: np.ndarray) -> Answers:
    return Answers(rng.binomial(1, np.clip(chance, 0, 1)), np.ones(len(chance), np.int64))


@pytest.mark.parametrize(("k", "splits"), [(3, 3), (6, 2)])
def test_p06_intervals_of_nested_replicates_hold_the_truth_at_the_nominal_rate(k: int, splits: int) -> None:
    rng = np.random.default_rng(0)
    found = [contrast_nested(*study(rng, k, splits, 60)) for _ in range(400)]
    assert 0.93 <= np.mean([covers(one, 0.2) for one in found]) <= 0.975


def covers(found: Estimate | None, truth: float) -> bool:
    return found is not None and found.low <= truth <= found.high
