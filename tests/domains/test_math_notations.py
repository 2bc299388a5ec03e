"""P4: notations that are read by a list of them, each with what looks like it and has another value."""

import time
from itertools import product

import pytest

from compositionality.domains.math.expressions import is_expression
from compositionality.domains.math.judge import judge_math
from compositionality.types import Reason


def right(gold: str, answer: str) -> bool:
    return judge_math(f"so \\boxed{{{answer}}}", [gold]).score == 1


BODIES = ("2{0}", "x=\\frac{{\\pi}}{{4}}+{0}\\pi", "x = 2{0}\\pi \\text{{ or }} x = \\pi+2{0}\\pi", "({0},{0}+1)")
CLAUSES = (
    "{1}, {0}\\in\\mathbb{{Z}}", "{1},\\ {0} \\in \\mathbb Z", "{1} \\quad ({0}\\in ℤ)", "{1}, {0} \\text{{ integer}}",
    "{1} \\text{{ where }} {0}\\in\\mathbb{{Z}}", "{1}, \\text{{ where }} {0} \\text{{ is an integer}}",
    "{1} \\text{{ for some integer }} {0}", "{1}\\text{{ (where {0} is any integer)}}",
    "\\{{{1} \\mid {0}\\in\\mathbb{{Z}}\\}}", "\\{{{1} : {0} \\in \\mathbb{{Z}}\\}}",
)  # fmt: skip
OTHER_CLAUSES = (
    "{1}", "{1}, {0}\\in\\mathbb{{N}}", "{1}, {0}\\in\\mathbb{{R}}", "{1}, z\\in\\mathbb{{Z}}", "{1}, {0}=2",
    "{1}, \\text{{ where }} {0} \\text{{ is an even integer}}", "{1}, {0} \\text{{ is no integer}}",
    "{1}, {0} \\text{{ odd}}",
)  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_p04_a_family_is_one_in_any_usual_words_and_with_any_letter(body: str) -> None:
    written = [clause.format(letter, body.format(letter)) for clause in CLAUSES for letter in "kn"]
    assert [(gold, answer) for gold in written[::7] for answer in written if not right(gold, answer)] == []
    gold = written[0]
    others = [clause.format("k", body.format("k")) for clause in OTHER_CLAUSES]
    others += [clause.format("k", body.format(f"{changed}k")) for clause in CLAUSES[:3] for changed in ("3", "a", "n")]
    others += [CLAUSES[0].format("n", body.format("k")), CLAUSES[0].format("n", body.format("kn"))]
    assert [answer for answer in others if right(gold, answer)] == []


def test_p04_a_letter_that_is_free_in_a_family_is_not_taken_for_its_own() -> None:
    assert right("k+ax, k\\in\\mathbb{Z}", "n+ax, n\\in\\mathbb{Z}")
    for answer in (
        "n+nx, n\\in\\mathbb{Z}",
        "a+ax, a\\in\\mathbb{Z}",
        "k+ax, n\\in\\mathbb{Z}",
        "x+ax, x\\in\\mathbb{Z}",
    ):
        assert not right("k+ax, k\\in\\mathbb{Z}", answer), answer
        assert not right("k+nx, k\\in\\mathbb{Z}", answer), answer


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_p04_minus_one_on_top_of_a_function_is_its_inverse_and_no_quotient(name: str) -> None:
    for value in ("2", "x", "\\frac{1}{3}", "\\sqrt{2}"):
        gold = f"\\arc{name} {value}"
        forms = (
            f"\\{name}^{{-1}}{value}",
            f"\\{name}^{{-1}} {value}",
            f"\\{name}^{{ −1 }}({value})",
            f"\\operatorname{{arc{name}}}{{{value}}}",
        )
        others = (
            f"\\frac{{1}}{{\\{name} {value}}}",
            f"\\{name} {value}",
            f"\\{name}^{{-2}}{value}",
            f"(\\{name} {value})^{{-1}}",
            f"\\{name}^{{-1}}5",
        )
        assert [answer for answer in forms if not (right(gold, answer) and right(answer, gold))] == []
        assert [
            (form, answer) for form in (gold, *forms) for answer in others if right(form, answer) or right(answer, form)
        ] == []
    assert not right("\\frac{\\pi}{4}", f"\\{name}^{{-1}}1")


