"""The judge of mathematics on labelled answers, beside the scorers that others use."""

import json
import re
import sys
from types import SimpleNamespace

import math_verify
import pytest
from math_answers import RIGHT, TEXTS, WRONG

from compositionality.domains.math.symbols import _check_symbols
from compositionality.domains.math.task import TASK
from compositionality.reward.judge import judge_with
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.types import Reason


@pytest.fixture(scope="module")
def verdicts():
    """Each labelled answer by the pool, gold and answer as key."""
    items = [JudgeInput("math__x", f"so \\boxed{{{answer}}}", gold) for gold, answer in [*RIGHT, *WRONG]]
    with JudgePool(1, timeout_s=10, max_error_rate=1.0) as pool:
        return dict(zip([*RIGHT, *WRONG], pool.judge(items), strict=True))


@pytest.mark.parametrize("case", RIGHT, ids=str)
def test_p04_a_right_answer_is_right(verdicts, case):
    assert verdicts[case].reason is Reason.CORRECT


@pytest.mark.parametrize("case", WRONG, ids=lambda case: str(case)[:60])
def test_p04_a_wrong_answer_is_wrong_and_no_error(verdicts, case):
    assert verdicts[case].reason in (Reason.WRONG, Reason.MALFORMED)
    assert verdicts[case].score == 0


@pytest.mark.parametrize(("text", "right"), TEXTS, ids=lambda value: str(value)[:40])
def test_p04_only_a_marked_answer_counts(text, right):
    assert (TASK.verdict(text, "5").reason is Reason.CORRECT) == right


def test_any_of_several_golds_is_right():
    assert TASK.verdict("\\boxed{b}", json.dumps(["a", "b"])).score == 1


@pytest.mark.parametrize("broken", [lambda *_, **__: [], None], ids=["errors-hidden", "does-not-load"])
def test_p05_a_parser_that_another_antlr4_breaks_is_an_error_in_one_line_and_no_zero(monkeypatch, broken):
    """math-verify hides its parser's errors, and does not load with a version of antlr4 that it does not know."""
    monkeypatch.setitem(sys.modules, "math_verify", broken and SimpleNamespace(**vars(math_verify) | {"parse": broken}))
    _check_symbols.cache_clear()
    verdict = judge_with(TASK.verdict, "\\boxed{x(x+1)}", "x^2+x")
    assert verdict.reason is Reason.ERROR
    assert re.fullmatch(
        r"UserError: math-verify cannot compare .*antlr4-python3-runtime 4.*; pip install .*==4\.9\.3", verdict.error
    )
    assert judge_with(TASK.verdict, "\\boxed{0.5}", "1/2").reason is Reason.CORRECT  # needs no symbols
    monkeypatch.undo()
    assert judge_with(TASK.verdict, "\\boxed{x(x+1)}", "x^2+x").reason is Reason.CORRECT


@pytest.mark.full
@pytest.mark.slow
def test_fewer_mistakes_than_the_scorers_of_others(verdicts, capsys):
    """Wrong answers taken, right ones refused: ours, PRIME's scorer (as verl has it), math-verify on the box alone."""
    from math_verify import parse, verify
    from verl.utils.reward_score import prime_math

    def prime(gold, answer):
        return bool(prime_math.compute_score(f"so \\boxed{{{answer}}}", gold)[0])

    def math_verify(gold, answer):
        return bool(verify(parse(f"${gold}$"), parse(f"\\boxed{{{answer}}}")))

    hangs = (
        "9^{9^{9", "9**9", "99999", "int_0", "(((((", "77777", "5!", "^{99}",
    )  # of which the others may never come back  # fmt: skip
    easy = [(case, label) for cases, label in ((RIGHT, True), (WRONG, False)) for case in cases
            if not any(part in case[1] for part in hangs)]  # fmt: skip
    told = {}
    for name, judge in (
        ("ours", lambda *case: verdicts[case].score == 1),
        ("PRIME", prime),
        ("math-verify", math_verify),
    ):
        judged = [(judge(*case), label) for case, label in easy]
        told[name] = (sum(got and not label for got, label in judged), sum(label and not got for got, label in judged))
    with capsys.disabled():
        print(f"\n{len(easy)} answers; (wrong ones taken, right ones refused): {told}")
    assert told["ours"] == (0, 0)
    assert min(sum(told["PRIME"]), sum(told["math-verify"])) > 0
