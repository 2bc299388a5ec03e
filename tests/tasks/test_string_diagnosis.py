"""The class of a response, by hand-made examples: compact traces and English text, and what comes first."""

import time
from collections.abc import Callable, Iterable
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compositionality.errors import UserError
from compositionality.tasks.diagnosis import Diagnosis, Failure
from compositionality.tasks.string.diagnose import applications, classify, read_trace
from compositionality.tasks.string.functions import ATOMS
from compositionality.tasks.string.program import Call, Program, chain_of, frozen_call, parse
from compositionality.tasks.string.reference import Reference, read_reference
from compositionality.tasks.string.task import TASK
from compositionality.tasks.string.wording import (
    compact_prompt,
    compact_trace,
    ground_truth,
    judge_string,
    main_solution,
)
from compositionality.types import Completion, Problem, Reason, Verdict

CALLS = [frozen_call(ATOMS[number]) for number in (16, 14, 2)]  # cabbe → cabe → ccaabbee → ccbb
CHAIN = chain_of(CALLS)
INPUT = "cabbe"
FIRST, SECOND, THIRD = compact_trace(CHAIN, INPUT).split("\n")


def compact_problem(chain: Program = CHAIN, text: str = INPUT) -> tuple[str, str]:
    """Ground truth and prompt."""
    truth = ground_truth(text, chain.value(text), main_solution(chain.text), "compact")
    return truth, compact_prompt(chain, text)


def found(truth: str, prompt: str, text: str, finish_reason: str = "stop") -> Diagnosis:
    """As the pipeline does it: judge, then diagnose."""
    verdict = judge_string(text, truth) if finish_reason == "stop" else Verdict(0.0, Reason.OVERLONG)
    return diagnosed(truth, prompt, Completion(text, 0, finish_reason), verdict)


def diagnosed(truth: str, prompt: str, completion: Completion, verdict: Verdict) -> Diagnosis:
    problem = Problem("string-trained-level3", 3, "trained", prompt, truth, 0)
    finding = TASK.diagnose(problem, completion, verdict)
    assert TASK.read_chain(problem, completion.text) == finding.chain
    return finding


def told(finding: Diagnosis) -> str:
    """Class, step, skill and fault."""
    return f"{finding.failure} {finding.step} {finding.skill} {finding.fault}"


def compact(*lines: str, finish_reason: str = "stop", level: int = 3) -> str:
    return told(found(*compact_problem(chain_of(CALLS[:level])), "\n".join(lines), finish_reason))


COMPACT = {
    "right": ([FIRST, SECOND, THIRD], "correct None None None"),
    "right answer after a faulty step": (
        ["func_2func_14,func_16:cabbe=cabbe", SECOND, THIRD],
        "correct 1 func_16 result",
    ),
    "one step only": ([FIRST], "ignores_composition None None None"),
    "one wrong step only": (["func_2func_14,func_16:cabbe=c"], "ignores_composition None None None"),
    "one step, another function": ([",func_2:cabbe=cbb"], "ignores_composition None None None"),
    "the input": (["=cabbe"], "ignores_composition None None None"),
    "one function's result": (["=cbb"], "ignores_composition None None None"),
    "some other string": (["=zzz"], "format 1 None None"),
    "stopped": ([FIRST, SECOND], "incomplete_trace 3 func_2 None"),
    "stopped after a wrong step": ([FIRST, "func_2,func_14:cabe=cabe"], "atomic_error 2 func_14 result"),
    "wrong result": ([FIRST, SECOND, ",func_2:ccaabbee=ccb"], "atomic_error 3 func_2 result"),
    "wrong string goes in": ([FIRST, SECOND, ",func_2:ccaabbe=ccbb!"], "miscopied_string 3 func_2 miscopied"),
    "the input again": (
        [FIRST, "func_2,func_14:cabbe=ccaabbbbee", ",func_2:ccaabbbbee=ccb"],
        "incorrect_composition 2 func_14 input_again",
    ),
    "wrong input": (
        ["func_2func_14,func_16:cabe=cabe", SECOND, ",func_2:ccaabbee=ccb"],
        "miscopied_string 1 func_16 miscopied",
    ),
    "two wrong results: the first": (
        ["func_2func_14,func_16:cabbe=cab", "func_2,func_14:cab=cab", ",func_2:cab=cab"],
        "atomic_error 1 func_16 result",
    ),
    "wrong order": (
        ["func_2func_16,func_14:cabbe=ccaabbbbee", "func_2,func_16:ccaabbbbee=cabe", ",func_2:cabe=cb"],
        "incorrect_composition 1 func_16 wrong_order",
    ),
    "missing": ([FIRST, ",func_2:cabe=cb"], "incorrect_composition 2 func_14 missing"),
    "extra in the middle": (
        [FIRST, "func_2func_14,func_16:cabe=cabe", SECOND, ",func_2:ccaabbee=ccb"],
        "incorrect_composition 2 func_14 extra",
    ),
    "extra at the end": ([FIRST, SECOND, THIRD, ",func_16:ccbb=cb"], "incorrect_composition 4 None extra"),
    "another function": (
        [FIRST, "func_2,func_10:cabe=cAbE", ",func_2:cAbE=cb"],
        "incorrect_composition 2 func_14 other_function",
    ),
    "the same one twice, one left out": (
        [FIRST, "func_2,func_16:cabe=cabe", ",func_2:cabe=cb"],
        "incorrect_composition 2 func_14 mixed",
    ),
    "a wrong result, then a missing operator": (
        ["func_2func_14,func_16:cabbe=cab", ",func_2:cab=cb"],
        "atomic_error 1 func_16 result",
    ),
    "a missing operator, then a wrong result": ([FIRST, ",func_2:cabe=cab"], "incorrect_composition 2 func_14 missing"),
    "a broken line": ([FIRST, "func_2,func_14:cabe", ",func_2:x=y"], "format 2 None None"),
    "no answer": ([FIRST, SECOND, ",func_2:ccaabbee="], "format None None None"),
    "no text": ([""], "format None None None"),
    "the note about the rest is not judged": (
        ["func_2,func_16:cabbe=cabe", SECOND, ",func_2:ccaabbee=cc"],
        "atomic_error 3 func_2 result",
    ),
}


