r"""The judge of table questions: labelled answers, truths of others, our own questions."""

import itertools
import re

import pytest

from compositionality.domains.table.task import REGIONS, TASK, TableOptions
from compositionality.reward.judge import judge_response
from compositionality.types import Reason

RIGHT = [
    ("12.5", "12.5"), ("1234", "1,234"), ("12.5", "12.5\\%"), ("12.5", "12.5%"), ("12.5", "\\$12.5"),
    ("Rome|Oslo", "Oslo|Rome"), ("Rome|Oslo", " Oslo | Rome "), ("Rome", "rome."), ("Rome", "\\text{Rome}"),
    ("0.3333333", "0.3333"), ("-5", "−5"), ("12 km", "12"), ("12 km", "12\\text{ km}"), ("3|3|4", "4|3|3"),
    ("$1,234.50", "1234.5"), ("New York", "new   york"), ("12345.6", "12,346"), ("3 million", "3 million"),
    ("$5", "5 dollars"), ("5", "5 dollars"), ("0.5", "\\frac{1}{2}"), ("5 million", "5,000,000"),
    ("1,500,000", "1.5 million"),
    ("12%", "12 percent"), ("a|2", "2.0|A"), ("10 km|7", "7|10"), ("2019", "2019.0"), ("2019", "2019.3"),
    ("2010–11", "2010-11"), ("2010-11", "2010–11"), ("Côte d’Ivoire", "Côte d'Ivoire"), ("“a” b", "\"a\" b"),
    ("Straße", "STRASSE"), ("Éire", "E\u0301IRE"), ("İzmir", "i\u0307zmir"),
]  # fmt: skip
WRONG = [
    ("300 K", "300,000"), ("300 K", "300"), ("12", "~12"), ("5–6", "56"), ("5–6", "-6"),
    ("$5", "5 euros"), ("5 million", "5,000"), ("5", "5 million"), ("0.5", "\\frac{2}{1}"), ("5 m", "5"),
    ("12", "12 people"),
    ("12.5", "0.125"), ("12.5", "1250"), ("12", "10+2"), ("12", "144**0.5"), ("12", "24/2"), ("Rome|Oslo", "Rome"),
    ("3|4", "3|3|4"), ("3|3|4", "3|4|4"), ("3 million", "3"), ("5 kg", "5 g"), ("2020", "2019"), ("102", "10²"),
    ("100", "__import__('os').getpid()"), ("Rome", "Rome or Oslo"), ("5", "5 or 6"), ("0", "0.0005"), ("$5", "€5"),
    ("2019", "2020.0"), ("2019", "2.02e3"), ("2019", "2019.9"), ("1e308", "1.0001e308"), ("1", "True"),
    *((f"{10**size + 1}{kg}", f"{10**size + more}{kg}") for size in (16, 300) for more in (0, 2) for kg in ("", " kg")),
    ("0.001", "0.0015"), ("5", "5q"), ("12", "1 2"), ("nan", "inf"), ("12", "12|"), ("Rome", "\\text{}"),
]  # fmt: skip


def judged(truth: str, box: str):
    return judge_response("table__hitab", f"So the answer is \\boxed{{{box}}}.", truth)


@pytest.mark.parametrize(("truth", "box"), RIGHT)
def test_p04_right_answers_score_one(truth, box):
    assert judged(truth, box).reason is Reason.CORRECT


@pytest.mark.parametrize(("truth", "box"), WRONG)
def test_p04_wrong_answers_score_nothing(truth, box):
    assert (judged(truth, box).score, judged(truth, box).reason) == (0, Reason.WRONG)


@pytest.mark.parametrize("left_out", ["BC", "negative", "lakh", "million", "below zero", "m", "or 6", "of 10"])
def test_p04_a_word_that_changes_the_number_cannot_be_left_out(left_out):
    assert judged(f"5 {left_out}", f"5 {left_out}").score == 1
    assert judged(f"5 {left_out}", "5").score == 0


@pytest.mark.parametrize("unit", ["kg", "km", "square feet", "miles per hour", "people", "days", "%", "percent"])
def test_a_unit_can_be_left_out_and_not_be_taken_for_money(unit):
    assert judged(f"5 {unit}", "5").score == 1
    assert judged(f"5 {unit}", "$5").score == judged("$5", f"5 {unit}").score == 0


