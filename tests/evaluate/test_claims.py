"""Decisions come from the intervals: every rule, metric and section, Holm's procedure; claims are read or refused."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claim_studies import answers, results_of

from compositionality.errors import UserError
from compositionality.evaluate.claims.decide import (
    ByName,
    Outcome,
    all_of,
    apply_holm,
    claim_rows,
    decide,
    decide_by_interval,
    p_of,
)
from compositionality.evaluate.claims.model import Claim, Comparison, Headroom, Requires, Rule, read_claims_file
from compositionality.evaluate.claims.run import decision_words
from compositionality.evaluate.results import Results
from compositionality.evaluate.summary import share
from compositionality.evaluate.types import ALL_LEVELS, ALL_SAMPLES, GROWTH, Decision, Metric
from compositionality.stats.estimate import Estimate, Interval
from compositionality.stats.significance import corrected, p_value

N = 400
CATALOGUE = read_claims_file("composition")


def ungated(claims: Sequence[Claim]) -> list[Claim]:
    """The claims decided by their intervals alone; gates have tests of their own."""
    return [replace(one, comparisons=tuple(replace(each, gates=()) for each in one.comparisons)) for one in claims]


def study(shares: dict[str, list[float]], level: int = 3) -> Results:
    """Held-out functions; each arm right on so large a share of N problems, seed by seed, the same problems first."""
    n_seeds = len(next(iter(shares.values())))
    right = {arm: [(np.arange(N) < round(N * value)).astype(int) for value in shares[arm]] for arm in shares}
    return results_of([[answers(arm, "heldout", level, right[arm][seed]) for arm in shares] for seed in range(n_seeds)])


@pytest.mark.parametrize(("read", "expected"), [(10, 0.5), (8, 0.625), (7, None)])
def test_steps_are_told_of_the_answers_that_could_be_read_if_these_are_four_in_five(
    read: int, expected: float | None
) -> None:
    rows = answers("m", "heldout", 3, [5] * 4, 10, handed_on=[5] * 4, chains_read=[read] * 4)
    results = results_of([[rows]])
    estimate = share(results, "m", results.sets[0], "handed_on")
    assert (estimate and estimate.value) == expected
    assert share(results, "m", results.sets[0], "chains_read").value == read / 10


def test_handed_on_responses_are_a_part_of_accuracy() -> None:
    """Right answers to the first half of the problems, handed-on ones to all of them but in the base."""
    right, all_of_them = (np.arange(N) < N // 2).astype(int), np.ones(N, int)
    handed_on = {"rl-level2": all_of_them, "stage1": right}
    found = results_of([[answers(arm, "heldout", 3, right, handed_on=handed_on[arm]) for arm in handed_on]])
    correct = Comparison("heldout", 3, "rl-level2", "stage1", threshold=0.2)
    handed_on_too = replace(correct, measure="handed_on")
    assert str(handed_on_too) == "heldout L3, handed on: rl-level2 − stage1 > 20"
    assert (judge(handed_on_too, found).decision, judge(correct, found).decision) == (YES, NO)


def test_a_gain_over_another_gain() -> None:
    """(60 − 20) − (35 − 25) = 30 points; halved, a threshold of 25 would be missed."""
    found = study({"rl-a": [0.6, 0.58, 0.62], "sft-a": [0.2] * 3, "rl-b": [0.35] * 3, "sft-b": [0.25, 0.24, 0.26]})
    gain = Comparison("heldout", 3, "rl-a", "sft-a", threshold=0.25, over=("rl-b", "sft-b"))
    assert str(gain) == "heldout L3: rl-a − sft-a, over rl-b − sft-b, > 25"
    outcome = judge(gain, found)
    estimate = outcome.estimate
    assert estimate.value == pytest.approx(0.30, abs=0.003)
    assert estimate.by_seed == pytest.approx((0.30, 0.27, 0.33), abs=0.004)
    assert outcome.decision is not NO
    assert judge(replace(gain, threshold=0.2), found).these_seeds is YES
    assert judge(replace(gain, threshold=0.5), found).decision is NO
    right = found.rows.pivot_table("right", "problem", "arm", aggfunc="mean")
    by_problem = right["rl-a"] - right["sft-a"] - (right["rl-b"] - right["sft-b"])
    half = 1.966 * by_problem.std(ddof=1) / np.sqrt(N)
    assert estimate.over_problems == pytest.approx((0.30 - half, 0.30 + half), abs=0.004)
    missing = judge(replace(gain, over=("rl-c", "sft-b")), found)
    assert (missing.decision, missing.missing) == (Decision.NOT_RUN, "rl-c")


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_all_levels_of_a_group_are_compared_as_one(n_seeds: int) -> None:
    """By the mean over their problems; the levels of one file, and here of two sizes."""
    right = {"rl": ([180, 178, 182], [30, 32, 31]), "stage1": ([100, 98, 99], [10, 12, 14])}

    def rows(arm: str, level: int, seed: int) -> pd.DataFrame:
        n = (200, 100)[level - 1]
        made = answers(arm, "heldout", level, np.arange(n) < right[arm][level - 1][seed])
        return made.assign(file="test", data_source="string-heldout")

    found = results_of([[rows(arm, level, seed) for arm in right for level in (1, 2)] for seed in range(n_seeds)])
    gain = judge(Comparison("heldout", ALL_LEVELS, "rl", "stage1", Rule.ABOVE, 0.2), found)
    assert (gain.decision, gain.n_problems) == (YES, 300)
    (rl, more), (base, less) = (map(np.array, right[arm]) for arm in right)
    assert gain.estimate.by_seed == pytest.approx(((rl + more - base - less) / 300)[:n_seeds])
    low = gain.estimate.low
    assert p_value(gain.estimate, low - 1e-3) < 0.05 < p_value(gain.estimate, low + 1e-3)


def judge(comparison: Comparison, found: Results) -> Outcome:
    return decide(Claim("", "", comparisons=(comparison,)), {comparison.results: found})[0]


YES, NO, OPEN, NONE = Decision.SUPPORTED, Decision.CONTRADICTED, Decision.UNDECIDED, Decision.NOT_RUN
FIFTH = [0.20, 0.21, 0.22]


def test_what_is_ahead_needs_no_more_than_its_base() -> None:
    """The margin of *as good* is not what a gate asks: 60 and 30 points of 100 leave room for more than 30."""
    found = study({"stage1": [0.05] * 3, "gold-sft": [0.6] * 3, "rl": [0.95] * 3})
    gates = (Headroom(0.95, 0.05), Requires("RL is ahead of gold", model="rl", base="gold-sft"))
    ahead = Comparison("heldout", 3, "rl", "gold-sft", Rule.AHEAD, reference=("rl", "stage1"), gates=gates)
    assert (judge(ahead, found).decision, judge(ahead, found).reason) == (YES, "")


@pytest.mark.parametrize(
    ("rule", "threshold", "rl", "base", "expected"),
    [
        (Rule.ABOVE, 0.2, [0.60, 0.61, 0.62], FIFTH, (YES, YES)),
        (Rule.ABOVE, 0.2, [0.30, 0.31, 0.32], FIFTH, (NO, NO)),
        (Rule.ABOVE, 0.2, [0.41, 0.41, 0.41], FIFTH, (OPEN, OPEN)),
        (Rule.ABOVE, 0.2, [0.90, 0.60, 0.40], FIFTH, (OPEN, YES)),  # seeds differ: only these ones are sure
        (Rule.ABOVE, 0.2, [0.6], [0.2], (YES, YES)),  # one seed by its problems
        (Rule.AT_MOST, 0.05, FIFTH, FIFTH, (YES, YES)),
        (Rule.AT_MOST, 0.05, [0.40, 0.41, 0.42], FIFTH, (NO, NO)),
        (Rule.AT_MOST, 0.05, [0.10, 0.30, 0.50], FIFTH, (OPEN, NO)),
        (Rule.WITHIN, 0.05, FIFTH, [0.21] * 3, (YES, YES)),
        (Rule.WITHIN, 0.05, [0.60, 0.61, 0.62], [0.21] * 3, (NO, NO)),
        (Rule.WITHIN, 0.05, [0.02, 0.01, 0.02], [0.21] * 3, (NO, NO)),  # far behind is no more alike than far ahead
        (Rule.WITHIN, 0.05, [0.30, 0.15, 0.20], [0.21] * 3, (OPEN, YES)),
        (Rule.WITHIN, 0.05, [0.26, 0.25, 0.26], [0.21] * 3, (OPEN, OPEN)),
        (Rule.AHEAD, 0, [0.60, 0.61, 0.62], FIFTH, (YES, YES)),
        (Rule.AHEAD, 0, FIFTH, [0.21] * 3, (NO, NO)),  # as good
        (Rule.AHEAD, 0, [0.10, 0.11, 0.12], [0.41] * 3, (NO, NO)),  # behind
        (Rule.AHEAD, 0, [0.30, 0.15, 0.20], [0.21] * 3, (OPEN, NO)),
        (Rule.ABOVE, 0.5, [0.60, 0.61, 0.62], None, (YES, YES)),  # a share alone
        (Rule.ABOVE, 0.5, [0.40, 0.41, 0.42], None, (NO, NO)),
        (Rule.ABOVE, 0.5, [0.49, 0.51, 0.50], None, (OPEN, OPEN)),
        (Rule.AT_MOST, 0.05, [0.00, 0.00, 0.00], None, (YES, YES)),
    ],
)
def test_the_interval_decides(
    rule: Rule, threshold: float, rl: list[float], base: list[float] | None, expected: tuple[Decision, Decision]
) -> None:
    arms = {"rl": rl} if base is None else {"stage1": base, "rl": rl}
    one = Comparison("heldout", 3, "rl", "stage1" if base else "", rule, threshold)
    if rule is Rule.AHEAD:  # as good within 10 points: half of 40 − 20
        arms, one = {**arms, "more": [0.4] * 3, "less": [0.2] * 3}, replace(one, reference=("more", "less"))
    outcome = judge(one, study(arms))
    assert (outcome.decision, outcome.these_seeds) == expected


def test_what_is_not_there_is_not_run() -> None:
    comparison = Comparison("heldout", 3, "rl", "stage1")
    for found, missing in ((study({"rl": [0.2]}), "stage1"), (study({"stage1": [0.2], "rl": [0.6]}, 4), "heldout L3")):
        outcome = judge(comparison, found)
        assert (outcome.decision, outcome.these_seeds, outcome.missing) == (NONE, NONE, missing)
    assert {row["decision"] for row in claim_rows(CATALOGUE.claims, {})} == {NONE}


UNTESTABLE = Decision.NOT_TESTABLE


def gain(value: float) -> Estimate:
    """± 10 points over 8 seeds and 400 problems."""
    return Estimate(value, 400, Interval(value - 0.01, value + 0.01), Interval(value - 0.1, value + 0.1), df=7)


def outcome(value: float, rule: Rule = Rule.ABOVE, threshold: float = 0.0) -> Outcome:
    return Outcome(Comparison("heldout", 3, "a", "b", rule, threshold), gain(value), YES)


OTHER = Outcome(Comparison("heldout", 3, "a", "b"), None, UNTESTABLE)


def test_a_family_is_corrected_and_keeps_what_was_not_run() -> None:
    p = p_value(gain(0.105), 0.0) / 2
    assert 0.01 < p < 0.025
    assert 3 * p > 0.05
    family = [(YES, [outcome(0.5)]), (YES, [outcome(0.105)]), (UNTESTABLE, [OTHER]), (NONE, [])]
    rows = [{"decision": decision, "p": p_of(decision, outcomes)} for decision, outcomes in family]
    apply_holm(rows)
    assert [row["decision_holm"] for row in rows] == [YES, OPEN, UNTESTABLE, NONE]
    assert (rows[1]["p"], rows[1]["p_holm"]) == (pytest.approx(p), pytest.approx(3 * p))
    assert (rows[2]["p"], rows[2]["p_holm"]) == (None, None)
    apply_holm(rows[1:2])
    assert rows[1]["decision_holm"] == YES


@pytest.mark.parametrize(
    ("decision", "outcomes", "times", "value"),
    [
        (YES, [outcome(0.5), outcome(0.12)], 1 / 2, 0.12),
        (NO, [outcome(-0.5), outcome(0.5)], 2 / 2, -0.5),
        (NO, [outcome(-0.5), outcome(0.5), OTHER], 3 / 2, -0.5),
        (OPEN, [outcome(0.5), outcome(-0.05)], 2 / 2, -0.05),
        (YES, [outcome(-0.12, Rule.AT_MOST)], 1 / 2, -0.12),
        (NO, [outcome(0.12, Rule.AT_MOST)], 1 / 2, 0.12),
    ],
)
def test_a_claim_is_as_sure_as_its_weakest_comparison_of_which_a_direction_has_a_one_sided_p(
    decision: Decision, outcomes: list[Outcome], times: float, value: float
) -> None:
    assert p_of(decision, outcomes) == pytest.approx(times * p_value(gain(value), 0.0))


@pytest.mark.parametrize(("decision", "value", "end"), [(YES, 0.02, 0.15), (NO, 0.3, 0.15), (NO, -0.3, -0.15)])
def test_no_difference_has_the_p_of_the_nearer_end_of_its_margin(decision: Decision, value: float, end: float) -> None:
    assert p_of(decision, [outcome(value, Rule.WITHIN, 0.15)]) == pytest.approx(p_value(gain(value), end))


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ((YES, YES), YES), ((YES, NO), NO), ((NO, OPEN), NO), ((YES, OPEN), OPEN), ((YES, NONE), OPEN),
        ((NONE, NONE), NONE),
    ],
)  # fmt: skip
def test_a_claim_needs_all_its_comparisons(parts: tuple[Decision, ...], whole: Decision) -> None:
    assert all_of(parts) == whole


LOSS = [0.17, 0.15, 0.16, 0.18]


def test_one_of_several_comparisons_contradicts_a_claim_at_its_share_of_the_5_percent() -> None:
    """Below the base: enough for the only comparison of a claim, not for one of forty."""
    found = {"accuracy": study({"stage1": [0.20] * 4, "rl": LOSS})}
    one = Comparison("heldout", 3, "rl", "stage1")
    alone, several = (decide(Claim("", "", comparisons=(one,) * n), found)[0] for n in (1, 40))
    assert (alone.decision, several.decision) == (NO, OPEN)
    assert several.estimate == alone.estimate
    assert several.needs


@pytest.mark.parametrize("n", [1, 2, 4, 9])
@pytest.mark.parametrize("value", [-0.25, -0.15, -0.12, -0.11])
def test_a_contradiction_agrees_with_its_p_value_times_their_number(value: float, n: int) -> None:
    (low, high), _ = corrected(gain(value), n)
    assert (high < 0) == (n * p_value(gain(value), 0.0) < 0.05)
    assert (low + high) / 2 == pytest.approx(value)


def noisy(mean: float, spread: float) -> list[float]:
    return [mean + spread * sign for sign in (-1, -0.5, 0, 0.5, 1)]


@pytest.mark.parametrize(
    ("sft", "word", "shown"),
    [(noisy(0.2, 0.02), "ahead", "supported"), (noisy(0.4, 0.02), "as good", "as good"),
     (noisy(0.6, 0.02), "behind", "contradicted"), (noisy(0.32, 0.09), "undecided", "undecided")],
)  # fmt: skip
def test_a_rule_with_three_answers_takes_half_of_a_gain_as_its_margin(sft: list[float], word: str, shown: str) -> None:
    """RL gains 30 points over stage1: SFT is as good within 15."""
    shares = {"stage1": [0.1] * 5, "rl": [0.4] * 5, "sft": sft}
    one = Comparison("heldout", 3, "rl", "sft", Rule.AHEAD, reference=("rl", "stage1"))
    assert str(one) == "heldout L3: rl − sft ahead, or as good within half of rl − stage1"
    (row,) = claim_rows([Claim("C", "", comparisons=(one,), primary=True)], {"accuracy": study(shares)})
    (found,) = row["comparisons"]
    assert (found["verdict"], found["threshold"]) == (word, pytest.approx(0.15))
    assert found["comparison"] == f"{one} (±15): {word}"
    assert row["decision_holm"] == row["decision"]
    assert decision_words(row, row["decision"]) == decision_words(found, row["decision"]) == shown
    assert (row["p"] < 0.05) == (word != "undecided")
    without = decide(Claim("", "", comparisons=(one,)), {"accuracy": study({"sft": sft, "rl": [0.4] * 5})})
    assert (without[0].decision, without[0].missing) == (NONE, "stage1")


def test_no_decision_stands_beside_an_interval_that_holds_its_threshold() -> None:
    """Just outside its interval a difference has p 0.025; where p is 0.04 the interval still holds the threshold."""
    near = outcome(0.09)
    row = {"decision": decide_by_interval(near.comparison, gain(0.09).interval), "p": p_of(OPEN, [near])}
    apply_holm([row])
    assert row["p"] < 0.05
    assert (row["decision"], row["decision_holm"]) == (OPEN, OPEN)


def rows_of(studies: ByName) -> dict[str, dict[str, Any]]:
    return {row["claim"]: row for row in claim_rows(ungated(CATALOGUE.claims), studies)}


def sampled(by_arm: dict[str, float], level: int, n: int = 64, problems: int = 300) -> Results:
    """One seed with n samples of every problem, whose chances are spread evenly from 0 to twice the arm's mean."""
    rng, chances = np.random.default_rng(0), np.linspace(0, 2, problems)
    right = {arm: rng.binomial(n, np.minimum(mean * chances, 1)) for arm, mean in by_arm.items()}
    return results_of([[answers(arm, "heldout", level, right[arm], n) for arm in by_arm]])