@pytest.mark.parametrize(("lines", "expected"), COMPACT.values(), ids=COMPACT)
def test_compact_traces(lines: list[str], expected: str) -> None:
    assert compact(*lines) == expected


def test_cut_off_comes_before_all_but_correct() -> None:
    assert compact(FIRST, "func_2,func_1", finish_reason="length").startswith("overlong ")


def test_level_1_has_nothing_to_ignore() -> None:
    assert compact(",func_16:cabbe=cabbe", level=1) == "atomic_error 1 func_16 result"
    assert compact(",func_2:cabbe=cbb", level=1) == "incorrect_composition 1 func_16 other_function"
    assert compact(FIRST.replace("func_2func_14", ""), SECOND, level=1).endswith(" extra")


def test_parameters_are_part_of_a_compact_name() -> None:
    chain = chain_of([Call(ATOMS[1], parameter=3), Call(ATOMS[6], parameter="xy")])
    lines = compact_trace(chain, "ab").split("\n")
    assert lines == ["func_6[xy],func_1[3]:ab=ababab", ",func_6[xy]:ababab=abababxy"]
    assert found(*compact_problem(chain, "ab"), "\n".join(lines)).failure == Failure.CORRECT
    other = f"{lines[0].replace('[3]', '[2]')}\n,func_6[xy]:abab=ababxy"
    assert found(*compact_problem(chain, "ab"), other).failure == Failure.INCORRECT


def test_how_often_each_function_was_applied_wrongly() -> None:
    truth, prompt = compact_problem()
    reference = read_reference(truth, prompt)
    text = f"{FIRST}\nfunc_2,func_14:cabe=cabe\n,func_2:caabe=cb\n,func_99:a=b"
    assert applications(reference, read_trace(reference, text)) == [
        ("func_16", False),
        ("func_14", True),
        ("func_2", False),
    ]


