"""P4 for the string judge: gold 1, anything else 0, never raises, linear time."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compositionality.errors import UserError
from compositionality.tasks.string.wording import json_prompt, judge_string, main_solution
from compositionality.types import Reason

GOLD = "abc"
TRUTH = json.dumps({"ref_output": GOLD})
COMPACT = json.dumps({"ref_output": GOLD, "style": "compact"})
OK = '{"output": "abc"}'
ATTACKS = [
    ("bare", OK, "correct"),
    ("fenced", f"```json\n{OK}\n```", "correct"),
    ("plain fence", f"```\n{OK}\n```", "correct"),
    ("fence never closed", f"```json\n{OK}", "correct"),
    ("unmatched brace in the prose", f"the set {{a, b ... so {OK}", "correct"),
    ("unmatched closing brace", f"a }} b {OK}", "correct"),
    ("unmatched brace and quote", f'look: {{"x and {OK}', "correct"),
    ("unfinished object before", f'{{"output": "ab\n\n{OK}', "correct"),
    ("several, last right", f'{{"output": "x"}} no, {OK}', "correct"),
    ("several, last wrong", f'{OK} no, {{"output": "x"}}', "wrong"),
    ("right fenced, then wrong bare", f'```json\n{OK}\n``` {{"output": "x"}}', "wrong"),
    ("wrong fenced, then right bare", f'```json\n{{"output": "x"}}\n``` {OK}', "correct"),
    ("then an object without the key", f'{OK} {{"note": 1}}', "correct"),
    ("then a broken object", f'{OK} {{"output": abc}}', "correct"),
    ("inside a list", f"[{OK}]", "correct"),
    ("inside a broken object's list", f'{{"a": [{OK}, ', "correct"),
    ("nested one deeper", f'{{"answer": {OK}}}', "malformed"),
    ("nested value", '{"output": {"output": "abc"}}', "wrong"),
    ("list value", '{"output": ["abc"]}', "wrong"),
    ("boxed object", f"\\boxed{{{OK}}}", "correct"),
    ("boxed string", '\\boxed{"abc"}', "malformed"),
    ("single quotes", "{'output': 'abc'}", "malformed"),
    ("unquoted value", '{"output": abc}', "malformed"),
    ("trailing comma", '{"output": "abc",}', "malformed"),
    ("True", '{"output": True}', "wrong"),
    ("None", '{"output": None}', "wrong"),
    ("None beside it", '{"note": None, "output": "abc"}', "correct"),
    ("null", '{"output": null}', "wrong"),
    ("number", '{"output": 123}', "wrong"),
    ("line break in the value", '{"output": "ab\nc"}', "wrong"),
    ("escaped line break", '{"output": "abc\\n"}', "wrong"),
    ("trailing space in the value", '{"output": "abc "}', "wrong"),
    ("leading space in the value", '{"output": " abc"}', "wrong"),
    ("other case", '{"output": "ABC"}', "wrong"),
    ("other case of the key", '{"Output": "abc"}', "malformed"),
    ("line breaks between tokens", '{\n "output"\t:\r\n "abc"\n}', "correct"),
    ("escaped characters", '{"output": "\\u0061bc"}', "correct"),
    ("escaped key", '{"\\u006futput": "abc"}', "correct"),
    ("escaped key hides a wrong one", f'{OK} {{"\\u006futput": "x"}}', "wrong"),
    ("duplicated key, last right", '{"output": "x", "output": "abc"}', "correct"),
    ("duplicated key, last wrong", '{"output": "abc", "output": "x"}', "wrong"),
    ("extra keys", '{"why": {"a": [1, 2.5e3, "}"]}, "output": "abc", "n": -0}', "correct"),
    ("end-of-turn token", f"{OK}<|eot_id|>", "correct"),
    ("echo of the object as a string", json.dumps({"note": OK}), "malformed"),
    ("lone surrogate", f"\ud800 {OK} \udfff", "correct"),
    ("lone surrogate in the value", '{"output": "\\ud800"}', "wrong"),
    ("full-width quotes", "{“output”: “abc”}", "malformed"),
    ("zero-width space", '{"output": "abc\u200b"}', "wrong"),
    ("bad escape", '{"output": "a\\bc\\x"}', "malformed"),
    ("literal with a tail", '{"n": nullify, "output": "abc"}', "malformed"),
    ("prose only", "the output is abc", "no_answer"),
    ("empty", "", "no_answer"),
]
COMPACT_CASES = [
    (",func_3:cab=abc", "correct"),
    ("func_3,func_9:a=aa\n,func_3:cab=abc", "correct"),
    ("=abc", "correct"),
    (",func_3:cab=abd", "wrong"),
    (",func_3:cab=abc\n", "malformed"),
    (",func_3:cab=abc ", "malformed"),
    (",func_3:cab=", "malformed"),
    (",func_3:cab=abc\n,func_1:abc", "malformed"),
    ("func_3:abc", "no_answer"),
    ("func_3=sort_chars;func_3:abc", "malformed"),
    (OK, "no_answer"),
    ("", "no_answer"),
]
CASES = [(name, response, TRUTH, reason) for name, response, reason in ATTACKS]
CASES += [(f"compact {response}", response, COMPACT, reason) for response, reason in COMPACT_CASES]


@pytest.mark.parametrize(("response", "truth", "reason"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_p04_attack_corpus(response: str, truth: str, reason: str) -> None:
    verdict = judge_string(response, truth)
    assert (verdict.reason, verdict.score) == (reason, reason == "correct")


HEAVY = ["{", "}", "[", '"', "\\", '{"', '{"output":', '{"output":"', '{"":x', '{"a":[', '{"output":{}', '{"\\"', '"{"']
HEAVY += ['{"a":1,"b":"{', "{ ", '{"a":{"b":"{', '{"x":"{"}', '[{"output":', '{"a":-', '{"\\u0061":', '\\"{"']


@pytest.mark.parametrize("unit", HEAVY)
def test_p04_endless_brackets_take_linear_time(unit: str) -> None:
    begin = time.process_time()
    judge_string(unit * (200_000 // len(unit)), TRUTH)
    assert time.process_time() - begin < 5  # of this process; a quadratic scan would take an hour


def test_p04_a_right_answer_after_a_megabyte_of_braces() -> None:
    assert judge_string("{" * 1_000_000 + OK, TRUTH).score == 1
    assert judge_string('{"output":' * 100_000 + OK, TRUTH).score == 1


@settings(max_examples=300)
@given(
    gold=st.text(min_size=1),
    before=st.text(alphabet=st.characters(exclude_characters='"')),
    after=st.text(alphabet=st.characters(exclude_characters="{")),
)
def test_p04_gold_is_right_whatever_surrounds_it(gold: str, before: str, after: str) -> None:
    truth = json.dumps({"ref_output": gold})
    assert judge_string(f"{before}\n{json.dumps({'output': gold})}{after}", truth).reason == Reason.CORRECT
    assert judge_string(json.dumps({"output": gold}, ensure_ascii=False), truth).reason == Reason.CORRECT


@settings(max_examples=300)
@given(gold=st.text(min_size=1), other=st.text(), before=st.text())
def test_p04_another_answer_is_wrong(gold: str, other: str, before: str) -> None:
    truth = json.dumps({"ref_output": gold})
    verdict = judge_string(f"{before} {json.dumps({'output': other})}", truth)
    assert verdict.score == (other == gold)
    assert verdict.answer == other


@settings(max_examples=500)
@given(st.lists(st.sampled_from([*'{}[]":,\\ ab1-', '"output"', '"abc"', "null", OK, '{"'])).map("".join))
def test_p04_agrees_with_the_slow_definition(response: str) -> None:
    assert judge_string(response, TRUTH).answer == _slow_answer(response)


def _slow_answer(text: str) -> str | None:
    """The definition, without care for time: left to right, parse wherever a brace is."""
    decoder, found, position = json.JSONDecoder(strict=False), None, 0
    while (position := text.find("{", position)) >= 0:
        try:
            value, end = decoder.raw_decode(text, position)
        except ValueError:
            position += 1
            continue
        if "output" in value:
            found = value["output"]
        position = end
    if found is None or isinstance(found, str):
        return found
    return json.dumps(found, separators=(",", ":"))[:1] if isinstance(found, dict | list) else json.dumps(found)


@settings(max_examples=300)
@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_p04_never_raises(response: str) -> None:
    for truth in (TRUTH, COMPACT):
        assert judge_string(response, truth).score in (0, 1)


def test_p04_an_echoed_prompt_is_no_answer() -> None:
    for text in ("abc", '{"output": "abc'):
        assert judge_string(json_prompt(main_solution("func_3(x)"), text), TRUTH).score == 0


@pytest.mark.parametrize(
    "truth", ["", "[]", "{}", '{"ref_output": 1}', '{"ref_output": "a", "style": "other"}', "null"]
)
def test_a_damaged_ground_truth_is_a_user_error(truth: str) -> None:
    with pytest.raises(UserError, match="ref_output"):
        judge_string(OK, truth)