def at(level: int, measure: str, rule: Rule = Rule.ABOVE, threshold: float = 0.0) -> Comparison:
    return Comparison(
        "heldout", level, "rl-level2", "stage1", rule, threshold, 1.0, Metric.PASS_AT_K, measure, results="passk"
    )


def test_h6_a_gap_that_closes_and_one_that_widens() -> None:
    """Where stage1 is right now and then, 64 samples find it; where it never is, they find nothing."""
    easy, deep = sampled({"stage1": 0.3, "rl-level2": 0.5}, 2), sampled({"stage1": 0.0, "rl-level2": 0.05}, 3)
    assert judge(at(2, GROWTH, Rule.AT_MOST), easy).decision is YES
    assert judge(at(2, ALL_SAMPLES, Rule.AT_MOST, 0.05), easy).decision is YES
    assert judge(at(2, GROWTH), easy).decision is NO
    widens = judge(at(3, GROWTH), deep)
    assert widens.decision is YES
    right = deep.rows[deep.rows["arm"] == "rl-level2"]["right"]
    assert widens.estimate.value == pytest.approx((right > 0).mean() - (right / 64).mean())
    assert str(widens.comparison) == "heldout L3, pass@N − pass@1: rl-level2 − stage1 > 0"
    rows = rows_of({"passk": deep})
    assert (rows["H6"]["decision"], rows["H6-closes"]["decision"]) == (OPEN, NONE)
    assert rows["H6"]["needs"] == "what was not run (heldout L4, heldout L5, heldout L6)"


