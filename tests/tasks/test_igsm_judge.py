"""The judge of iGSM: what counts as an answer, and that the judge of chains is fooled by none."""

import json
import re
import time
from dataclasses import replace
from itertools import permutations

import pytest

from compositionality.errors import UserError
from compositionality.tasks.arithmetic import parse, value_of
from compositionality.tasks.igsm.generate import IgsmOptions
from compositionality.tasks.igsm.task import TASK, graph_in
from compositionality.tasks.task import BRIDGE, PLAIN, Behaviours
from compositionality.types import LENGTH, Completion, Problem

OPTIONS = IgsmOptions(levels=(9,), process=True)


def problem(style: str, index: int = 0) -> Problem:
    return TASK.problem(replace(OPTIONS, style=style), "train", 1, index)


def answer_only(row: Problem) -> Problem:
    truth = json.loads(row.ground_truth)
    return replace(row, ground_truth=json.dumps({key: truth[key] for key in ("answer", "asked", "style")}))


TRUTH = json.dumps({"answer": 27, "asked": "b1a", "style": "text"})


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (r"\boxed{27}", "correct"),
        ("so it is <answer>27</answer>", "correct"),
        (r"\boxed{ 27 } and that is it", "correct"),
        (r"\boxed{3}, no: \boxed{27}", "correct"),
        (r"<answer>3</answer> \boxed{27}", "correct"),
        (r"\boxed{27} and then \boxed{", "correct"),
        (r"\boxed{27}, no: \boxed{3}", "wrong"),
        (r"\boxed{27} <answer>3</answer>", "wrong"),
        (r"\boxed{-27}", "wrong"),
        (r"\boxed{\boxed{27}}", "correct"),
        (r"\boxed{3 \boxed{27}}", "malformed"),
        (r"\boxed{<answer>27</answer> 3}", "malformed"),
        (r"\boxed{<answer>27</answer>}", "correct"),
        (r"\boxed{3 \boxed{4}}, no: <answer>27</answer>", "correct"),
        (r"\boxed{<answer>4</answer> 3}, no: \boxed{27}", "correct"),
        (r"\boxed{<answer>4</answer> 3}, no: <answer>27</answer>", "correct"),
        (r"\boxed{3 \boxed{1}} <answer>27</answer>", "correct"),
        (r"<answer>27</answer> \boxed{<answer>3</answer> 27}", "malformed"),
        (r"\boxed{27", "no_answer"),
        (r"\boxed{}", "no_answer"),
        ("27", "no_answer"),
        ("boxed{27}", "no_answer"),
        (r"\Boxed{27}", "no_answer"),
        ("&lt;answer&gt;27&lt;/answer&gt;", "no_answer"),
        ("b1a=27", "no_answer"),
        *[
            (rf"\boxed{{{text}}}", "malformed")
            for text in (
                *("27.0", "2.7e1", "+27", "--27", "- 27", "027", "2 7", "27,", "1,000", "26+1", "27 28", "0x1b"),
                *("２７", "٢٧", "27\u200b", "twenty-seven", "{27", "\\text{27", "$27$", "27%", "nan", "9" * 16),
                *("27 or 28", "27=27", "−27", "__import__('os')", "x" * 10_000),
            )
        ],
    ],
)
def test_p04_what_counts_as_an_answer(response: str, reason: str) -> None:
    verdict = TASK.verdict(response, TRUTH)
    assert (verdict.reason, verdict.score) == (reason, float(reason == "correct"))


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("b0a0=20\nb0a1=7\nb1a=20+7=27", "correct"),
        ("b1a=27", "correct"),
        ("b1a=28", "wrong"),
        ("b1a=26+1", "malformed"),
        ("b1a=27 ", "malformed"),
        ("b1a=+27", "malformed"),
        ("b1a=27\n", "no_answer"),
        ("b2a=27", "no_answer"),
        ("27", "no_answer"),
        (r"\boxed{27}", "no_answer"),
        ("b1a?27", "no_answer"),
    ],
)
def test_p04_what_counts_as_an_answer_in_the_compact_style(response: str, reason: str) -> None:
    assert TASK.verdict(response, json.dumps({**json.loads(TRUTH), "style": "compact"})).reason == reason


def test_p04_long_texts_take_time_in_proportion() -> None:
    row = problem("text")
    for text in (r"\boxed{" * 300_000, r"\boxed{27}" * 100_000, "- Let k be the number of " * 80_000, "}" * 2_000_000):
        began = time.process_time()
        assert TASK.verdict(text, row.ground_truth).score == 0
        assert time.process_time() - began < 2


# ---- the whole chain


def first(lines: list[str], pattern: str) -> int:
    return next(place for place, line in enumerate(lines) if re.search(pattern, line))