BINOMIALS = (
    "\\binom{{{0}}}{{{1}}}",
    "\\binom {0} {1}",
    "\\dbinom {0}{1}",
    "\\tbinom{{{0}}}{1}",
    "{{{0} \\choose {1}}}",
)


@pytest.mark.parametrize(("above", "below"), [("n", "2"), ("n", "k"), ("m", "3"), ("9", "k")])
def test_p04_a_binomial_coefficient_has_its_own_two_parts(above: str, below: str) -> None:
    gold = f"\\binom{{{above}}}{{{below}}}"
    for form in BINOMIALS:
        assert right(gold, form.format(above, below))
        assert right(f"{gold}+1", f"1+{form.format(above, below)}")
        assert not right(gold, form.format(below, above)), form
        assert not right(f"\\frac{{{above}}}{{{below}}}", form.format(above, below)), form
        assert not right(gold, form.format(above, "4")), form
        assert not right("66", form.format("12", "2")), form


def test_p04_a_binomial_coefficient_of_large_numbers_or_powers_is_not_worked_out() -> None:
    assert is_expression("\\binom{n+1}{2}+\\binom{99}{k}")
    heavy = (
        "\\binom{999}{9}",
        "\\binom{n}{999}",
        "2^{\\binom{n}{2}}",
        "\\binom{\\binom{n}{2}}{2}",
        "\\binom{9^9}{2}",
        "\\exp(\\binom{9}{2})",
    )
    assert [text for text in heavy if is_expression(text)] == []
    assert right("2^{\\binom{n}{2}}", "2^{\\binom n2}")
    assert right("\\frac{n(n-1)}{2}", "\\binom{n}{2}")
    assert not right("\\frac{n(n+1)}{2}", "\\binom{n}{2}")


@pytest.mark.parametrize("gold", ["5", "-3", "\\frac{1}{2}", "x+1", "2\\sqrt{3}"])
def test_p04_round_brackets_may_stand_around_a_value_after_its_name(gold: str) -> None:
    forms = ("y=({})", "y = \\left({}\\right)", "f(2)=({})", "m+n=({})")
    assert [form for form in forms if not right(gold, form.format(gold))] == []
    assert [form for form in (*forms, "y\\in({})") if right(gold, form.format("7"))] == []
    assert not right(gold, f"y\\in({gold})")
    assert not right(gold, f"y=({gold},{gold})")
    for number, question in (("12", "(1)(2)"), ("3", "(\\frac{6}{2})"), ("9", "(3^2)"), ("9", "((4)+(5))")):
        assert not right(number, f"y={question}")


def test_p04_a_fraction_with_over_may_stand_in_brackets_after_its_name() -> None:
    for above, below in ((1, 2), (12, 35)):
        assert right(f"\\frac{{{above}}}{{{below}}}", f"x=({above}\\over {below})")
        assert not right(f"\\frac{{{above}}}{{{below}}}", f"x=({below}\\over {above})")
        assert not right(str(above), f"x=({above * below}\\over {below})")


NOTHING = (
    "\\emptyset", "\\{\\}", "∅", "\\text{no solution}", "No solutions", "\\text{There is no solution.}",
    "\\text{empty set}", "x\\in\\emptyset",
)  # fmt: skip
SOMETHING = (
    "no", "0", "\\{0\\}", "\\text{no real solution}", "\\text{no positive solutions}", "\\text{no unique solution}",
    "\\text{one solution}", "\\text{no solution but 5}", "5 \\text{ or no solution}", "\\text{not no solution}",
    "\\text{no solution or } 5", "\\text{nothing}", "\\{\\emptyset\\}", "\\text{nonempty set}",
)  # fmt: skip


@pytest.mark.parametrize("gold", NOTHING)
def test_p04_no_solution_is_the_empty_set_in_usual_words_and_no_others(gold: str) -> None:
    assert [answer for answer in NOTHING if not right(gold, answer)] == []
    assert [answer for answer in SOMETHING if right(gold, answer) or right(answer, gold)] == []


GLUED = {"5": ("cm", "kg", "ft", "cm^2"), "2.5": ("mL", "km", "Hz", "km/h")}


