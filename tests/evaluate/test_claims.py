"""Verdicts come from the intervals: known tallies, every rule, every verdict, every section."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compositionality.evaluate.claims.claim import ALL_SAMPLES, GROWTH, Claim, Comparison, Metric, Rule, Source
from compositionality.evaluate.claims.decide import Judged, Studies, Verdict, claim_rows, judge_claim, together
from compositionality.evaluate.claims.paper import CLAIMS, CONTROLS
from compositionality.evaluate.counts import Answers
from compositionality.evaluate.evaluations import Evaluation, Group, Study

N = 400


def study(shares: dict[str, list[float]], level: str = "string-heldout-level3") -> Study:
    """One group; each arm right on so large a share of N problems, seed by seed, the same problems first."""
    seeds = []
    for number in range(len(next(iter(shares.values())))):
        answers = {
            (arm, "test"): Answers(
                (level,) * N, np.ones(N, np.int64), (np.arange(N) < round(N * values[number])).astype(np.int64)
            )
            for arm, values in shares.items()
        }
        seeds.append(Evaluation(f"seed{number}", Path(), {"sampling": {}}, {}, answers))
    return Study(tuple(seeds), tuple(shares), (Group("test", level),))


def judge(comparison: Comparison, found: Study) -> Judged:
    return judge_claim(Claim("", "", "", "", (comparison,)), {comparison.source: found})[0]


def verdicts(found: Study, rule: Rule, threshold: float = 0.0, base: str = "stage1") -> tuple[Verdict, Verdict]:
    judged = judge(Comparison("heldout", 3, "rl", base, rule, threshold), found)
    return judged.verdict, judged.these_seeds


YES, NO, OPEN, NONE = Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.UNDECIDED, Verdict.NOT_RUN


@pytest.mark.parametrize(
    ("rl", "stage1", "expected"),
    [
        ([0.60, 0.61, 0.62], [0.20, 0.21, 0.22], (YES, YES)),
        ([0.30, 0.31, 0.32], [0.20, 0.21, 0.22], (NO, NO)),
        ([0.41, 0.41, 0.41], [0.20, 0.21, 0.22], (OPEN, OPEN)),
        ([0.90, 0.60, 0.40], [0.20, 0.21, 0.22], (OPEN, YES)),  # seeds differ: only these ones are sure
    ],
)
def test_at_least_20_points(rl: list[float], stage1: list[float], expected: tuple[Verdict, Verdict]) -> None:
    assert verdicts(study({"stage1": stage1, "rl": rl}), Rule.ABOVE, 0.2) == expected


@pytest.mark.parametrize(
    ("rl", "expected"),
    [([0.20, 0.21, 0.22], (YES, YES)), ([0.40, 0.41, 0.42], (NO, NO)), ([0.10, 0.30, 0.50], (OPEN, NO))],
)
def test_a_gain_of_at_most_5_points(rl: list[float], expected: tuple[Verdict, Verdict]) -> None:
    assert verdicts(study({"stage1": [0.20, 0.21, 0.22], "rl": rl}), Rule.AT_MOST, 0.05) == expected


@pytest.mark.parametrize(
    ("rl", "stage1", "expected"),
    [
        ([0.60, 0.61, 0.62], [0.20, 0.21, 0.22], (YES, YES)),
        ([0.50, 0.40, 0.60], [0.10, 0.20, 0.30], (OPEN, YES)),
        ([0.22, 0.23, 0.24], [0.20, 0.21, 0.22], (OPEN, OPEN)),  # paired it is sure, but the intervals overlap
        ([0.10, 0.11, 0.12], [0.20, 0.21, 0.22], (NO, NO)),
    ],
)
def test_intervals_apart(rl: list[float], stage1: list[float], expected: tuple[Verdict, Verdict]) -> None:
    assert verdicts(study({"stage1": stage1, "rl": rl}), Rule.APART) == expected


@pytest.mark.parametrize(
    ("rl", "expected", "by_seed"),
    [
        ([0.50, 0.52, 0.54], YES, (YES, YES, YES)),
        ([0.50, 0.41, 0.54], OPEN, (YES, OPEN, YES)),
        ([0.50, 0.52, 0.25], NO, (YES, YES, NO)),
    ],
)
def test_twice_on_every_seed(rl: list[float], expected: Verdict, by_seed: tuple[Verdict, ...]) -> None:
    comparison = Comparison("heldout", 3, "rl", "stage1", Rule.EVERY_SEED, times=2.0)
    judged = judge(comparison, study({"stage1": [0.20, 0.20, 0.20], "rl": rl}))
    assert (judged.verdict, judged.these_seeds, judged.by_seed) == (expected, expected, by_seed)
    assert judged.ratios == pytest.approx([value / 0.2 for value in rl])
    assert (judged.need is None) == (expected is not OPEN)


@pytest.mark.parametrize(
    ("rl", "expected"),
    [
        ([0.20, 0.21, 0.22], (YES, YES)),
        ([0.22, 0.20, 0.21], (YES, YES)),
        ([0.60, 0.61, 0.62], (NO, NO)),
        ([0.02, 0.01, 0.02], (NO, NO)),  # far behind is no more alike than far ahead
        ([0.30, 0.15, 0.20], (OPEN, YES)),
        ([0.26, 0.25, 0.26], (OPEN, OPEN)),
    ],
)
def test_alike_within_5_points(rl: list[float], expected: tuple[Verdict, Verdict]) -> None:
    assert verdicts(study({"stage1": [0.21, 0.21, 0.21], "rl": rl}), Rule.WITHIN, 0.05) == expected


@pytest.mark.parametrize(
    ("rl", "rule", "threshold", "expected"),
    [
        ([0.60, 0.61, 0.62], Rule.ABOVE, 0.5, (YES, YES)),
        ([0.40, 0.41, 0.42], Rule.ABOVE, 0.5, (NO, NO)),
        ([0.49, 0.51, 0.50], Rule.ABOVE, 0.5, (OPEN, OPEN)),
        ([0.00, 0.00, 0.00], Rule.AT_MOST, 0.05, (YES, YES)),
    ],
)
def test_a_share_alone_is_held_against_its_threshold(
    rl: list[float], rule: Rule, threshold: float, expected: tuple[Verdict, Verdict]
) -> None:
    assert verdicts(study({"rl": rl}), rule, threshold, base="") == expected


def test_one_seed_is_judged_by_its_problems() -> None:
    assert verdicts(study({"stage1": [0.2], "rl": [0.6]}), Rule.ABOVE, 0.2) == (YES, YES)
    assert verdicts(study({"stage1": [0.2], "rl": [0.6]}), Rule.APART) == (YES, YES)


def test_what_is_not_there_is_not_run() -> None:
    assert verdicts(study({"rl": [0.2]}), Rule.ABOVE) == (NONE, NONE)
    assert verdicts(study({"stage1": [0.2], "rl": [0.6]}, "string-heldout-level4"), Rule.ABOVE) == (NONE, NONE)
    assert judge(Comparison("heldout", 3, "rl", "stage1"), study({"rl": [0.2]})).missing == "stage1"
    assert {row["verdict"] for row in claim_rows(CLAIMS, {})} == {NONE}


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ((YES, YES), YES), ((YES, NO), NO), ((NO, OPEN), NO), ((YES, OPEN), OPEN), ((YES, NONE), OPEN),
        ((NONE, NONE), NONE),
    ],
)  # fmt: skip
def test_a_claim_needs_all_its_comparisons(parts: tuple[Verdict, ...], whole: Verdict) -> None:
    assert together(parts) == whole


def test_the_claims_of_the_paper_as_rows() -> None:
    shares = {
        "stage1": [0.11, 0.20, 0.23], "rl-level1": [0.19, 0.17, 0.20], "rl-level2": [0.36, 0.29, 0.40],
        "rft": [0.12, 0.20, 0.24],
    }  # fmt: skip
    rows = rows_of({Source.ACCURACY: study(shares)})
    json.dumps(list(rows.values()))
    assert set(rows) == {claim.name for claim in CLAIMS}
    above = rows["H2"]["comparisons"][0]
    assert above["comparison"] == "heldout L3: rl-level2 − rl-level1 > 0"
    assert above["difference"] == pytest.approx((0.17 + 0.12 + 0.20) / 3, abs=0.003)
    assert (above["verdict"], above["metric"], above["n_seeds"], above["n_problems"]) == (YES, "accuracy", 3, N)
    assert rows["H2"]["verdict_these_seeds"] == YES
    assert rows["H2-apart"]["verdict_these_seeds"] == YES
    assert rows["H2-twice"]["verdict"] == NO  # ×3.3 ×1.5 ×1.7
    assert rows["H2-trained"]["verdict"] == NONE  # no trained functions here
    assert (rows["H3-matched"]["verdict"], rows["H3-matched"]["needs"]) == (NONE, None)
    assert rows["H3-behind"]["verdict"] == OPEN  # on held-out functions only
    assert rows["H3-behind"]["needs"].endswith("what was not run (trained L3)")


def test_every_hypothesis_of_the_paper_has_its_claim_and_every_number_its_place() -> None:
    names = [claim.name for claim in CLAIMS]
    assert len(set(names)) == len(names)
    assert [name for name in names if "-" not in name] == [f"H{number}" for number in range(1, 10)]
    assert all(claim.hypothesis in names for claim in CLAIMS)
    assert {claim.hypothesis for claim in CONTROLS} == {"control"}
    for claim in CLAIMS:
        assert claim.comparisons
        assert bool(re.search(r"\d", claim.paper)) <= bool(claim.source), f"{claim.name}: where does the number stand?"


def test_h8_is_h1_and_h3_together() -> None:
    fails = {"stage1": [0.2], "rl-level1": [0.2], "rft": [0.2]}
    learns = {**fails, "rft": [0.5]}
    for shares, expected in ((fails, OPEN), (learns, NO)):  # of one level and one set of functions only
        rows = rows_of({Source.ACCURACY: study(shares)})
        assert (rows["H8"]["verdict"], rows["H3"]["verdict"]) == (expected, expected)


def rows_of(studies: Studies) -> dict[str, dict[str, Any]]:
    return {row["claim"]: row for row in claim_rows(CLAIMS, studies)}


@pytest.mark.parametrize(("trained_by_chance", "expected"), [(0.21, YES), (0.5, NO)])
def test_controls_must_gain_next_to_nothing(trained_by_chance: float, expected: Verdict) -> None:
    shares = {"stage1": [0.2] * 3, "rl-level2-shuffled": [trained_by_chance] * 3}
    both = study(shares)
    trained = study(shares, "string-trained-level3")
    joined = Study(
        tuple(
            Evaluation(one.name, Path(), {}, {}, {**one.answers, **renamed(other)})
            for one, other in zip(both.seeds, trained.seeds, strict=True)
        ),
        both.models,
        (Group("test", "string-heldout-level3"), Group("more", "string-trained-level3")),
    )
    rows = {row["claim"]: row["verdict"] for row in claim_rows(CONTROLS, {Source.ACCURACY: joined})}
    assert rows == {"control-shuffled": expected, "control-format": NONE}


def renamed(seed: Evaluation) -> dict[tuple[str, str], Answers]:
    return {(model, "more"): answers for (model, _), answers in seed.answers.items()}


WORKS = {"string-base": 0.02, "multi-base": 0.17, "string-rl-level1to2": 0.03, "multi-rl-level1": 0.2,
         "multi-rl-level1to2": 0.35}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "h4", "h5"),
    [
        ({}, YES, YES),
        ({"multi-rl-level1": 0.5}, NO, YES),  # any RL on strings helps: not composition
        ({"string-rl-level1to2": 0.5}, YES, NO),  # the atoms were not needed
        ({"multi-rl-level1to2": 0.17}, NO, YES),  # nothing carries over, but it is ahead of the arm without atoms
        ({"multi-rl-level1": 0.17, "multi-rl-level1to2": 0.2225}, OPEN, YES),  # about as much as counts
    ],
)
def test_what_carries_over_to_countdown(changed: dict[str, float], h4: Verdict, h5: Verdict) -> None:
    shares = {arm: [share] * 3 for arm, share in {**WORKS, **changed}.items()}
    rows = rows_of({Source.COUNTDOWN: study(shares, "countdown-clean-level3")})
    found = {name: row["verdict"] for name, row in rows.items() if row["verdict"] != NONE}
    assert found == {"H4": h4, "H5": h5}


def sampled(by_arm: dict[str, float], level: int, n: int = 64, problems: int = 300) -> Study:
    """One seed with n samples of every problem, whose chances are spread evenly from 0 to twice the arm's mean."""
    rng, source = np.random.default_rng(0), f"string-heldout-level{level}"
    chances = np.linspace(0, 2, problems)
    answers = {
        (arm, "test"): Answers(
            (source,) * problems, np.full(problems, n), rng.binomial(n, np.minimum(mean * chances, 1))
        )
        for arm, mean in by_arm.items()
    }
    return Study((Evaluation("seed0", Path(), {}, {}, answers),), tuple(by_arm), (Group("test", source),))


