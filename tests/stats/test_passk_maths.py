"""P6: pass@k against enumeration, its intervals by simulated coverage, crossings and power against known cases.

Legend: p problems, r runs.
"""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositionality.errors import UserError
from compositionality.evaluate.counts import ProblemCounts, Stratum
from compositionality.evaluate.passk.curves import crossover, curves_of
from compositionality.evaluate.passk.plan import WORST_SPREAD, beta_of, smallest_difference, unrelated_spread
from compositionality.evaluate.passk.reranking import Meeting, meeting
from compositionality.stats.bootstrap import band, drawn_means, shares_drawn
from compositionality.stats.pass_at_k import pass_at_k, pass_hat_k


def counts(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("n", range(1, 9))
def test_p06_pass_at_k_equals_enumeration(n: int) -> None:
    """Every way to draw k of n samples, for every number of correct ones."""
    for correct in range(n + 1):
        samples = [True] * correct + [False] * (n - correct)
        some = [np.mean([any(drawn) for drawn in combinations(samples, k)]) for k in range(1, n + 1)]
        every = [np.mean([all(drawn) for drawn in combinations(samples, k)]) for k in range(1, n + 1)]
        assert pass_at_k(counts(correct), counts(n), n)[0] == pytest.approx(some, abs=1e-12)
        assert pass_hat_k(counts(correct), counts(n), n)[0] == pytest.approx(every, abs=1e-12)


@given(st.integers(2, 1000), st.data())
def test_pass_at_k_rises_with_k_and_agrees_with_exact_binomials(n: int, data: st.DataObject) -> None:
    correct, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    curve = pass_at_k(counts(correct), counts(n), n)[0]
    assert curve[k - 1] == pytest.approx(1 - comb(n - correct, k) / comb(n, k), abs=1e-10)
    assert (np.diff(curve) >= -1e-10).all()
    assert 0 <= curve.min() <= curve.max() <= 1
    assert curve[0] == pytest.approx(correct / n)
    assert curve[-1] == (correct > 0)
    assert (np.diff(pass_hat_k(counts(correct), counts(n), n)[0]) <= 1e-10).all()


def test_problems_may_have_different_numbers_of_samples() -> None:
    found = pass_at_k(counts(1, 1, 0), counts(2, 4, 3), 2)
    assert found == pytest.approx(np.array([[0.5, 1.0], [0.25, 0.5], [0.0, 0.0]]))


@pytest.mark.parametrize("k", [0, 4])
def test_p06_k_beyond_the_samples_is_refused(k: int) -> None:
    with pytest.raises(UserError, match=f"k={k}: must lie between 1 and the number of samples, 3"):
        pass_at_k(counts(1, 1), counts(3, 9), k)


DIFFICULTIES = {
    "spread evenly": lambda random, n: random.random(n),
    "easy or hard": lambda random, n: random.beta(0.3, 0.3, n),
    "mostly hard": lambda random, n: random.beta(0.3, 3, n),
    "all the same": lambda random, n: np.full(n, 0.02),
}
KS = (1, 8, 64)


@pytest.mark.parametrize("kind", DIFFICULTIES)
def test_p06_intervals_cover_at_their_nominal_rate(kind: str) -> None:
    """1,000 times 100 problems × 64 samples: 95 % intervals of pass@k and of a paired difference hold the truth."""
    random = np.random.default_rng(3)
    draw, problems, samples, runs = DIFFICULTIES[kind], 100, 64, 1000
    many = draw(random, 400_000)
    chance_pr = draw(random, problems * runs).reshape(problems, runs)
    base, other = (_estimates(random, share, samples) for share in (chance_pr, chance_pr**0.7))
    for place, k in enumerate(KS):
        low, high = (float((1 - (1 - share) ** k).mean()) for share in (many, many**0.7))
        # With fewer than five problems on the rarer side counts are so coarse that no interval covers at 95 % sharp:
        # then it must not cover less.
        most = 0.97 if problems * min(low, 1 - low) >= 5 else 1.0
        assert 0.93 <= _covered(base[place], low, signed=False) <= most
        assert 0.93 <= _covered(other[place] - base[place], high - low, signed=True) <= most


def _estimates(random: np.random.Generator, chance_pr: np.ndarray, samples: int) -> list[np.ndarray]:
    """pass@k of every problem in every run, for each of ``KS``."""
    correct = random.binomial(samples, chance_pr)
    found = pass_at_k(correct.ravel(), np.full(correct.size, samples), samples)
    return [found[:, k - 1].reshape(correct.shape) for k in KS]


def _covered(values_pr: np.ndarray, truth: float, *, signed: bool) -> float:
    """Share of the runs, which stand side by side as the columns of one band, whose interval holds the truth."""
    alone = np.arange(len(values_pr))
    strata = [alone]
    drawn = drawn_means(shares_drawn(strata, alone, 1000, 0), values_pr)
    found = band(values_pr, drawn, strata, alone, signed=signed)
    return float(((found.low <= truth) & (truth <= found.high)).mean())


def answers_of(correct: list[int], n_samples: int, levels: int = 1) -> ProblemCounts:
    """As many problems of each level, one level after the other."""
    each = len(correct) // levels
    strata = [Stratum("a", row // each + 1) for row in range(len(correct))]
    return ProblemCounts(strata, np.full(len(correct), n_samples), counts(*correct))


def test_a_pooled_interval_leaves_the_levels_as_they_are() -> None:
    """One level is nearly always solved, one nearly never: that half of the problems are right is no chance."""
    curves, *_ = curves_of({("m", "f"): answers_of([4, 3] * 10 + [0, 1] * 10, 4, levels=2)}, [], 500, 0)
    pooled = next(row for row in curves if row["level"] == 0)
    assert pooled["n_problems"] == 40
    assert pooled["pass_at_k"][0] == 0.5
    assert pooled["high"][0] - pooled["low"][0] < 0.1


@pytest.mark.parametrize(("solved", "low", "high"), [(0, 0.0, 0.1072), (32, 0.8928, 1.0)])
def test_where_all_problems_agree_the_interval_knows_how_many_there_are(solved: int, low: float, high: float) -> None:
    values, alone = np.full((32, 1), float(solved > 0)), np.arange(32)
    found = band(values, drawn_means(shares_drawn([alone], alone, 500, 0), values), [alone], alone)
    assert (found.low[0], found.high[0]) == pytest.approx((low, high), abs=1e-4)
    signed = band(values * 0, values.T @ np.zeros((32, 500)), [alone], alone, signed=True)
    assert (signed.low[0], signed.high[0]) == pytest.approx((-0.1072, 0.1072), abs=1e-4)


@pytest.mark.parametrize("signed", [False, True])
def test_one_problem_solved_never_makes_a_band_shorter_than_none(*, signed: bool) -> None:
    alone, values = np.arange(24), np.tri(24, 24, -1)[:, [23, 22, 21]]  # no problem, one, two
    drawn = drawn_means(shares_drawn([alone], alone, 1000, 0), values)
    found = band(values, drawn, [alone], alone, signed=signed)
    assert (np.diff(found.high - found.low) > 0).all()


def test_a_band_draws_clusters_not_problems() -> None:
    """Twelve compositions of which each problem is there eight times: as sure as twelve problems."""
    rng = np.random.default_rng(0)
    each = rng.random((12, 1))
    clusters = np.repeat(np.arange(12), 8)
    rows = np.arange(96)
    drawn = drawn_means(shares_drawn([rows], clusters, 2000, 0), each[clusters])
    wide = band(each[clusters], drawn, [rows], clusters)
    few = np.arange(12)
    same = band(each, drawn_means(shares_drawn([few], few, 2000, 0), each), [few], few)
    assert (wide.low[0], wide.high[0]) == pytest.approx((same.low[0], same.high[0]), abs=0.01)


def test_differences_are_paired_by_problem() -> None:
    """Problems differ a lot, checkpoints little and always in one way: the difference is surer than the curves."""
    found = {("base", "f"): answers_of([2, 12] * 20, 16), ("rl", "f"): answers_of([3, 15] * 20, 16)}
    curves, differences, _ = curves_of(found, [("rl", "base"), ("base", "rl")], 500, 0)
    there, back = (row for row in differences if row["level"] == 1)
    assert there["difference"][0] == pytest.approx(0.125)
    assert there["high"][0] - there["low"][0] < 0.05
    assert curves[0]["high"][0] - curves[0]["low"][0] > 0.15
    assert back["difference"] == pytest.approx([-value for value in there["difference"]])
    assert back["low"] == pytest.approx([-value for value in there["high"]], abs=0.01)


def test_curves_that_cross_and_curves_that_do_not() -> None:
    """Eight problems always solved against forty solved now and then: ahead at first, behind later."""
    found = {("sure", "f"): answers_of([64] * 8 + [0] * 32, 64), ("rare", "f"): answers_of([2] * 40, 64)}
    pairs = [("rare", "sure"), ("sure", "rare"), ("sure", "sure")]
    there, back, same = (row["crossover"] for row in curves_of(found, pairs, 500, 0)[1] if row["level"] == 1)
    assert there == back
    assert (
        1 - comb(62, there["k"]) / comb(64, there["k"]) > 0.2 >= 1 - comb(62, there["k"] - 1) / comb(64, there["k"] - 1)
    )
    assert 1 <= there["low"] < there["k"] < there["high"] < 64
    assert same is None


def test_a_crossing_that_may_lie_beyond_the_samples() -> None:
    drawn = np.array([[1.0, 1.0, 1.0], [0.5, -0.5, 0.5], [-0.1, -0.2, 0.1]])
    found = crossover(np.array([1.0, 0.2, -0.1]), drawn)
    assert found is not None
    assert (found.k, found.low, found.high) == (3, 2, None)
    assert crossover(np.array([0.0, 0.0, 0.0]), drawn) is None
    assert crossover(np.array([0.0, 0.2, 0.1]), drawn) is None


def test_a_problem_without_enough_verdicts_is_refused_and_fewer_samples_end_the_curve() -> None:
    short = answers_of([1, 1], 8)
    short.judged[1] = 5
    curves, *_ = curves_of({("m", "f"): short, ("n", "f"): answers_of([1, 1], 8)}, [], 200, 0)
    assert all(row["k"][-1] == 5 for row in curves)
    short.judged[1] = 1
    with pytest.raises(UserError, match="m on f: problem 1 has 1 judged samples"):
        curves_of({("m", "f"): short}, [], 200, 0)


def test_the_smallest_difference_is_found_in_80_percent_of_studies() -> None:
    random = np.random.default_rng(0)
    problems, runs = 64, 1000
    shift = smallest_difference(WORST_SPREAD, problems)
    alone = np.arange(problems)
    weights = shares_drawn([alone], alone, 500, 0)
    solved_pr = [random.random((problems, runs)) < 0.5 + sign * shift / 2 for sign in (1, -1)]
    values_pr = solved_pr[0].astype(float) - solved_pr[1]
    found = band(values_pr, drawn_means(weights, values_pr), [alone], alone, signed=True)
    assert 0.76 < (found.low > 0).mean() < 0.9


def test_an_earlier_evaluation_tells_how_hard_problems_are() -> None:
    random = np.random.default_rng(0)
    correct = random.binomial(16, random.beta(0.5, 1.5, 4000))
    assert beta_of(correct, np.full(4000, 16)) == pytest.approx((0.5, 1.5), rel=0.15)
    alpha, beta = beta_of(counts(*[1] * 10, *[0] * 30), np.ones(40, np.int64))
    assert alpha + beta < 0.01  # one sample each: always or never solved
    spread = unrelated_spread(alpha, beta, 8, [1, 8])
    assert spread == pytest.approx([(2 * 0.25 * 0.75) ** 0.5] * 2, abs=0.05)
    assert smallest_difference(0.7, 1) == 1.0


def test_the_budget_factor_at_which_the_base_meets_the_model() -> None:
    """The base finds every fourth sample what the model always finds; what it never finds no budget makes up for."""
    found = {("base", "f"): answers_of([16] * 40, 64), ("rl", "f"): answers_of([40] * 40, 64)}
    rows = {row["k"]: row for row in curves_of(found, [("rl", "base")], 300, 0)[2] if row["level"] == 1}
    assert list(rows) == [1, 2, 4, 8, 16, 32]
    assert (rows[1]["factors"], rows[1]["factor"]) == ([1, 2, 4, 8, 16, 32, 64], 4)  # 1 − 0.75 ** 3 < 40 / 64
    assert rows[1]["low"] <= 4 <= rows[1]["high"]
    assert not rows[1]["more_than_reranking"]
    never = {("base", "f"): answers_of([8] * 4 + [0] * 36, 64), ("rl", "f"): answers_of([32] * 40, 64)}
    row = next(row for row in curves_of(never, [("rl", "base")], 300, 0)[2] if row["level"] == 1 and row["k"] == 2)
    assert (row["factor"], row["low"], row["high"], row["more_than_reranking"]) == (None, None, None, True)
    assert row["difference_low"][-1] > 0


def test_a_base_that_is_ahead_meets_the_model_at_once() -> None:
    assert meeting([1, 2, 3], np.array([-0.1, -0.2, -0.3]), np.full(3, -0.4), np.array([0.1, 0.0, -0.1])) == Meeting(
        1, 1, 2
    )