@pytest.mark.parametrize(("number", "unit"), [(number, unit) for number, units in GLUED.items() for unit in units])
def test_p04_a_unit_that_is_glued_to_the_gold_number_has_to_be_in_the_answer(number: str, unit: str) -> None:
    gold = f"{number}{unit}"
    assert all(
        right(gold, form)
        for form in (
            gold,
            f"{number} {unit}",
            f"{number}\\text{{ {unit}}}",
            f"{number}\\,\\mathrm{{{unit}}}",
            f"x={number} {unit}",
        )
    )
    others = [
        number,
        f"{number}\\text{{ kW}}",
        f"{number} {unit}^3",
        f"7\\text{{ {unit}}}",
        f"{number}\\text{{ million {unit}}}",
        f"{number}x",
    ]
    assert [answer for answer in others if right(gold, answer)] == []


SIGNS = {"<": "(", "\\le ": "["}
MORE = {"<": ">", "\\le ": "\\ge "}
ENDS = {"(": ")", "[": "]"}
BOTH, EITHER = (" \\text{{ and }} ", " and ", " \\land ", ", \\text{{and }}"), (" \\text{{ or }} ", " or ", " \\lor ")


@pytest.mark.parametrize(("less", "least"), product(SIGNS, SIGNS))
def test_p04_and_joins_two_inequalities_to_an_interval_and_or_to_a_union(less: str, least: str) -> None:
    low, high = "1", "\\frac{7}{2}"
    interval = f"{SIGNS[least]}{low},{high}{ENDS[SIGNS[less]]}"
    union = f"(-\\infty,{low}{ENDS[SIGNS[less]]}\\cup{SIGNS[least]}{high},\\infty)"
    inside = (f"x{MORE[least]}{low}", f"x{less}{high}"), (f"x{less}{high}", f"{low}{least}x")
    outside = (f"x{less}{low}", f"x{MORE[least]}{high}"), (f"x{MORE[least]}{high}", f"{low}{MORE[less]}x")
    chain = f"{low}{least}x{less}{high}"
    for word in BOTH:
        word = word.format()
        for one, other in inside:
            assert right(interval, f"{one}{word}{other}")
            assert right(f"{one}{word}{other}", interval)
            assert right(chain, f"{one}{word}{other}")
            assert not right(union, f"{one}{word}{other}")
        for one, other in outside:
            assert not any(right(gold, f"{one}{word}{other}") for gold in (union, interval, chain, "\\mathbb{R}"))
            assert not right(f"{one} \\text{{ or }} {other}", f"{one}{word}{other}")
    for word in EITHER:
        word = word.format()
        for one, other in outside:
            assert right(union, f"{one}{word}{other}")
            assert right(f"{one}{word}{other}", union)
        for one, other in inside:
            assert not any(right(gold, f"{one}{word}{other}") for gold in (union, interval, chain))
            assert not right(f"{one} \\text{{ and }} {other}", f"{one}{word}{other}")


def test_p04_only_two_opposite_inequalities_of_one_letter_are_joined() -> None:
    for answer in (
        "x>1 and y<3",
        "x>1 and x>3",
        "x<3 and x<1",
        "x>1 and x<3 or x>5",
        "x>1 and x<3 and x<4",
        "x>1 and x\\ne 3",
    ):
        assert not right("(1,3)", answer), answer
    assert not right("(-\\infty,1)\\cup(3,\\infty)", "x<1 or y>3")
    assert not right("x<1 and x>0 or x>3", "x<1 or x>0 and x>3")
    assert right("x>1, y<3", "y<3 and x>1")
    assert not right("x>1 \\text{ and } y<3", "x>1 \\text{ or } y<3")
    assert not any(right("p\\land q", other) for other in ("p, q", "p\\lor q"))


def test_p04_what_is_read_by_lists_is_read_in_time() -> None:
    for unit in (
        "k, ",
        "( ",
        " for ",
        "integer ",
        "\\{",
        "\\{1|",
        "x>1 and ",
        "\\text{a}",
        "|k\\in\\mathbb{Z}",
        "n\\choose ",
    ):
        started = time.process_time()
        answer = (unit * 200)[:390]
        assert judge_math(f"Answer: {answer}", ["2k, k\\in\\mathbb{Z}"]).reason is not Reason.CORRECT
        assert time.process_time() - started < 1, unit
