"""P4 and P16 for the Countdown judge: a right answer 1, anything else 0 with its reason, never raises, bounded work."""

import ast
import json
import re
import sys
from fractions import Fraction

import pytest
from countdown_attacks import ATTACKS, COMPACT, FOUR, FOUR_TARGET, NUMBERS, RESPONSES, RIGHT, TARGET
from hypothesis import given, settings
from hypothesis import strategies as st

from compositionality.errors import UserError
from compositionality.tasks.arithmetic import MAX_DIGITS, MAX_LENGTH, parse, value_of
from compositionality.tasks.countdown import wording as judge_module
from compositionality.tasks.countdown.wording import MAX_NUMBERS, compact_prompt, judge_countdown, text_prompt

TRUTH = json.dumps({"target": TARGET, "numbers": NUMBERS})
STEPS_TRUTH = json.dumps({"target": FOUR_TARGET, "numbers": FOUR, "style": "compact"})


def truth(numbers, target, **rules):
    return json.dumps({"target": target, "numbers": numbers, **rules})


def compact_truth(**rules):
    return truth(NUMBERS, 15, style="compact", **rules)


def tagged(answer):
    return f"<answer>{answer}</answer>"


RULES = [  # an answer to the target 15, the rules of the problem, the reason
    ("3*5", {"use": "any"}, "correct"),
    ("8+7", {"use": "any"}, "wrong_numbers"),
    ("3*5*1", {"use": "any"}, "wrong_numbers"),
    ("5+5+5", {"use": "any"}, "wrong_numbers"),
    ("3*5+7-7", {"use": "any"}, "wrong_numbers"),
    ("3+5", {"use": "any"}, "wrong_value"),
    ("3+5+7", {}, "correct"),
    ("3+5+7", {"operators": "+-"}, "correct"),
    ("3*5", {"use": "any", "operators": "+-"}, "illegal"),
    ("3×5", {"use": "any", "operators": "+-"}, "illegal"),
    ("-(3-5-7)+3", {"operators": "+*"}, "illegal"),
    ("-3+5+7", {"operators": "+"}, "illegal"),
]
COMPACT_RULES = [
    (",3*5=15", {"use": "any"}, "correct"),
    (",3*5=15\n,15*7=105\n,105/7=15", {"use": "any"}, "wrong_numbers"),
    ("5,7-3=4\n,3*5=15", {"use": "any"}, "wrong_numbers"),
    (",3+5=8", {"use": "any"}, "wrong_value"),
    (",5+7=12\n,12+3=15", {"operators": "+"}, "correct"),
    (",3*5=15", {"use": "any", "operators": "+-"}, "illegal"),
    (",5-3=2\n,2+7=9", {"operators": "+"}, "illegal"),
]
CASES = {
    **{attack.name: (tagged(attack.answer), attack.truth, attack.reason) for attack in ATTACKS},
    **{f"compact: {name}": (response, STEPS_TRUTH, reason) for name, response, reason in COMPACT},
    **{f"{text} {rules}": (tagged(text), truth(NUMBERS, 15, **rules), reason) for text, rules, reason in RULES},
    **{f"{text} {rules}": (text, compact_truth(**rules), reason) for text, rules, reason in COMPACT_RULES},
}


@pytest.mark.parametrize("name", CASES)
def test_p04_p16_attack_corpus(name: str) -> None:
    """Also in the compact style, and against the rules of the problem."""
    response, gold, reason = CASES[name]
    verdict = judge_countdown(response, gold)
    assert (verdict.reason, verdict.score) == (reason, reason == "correct")


@pytest.mark.parametrize(("response", "reason"), [case[1:] for case in RESPONSES], ids=[case[0] for case in RESPONSES])
def test_p04_where_the_answer_is(response: str, reason: str) -> None:
    verdict = judge_countdown(response, TRUTH)
    assert (verdict.reason, verdict.score) == (reason, reason == "correct")


def test_a_number_given_twice_may_be_used_twice() -> None:
    assert judge_countdown(tagged("5+5"), truth([5, 5], 10)).score == 1
    assert judge_countdown(tagged("5+5"), truth([5, 6], 10)).reason == "wrong_numbers"
    assert judge_countdown(",5+5=10", truth([5, 5], 10, style="compact")).score == 1
    assert judge_countdown(",5+5=10", truth([5, 6], 10, style="compact")).reason == "wrong_numbers"


@pytest.mark.parametrize("use", ["all", "any"])
def test_p04_an_echoed_prompt_is_no_answer(use: str) -> None:
    prompt = text_prompt(NUMBERS, TARGET, use=use)
    assert judge_countdown(prompt, truth(NUMBERS, TARGET, use=use)).reason == "no_answer"
    assert judge_countdown(prompt + tagged(RIGHT), truth(NUMBERS, TARGET, use=use)).score == 1
    assert judge_countdown(tagged("3+5") + prompt, truth(NUMBERS, TARGET, use=use)).score == 0
    assert judge_countdown(compact_prompt(FOUR, FOUR_TARGET), STEPS_TRUTH).reason == "no_answer"