def at(level: int, part: str, rule: Rule = Rule.ABOVE, threshold: float = 0.0) -> Comparison:
    return Comparison("heldout", level, "rl-level2", "stage1", rule, threshold, metric=Metric.PASS_AT_K, part=part)


def test_h6_a_gap_that_closes_and_one_that_widens() -> None:
    """Where stage1 is right now and then, 64 samples find it; where it never is, they find nothing."""
    easy, deep = sampled({"stage1": 0.3, "rl-level2": 0.5}, 2), sampled({"stage1": 0.0, "rl-level2": 0.05}, 3)
    assert judge(at(2, GROWTH, Rule.AT_MOST), easy).verdict is YES
    assert judge(at(2, ALL_SAMPLES, Rule.AT_MOST, 0.05), easy).verdict is YES
    assert judge(at(2, GROWTH), easy).verdict is NO
    widens = judge(at(3, GROWTH), deep)
    assert widens.verdict is YES
    assert widens.found is not None
    answers = deep.seeds[0].answers["rl-level2", "test"]
    assert widens.found.value == pytest.approx((answers.correct > 0).mean() - (answers.correct / 64).mean())
    assert widens.comparison.words == "heldout L3, pass@N − pass@1: rl-level2 − stage1 > 0"
    rows = rows_of({Source.PASS_AT_K: deep})
    assert (rows["H6"]["verdict"], rows["H6-closes"]["verdict"]) == (OPEN, NONE)
    assert rows["H6"]["needs"] == "what was not run (heldout L4, heldout L5, heldout L6)"