def test_h6_samples_that_no_verifier_judged_count_for_nothing() -> None:
    judged = np.array([4, 3, 4, 0])
    right = {"stage1": [0, 0, 0, 0], "rl-level2": [1, 0, 4, 0]}
    found = results_of([[answers(arm, "heldout", 3, right[arm], 4, judged=judged) for arm in right]])
    assert found.samples(found.sets[0]) == 3
    gap = judge(at(3, ALL_SAMPLES), found).estimate
    assert gap.value == pytest.approx((0.75 + 0 + 1) / 3)  # 3 of 4 samples: C(3, 3) / C(4, 3) miss the right one
    assert judge(at(3, "pass@4"), found).estimate.value == 1  # of the problems that have four


def test_two_samples_against_sixty_four() -> None:
    """What stage1 finds now and then 64 samples find more surely than two of RL; what it never finds they do not."""
    one = replace(at(3, "pass@2"), base_measure="pass@64")
    deep, easy = sampled({"stage1": 0.0, "rl-level2": 0.1}, 3), sampled({"stage1": 0.3, "rl-level2": 0.5}, 3)
    assert (judge(one, deep).decision, judge(one, easy).decision) == (YES, NO)
    assert str(one) == "heldout L3, pass@2 against pass@64: rl-level2 − stage1 > 0"
    assert judge(one, sampled({"stage1": 0.0, "rl-level2": 0.1}, 3, n=32)).decision is NONE
    assert judge(one, sampled({"stage1": 0.0, "rl-level2": 0.1}, 3, n=32)).missing == "as many answers that were judged"