CODE = "func_2(func_14(func_16(x)))"
ENGLISH = {
    "steps in sentences": (
        "Step 1: func_16(\"cabbe\") removes repeats, so it returns 'cabe'.\nStep 2: func_14('cabe') gives 'ccaabbee'.\n"
        'Step 3: func_2("ccaabbee") = "ccb".\n\n{"output": "ccb"}',
        "atomic_error 3 func_2 result",
    ),
    "markdown and arrows": (
        "1. **func_16**: applied to `cabbe`\n   - the letter 'b' occurs twice\n   - Result: `cabe`\n"
        '2. **func_14**: doubles every character: "cabe" → "ccaabbe"\n3. `func_2`: ccaabbe → ccbb\n'
        '```json\n{"output": "ccb"}\n```',
        "atomic_error 2 func_14 result",
    ),
    "rewriting": (
        'func_2(func_14(func_16("cabbe"))) = func_2(func_14("cabbe")) = func_2("ccaabbbbee") = "ccbbbb"\n'
        '{"output": "ccbbbb"}',
        "atomic_error 1 func_16 result",
    ),
    "assignments": (
        'x = func_16("cabbe")\nx = "cabe"\nx = func_14(x)\nx = "ccaabbee"\nfunc_2(x) returns "cb"\n{"output": "cb"}',
        "atomic_error 3 func_2 result",
    ),
    "no names, but a result for each": (
        'Removing repeats gives "cabe". Doubling gives "ccaabbe". Without vowels it becomes "ccbb". {"output": "ccbx"}',
        "atomic_error 2 func_14 result",
    ),
    "the answer is not the last result": (
        'func_16("cabbe") = "cabe". func_14("cabe") = "ccaabbee". func_2("ccaabbee") = "ccbb". {"output": "ccb"}',
        "atomic_error 3 func_2 answer",
    ),
    "a correction": (
        'func_16("cabbe") = "cabbe". Wait: func_16("cabbe") = "cabe". func_14("cabe") = "ccaabbee". '
        'func_2("ccaabbee") gives "ccb". {"output": "ccb"}',
        "atomic_error 3 func_2 result",
    ),
    "wrong order": (
        'First func_14("cabbe") = "ccaabbbbee", then func_16("ccaabbbbee") = "cabe", last func_2("cabe") = "cb". '
        '{"output": "cb"}',
        "incorrect_composition 1 func_16 wrong_order",
    ),
    "one left out": (
        'func_16("cabbe") = "cabe" and func_2("cabe") = "cb". {"output": "cb"}',
        "incorrect_composition 2 func_14 missing",
    ),
    "one done silently and wrongly": (
        'func_16("cabbe") = "cabe" and func_2("caabbe") = "cbb". {"output": "cbb"}',
        "atomic_error 2 func_14 result",
    ),
    "one done silently and rightly": (
        'func_16("cabbe") = "cabe" and func_2("ccaabbee") = "cb". {"output": "cb"}',
        "atomic_error 3 func_2 result",
    ),
    "stopped": (
        'func_16("cabbe") = "cabe". func_14("cabe") = "ccaabbee". So: {"output": "ccaabbee"}',
        "incomplete_trace 3 func_2 None",
    ),
    "one function only": (
        'I do not know these. func_2("cabbe") returns "cbb". {"output": "cbb"}',
        "ignores_composition None None None",
    ),
    "the input": ('Nothing changes. {"output": "cabbe"}', "ignores_composition None None None"),
    "nothing told": ('It is clear. {"output": "zzz"}', "unparsed None None None"),
    "two steps untold": ('func_16("cabbe") = "cabe". {"output": "zzz"}', "unparsed None None None"),
    "no answer": ('func_16("cabbe") = "cabe", and so on.', "format None None None"),
    "right": ('{"output": "ccbb"}', "correct None None None"),
}


@pytest.mark.parametrize(("text", "expected"), ENGLISH.values(), ids=ENGLISH)
def test_english_text(text: str, expected: str) -> None:
    assert told(found(ground_truth(INPUT, "ccbb", main_solution(CODE)), "", text)) == expected


@pytest.mark.parametrize(("name", "expected"), [("nothing told", None), ("right", None), ("stopped", False)])
def test_english_text_without_a_step_tells_nothing_of_the_chain(name: str, expected: bool | None) -> None:
    text, _ = ENGLISH[name]
    assert found(ground_truth(INPUT, "ccbb", main_solution(CODE)), "", text).chain.names_in_order is expected


def test_trees_and_operators_without_a_name() -> None:
    def at(code: str, x: str, text: str) -> str:
        return told(found(ground_truth(x, parse(code).value(x), main_solution(code)), "", text))

    joined = 'func_3("zyx") = "xyz". Then "xyz" + "abc" = "xyzab". {"output": "xyzab"}'
    assert at("(func_3(x) + 'abc')", "zyx", joined) == "atomic_error 2 + result"
    woven = 'func_6("abc", "dh") = "abcdh". func_20("abcdh", "jd") = "ajbdch". {"output": "ajbdch"}'
    assert at("func_20(func_6(x, 'dh'), 'jd')", "abc", woven) == "atomic_error 2 func_20 result"
    both = 'func_3("ba") = "ab". func_17("ba") = "ab". func_7("ab", "ab") = "abab". {"output": "abab"}'
    assert at("func_7(func_3(x), func_17(x))", "ba", both) == "atomic_error 3 func_7 result"


def test_a_verifiers_failure_is_no_class_of_failure() -> None:
    failed = diagnosed(*compact_problem(), Completion(FIRST, 0, "stop"), Verdict(0.0, Reason.ERROR))
    assert failed.failure == "unparsed"


def test_p18_rows_without_a_program_are_told() -> None:
    with pytest.raises(UserError, match="holds no ref_code"):
        read_reference('{"ref_output": "a"}', "")
    truth, _ = compact_problem()
    with pytest.raises(UserError, match="does not name the functions"):
        read_reference(truth, "func_1:abc")


def references() -> list[Reference]:
    return [read_reference(*compact_problem()), read_reference(ground_truth(INPUT, "ccbb", main_solution(CODE)), "")]