SIGNS = "3577()+-*/ "
SOUP = st.lists(st.sampled_from([*SIGNS, "3*5", "+7", "(", ")", "-"]), max_size=12).map("".join)
SEEDS = ["3*5+7", "(3*5)+7", "7-(-3*5)", "-(3-5)*7", "3*(5+7)", "5/(7-7)", "7 + (3 * 5)", "((-7+(3)))/5", "3*-5+-(+7)"]


@st.composite
def nearly_legal(draw_from: st.DrawFn) -> str:
    """An expression with up to three characters changed, dropped or put in."""
    text = draw_from(st.sampled_from(SEEDS))
    for _ in range(draw_from(st.integers(0, 3))):
        at = draw_from(st.integers(0, len(text)))
        text = text[:at] + draw_from(st.sampled_from(["", *SIGNS])) + text[at + draw_from(st.integers(0, 1)) :]
    return text


FUZZ = SOUP | nearly_legal()
FORMS = ["{}{}{}", "({}{}{})", "-({}{}{})", "( {} {}\n{})"]
EXPRESSIONS = st.recursive(
    st.integers(1, 60).map(str),
    lambda part: st.tuples(st.sampled_from(FORMS), part, st.sampled_from("+-*/×·⋅÷−"), part).map(
        lambda drawn: drawn[0].format(*drawn[1:])
    ),
    max_leaves=6,
)


@settings(max_examples=1500)
@given(FUZZ | EXPRESSIONS)
def test_p04_agrees_with_the_slow_definition(answer: str) -> None:
    """For one problem, for the one that the answer solves, and for two that are nearly that one."""
    plain = answer.translate(str.maketrans("×·⋅÷−\n", "***/- ")).strip()
    if not plain or not _reduces(plain):
        assert judge_countdown(tagged(answer), TRUTH).reason == ("illegal" if plain else "no_answer")
        return
    tree = ast.parse(plain, mode="eval").body
    literals = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    value = _slow_value(tree)
    problems = [(list(NUMBERS), TARGET)]
    if value is not None and value.denominator == 1 and len(literals) < MAX_NUMBERS:
        problems += [(literals, int(value)), (literals, int(value) + 1), ([*literals, 1], int(value))]
    for numbers, target in problems:
        expected = "correct" if value == target else "wrong_value"
        expected = expected if sorted(literals) == sorted(numbers) else "wrong_numbers"
        assert judge_countdown(tagged(answer), truth(numbers, target)).reason == expected


def _reduces(text: str) -> bool:
    """The grammar as rewriting to one letter: n is a value, s one with a sign, e a sum or a product."""
    text, before = re.sub(r"\d+", "n", text), ""
    if re.search(r"n\s+n", text):
        return False
    text = text.replace(" ", "")
    while text != before:
        before = text
        text = re.sub(r"\([nse]\)", "n", text)
        text = re.sub(r"(^|[-+*/(])[-+]n", r"\1s", text)
        text = re.sub(r"[nse][-+*/][nse]", "e", text, count=1)
    return text in ("n", "s", "e")