def catalogue(tmp_path: Path, claims: str) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(f"results: {{accuracy: {{metric: accuracy, script: x.sh}}}}\nclaims:\n{claims}")
    return path


def test_a_claim_is_an_entry_of_a_file(tmp_path: Path) -> None:
    path = catalogue(tmp_path, """
  - {name: C1, text: more, paper: '', comparisons: [{group: ood, level: [2, 3], model: a, base: [b, c]}]}
  - {name: C2, text: both, paper: '', all_of: [C1], comparisons: [{group: ood, level: 1, model: a, rule: ≤}]}
""")  # fmt: skip
    first, second = read_claims_file(str(path)).claims
    named = ["ood L2: a − b > 0", "ood L2: a − c > 0", "ood L3: a − b > 0", "ood L3: a − c > 0"]
    assert [str(one) for one in first.comparisons] == named
    assert [str(one) for one in second.comparisons] == [*named, "ood L1: a ≤ 0"]


A = "comparisons: [{group: z, level: 1, model: a}]"


def entry(*changes: str) -> str:
    """A file with a claim whose one comparison has these keys too."""
    keys = {"group": "z", "level": "1", "model": "a"} | dict(change.split(": ", 1) for change in changes)
    return f"  - {{name: C1, text: x, comparisons: [{{{', '.join(map(': '.join, keys.items()))}}}]}}"


