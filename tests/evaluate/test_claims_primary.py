"""Holm's procedure over the primary claims, beside the plain decisions."""

import pytest

from compositionality.evaluate.claims.model import Comparison, Rule
from compositionality.evaluate.claims.primary import Primary, after_holm
from compositionality.stats.significance import p_value
from compositionality.types import Decision, Estimate, Interval

YES, NO, OPEN, NOT_TESTABLE = Decision.SUPPORTED, Decision.CONTRADICTED, Decision.UNDECIDED, Decision.NOT_TESTABLE


def gain(value: float) -> Estimate:
    """± 10 points over 8 seeds and 400 problems."""
    return Estimate(value, 400, Interval(value - 0.01, value + 0.01), Interval(value - 0.1, value + 0.1), df=7)


def above(value: float, rule: Rule = Rule.ABOVE, threshold: float = 0.0) -> tuple[Comparison, Estimate]:
    return Comparison("heldout", 3, "a", "b", rule, threshold), gain(value)


def test_a_family_is_corrected_and_keeps_what_was_not_run() -> None:
    p = p_value(gain(0.12), 0.0)
    assert 0.01 < p < 0.05 < 3 * p
    family = {
        "A": Primary(YES, [above(0.5)], 1),
        "B": Primary(YES, [above(0.12)], 1),
        "C": Primary(NOT_TESTABLE, [above(0.5)], 1),
        "D": Primary(Decision.NOT_RUN, [], 1),
    }
    found = after_holm(family)
    assert {name: row["decision_holm"] for name, row in found.items()} == {
        "A": YES, "B": OPEN, "C": NOT_TESTABLE, "D": Decision.NOT_RUN,
    }  # fmt: skip
    assert found["B"]["p"] == pytest.approx(p)
    assert found["B"]["p_holm"] == pytest.approx(3 * p)
    assert (found["C"]["p"], found["C"]["p_holm"]) == (None, None)
    assert after_holm({"B": family["B"]})["B"]["decision_holm"] == YES


def test_a_claim_of_several_comparisons_is_as_sure_as_its_weakest() -> None:
    strong, weak = above(0.5), above(0.12)
    assert Primary(YES, [strong, weak], 2).p == pytest.approx(p_value(gain(0.12), 0.0))
    assert Primary(NO, [above(-0.5), strong], 2).p == pytest.approx(2 * p_value(gain(-0.5), 0.0))
    three = Primary(NO, [above(-0.5), strong], 3)  # one of them is not testable
    assert three.p == pytest.approx(3 * p_value(gain(-0.5), 0.0))
    assert Primary(OPEN, [strong, above(-0.05)], 2).p == pytest.approx(2 * p_value(gain(-0.05), 0.0))


@pytest.mark.parametrize(
    ("value", "rule", "decision"),
    [(-0.2, Rule.AT_MOST, YES), (0.3, Rule.AT_MOST, NO), (0.0, Rule.WITHIN, YES), (-0.3, Rule.WITHIN, NO)],
)
def test_p_values_of_every_rule_agree_with_its_decision(value: float, rule: Rule, decision: Decision) -> None:
    small = Primary(decision, [above(value, rule, 0.15 if rule is Rule.WITHIN else 0.05)], 1).p
    assert small is not None
    assert small < 0.05
