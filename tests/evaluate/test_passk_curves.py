"""Curves of pass@k, their differences, where they cross, and budget factors, on known counts; what a plan can show."""
# ruff: noqa: N806

from math import comb

import numpy as np
import pytest

from compositionality.errors import UserError
from compositionality.evaluate.counts import ProblemCounts, Stratum
from compositionality.evaluate.passk.curves import Crossover, crossover, curves_of
from compositionality.evaluate.passk.plan import WORST_SPREAD, beta_of, smallest_difference, unrelated_spread
from compositionality.evaluate.passk.reranking import Meeting, meeting
from compositionality.stats.estimate import Band, band


def counts(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def answers_of(correct: list[int], n_samples: int, levels: int = 1) -> ProblemCounts:
    """As many problems of each level, one level after the other."""
    each = len(correct) // levels
    strata = [Stratum("a", row // each + 1) for row in range(len(correct))]
    return ProblemCounts(strata, np.full(len(correct), n_samples), counts(*correct))


def test_a_pooled_interval_leaves_the_levels_as_they_are() -> None:
    """One level is nearly always solved, one nearly never: that half of the problems are right is no chance."""
    curves, *_ = curves_of({("m", "f"): answers_of([4, 3] * 10 + [0, 1] * 10, 4, levels=2)}, [])
    pooled = next(row for row in curves if row["level"] == 0)
    assert pooled["n_problems"] == 40
    assert pooled["pass_at_k"][0] == 0.5
    assert pooled["high"][0] - pooled["low"][0] < 0.11


@pytest.mark.parametrize(("solved", "low", "high"), [(0, 0.0, 0.1072), (4, 0.8928, 1.0)])
def test_where_all_problems_agree_the_interval_knows_how_many_there_are(solved: int, low: float, high: float) -> None:
    found = {("m", "f"): answers_of([solved] * 32, 4), ("n", "f"): answers_of([solved] * 32, 4)}
    curves, differences, _ = curves_of(found, [("m", "n")])
    assert (curves[0]["low"][0], curves[0]["high"][0]) == pytest.approx((low, high), abs=1e-4)
    assert (differences[0]["low"][0], differences[0]["high"][0]) == pytest.approx((-0.1072, 0.1072), abs=1e-4)


def test_differences_are_paired_by_problem() -> None:
    """Problems differ a lot, checkpoints little and always in one way: the difference is surer than the curves."""
    found = {("base", "f"): answers_of([2, 12] * 20, 16), ("rl", "f"): answers_of([3, 15] * 20, 16)}
    curves, differences, _ = curves_of(found, [("rl", "base"), ("base", "rl")])
    there, back = (row for row in differences if row["level"] == 1)
    assert there["difference"][0] == pytest.approx(0.125)
    assert there["high"][0] - there["low"][0] < 0.05
    assert curves[0]["high"][0] - curves[0]["low"][0] > 0.15
    assert back["difference"] == pytest.approx([-value for value in there["difference"]])
    assert back["low"] == pytest.approx([-value for value in there["high"]])


def test_curves_that_cross_and_curves_that_do_not() -> None:
    """Eight problems always solved against forty solved now and then: ahead at first, behind later."""
    found = {("sure", "f"): answers_of([64] * 8 + [0] * 32, 64), ("rare", "f"): answers_of([2] * 40, 64)}
    pairs = [("rare", "sure"), ("sure", "rare"), ("sure", "sure")]
    rows = [row for row in curves_of(found, pairs)[1] if row["level"] == 1]
    there, back, same = (row["crossover"] for row in rows)
    assert there == back
    k, after = there["k"], there["high"]
    assert 1 - comb(62, k) / comb(64, k) > 0.2 >= 1 - comb(62, k - 1) / comb(64, k - 1)
    assert there["low"] < k < after < 64
    assert rows[0]["low"][after - 1] > 0 >= rows[0]["low"][after - 2]  # from there on the interval leaves 0
    assert same is None


def test_a_crossing_that_may_lie_beyond_the_samples() -> None:
    value, low, high = np.array([1.0, 0.2, -0.1]), np.array([0.5, -0.1, -0.4]), np.array([1.0, 0.5, 0.2])
    assert crossover(Band(value, low, high)) == Crossover(3, 2, None)
    assert crossover(Band(-value, -high, -low)) == Crossover(3, 2, None)
    assert crossover(Band(value, low, high - 0.3)) == Crossover(3, 2, 3)
    for never in (np.zeros(3), np.array([0.0, 0.2, 0.1])):
        assert crossover(Band(never, never - 1, never + 1)) is None


def test_a_problem_without_enough_verdicts_is_refused_and_fewer_samples_end_the_curve() -> None:
    short = answers_of([1, 1], 8)
    short.judged[1] = 5
    curves, *_ = curves_of({("m", "f"): short, ("n", "f"): answers_of([1, 1], 8)}, [])
    assert all(row["k"][-1] == 5 for row in curves)
    short.judged[1] = 1
    with pytest.raises(UserError, match="m on f: problem 1 has 1 judged samples"):
        curves_of({("m", "f"): short}, [])


def test_the_budget_factor_at_which_the_base_meets_the_model() -> None:
    """The base finds every fourth sample what the model always finds; what it never finds no budget makes up for."""
    found = {("base", "f"): answers_of([16] * 40, 64), ("rl", "f"): answers_of([40] * 40, 64)}
    rows = {row["k"]: row for row in curves_of(found, [("rl", "base")])[2] if row["level"] == 1}
    assert list(rows) == [1, 2, 4, 8, 16, 32]
    assert (rows[1]["factors"], rows[1]["factor"]) == ([1, 2, 4, 8, 16, 32, 64], 4)  # 1 − 0.75 ** 3 < 40 / 64
    assert rows[1]["low"] <= 4 <= rows[1]["high"]
    assert not rows[1]["more_than_reranking"]
    never = {("base", "f"): answers_of([8] * 4 + [0] * 36, 64), ("rl", "f"): answers_of([32] * 40, 64)}
    row = next(row for row in curves_of(never, [("rl", "base")])[2] if row["level"] == 1 and row["k"] == 2)
    assert (row["factor"], row["low"], row["high"], row["more_than_reranking"]) == (None, None, None, True)
    assert row["difference_low"][-1] > 0


def test_a_base_that_is_ahead_meets_the_model_at_once() -> None:
    assert meeting([1, 2, 3], np.array([-0.1, -0.2, -0.3]), np.full(3, -0.4), np.array([0.1, 0.0, -0.1])) == Meeting(
        1, 1, 2
    )


def test_the_smallest_difference_is_found_in_80_percent_of_studies() -> None:
    rng = np.random.default_rng(0)
    shift = smallest_difference(WORST_SPREAD, 64)
    solved_PR = [rng.random((64, 1000)) < 0.5 + sign * shift / 2 for sign in (1, -1)]
    found = band(solved_PR[0].astype(float) - solved_PR[1], np.ones(64), None, -1)
    assert 0.76 < (found.low > 0).mean() < 0.9


def test_an_earlier_evaluation_tells_how_hard_problems_are() -> None:
    rng = np.random.default_rng(0)
    correct = rng.binomial(16, rng.beta(0.5, 1.5, 4000))
    assert beta_of(correct, np.full(4000, 16)) == pytest.approx((0.5, 1.5), rel=0.15)
    alpha, beta = beta_of(counts(*[1] * 10, *[0] * 30), np.ones(40, np.int64))
    assert alpha + beta < 0.01  # one sample each: always or never solved
    spread = unrelated_spread(alpha, beta, 8, [1, 8])
    assert spread == pytest.approx([(2 * 0.25 * 0.75) ** 0.5] * 2, abs=0.05)
    assert smallest_difference(0.7, 1) == 1.0
