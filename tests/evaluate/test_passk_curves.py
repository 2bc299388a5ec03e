"""Curves of pass@k, their differences, where they cross, and budget factors, on known counts; what a plan can show."""
# ruff: noqa: N806

from collections.abc import Sequence
from math import comb

import numpy as np
import pandas as pd
import pytest
from claim_studies import answers, results_of

from compositionality.errors import UserError
from compositionality.evaluate.passk import (
    WORST_SPREAD,
    Pairs,
    _curve_table,
    budget_factors,
    crossover,
    curves,
    largest_k,
    smallest_difference,
    spaced_curves,
)
from compositionality.evaluate.results import Results
from compositionality.report.page.figures import crossovers
from compositionality.report.theme import arm_styles
from compositionality.stats.estimate import band


def sampled(n_samples: int, levels: int = 1, **right: Sequence[int]) -> Results:
    """Models by name with so many right samples of each problem; as many problems of each level."""
    each = {arm: len(counts) // levels for arm, counts in right.items()}
    return results_of(
        [
            [
                answers(arm, "a", level + 1, counts[level * each[arm] : (level + 1) * each[arm]], n_samples, file="f")
                for arm, counts in right.items()
                for level in range(levels)
            ]
        ]
    )


def curve(results: Results, pairs: Pairs, model: str, base: str = "", level: int = 1) -> pd.DataFrame:
    """The rows of one curve, by k."""
    rows = curves(results, pairs, lambda file: range(1, largest_k(results, file) + 1))
    chosen = rows[(rows["model"] == model) & (rows["base"] == base) & (rows["level"] == level)]
    return chosen.set_index("k", drop=False)


def test_curves_that_cross_and_curves_that_do_not() -> None:
    """Eight problems always solved against forty solved now and then: ahead at first, behind later."""
    results = sampled(64, sure=[64] * 8 + [0] * 32, rare=[2] * 40)
    pairs = [("rare", "sure"), ("sure", "rare"), ("sure", "sure")]
    rows = [curve(results, [pair], *pair) for pair in pairs]
    k, back, same = map(crossover, rows)
    assert 1 - comb(62, k) / comb(64, k) > 0.2 >= 1 - comb(62, k - 1) / comb(64, k - 1)
    assert (back, same) == (k, None)
    for never in ([0.0, 0.0, 0.0], [0.0, 0.2, 0.1], [np.nan, 0.1, 0.2]):
        assert crossover(pd.DataFrame({"k": [1, 2, 3], "value": never})) is None


def test_a_problem_without_enough_verdicts_is_refused_and_fewer_samples_end_the_curve() -> None:
    results = sampled(8, m=[1, 1], n=[1, 1])
    results.rows.loc[1, "judged"] = 5
    assert largest_k(results, "f") == 5
    results.rows.loc[1, "judged"] = 1
    with pytest.raises(UserError, match="m on f: problem 1 has 1 judged samples"):
        largest_k(results, "f")


def test_the_budget_factor_at_which_the_base_meets_the_model() -> None:
    """The base finds every fourth sample what the model always finds; what it never finds no budget makes up for."""
    results = sampled(64, base=[16] * 40, rl=[40] * 40)
    rows = {row["k"]: row for row in budget_factors(results, "rl", "base", results.sets[0])}
    assert list(rows) == [1, 2, 4, 8, 16, 32]
    assert (rows[1]["largest"], rows[1]["factor"]) == (64, 4)  # 1 − 0.75 ** 3 < 40 / 64
    assert rows[1]["low"] <= 4 <= rows[1]["high"]
    never = sampled(64, base=[8] * 4 + [0] * 36, rl=[32] * 40)
    row = next(row for row in budget_factors(never, "rl", "base", never.sets[0]) if row["k"] == 2)
    assert (row["factor"], row["low"], row["high"]) == (None, None, None)


@pytest.mark.parametrize("least", [9, 13, 22, 30])
def test_the_budget_factor_is_the_least(least: int) -> None:
    """Not the next of evenly spaced ones: here the base's pass@m reaches the model's first at ``least``."""
    n, right = 500, 30
    solved = 1 - np.prod([(n - right - drawn) / (n - drawn) for drawn in range(least)])
    results = sampled(n, base=[right] * 50, rl=[int(n * solved)] * 50)
    assert budget_factors(results, "rl", "base", results.sets[0])[0]["factor"] == least


def test_a_files_curves_end_where_its_problems_have_no_more_samples() -> None:
    """Of all its levels; one without a verdict has no figure."""
    few = sampled(10, levels=3, base=[2] * 60, rl=[4] * 60)
    level, odd = few.rows["level"], few.rows["problem"] % 2 == 1
    few.rows.loc[(level == 1) & odd, "judged"] = 5
    few.rows.loc[level == 3, ["judged", "right"]] = 0
    table = spaced_curves(few, [("rl", "base")])
    assert table.groupby("level")["k"].max().to_dict() == dict.fromkeys((1, 2, 3), 5)
    assert table["value"].isna().groupby(table["level"]).all().to_dict() == {1: False, 2: False, 3: True}
    nothing = few.only([few.replicates[0].name])
    nothing.rows["judged"] = 0
    assert spaced_curves(nothing, [])["value"].isna().all()


def test_data_sources_of_a_level_have_rows_of_their_own() -> None:
    right = {"s": {"base": 1, "rl": 4}, "t": {"base": 6, "rl": 2}}
    rows = [
        answers(arm, "a", 2, [count] * 20, 8, file="f", data_source=source)
        for source, arms in right.items()
        for arm, count in arms.items()
    ]
    results = results_of([rows])
    table = curves(results, [("rl", "base")], lambda _: [1, 8])
    assert list(_curve_table(table[table["base"] == "base"]).index) == ["a L2, s", "a L2, t", "a, all levels"]
    shown = crossovers(results, table[(table["base"] == "base") & (table["level"] == 2)], arm_styles(["base", "rl"]))[
        "rows"
    ]
    assert [row[4][:5] for row in shown] == ["+37.5", "\u221250.0"]


def test_a_base_that_is_ahead_meets_the_model_at_once() -> None:
    ahead = sampled(8, base=[6] * 40, rl=[2] * 40)
    rows = budget_factors(ahead, "rl", "base", ahead.sets[0])
    assert {(row["factor"], row["low"], row["high"]) for row in rows} == {(1, 1, 1)}


def test_the_smallest_difference_is_found_in_80_percent_of_studies() -> None:
    assert smallest_difference(0.7, 1) == 1.0
    rng = np.random.default_rng(0)
    shift = smallest_difference(WORST_SPREAD, 64)
    solved_PR = [rng.random((64, 1000)) < 0.5 + sign * shift / 2 for sign in (1, -1)]
    found = band(solved_PR[0].astype(float) - solved_PR[1], np.ones(64), None, -1)
    assert 0.76 < (found.low > 0).mean() < 0.9