def changed_value(lines: list[str]) -> list[str]:
    """A wrong number at the end of the first line with an operation; what follows keeps the true one."""
    place = first(lines, r"\d\s*[+*]\s*\d")
    wrong = re.sub(r"\d(\.?)$", lambda last: f"{(int(last[0][0]) + 1) % 10}{last[1]}", lines[place])
    return [*lines[:place], wrong, *lines[place + 1 :]]


def other_numbers(lines: list[str]) -> list[str]:
    """The right value by other numbers, and one operation more."""
    place = first(lines, r"=( ?)\d+ ?[+] ?\d+ ?=")
    other = re.sub(r"=( ?)(\d+) ?[+] ?(\d+) ?=", r"=\1\2\1+\g<1>1\1+\1\3\1-\g<1>1\1=", lines[place])
    return [*lines[:place], other, *lines[place + 1 :]]


def prose(lines: list[str]) -> list[str]:
    return [lines[0], "- now it gets interesting", *lines[1:]]


def given_up(lines: list[str]) -> list[str]:
    """A quantity that waits for nothing is given up."""
    if lines[-1].startswith("So"):
        said = re.sub(r" [A-Za-z] = .*", " I leave it for later.", lines[0])
        return [said, *lines]
    return [f"{lines[0].partition('=')[0]}?{lines[-1].partition('=')[0]}", *lines]


FOUL = {
    "a wrong value": (changed_value, "wrong_value"),
    "a line left out": (lambda lines: lines[1:], "illegal"),
    "a line twice": (lambda lines: [lines[0], *lines], "illegal"),
    "the last line alone": (lambda lines: lines[-2:] if lines[-1].startswith("So") else lines[-1:], "illegal"),
    "other numbers": (other_numbers, "wrong_numbers"),
    "prose": (prose, "malformed"),
    "given up without need": (given_up, "illegal"),
}


@pytest.mark.parametrize("foul", FOUL)
@pytest.mark.parametrize("style", ["text", "compact"])
def test_p04_a_chain_with_a_fault_scores_nothing_though_its_answer_is_right(style: str, foul: str) -> None:
    change, reason = FOUL[foul]
    for index in range(12):
        row = problem(style, index)
        lines = TASK.solution(row, PLAIN, 0).split("\n")
        try:
            text = "\n".join(change(lines))
        except StopIteration:
            continue
        if text.rpartition("=")[2] != "\n".join(lines).rpartition("=")[2]:
            continue  # the only operation is the question's
        assert TASK.verdict(text, answer_only(row).ground_truth).score == 1
        verdict = TASK.verdict(text, row.ground_truth)
        assert (verdict.reason, verdict.score) == (reason, 0.0), text
        break
    else:
        pytest.fail("no problem to try it on")


def untrue(lines: list[str], place: int) -> dict[str, list[str]]:
    """A right solution with one thing that is not so, said in the step at ``place`` or in a line before all others."""
    line = lines[place]
    code = re.split("[?=]", line)[0]
    if not lines[-1].startswith("So "):
        return {name: [f"{code}?{name}", *lines] for name in (code, "zz", "99", f"{code}=99", f"{code},zz", "d3c3")}
    step = re.fullmatch(r"(- .*?)((\w) = [^:]*)\.", line)
    if step is None:
        return {}
    head, equation, letter = step.groups()
    before = {
        "claims without a full stop": f"{head}{letter} = 99",
        "claims with a mark": f"{head}{letter} = 99!",
        "claims in words": f"{head}It is 99.",
        "waits for nothing": f"{head}I leave it for later.",
        "no bullet": f"{head[2:]}{letter} = 99.",
        "another bullet": f"* {head[2:]}{letter} = 99.",
        "an indented bullet": f"  {head}{letter} = 99.",
    }
    instead = {
        "an equation that names nothing": re.sub(r"(\w = )[^=]*[a-zA-Z][^=]* = ", r"\1", line),
        "a number beside the equation": f"{head}It is 99. {equation}.",
        "another premise": re.sub(r"(equals )(\d+)", lambda said: f"{said[1]}{int(said[2]) + 1}", line),
        "another quantity": f"{head}So is the total number of Pigs in each Second Sun. {equation}.",
    }
    replaced = {name: [*lines[:place], said, *lines[place + 1 :]] for name, said in instead.items() if said != line}
    return {name: [said, *lines] for name, said in before.items()} | replaced


@pytest.mark.parametrize(("style", "kinds"), [("text", 11), ("compact", 6)])
def test_p04_a_step_says_nothing_that_is_not_so(style: str, kinds: int) -> None:
    seen = set()
    for index in range(6):
        row = problem(style, index)
        lines = TASK.solution(row, BRIDGE, 0).split("\n")
        assert TASK.verdict("\n".join(lines), row.ground_truth).score == 1
        for place in range(len(lines)):
            for name, text in untrue(lines, place).items():
                seen.add(name)
                assert TASK.verdict("\n".join(text), row.ground_truth).score == 0, text
    assert len(seen) >= kinds


