"""Verdicts come from the intervals: known tallies, every rule, every verdict."""

import json
from pathlib import Path

import numpy as np
import pytest

from compositionality.evaluate.by_problem import Answers
from compositionality.evaluate.claims import CLAIMS, Claim, Comparison, Rule
from compositionality.evaluate.study import Evaluation, Group, Study
from compositionality.evaluate.verdicts import Verdict, claim_rows, claims_about, judge_claim, together

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


def verdicts(found: Study, rule: Rule, threshold: float = 0.0, times: float = 1.0) -> tuple[Verdict, Verdict]:
    comparison = Comparison("heldout", 3, "rl", "stage1", rule, threshold, times)
    judged = judge_claim(Claim("", "", "", (comparison,)), found)[0]
    return judged.verdict, judged.these_seeds


YES, NO, OPEN, NONE = Verdict.REPLICATES, Verdict.FAILS, Verdict.UNDECIDED, Verdict.NOT_MEASURED


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
    found = study({"stage1": [0.20, 0.20, 0.20], "rl": rl})
    comparison = Comparison("heldout", 3, "rl", "stage1", Rule.EVERY_SEED, times=2.0)
    judged = judge_claim(Claim("", "", "", (comparison,)), found)[0]
    assert (judged.verdict, judged.these_seeds, judged.by_seed) == (expected, expected, by_seed)
    assert judged.ratios == pytest.approx([value / 0.2 for value in rl])


def test_one_seed_is_judged_by_its_problems() -> None:
    assert verdicts(study({"stage1": [0.2], "rl": [0.6]}), Rule.ABOVE, 0.2) == (YES, YES)
    assert verdicts(study({"stage1": [0.2], "rl": [0.6]}), Rule.APART) == (YES, YES)


def test_what_is_not_there_is_not_measured() -> None:
    assert verdicts(study({"rl": [0.2]}), Rule.ABOVE) == (NONE, NONE)
    assert verdicts(study({"stage1": [0.2], "rl": [0.6]}, "string-heldout-level4"), Rule.ABOVE) == (NONE, NONE)


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
    rows = {row["claim"]: row for row in claim_rows(study(shares))}
    json.dumps(list(rows.values()))
    assert set(rows) == {claim.name for claim in CLAIMS if claim.name not in OF_COUNTDOWN}
    above = rows["H1b"]["comparisons"][0]
    assert above["comparison"] == "heldout L3: rl-level2 − rl-level1 > 0"
    assert above["difference"] == pytest.approx((0.17 + 0.12 + 0.20) / 3, abs=0.003)
    assert above["verdict"] == "replicates"
    assert rows["H1b"]["verdict_these_seeds"] == "replicates"
    assert rows["H1b-apart"]["verdict_these_seeds"] == "replicates"
    assert rows["H1c"]["verdict"] == "does not replicate"  # ×3.3 ×1.5 ×1.7
    assert rows["H1a"]["verdict"] == "not measured"  # no trained functions here
    assert rows["H3-behind"]["verdict"] == "undecided"  # measured on held-out functions only
    assert rows["H3-rft-matched"]["verdict"] == "not measured"


OF_COUNTDOWN = ("H4", "H4-deeper", "H5")
WORKS = {"string-base": 0.02, "multi-base": 0.17, "string-rl-level1to2": 0.03, "multi-rl-level1": 0.2,
         "multi-rl-level1to2": 0.35}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "h4", "h5"),
    [
        ({}, YES, YES),
        ({"multi-rl-level1": 0.5}, NO, YES),  # any RL on strings helps: not composition
        ({"string-rl-level1to2": 0.5}, YES, NO),  # the atoms were not needed
        ({"multi-rl-level1to2": 0.17}, NO, YES),  # nothing carries over, but it is ahead of the arm without atoms
        ({"multi-rl-level1": 0.17, "multi-rl-level1to2": 0.1725}, OPEN, YES),
    ],
)
def test_what_carries_over_to_countdown(changed: dict[str, float], h4: Verdict, h5: Verdict) -> None:
    shares = {arm: [share] * 3 for arm, share in {**WORKS, **changed}.items()}
    rows = {row["claim"]: row["verdict"] for row in claim_rows(study(shares, "countdown-clean-level3"))}
    assert rows == {"H4": h4, "H4-deeper": NONE, "H5": h5}


def test_a_study_is_held_against_the_claims_of_its_own_section() -> None:
    string = {claim.name for claim in claims_about(study({"rl": [0.2]}))}
    assert string.isdisjoint(OF_COUNTDOWN)
    paper = study({"rl": [0.2]}, "reasoning-gym-countdown-depth3")
    assert [claim.name for claim in claims_about(paper)] == list(OF_COUNTDOWN)
    assert claims_about(study({"rl": [0.2]}, "sums-level3")) == []


def test_levels_and_functions_are_told_from_the_names() -> None:
    assert (Group("test", "string-trained-level12").functions, Group("test", "string-trained-level12").level) == (
        "trained",
        12,
    )
    assert Group("heldout", "codeio-forward-incomplete-depth3").functions == "heldout"
    for source in ("countdown-clean-level3", "reasoning-gym-countdown-depth3"):
        assert (Group("test", source).functions, Group("test", source).level) == ("countdown", 3)
    assert (Group("countdown", "countdown").functions, Group("countdown", "countdown").level) == ("countdown", 0)