@pytest.mark.parametrize("between", [",", "{,}", "\\,", ",\\!", "~", " ", "\u202f", "\u2009"])
def test_thousands_may_be_separated(between):
    assert judged("1234567", between.join(("1", "234", "567"))).score == 1
    assert judged("1234.5 km", f"1{between}234.5~\\text{{km}}").score == 1
    for parts in (("12", "34567"), ("1", "2345", "67"), ("1234", "567"), ("1", "234", "568"), ("", "234", "567")):
        assert judged("1234567", between.join(parts)).score == 0, parts
    assert judged("1234567", f"1,234{between}567").score == (between in (",", "{,}", ",\\!"))


def test_p04_a_tilde_is_a_space_between_words_and_about_before_a_number():
    assert judged("North Dakota|5 kg", "North~Dakota~|~5~\\text{kg}").score == 0  # ~5 is about 5
    assert judged("North Dakota|5 kg", "5~kg~|North~Dakota").score == 1
    for about in ("~12", "$~12$", "x|~12", "(~12)"):
        assert judged("12", about).score == judged("x|12", about).score == 0


def test_the_last_closed_box_counts_by_its_braces():
    assert judged("12", "11} then \\boxed{12").reason is Reason.CORRECT
    assert judged("12", "12} no, \\boxed{11").reason is Reason.WRONG
    assert judged("12", "12} and {never \\boxed{closed").reason is Reason.WRONG
    assert judge_response("table__hitab", "\\boxed{12} and \\boxed{13", "12").reason is Reason.CORRECT
    assert judge_response("table__hitab", "{ \\{ \\boxed {\\text{Rome}}", "Rome").reason is Reason.CORRECT


def test_generated_answers_follow_from_the_table_and_the_words():
    """Every question is answered again from its prompt alone."""
    options = TableOptions(levels=(1, 2, 3, 4), rows=6)
    for split in ("train", "test"):
        for index in range(120):
            problem = TASK.problem(options, split, 0, index)
            assert sorted(answer_again(problem.prompt)) == sorted(TASK.parse_truth(problem.ground_truth)), (
                problem.prompt
            )


def answer_again(prompt: str) -> list[str]:
    written, question = prompt.split("\n\n")
    titles, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in written.splitlines()]
    title = next(title for title in titles[2:] if f" {title} " in question or f" {title}?" in question)
    figures = {row[0]: int(row[titles.index(title)]) for row in rows}
    within = {region: {row[0]: figures[row[0]] for row in rows if row[1] == region} for region in REGIONS}
    named = [city for city in re.findall(r"\w+", question) if city in figures]
    region = re.search(r"region (\w+)", question)
    chosen = within[region[1]] if region else figures
    if "the difference between" in question:
        return [str(abs(sum(within["North"].values()) - sum(within["South"].values())))]
    if "largest figure for" in question and "smallest" in question:
        return [str(max(chosen.values()) - min(chosen.values()))]
    if "largest" in question or "smallest" in question:
        extreme = (max if "largest" in question else min)(chosen.values())
        return [city for city, figure in chosen.items() if figure == extreme]
    if "total" in question:
        return [str(sum(chosen.values()))]
    if "Which cities" in question:
        least = int(re.search(r"above (\d+)\?", question)[1])
        return [city for city, figure in figures.items() if figure > least]
    return [str(figures[named[0]] - figures[named[1]] if len(named) == 2 else figures[named[0]])]


SAME_NUMBERS = [("5", "5.0"), ("5 kg", "5.0 kg"), ("5 km", "5"), ("5%", "5 percent"), ("$5", "5 dollars"), ("5", "$5")]


@pytest.mark.parametrize("pairs", [*itertools.permutations(SAME_NUMBERS, 2), *itertools.permutations(SAME_NUMBERS, 3)])
def test_answers_may_stand_in_any_order_whatever_their_units(pairs):
    """Each is the same as its truth, so all of them are; sorted by value and text they need not meet."""
    truths, boxes = zip(*pairs, strict=True)
    assert all(judged(*pair).score == 1.0 for pair in pairs)
    for order in itertools.permutations(boxes):
        assert judged("|".join(truths), "|".join(order)).score == 1.0, order