def test_p04_an_equation_with_other_signs_is_wrong_though_its_value_is_the_same_by_the_modulus() -> None:
    options = replace(OPTIONS, style="compact", modulus=10, most_common=0.4)
    tried = same = 0
    for index in range(60):
        row = TASK.problem(options, "train", 1, index)
        lines = TASK.solution(row, PLAIN, 0).split("\n")
        for place, line in enumerate(lines):
            code, whole, *rest = line.split("=")
            for old, new in permutations("+-*", 2):
                other = whole.replace(old, new, 1)
                exact, changed = (value_of(parse(form, "+-*") or []) for form in (whole, other))
                if exact == changed:
                    continue
                tried, same = tried + 1, same + ((changed - exact) % 10 == 0)  # type: ignore[operator]
                text = "\n".join([*lines[:place], "=".join([code, other, *rest]), *lines[place + 1 :]])
                assert TASK.verdict(text, row.ground_truth).score == 0, (line, other)
    assert tried > 100
    assert same > 10


def test_a_chain_is_read_in_the_thought_and_its_answer_behind_it() -> None:
    row = problem("text")
    chain, answer = TASK.solution(row, PLAIN, 0), json.loads(row.ground_truth)["answer"]
    for text, reason in (
        (f"<think>\n{chain}\n</think>\n<answer>{answer}</answer>", "correct"),
        (f"<think>\n{chain}\n</think>\n<answer>{answer + 1}</answer>", "wrong"),
        (f"<think>\n{chain}\n</think>\nThat is it.", "no_answer"),
        (f"<think>\n{chain.partition(chr(10))[2]}\n</think>\n<answer>{answer}</answer>", "illegal"),
    ):
        assert TASK.verdict(text, row.ground_truth).reason == reason, text


def test_a_letter_stands_for_one_quantity() -> None:
    row = problem("text")
    lines = TASK.solution(row, PLAIN, 0).split("\n")
    letter, other = (re.search(r"([A-Za-z]) = ", line)[1] for line in lines[:2])  # type: ignore[index]
    lines[1] = re.sub(rf"\b{other}\b", letter, lines[1])
    assert TASK.verdict("\n".join(lines), row.ground_truth).reason == "illegal"


def test_a_right_chain_with_another_answer_is_wrong() -> None:
    row = problem("text")
    text = TASK.solution(row, BRIDGE, 0)
    assert TASK.verdict(re.sub(r"boxed\{(-?)(\d)", r"boxed{\g<1>1\2", text), row.ground_truth).reason == "wrong"


def test_a_quantity_that_the_problem_does_not_know_is_illegal() -> None:
    row = problem("compact")
    assert TASK.verdict(f"d9c9=1\n{TASK.solution(row, PLAIN, 0)}", row.ground_truth).reason == "illegal"
    words = problem("text")
    text = f"- Let Z be the number of Flying Pigs in each Second Sun. Z = 1.\n{TASK.solution(words, PLAIN, 0)}"
    assert TASK.verdict(text, words.ground_truth).reason == "illegal"


def test_faults_are_diagnosed_where_they_are() -> None:
    row = answer_only(problem("compact", 1))
    lines = TASK.solution(row, Behaviours(subgoals=True), 0).split("\n")
    wrong = [*lines[:-1], re.sub(r"\d$", lambda last: str((int(last[0]) + 1) % 10), lines[-1])]
    text = "\n".join(wrong)
    found = TASK.diagnose(row, Completion(text, 9, "stop"), TASK.verdict(text, row.ground_truth))
    assert (found.failure, found.step, found.skill) == ("atomic_error", len(lines), graph_in(row)[0].asked.code)
    early = "\n".join(lines[1:])
    kept = TASK.diagnose(row, Completion(early, 9, "stop"), TASK.verdict(early, row.ground_truth))
    assert (kept.failure, kept.fault) == ("correct", "used_before_known")
    missing = TASK.diagnose(row, Completion(lines[0], 9, "stop"), TASK.verdict(lines[0], row.ground_truth))
    assert missing.failure == "format"
    verdict = TASK.verdict(text, row.ground_truth)
    assert TASK.diagnose(row, Completion(text, 9, LENGTH), verdict).failure == "overlong"


SOUND = {"answer": 2, "asked": "b1a", "style": "text"}


@pytest.mark.parametrize(
    "truth",
    [
        *("{broken", "[]", "{}"),
        *[
            json.dumps(SOUND | change)
            for change in ({"answer": 2.5}, {"asked": "a1b"}, {"style": "prose"}, {"facts": ["b1a0=(("]})
        ],
    ],
)
def test_a_damaged_truth_is_refused(truth: str) -> None:
    with pytest.raises(UserError, match="ground_truth"):
        TASK.parse_truth(truth)