def _slow_value(node: ast.expr) -> Fraction | None:
    if isinstance(node, ast.Constant):
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp):
        inner = _slow_value(node.operand)
        return None if inner is None else -inner if isinstance(node.op, ast.USub) else inner
    left, right = _slow_value(node.left), _slow_value(node.right)
    if left is None or right is None or (isinstance(node.op, ast.Div) and not right):
        return None
    names = {ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__"}
    return getattr(left, names[type(node.op)])(right)


@settings(max_examples=200)
@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")) | FUZZ)
def test_p04_never_raises(response: str) -> None:
    for text in (response, tagged(response), f",{response}=3"):
        for gold in (TRUTH, STEPS_TRUTH):
            assert judge_countdown(text, gold).score in (0, 1)


UNITS = [
    "(", ")", "-", "1", "3+", "3*(", "(-", "3 ", " ", "=", ",3*5=15\n", "\n", ",", "×", "\\times",
    "<answer>", "</answer>", "<answer></answer>", "<answer>3*5+7</answer>", "<answer", "\u200b",
]  # fmt: skip


def lines_run(response: str, gold: str) -> int:
    """Lines of Python that the judge runs; what C runs between them is linear string work."""
    count = 0

    def trace_line(frame, event, _):
        nonlocal count
        count += event == "line"
        return trace_line

    judge_countdown("", gold)
    before = sys.gettrace()
    sys.settrace(trace_line)
    try:
        judge_countdown(response, gold)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("gold", [TRUTH, STEPS_TRUTH], ids=["text", "compact"])
@pytest.mark.parametrize("unit", UNITS)
def test_p04_work_is_bounded_whatever_the_length(unit: str, gold: str) -> None:
    """Counted, not timed: at the length limit it is linear, beyond it nothing is read at all."""
    for prefix, suffix in (("", ""), ("<answer>", "</answer>")):
        room = MAX_LENGTH - len(prefix) - len(suffix)
        full = lines_run(prefix + unit * (room // len(unit)) + suffix, gold)
        assert full < 30 * MAX_LENGTH
        huge = lines_run(prefix + unit * (1_000_000 // len(unit)) + suffix, gold)
        assert huge <= max(full, 100)


def test_p04_nothing_is_computed_with_wrong_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_module, "value_of", lambda _: pytest.fail("computed"))
    assert judge_countdown(tagged("9999999*" * 400 + "1"), TRUTH).reason == "wrong_numbers"
    assert judge_countdown(tagged("3*5+7+1"), TRUTH).reason == "wrong_numbers"


@pytest.mark.parametrize("sign", "*/+-")
def test_p04_values_stay_small(sign: str) -> None:
    """The largest problem that is judged: no numerator or denominator exceeds the digits of its numbers together."""
    numbers = [10**MAX_DIGITS - 1 - i for i in range(MAX_NUMBERS)]
    answer = sign.join(f"{left}/{right}" for left, right in zip(numbers[::2], numbers[1::2], strict=True))
    value = Fraction(value_of(parse(answer, "+-*/") or []) or 0)
    assert max(abs(value.numerator), value.denominator) < 10 ** (MAX_DIGITS * MAX_NUMBERS + 2)
    assert judge_countdown(tagged("*".join(map(str, numbers))), truth(numbers, 1)).reason == "wrong_value"


@pytest.mark.parametrize(
    "gold",
    [
        '{"answer": 22, "numbers": [3, 5, 7]}',
        '{"target": 22, "numbers": [7, 5, 3], "style": null, "use": null, "operators": null}',
        '{"answer": "3*5 + 7", "metadata": {"numbers": [5, 3, 7], "target": 22, "expression": "3*5 + 7"}}',
        '{"numbers": [5, 3, 7], "target": 22, "source_dataset": "countdown", "difficulty": {"numbers": [3, 3]}}',
    ],
)
def test_ground_truths_of_other_formats(gold: str) -> None:
    assert judge_countdown(tagged(RIGHT), gold).score == 1
    assert judge_countdown(tagged("3+5+7"), gold).score == 0


BAD_TRUTHS = [
    ("", "no JSON"),
    ("[" * 100_000, "no JSON"),
    ('{"target": ' + "9" * 5000 + ', "numbers": [3]}', "no JSON"),
    ("null", "no object"),
    ('{"metadata": "{}"}', "no object"),
    ("{}", "no target"),
    ('{"target": null, "numbers": [3, 5]}', "no target"),
    ('{"target": "15", "numbers": [3, 5]}', "target that is no whole number"),
    ('{"target": 15.0, "numbers": [3, 5]}', "target that is no whole number"),
    ('{"target": true, "numbers": [3, 5]}', "target that is no whole number"),
    ('{"target": 1000000000000000, "numbers": [3, 5]}', "target that is no whole number"),
    ('{"answer": "3*5", "numbers": [3, 5]}', "target that is no whole number"),
    ('{"target": 15}', "no list of numbers"),
    ('{"target": 15, "numbers": "3, 5"}', "no list of numbers"),
    ('{"target": 15, "numbers": []}', "0 numbers"),
    ('{"target": 15, "numbers": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}', "17 numbers"),
    ('{"target": 15, "numbers": [3, "5"]}', "no positive whole numbers"),
    ('{"target": 15, "numbers": [3, 5.0]}', "no positive whole numbers"),
    ('{"target": 15, "numbers": [3, true]}', "no positive whole numbers"),
    ('{"target": 15, "numbers": [3, 0]}', "no positive whole numbers"),
    ('{"target": 15, "numbers": [3, 1000000000000000]}', "no positive whole numbers"),
    ('{"target": 15, "numbers": [3, 5], "style": "json"}', "style"),
    ('{"target": 15, "numbers": [3, 5], "style": ["text"]}', "style"),
    ('{"target": 15, "numbers": [3, 5], "use": "some"}', "use"),
    ('{"target": 15, "numbers": [3, 5], "operators": ""}', "operators"),
    ('{"target": 15, "numbers": [3, 5], "operators": "+^"}', "operators"),
    ('{"target": 15, "numbers": [3, 5], "operators": ["+", "*"]}', "operators"),
]


@pytest.mark.parametrize(("gold", "problem"), BAD_TRUTHS, ids=range(len(BAD_TRUTHS)))
def test_a_damaged_ground_truth_is_a_user_error_of_one_line(gold: str, problem: str) -> None:
    with pytest.raises(UserError, match=problem) as error:
        judge_countdown(tagged(RIGHT), gold)
    assert len(str(error.value)) < 250