@given(
    st.text(st.sampled_from("func_216(),:=\"'`\n {}output→+abe"), max_size=300), st.sampled_from(("wrong", "correct"))
)
def test_p16_no_text_breaks_it(text: str, reason: str) -> None:
    for reference in references():
        verdict = Verdict(0.0, Reason(reason), "abe")
        classify(reference, read_trace(reference, text), Completion(text, 0, "stop"), verdict)


@pytest.mark.parametrize(
    "part", ["func_2(", "`", '"a" = ', "func_16 = ", "func_2,func_2:a=a\n", "'", "(" * 50, "=" * 9]
)
def test_p04_a_megabyte_takes_no_time(part: str) -> None:
    text = part * (1_000_000 // len(part)) + '{"output": "a"}'
    for reference in references():
        began = time.process_time()
        verdict = Verdict(0.0, Reason.WRONG, "a")
        classify(reference, read_trace(reference, text), Completion(text, 0, "stop"), verdict)
        assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("lines", "chain"),
    [
        ([FIRST, SECOND, THIRD], (True, True, True)),
        ([FIRST, "func_2,func_14:cabe=zz", ",func_2:zz=y"], (True, True, False)),  # wrong results, handed on
        ([FIRST, "func_2,func_14:cabbe=ccaabbbbee", ",func_2:ccaabbbbee=ccb"], (True, False, False)),  # the input again
        ([FIRST, "func_2,func_14:cabb=ccaabbbb", ",func_2:ccaabbbb=ccbbbb"], (True, False, False)),  # another string
        ([FIRST, SECOND, THIRD, "and so on"], (True, True, False)),
        ([FIRST, SECOND], (False, False, False)),
    ],
)
def test_names_in_order_handed_on_and_right_are_told_apart(lines: list[str], chain: tuple[bool, bool, bool]) -> None:
    assert found(*compact_problem(), "\n".join(lines), "stop").chain == chain


STATED = (
    '{name}("{given}") = "{result}".', "{name}('{given}') -> '{result}'", '{name}(s="{given}") == "{result}"',
    "{name}: {given} → {result}", '{name}: "{given}" → "{result}"', '{name} takes "{given}" and returns "{result}"',
    "`{name}` on `{given}` gives `{result}`.", '- `{name}("{given}")` returns `{result}`',
    '* `{name}("{given}")` → `"{result}"`', '`{name}("{given}") = "{result}"`', '{name}(“{given}”) is “{result}”',
    '### {name}\n- Input: "{given}"\n- Output: "{result}"', '**{name}**: the input is "{given}", the result "{result}"',
)  # fmt: skip
STEPS = (("func_16", "cabbe", "cabe"), ("func_14", "cabe", "ccaabbee"), ("func_2", "ccaabbee", "ccbb"))
CHANGED: dict[str, tuple[Callable[[str, str, str], tuple[str, str, str]], tuple[bool, bool, bool]]] = {
    "nothing": (lambda name, given, result: (name, given, result), (True, True, True)),
    "what goes in": (lambda name, given, result: (name, given[1:], result), (True, False, False)),
    "what comes out": (lambda name, given, result: (name, given, result[1:]), (True, True, False)),
    "the name": (lambda _, given, result: ("func_3", given, result), (False, False, False)),
}


def in_english(form: str, steps: Iterable[tuple[str, str, str]]) -> str:
    lines = [form.format(name=name, given=given, result=result) for name, given, result in steps]
    return "\n".join([*lines, '{"output": "ccbb"}'])


@pytest.mark.parametrize("form", STATED)
@pytest.mark.parametrize("changed", CHANGED)
def test_a_chain_in_english_is_right_only_if_all_that_it_states_is(changed: str, form: str) -> None:
    change, expected = CHANGED[changed]
    truth = ground_truth(INPUT, "ccbb", main_solution(CODE))
    for place in range(2 if changed == "what comes out" else 0, 3):  # a wrong result would not be handed on
        steps = [change(*step) if number == place else step for number, step in enumerate(STEPS)]
        assert found(truth, "", in_english(form, steps)).chain == expected, in_english(form, steps)


@pytest.mark.parametrize("form", STATED)
def test_a_chain_in_english_with_its_names_in_another_order_or_one_of_them_left_out_is_not_right(form: str) -> None:
    truth = ground_truth(INPUT, "ccbb", main_solution(CODE))
    orders = [steps for steps in permutations(STEPS) if steps != STEPS]
    renamed = [[(name, *step[1:]) for (name, *_), step in zip(order, STEPS, strict=True)] for order in orders]
    for steps in (*orders, *renamed, *combinations(STEPS, 2), *combinations(STEPS, 1)):
        assert found(truth, "", in_english(form, steps)).chain == (False, False, False), in_english(form, steps)