def test_h6_samples_that_no_verifier_judged_count_for_nothing() -> None:
    judged = np.array([4, 3, 4, 0])
    answers = {(arm, "test"): Answers(("string-heldout-level3",) * 4, judged, right) for arm, right in
               (("stage1", np.array([0, 0, 0, 0])), ("rl-level2", np.array([1, 0, 4, 0])))}  # fmt: skip
    found = Study((Evaluation("seed0", Path(), {}, {}, answers),), ("stage1", "rl-level2"),
                  (Group("test", "string-heldout-level3"),))  # fmt: skip
    assert found.samples(found.groups[0]) == 3
    gap = judge(at(3, ALL_SAMPLES), found).found
    assert gap is not None
    assert gap.value == pytest.approx((0.75 + 0 + 1) / 3)  # 3 of 4 samples: C(3, 3) / C(4, 3) miss the right one


CLASSES = ("correct", "ignores_composition", "incorrect_composition", "atomic_error")
FAILING = {  # of 40 answers to each problem, as in the paper's figure 6
    "stage1": (0, 24, 15, 1), "rft": (1, 22, 15, 2), "rl-level1": (0, 22, 16, 2), "rl-level2": (11, 0, 5, 24),
}  # fmt: skip


def classed(failing: dict[str, tuple[int, ...]], seeds: int = 3, problems: int = 120) -> Study:
    """Classes of 40 answers; two problems in three have one answer more or less of the last two classes."""
    source, shift = "string-heldout-level3", np.arange(problems) % 3 - 1

    def answers(seed: int, counts: tuple[int, ...]) -> Answers:
        spread = {name: np.full(problems, count) for name, count in zip(CLASSES, counts, strict=True)}
        spread["atomic_error"] = np.maximum(spread["atomic_error"] + np.roll(shift, seed), 0)
        spread["incorrect_composition"] = 40 - sum(spread[name] for name in CLASSES if name != "incorrect_composition")
        return Answers((source,) * problems, np.full(problems, 40), spread["correct"], spread)

    made = tuple(
        Evaluation(f"seed{seed}", Path(), {}, {}, {(arm, "t"): answers(seed, found) for arm, found in failing.items()})
        for seed in range(seeds)
    )
    return Study(made, tuple(failing), (Group("t", source),))