OVER = "over: give a model and its base, besides model and base, without times or base_measure"
AHEAD = "rule=ahead: give base and reference: [MODEL, BASE], and no other key of a margin"


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ("  - {name: C1, text: x, colour: z}", "C1: colour: no such setting; config/claims/composition.yaml explains"),
        (f"  - {{name: C1, text: x, results: z, {A}}}", "C1: results=z: must be one of accuracy"),
        (f"  - &a {{name: C1, text: x, {A}}}\n  - *a", "C1: given twice"),
        ("  - {name: C1, origin: paper, text: x}", "C1: no paper:"),
        ("  - {name: C1, text: x, comparisons: 5}", "C1: comparisons: 5: not a mapping of keys to values"),
        ("  - {name: C1, text: x, comparisons: [{results: [a]}]}", "C1: results=['a']: must be one of accuracy"),
        ("  - {name: C1, origin: mine, text: x}", "C1: origin=mine: must be one of paper, variant, own"),
        ("  - {name: C1, text: x, all_of: [C2]}", "C1: all_of: no claim C2 before this one"),
        ("  - {name: C1, text: x}", "C1: nothing is compared; give comparisons: or all_of:"),
        ("  - {name: C1, text: x, gates: [a]}", "C1: no gate a; there are: none"),
        (entry("rule: '<'"), "C1: rule=<: must be one of >, ≤, within ±, ahead"),
        (entry("rule: ahead"), f"C1: {AHEAD}"),
        (entry("reference: [a, b]"), f"C1: {AHEAD}"),
        (entry("over: [a]"), f"C1: {OVER}"),
        (
            entry("measure: right"),
            "C1: measure=right: for accuracy it must be one of correct, names_in_order, ",
        ),
        (entry("base_measure: right"), "C1: measure=right: for accuracy it must be one of correct, names_in_order"),
        (entry("measure: support_lost"), "C1: measure=support_lost: compares model and base; give both"),
        (entry("level: [1, null]"), "C1: level=null: may not be null"),
        (entry("groups: z"), "C1: groups: no such setting; did you mean group?"),
        (entry("gates: [a]"), "C1: gates: not a key of a comparison"),
        (entry("base: {a: b}"), "C1: base={'a': 'b'}: give one text"),
    ],
)
def test_a_claim_that_cannot_be_read_is_named(tmp_path: Path, claims: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"own.yaml: claim {message}")):
        read_claims_file(str(catalogue(tmp_path, claims)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b\n", "not a mapping of keys to values"),
        ("results: {}\nclaims: [{text: x}]\n", "claims: entry 1: no value for name"),
        ("results: {}\nclaims: [C1]\n", "claims: entry 1: C1: not a mapping of keys to values"),
        ("results: {}\nclaims: {C1: x}\n", "claims={'C1': 'x'}: a list is needed"),
        ("results: {a: {metric: speed, script: x}}\n", "results.a.metric=speed: must be one of accuracy, pass@k"),
        ("results: {}\ngates: {a: [{b: c}]}\n", "gates.a: no gate {'b': 'c'}; there are: none"),
        ("results: {}\ngates: {a: {kind: [b]}}\n", "gates.a: kind=['b']: must be one of headroom, trained, requires"),
        ("results: {}\ngates: {a: {kind: headroom, ceiling: 1}}\n", "gates.a: no value for floor"),
        (
            "results: {}\ngates: {a: {kind: requires, text: b, arm: c}}\n",
            "gates.a: arm: no such setting; config/claims",
        ),
        ("results: {}\ngates: {a: {kind: requires, text: b, results: c}}\n", "gates.a: results=c: must be one of"),
        ("results: {}\nclaim: []\n", "claim: no such setting; did you mean claims?"),
        (
            "results: {accuracy: {metric: failure share, script: x}}\n"
            "claims: [{name: C, text: x, comparisons: {group: z, level: 1, model: a, measure: atomic}}]\n",
            "claim C: measure=atomic: for failure share it must be one of correct, ignores_composition",
        ),
    ],
)
def test_a_file_of_claims_that_cannot_be_read_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=re.escape(f"own.yaml: {message}")):
        read_claims_file(str(path))


def test_an_unknown_file_of_claims_is_refused() -> None:
    with pytest.raises(UserError, match="claims=none: no such file; known are behavior_injection, composition"):
        read_claims_file("none")
