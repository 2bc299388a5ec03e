"""Holm's procedure over the primary claims, beside the plain decisions."""

import pytest

from compositionality.evaluate.claims.decide import Outcome, after_holm, p_of
from compositionality.evaluate.claims.model import Comparison, Rule
from compositionality.stats.significance import p_value
from compositionality.types import Decision, Estimate, Interval

YES, NO, OPEN, NOT_TESTABLE = Decision.SUPPORTED, Decision.CONTRADICTED, Decision.UNDECIDED, Decision.NOT_TESTABLE


def gain(value: float) -> Estimate:
    """± 10 points over 8 seeds and 400 problems."""
    return Estimate(value, 400, Interval(value - 0.01, value + 0.01), Interval(value - 0.1, value + 0.1), df=7)


def outcome(value: float, rule: Rule = Rule.ABOVE, threshold: float = 0.0) -> Outcome:
    return Outcome(Comparison("heldout", 3, "a", "b", rule, threshold), gain(value), YES)


NONE = Outcome(Comparison("heldout", 3, "a", "b"), None, NOT_TESTABLE)


def test_a_family_is_corrected_and_keeps_what_was_not_run() -> None:
    p = p_value(gain(0.12), 0.0)
    assert 0.01 < p < 0.05 < 3 * p
    family = [(YES, [outcome(0.5)]), (YES, [outcome(0.12)]), (NOT_TESTABLE, [NONE]), (Decision.NOT_RUN, [])]
    rows = [{"decision": decision, "p": p_of(decision, outcomes)} for decision, outcomes in family]
    after_holm(rows)
    assert [row["decision_holm"] for row in rows] == [YES, OPEN, NOT_TESTABLE, Decision.NOT_RUN]
    assert (rows[1]["p"], rows[1]["p_holm"]) == (pytest.approx(p), pytest.approx(3 * p))
    assert (rows[2]["p"], rows[2]["p_holm"]) == (None, None)
    after_holm(rows[1:2])
    assert rows[1]["decision_holm"] == YES


@pytest.mark.parametrize(
    ("decision", "outcomes", "times", "value"),
    [
        (YES, [outcome(0.5), outcome(0.12)], 1, 0.12),
        (NO, [outcome(-0.5), outcome(0.5)], 2, -0.5),
        (NO, [outcome(-0.5), outcome(0.5), NONE], 3, -0.5),
        (OPEN, [outcome(0.5), outcome(-0.05)], 2, -0.05),
    ],
)
def test_a_claim_of_several_comparisons_is_as_sure_as_its_weakest(
    decision: Decision, outcomes: list[Outcome], times: int, value: float
) -> None:
    assert p_of(decision, outcomes) == pytest.approx(times * p_value(gain(value), 0.0))


@pytest.mark.parametrize(
    ("value", "rule", "decision"),
    [(-0.2, Rule.AT_MOST, YES), (0.3, Rule.AT_MOST, NO), (0.0, Rule.WITHIN, YES), (-0.3, Rule.WITHIN, NO)],
)
def test_p_values_of_every_rule_agree_with_its_decision(value: float, rule: Rule, decision: Decision) -> None:
    small = p_of(decision, [outcome(value, rule, 0.15 if rule is Rule.WITHIN else 0.05)])
    assert small is not None
    assert small < 0.05