def test_h7_the_papers_own_failures_support_every_claim() -> None:
    rows = rows_of({Source.FAILURES: classed(FAILING)})
    found = {name: row["verdict"] for name, row in rows.items() if row["hypothesis"] == "H7"}
    assert found == dict.fromkeys(("H7", "H7-ignore", "H7-order", "H7-atoms", "H7-half"), YES)
    first, second = rows["H7"]["comparisons"][:2]
    assert first["comparison"] == "heldout L3, ignores composition: rl-level2 ≤ 5"
    assert (first["base"], first["difference"], first["metric"], first["part"]) == (
        None, 0.0, "failure share", "ignores_composition",
    )  # fmt: skip
    assert (second["comparison"], second["difference"]) == (
        "heldout L3, ignores composition: stage1 − rl-level2 > 0", pytest.approx(0.6),
    )  # fmt: skip


def test_h7_failures_that_do_not_change_contradict_it() -> None:
    rows = rows_of({Source.FAILURES: classed({**FAILING, "rl-level2": FAILING["stage1"]})})
    found = {name: row["verdict"] for name, row in rows.items() if row["hypothesis"] == "H7"}
    assert (found["H7"], found["H7-half"]) == (NO, NO)
    assert found["H7-atoms"] is NO  # fewer than after RFT


def test_each_source_answers_for_its_own_claims() -> None:
    sources = {claim.name: {one.source for one in claim.comparisons} for claim in CLAIMS}
    assert all(len(found) == 1 for found in sources.values())
    named = {"H4": Source.COUNTDOWN, "H6": Source.PASS_AT_K, "H7": Source.FAILURES, "H9": Source.ACCURACY}
    assert all(sources[name] == {source} for name, source in named.items())


def test_levels_and_functions_are_told_from_the_names() -> None:
    assert (Group("test", "string-trained-level12").functions, Group("test", "string-trained-level12").level) == (
        "trained",
        12,
    )
    assert Group("heldout", "codeio-forward-incomplete-depth3").functions == "heldout"
    for source in ("countdown-clean-level3", "reasoning-gym-countdown-depth3"):
        assert (Group("test", source).functions, Group("test", source).level) == ("countdown", 3)
    assert (Group("countdown", "countdown").functions, Group("countdown", "countdown").level) == ("countdown", 0)
