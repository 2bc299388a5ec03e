"""The claims on behaviour injection: about arms that there are, decided at the hardest level."""

import pytest
from claim_studies import HARDEST, Design, study

from compositionality.evaluate.claims.decide import claim_rows
from compositionality.evaluate.claims.model import Requires, read_claims_file
from compositionality.evaluate.types import DEEPEST, Decision
from compositionality.study.model import all_arms

CATALOGUE = read_claims_file("behavior_injection")
CLAIMS = [*CATALOGUE.claims, *CATALOGUE.controls]
PAPER = {
    "vanilla": (0.40, 0.46), "bridge": (0.45, 0.91), "pp-aug": (0.47, 0.60), "rc-aug": (0.33, 0.46),
    "subgoals": (0.40, 0.66), "analysis": (0.40, 0.58), "reflection": (0.40, 0.62), "padded": (0.40, 0.46),
}  # fmt: skip
"""Accuracy of each arm after SFT and after RL; the single behaviours' are made up."""


def paper(_: str, group: str, level: int, arm: str) -> float:
    stage, _, name = arm.partition("-")
    return PAPER.get(name, (0.4, 0.46))[stage == "rl"] - 0.05 * (group == "ood")


def test_every_arm_is_one_of_the_study() -> None:
    arms = set(all_arms())
    for claim in CLAIMS:
        for one in claim.comparisons:
            gated = [other for gate in one.gates if isinstance(gate, Requires) for other in gate.comparisons(one)]
            assert {arm for its in (one, *gated) for arm in its.arms} <= arms


def test_what_the_paper_says_is_decided_so() -> None:
    found = {row["claim"]: row for row in claim_rows(CLAIMS, study(CLAIMS, paper, Design(seeds=6, n=1000)))}
    told = {name: row["decision"] for name, row in found.items()}
    by_table = ("R1", "R1-ahead", "R2", "R4", "R4-harder", "R5", "R10", "R10-analysis", "R10-reflection")
    assert {name: told[name] for name in by_table} == dict.fromkeys(by_table, Decision.SUPPORTED)
    assert told["control-length"] is Decision.SUPPORTED
    assert told["R1-prompts"] is Decision.CONTRADICTED  # those arms are alike here
    (comparison,) = found["R1"]["comparisons"]
    assert comparison["level"] == HARDEST
    assert comparison["comparison"].startswith(f"igsm L{HARDEST}: rl-bridge − sft-bridge, over rl-vanilla")


@pytest.mark.parametrize("accuracy", [0.01, 0.5])
def test_p19_with_all_arms_alike_no_gain_is_supported(accuracy: float) -> None:
    rows = claim_rows(CLAIMS, study(CLAIMS, lambda *_: accuracy, Design(n=200)))
    assert Decision.SUPPORTED not in {row["decision"] for row in rows}


def test_the_deepest_level_is_named_where_nothing_was_run() -> None:
    one = CATALOGUE.claims[0].comparisons[0]
    assert one.level == DEEPEST
    assert str(one).startswith("igsm, deepest level: rl-bridge − sft-bridge, over rl-vanilla − sft-vanilla")
