"""P4: answers that rules make right or wrong: gold answer × form of it × what keeps or destroys its value."""

import math
import random
import time
from fractions import Fraction
from itertools import permutations, product
from string import ascii_letters

import pytest

from compositionality.domains.math.expressions import is_expression
from compositionality.domains.math.judge import judge_math
from compositionality.domains.math.units import _COUNTED, _UNITS, unit_of
from compositionality.types import Reason

NUMBERS = ("5", "120", "-3", "1000000", "\\frac{2}{7}", "2.5")
SYMBOLS = ("x+1", "2\\sqrt{3}", "x^{2}+2x^{3}")
VARIABLES = (
    "x", "N", "a_{10}", "\\theta", "f(2)", "P(A|B)", "AB", "\\angle ABC", "m+n", "\\text{Total area}", "f^{-1}(3)",
    "\\vec v", "\\vec{AB}",
)  # fmt: skip
OTHERS = (
    "x^2", "2x", "x+1", "-x", "|x|", "\\frac{1}{x}", "\\sqrt{x}", "1/x", "x^{-1}", "\\log x", "xy", "10^x", "2+2",
)  # fmt: skip
CHANGING = (
    "fourths", "tenths", "zeros", "million", "lakh", "crore", "gross", "dozen", "score", "below", "minus", "not",
    "one", "half", "pi", "ppm", "squared", "factorial", "mod", "M", "k", "e", "x", "quadrillion", "or",
    "times two", "pm or am",
)  # fmt: skip
UNITS = (
    "cm", "square feet", "m/s^2", "N\\cdot m", "miles per hour", "dollars", "p.m.", "apples", "cubic inches", "kg",
)  # fmt: skip


def right(gold: str, answer: str) -> bool:
    return judge_math(f"so \\boxed{{{answer}}}", [gold]).score == 1


UNWORKED = {
    "product": lambda x, y: (f"{x} \\cdot {y}", x * y),
    "brackets": lambda x, y: (f"({x})({y})", x * y),
    "nested fraction": lambda x, y: (rf"\frac{{{x}}}{{\frac{{1}}{{{y}}}}}", x * y),
    "product of fractions": lambda x, y: (rf"\frac{{{x}}}{{2}}\frac{{{2 * y}}}{{1}}", x * y),
    "fraction": lambda x, y: (rf"\frac{{{x * y}}}{{{y}}}", x),
    "slash": lambda x, y: (f"{x * y}/{y}", x),
    "colon": lambda x, y: (f"{x * y}:{y}", x),
    "over": lambda x, y: (rf"{x * y} \over {y}", x),
    "remainder": lambda x, y: (rf"{x * y} \mod {y + 1}", x * y % (y + 1)),
    "remainder in words": lambda x, y: (rf"{x * y} \bmod {y + 1}", x * y % (y + 1)),
    "power": lambda x, _: (f"{x}^2", x * x),
    "binomial": lambda x, _: (rf"\binom{{{x}}}{{2}}", x * (x - 1) // 2),
    "factorial": lambda x, _: (f"{x % 6 + 3}!", math.factorial(x % 6 + 3)),
    "sum": lambda x, y: (f"{x}+{y}", x + y),
}
"""Questions whose answer is a plain number, by their two numbers."""


@pytest.mark.parametrize("name", UNWORKED)
def test_p04_the_question_is_no_answer_where_that_is_a_plain_number(name: str) -> None:
    rng = random.Random(name)
    asked = [UNWORKED[name](rng.randrange(11, 99), rng.randrange(11, 99)) for _ in range(20)]
    assert [question for question, answer in asked if right(str(answer), question)] == []


DRESSES = ("{}", "{{{}}}", "\\displaystyle {}", "\\left({}\\right)", "{}\\text{{ apples}}", "\\${}", "x = {}", "{}.")


@pytest.mark.parametrize("form", DRESSES)
def test_p04_a_plain_number_in_ordinary_dress_is_right(form: str) -> None:
    assert [number for number in (7, 63, -4, 1591) if not right(str(number), form.format(number))] == []


@pytest.mark.parametrize("gold", [*NUMBERS, *SYMBOLS])
def test_p04_an_equation_counts_if_its_left_side_names_the_right_one(gold: str) -> None:
    assert [name for name in VARIABLES if not right(gold, f"{name} = {gold}")] == []
    assert [name for name in OTHERS if name != gold and right(gold, f"{name} = {gold}")] == []
    assert [name for name in OTHERS if name != gold and right(gold, f"y = {name} = {gold}")] == []
    assert not right(gold, "=".join(["y"] * 10 + [gold]))


@pytest.mark.parametrize("value", ["5", "-3", "\\frac{2}{7}", "2.5", "k+1", "2k^2", "\\sqrt{k}"])
def test_p04_an_equation_has_the_name_and_each_value_of_the_gold_one(value: str) -> None:
    gold, number = f"x={value}", "k" not in value
    assert all(right(gold, form.format(value)) for form in ("{}", "x={}", "x = {0} = {0}"))
    forms = ["y={}", "x=6={}", "x={}=6", "x={}+1={}", "6={}", "-x={}", "x^2={}", "x=k+7={}", "x={0},x={0}"]
    forms += ["x-3={}-3", "x-{}=0", "{}-x=0", "2x=2\\cdot {}", "0=x-{}"] if number else []
    assert [form for form in forms if right(gold, form.format(value, value))] == []


def test_p04_a_sum_names_no_sum_of_the_same_letters() -> None:
    assert right("2k", "a+b=2k")
    assert right("a+b", "c=a+b")
    assert not right("a+b", "a+c=a+b")
    assert not right("x=a+b", "x=a+c=a+b")


@pytest.mark.parametrize("form", ["{} {}", "{}\\text{{ {}}}", "{} \\mathrm{{{}}}", "{}\\,\\text{{{}}}"])
def test_p04_only_a_known_unit_stands_behind_a_number(form: str) -> None:
    for gold, unit in product(("5", "2.5"), UNITS):
        assert right(gold, form.format(gold, unit)), unit
        assert right(form.format(gold, unit), gold) or form == "{} {}", unit
        assert not right(form.format(gold, unit), form.format(gold, "litres")), unit
    for gold, word in product(("5", "2.5"), CHANGING):
        assert not right(gold, form.format(gold, word)), word
        assert not right(gold, form.format(gold, f"{word} cm")), word


UNIT_FORMS = {
    "money": ("\\${}", "{}\\text{{ dollars}}", "\\${}\\text{{ USD}}"), "share": ("{}\\%", "{}%"),
    "angle": ("{}^\\circ", "{}^{{\\circ}}", "{}°", "{}\\text{{ degrees}}", "{}\\degree"),
    "length": ("{}\\text{{ cm}}",), "length in feet": ("{}\\text{{ ft}}",),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "given"), product(UNIT_FORMS, repeat=2))
def test_p04_signs_are_units(asked: str, given: str) -> None:
    for gold, answer, value in product(UNIT_FORMS[asked], UNIT_FORMS[given], ("5", "\\frac{2}{7}", "2\\sqrt{3}")):
        assert right(gold.format(value), answer.format(value)) == (asked == given), (gold, answer)
        assert right(gold.format(value), value)
        assert right(value, answer.format(value))


SHARES = ("{}%", "{}\\%", "{} \\%.", "x = {}\\%", "({}\\%)", "{} \\text{{ percent}}")
TERMS = ("50", "-2.5", "2\\sqrt{3}", "\\frac{a+b}{2}", "50x", "\\frac{1}{2}")


@pytest.mark.parametrize("term", TERMS)
def test_p04_a_percent_sign_is_a_unit_behind_a_whole_term_alone(term: str) -> None:
    """A part of a sum or a product with the sign has another value: x+50% is no x+50, 50%x no 50x."""
    assert [form for form in SHARES if not right(term, form.format(term))] == []
    assert right(f"{term},{term}", f"{term}\\%, {term}\\%")
    for joined in (
        "x+{}",
        "x-{}",
        "7+{}",
        "{}y",
        "{}+7",
        "{}\\cdot y",
        "\\frac{{{}}}{{7}}",
        "\\sqrt{{{}}}",
        "y\\cdot {}",
        "7\\times {}",
    ):
        for gold, answer in ((term, f"{term}\\%"), (f"{term}\\%", term)):
            assert not right(joined.format(gold), joined.format(answer)), joined


SPELLINGS = (
    ("{}", "{}cm"), ("{}", "{}cm^2"), ("{}", "{}cm/s"),
    (r"{}\text{{ cm}}", "{}cm"), ("{} cm^2", "{}cm^2"), ("{}", "{} °C"),
    (r"{}^\circ \text{{C}}", "{}°C"), ("{}", r"{}^{{\circ}}\mathrm{{C}}"), ("{}", "{} cents"),
    (r"{}\text{{ cents}}", "{}¢"), (r"{}\text{{ rad}}", "{} radians"),
    (r"\frac{{{}\pi}}{{{}}}", r"{}\pi/{} \text{{ rad}}"), ("{}, {}", "{} cm, {} cm"), ("{}, {}", "{}cm,{}cm"),
    ("{}, {}", "{};{}"), ("({},{})", "({}; {})"), ("[{},{})", "[{};{})"), (r"\{{{},{}\}}", "{};{}"),
    ("{};{}", "{}, {}"),
    ("x={},x={}", "{}; {}"), (r"\frac{{{}}}{{{}}}", r"{{{}\over {}}}"), (r"\frac{{{}}}{{{}}}", r"{}\over{}"),
    (r"\sqrt{{\frac{{{}}}{{{}}}}}", r"\sqrt{{{} \over {}}}"), (r"x+\frac{{{}}}{{{}}}", r"x+{{{}\over {}}}"),
    (r"\frac{{{}}}{{{}}}", r"{{{{{}}}\over{{{}}}}}"), (r"\frac{{{}}}{{{}}}", r"x={}\over{}"),
    (r"\frac{{{}\pi}}{{{}}}", r"{{{{{}\pi}}\over {}}}"), (r"\frac{{{}}}{{{}}}", r"\frac{{{{{}}}}}{{{{{}}}}}"),
    (r"-{}", r"-{{{}}}"), (r"x=-{}", r"-{{{{{}}}}}"), ("{}", r"\text{{The answer is: }}{}"),
    *(("{}", rf"\{style} {{}}") for style in ("bf", "it", "textstyle", "Large")),
    *((r"\frac{{n(n+{})}}{{1{}}}", form) for form in (
        r"{{n(n+{})\over 1{}}}", r"n(n+{})\over 1{}", r"\mathbf{{n(n+{})\over 1{}}}", r"S=n(n+{}) \over 1{}")),
    ("y={}x+{}", "f(x)={}x+{}"), ("f(x)={}x+{}", "y={}x+{}"), ("{}:{}", r"{} \colon {}"),
    ("x={}, x={}", "x_1={}, x_2={}"),
    (r"\frac{{\sqrt{{{}}}}}{{{}}}", r"{{{{\sqrt{{{}}}}}\over{{{}}}}}"),
    (r"{}\times 10^{{5}}", r"{}\times {{10}}^{{5}}"),
    (r"5\frac{{{}}}{{1009}}", r"5{{{}\over 1009}}"),
    (r"{}\sqrt{{{}}}", "{}√{}"), (r"\frac{{\sqrt{{{}}}}}{{2}}", r"\frac{{\sqrt{{{}}}}}2"),
    (r"{}\vec{{a}}", r"{}\vec a"), (r"{}.{}\overline{{3}}", r"{}.{}\overline 3"), (r"\bar x={}", r"\bar{{x}}={}"),
    ("{}:{}", r"{}\text{{ to }}{}"), ("{}:{}", "a:b={}:{}"), (r"\vec{{u}}_{}+\vec{{v}}", r"\vec{{v}}+\vec{{u}}_{}"),
    *((rf"\l{end}\frac{{{{x}}}}{{{{{{}}}}}}\r{end}", rf"\l{end} x/{{}} \r{end}") for end in ("floor", "ceil", "vert")),
    (r"\frac{{x}}{{{}}}\le y", r"x/{}\leqslant y"),
    (r"\pm {}", r"\pm{{{}}}"), (r"-{0}, {0}", r"\{{\pm {0}\}}"),
    (r"({},{})", r"(x,y)=({},{})"), (r"(x,y)=({},{})", "x={}, y={}"), ("x={}, y={}", "(x,y)=({},{})"),
    ("(x,y)=({0},{1})", "y={1}, x={0}"), ("x={}, y={}", "({},{})"),
    (r"\sqrt{{{}.5}}", "√{}.5"), (r"\frac{{x}}{{1{}}}", r"1/1{}\cdot x"),
    *((f"x{less} {{}}", f"x {sign} {{}}") for less, signs in (
        ("<", ("\\lt",)), (">", ("\\gt",)), (r"\le", ("<=", "⩽", r"\leqq")), (r"\ge", (">=", "⩾", r"\geqq")))
      for sign in signs), ("{},{}", "x={}, y={}"), ("{}_8", "({})_{{8}}"),
    (r"\begin{{pmatrix}}{}\\{}\end{{pmatrix}}", r"\left[\begin{{array}}{{c}}{} \\ {}\end{{array}}\right]"),
    (r"\begin{{pmatrix}}{}\\{}\end{{pmatrix}}", r"(\begin{{matrix}}{} \\ {}\end{{matrix}})"),
    (r"\frac{{{}}}{{{}}}", r"({}\over {})"), (r"\frac{{{}}}{{{}}}", r"\left({} \over {}\right)"),
    ("({},{})", "({} cm,{} cm)"),
    ("[{},{}]", r"[{}\text{{ m}}, {}\text{{ m}}]"), (r"\{{{},{}\}}", r"\{{{}\text{{ s}}, {}\text{{ s}}\}}"),
    (r"{}\text{{ m}}", "{}m"), (r"{}\text{{ m}}", "{} m"), (r"{}\text{{ m/s}}", "{}m/s"),
    (r"{}\text{{ m}}, {}\text{{ m}}", "{}m, {}m"),
    ("e^{{{}x}}", r"e^{{{}\cdot x}}"), ("2^{{{}n+{}}}", r"2^{{{} \times n+{}}}"), ("{}e^{{{}x}}", "{}*e^{{{}*x}}"),
)  # fmt: skip
"""Usual spellings of one answer, by its numbers."""


@pytest.mark.parametrize(("gold", "answer"), SPELLINGS)
def test_p04_another_spelling_is_right_with_the_same_numbers_and_no_others(gold: str, answer: str) -> None:
    count = gold.count("{}")
    unordered = set(",;") & set(gold) and not set("([") & set(gold)
    for numbers in ((3, 7), (12, 35), (234, 11), (1, 234)):
        asked = gold.format(*numbers)
        assert right(asked, answer.format(*numbers)), asked
        for others in ((numbers[0] + 1, numbers[1]), (numbers[0], 10 * numbers[1]), (numbers[1], numbers[0])):
            same = others[:count] == numbers[:count] or (unordered and others == numbers[::-1])
            assert same or not right(asked, answer.format(*others)), (asked, others)
        assert not right("".join(map(str, numbers)), answer.format(*numbers)) or count == 1


OTHER_UNITS = (
    (r"{}\text{{ cm}}", ("{}km", "{}cm^2", "{}m", "{}mg")), (r"{}^\circ\text{{C}}", ("{}°F", "{}°", "{} cm")),
    (r"{}\text{{ m}}", ("{}s", "{}k", "{}m^2", "{}x")), ("{}", ("{}m", "{}s")),
    ("({0},2)", ("({0} cm, 2 m)", "({0}m, 2m)")),
    (r"{}^\circ", ("{} rad", "{}°C")), (r"\${}", ("{} cents", "{}¢")), (r"{}\text{{ cents}}", (r"\${}", "{} dollars")),
    ("{0}, 2", ("{0} cm, 2 m", "{0} cm; 2 kg")), ("{}mg", ("{}", "{}g", "{}m")), ("{}000", (r"{}\cdot e3",)),
    (r"{}\frac{{1}}{{2}}", (r"{}\cdot\frac{{1}}{{2}}",)), ("1{0}", ("1cm,{0}cm", "1 cm,{0} cm", "1;{0}")),
)  # fmt: skip


@pytest.mark.parametrize(("gold", "answers"), OTHER_UNITS)
def test_p04_a_spelling_with_another_unit_or_value_is_wrong(gold: str, answers: tuple[str, ...]) -> None:
    for number in (3, 12, 250, 234):
        assert [form for form in answers if right(gold.format(number), form.format(number))] == []


def test_a_unit_has_one_way_of_writing() -> None:
    for first, second in (
        ("cm^2", "square centimeters"),
        ("ft/s", "feet per second"),
        ("p.m.", "pm"),
        ("boxes", "box"),
    ):
        assert unit_of(first) == unit_of(second) is not None
    assert all(unit_of(f"{word}s") for word in _COUNTED.split())
    assert not any(
        map(unit_of, ("", "M", "Mm", "ss", "square", "cm/", "cm per", "s of", "sq ft^2", "cubic cm²", "x" * 400))
    )


BETWEEN = (
    " ", "~", "\\,", "\\;", "\\:", "\\ ", "\\!", "  ", "\\quad ", "$", "$ $", "\\(", "\\) \\(", "\\$", "%", "\\%", "°",
    "^\\circ", "^{\\circ}", "\\degree ", "\\left", "\\right", "\\big", "\\leftarrow ", "\\text{ }", ".\\,", " .",
)  # fmt: skip
THIN = BETWEEN[:7]
"""What may stand between thousands."""


@pytest.mark.parametrize("between", BETWEEN)
def test_p04_what_stands_between_digits_does_not_join_them(between: str) -> None:
    gold = ".".join("53") if "." in between else "53"
    assert not right(gold, f"5{between}3")
    assert not right("5300", f"5{between}300") or between in (*THIN, "\\text{ }")
    assert all(
        right(f"{sign}12345{end}", f"{sign}12{between}345{end}") for sign in ("", "-") for end in ("", ".25")
    ) or (between not in THIN)


@pytest.mark.parametrize("numbers", [(1, 200), (100, 200), (-1, 200), (2, 100, 300), (5, -100)])
@pytest.mark.parametrize("comma", [", ", " , ", ",\\ ", ",\\quad ", "$, $", " \\text{ and } "])
def test_p04_a_comma_with_a_blank_parts_a_list_and_no_thousands(numbers: tuple[int, ...], comma: str) -> None:
    gold, number = ", ".join(map(str, numbers)), "".join(map(str, numbers))
    listed = comma.join(map(str, reversed(numbers)))
    assert right(gold, listed)
    assert right(gold, f"\\{{{listed}\\}}")
    assert right(gold, comma.join(f"x={one}" for one in numbers))
    assert not right(gold, number)
    assert not right(number, comma.join(map(str, numbers)))


@pytest.mark.parametrize("gold", ["7", "120", "1000000", "123456789", "12e7", "1.2\\times 10^8", "5.0"])
def test_p04_a_whole_gold_answer_has_no_tolerance(gold: str) -> None:
    number = int(float(gold.replace("\\times 10^", "e")))
    assert all(
        right(gold, form) for form in (f"{number:,}", f"{number}.0", f"{number}.", f"({number})", f"\\({number}\\)")
    )
    assert not any(right(gold, f"{number + share * number:.9f}") for share in (1e-7, -1e-7, 9e-7))
    assert right(f"{number}.5", f"{number + 0.5 + 1e-7 * number:.9f}")


@pytest.mark.parametrize("gold", [(3, 4), (2, 3, 4), (10, 30), (12, 7), (1, 2, 2, 5)])
def test_p04_a_ratio_has_the_gold_parts_in_their_order(gold: tuple[int, ...]) -> None:
    text = ":".join(map(str, gold))
    wrong = {":".join(map(str, parts)) for parts in permutations(gold)} - {text}
    wrong |= {
        ":".join(str(2 * part) for part in gold),
        text + ":1",
        "1:" + text,
        ":".join(map(str, gold[:-1])),
        text[1:],
    }
    wrong |= {str(gold[0] / math.prod(gold[1:])), f"1/{math.prod(gold[1:])}", "\\frac{1}{3}", "".join(map(str, gold))}
    wrong |= {",".join(map(str, gold)), f"({','.join(map(str, gold))})"}
    assert [answer for answer in sorted(wrong) if right(text, answer)] == []
    assert all(right(text, form) for form in (text, text.replace(":", " : "), text.replace(":", "{:}"), f"a = {text}"))
    assert right(text, f"\\frac{{{gold[0]}}}{{{gold[1]}}}") == right(text, f"{gold[0]}/{gold[1]}") == (len(gold) == 2)


@pytest.mark.parametrize("gold", ["x+1", "x^2+2x^3", "\\frac{x}{n}", "1011_2", "A", "xy", "nr", "AB", "\\delta+1"])
def test_p04_case_and_base_count(gold: str) -> None:
    assert right(gold, gold)
    assert not right(gold, gold.upper()) or gold == gold.upper()
    assert not right(gold, gold.replace("\\d", "\\D")) or "\\d" not in gold
    assert not right(gold, gold.lower()) or gold == gold.lower()
    assert not right(gold, gold.partition("_")[0]) or "_" not in gold
    assert not right(gold, f"{gold}_5") or "_" in gold


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("x^2+2x^3", "2x^3+x^2"), ("x^2+y^2=1", "y^2+x^2=1"), ("1000000", "10^6"), ("0.001", "10^{-3}"),
        ("1011_2", "1011_{2}"),
        ("2+\\sqrt3,2-\\sqrt3", "2\\pm\\sqrt3"),
        ("\\frac{1+\\sqrt5}{2},\\frac{1-\\sqrt5}{2}", "x=\\frac{1\\pm\\sqrt{5}}{2}"),
        ("\\sin x", "\\sin(x)"), ("\\cos 2\\theta", "\\cos{2 \\theta}"), ("\\pi r^2", "r^2 \\pi"), ("2 \\cdot x", "2x"),
        ("\\frac{x}{y}", "\\frac x y"), ("\\frac{1}{2}", "\\frac 1 2"), ("x\\sqrt{3}", "\\sqrt 3 \\times x"),
        ("\\log_2 x", "\\log_{2}(x)"), ("\\log_{10} 2", "\\log_{10}(2)"),
        *((letter, f"\\left({text}\\right)") for letter in "Bx" for text in (letter, f"\\text{{{letter}}}")),
        ("\\text{No}", "no"), ("No", "\\text{NO}"), ("Yes", "YES"), ("no", "No"), ("12", "\\text{12 cm}"),
        ("2\\sqrt{3}", "\\left(2\\sqrt{3}\\right)"), ("-x", "((-x))"), ("3:4", "(3:4)"), ("12", "\\boldsymbol{12}"),
        ("12", "12 \\textrm{ cm}"), ("12", "\\mbox{12}"), ("x^{2}", "\\mathbf{x^2}"), ("\\emptyset", "\\{\\}"),
        ("\\emptyset", "∅"), ("3,-3", "±3"), ("x\\le 5", "x ≤ 5"), ("(-\\infty,\\infty)", "\\mathbb{R}"),
        ("\\{5\\}", "x=5"), ("\\vec{a}=(1,2)", "(1,2)"), ("\\overrightarrow{AB}=(1,2)", "(1,2)"),
        ("3,-3", "3 or -3"), ("3,-3", "x=3 or x=-3"), ("\\sqrt[3]{2}", "2^{\\frac{1}{3}}"),
        ("10:30", "10:30\\text{ AM}"),
        ("A\\cup B", "B\\cup A"), ("(A\\cap B)\\cup C", "C ∪ (A\\cap B)"), ("\\{a=1,b=2\\}", "b=2, a=1"),
        ("(1,2)", "x=1, y=2"), ("(1,2)", "(x,y)=(1,2)"), ("\\infty", "+\\infty"), ("12000", "12,\\!000"),
        ("25\\pi", "25\\pi\\text{ cm}^2"), ("x=5,y=6", "y=6,x=5"), ("x=5,y=6", "5,6"), ("(x^2+1)^2", "(1+x^2)^2"),
    ],
)  # fmt: skip
def test_p04_other_notations_of_the_same(gold: str, answer: str) -> None:
    assert right(gold, answer)


@pytest.mark.parametrize(
    ("low", "high"), product(("-2", "0", "\\frac{1}{2}", "-\\infty"), ("3", "\\sqrt{2}", "\\infty"))
)
def test_p04_an_inequality_of_a_letter_is_its_interval_and_no_other(low: str, high: str) -> None:
    signs = {"(": ("<", ">"), "[": ("\\le ", "\\geq ")}
    closing = {")": "(", "]": "["}
    written = {}
    for (opened, (less, more)), (closed, kind) in product(signs.items(), closing.items()):
        (last, first), sides = (
            signs[kind],
            {f"{low}{less}x{signs[kind][0]}{high}", f"{high}{signs[kind][1]}t{more}{low}"},
        )
        sides |= {f"y{last}{high}", f"{high}{first}y"} if (low, opened) == ("-\\infty", "(") else set()
        sides |= {f"y{more}{low}", f"{low}{less}y"} if (high, closed) == ("\\infty", ")") else set()
        written[f"{opened}{low},{high}{closed}"] = sides
    for (gold, ours), (other, theirs) in product(written.items(), repeat=2):
        assert all(right(gold, form) and right(form, gold) for form in ours), ours
        assert not any(right(gold, form) or right(form, gold) for form in theirs if gold != other), (gold, theirs)
    union = f"(-\\infty,{low})\\cup({high},\\infty)"
    assert right(union, f"x<{low} \\text{{ or }} x>{high}") or "infty" in low + high
    assert not right(union, f"x<{low}")


@pytest.mark.parametrize("form", ["a<x<b", "1<x>5", "xy<3", "2x<3", "x<y", "1<2<3", "x<3,y>1", "x<x", "x\\ne 3"])
def test_p04_no_other_inequality_is_an_interval(form: str) -> None:
    ends = ("a", "b", "1", "2", "3", "5", "y", "x", "-\\infty", "\\infty", "\\frac{3}{2}")
    assert [pair for pair in product(ends, repeat=2) if right(f"({pair[0]},{pair[1]})", form)] == []


@pytest.mark.parametrize(("head", "again"), product(("0.", "-2.", "0.1", "13.05"), ("3", "9", "142857", "03")))
def test_p04_a_repeating_decimal_is_its_fraction(head: str, again: str) -> None:
    places = len(head.partition(".")[2])
    start, period = Fraction(head + "0"), Fraction(int(again), (10 ** len(again) - 1) * 10**places)
    value = start - period if head[0] == "-" else start + period
    gold = f"\\frac{{{value.numerator}}}{{{value.denominator}}}" if value.denominator > 1 else str(value)
    assert right(gold, f"{head}\\overline{{{again}}}")
    assert right(f"{head}\\overline{{{again}}}", gold)
    assert not right(gold, f"{head}7\\overline{{{again}}}")


@pytest.mark.parametrize("letter", [*"abeikxyzN", "\\pi", "\\theta"])
@pytest.mark.parametrize("product", ["7 {}", "7\\cdot {}", "{}\\times 7", "{}\\cdot 7", "\\frac{{14 {}}}{{2}}"])
def test_p04_a_product_is_one_however_it_is_written(letter: str, product: str) -> None:
    """A quick trap: math-verify takes i for real in ``7i`` alone."""
    assert right(f"7{letter}", product.format(letter))
    assert right(f"3+7{letter}", f"3+{product.format(letter)}")
    assert not right(f"7{letter}", product.format(letter).replace("7", "8").replace("14", "16"))


@pytest.mark.parametrize(
    ("gold", "value"),
    [
        ("2\\sqrt{3}", 2 * 3**0.5), ("\\frac{\\pi}{4}", math.pi / 4), ("1-\\sqrt{2}", 1 - 2**0.5), ("e^2", math.e**2),
        ("\\frac{1}{3}", 1 / 3), ("10\\ln 2", 10 * math.log(2)), ("-\\frac{22}{7}", -22 / 7),
    ],
)  # fmt: skip
@pytest.mark.parametrize("digits", [1, 2, 3, 6])
@pytest.mark.parametrize("sign", ["\\approx", " \\approx ", "≈", " ≈ "])
def test_p04_a_decimal_beside_an_answer_is_what_it_rounds_to(gold: str, value: float, digits: int, sign: str) -> None:
    assert right(gold, f"{gold}{sign}{value:.{digits}f}")
    for wrong in (value + 10**-digits, value - 10**-digits, value + 1, -value):
        assert not right(gold, f"{gold}{sign}{wrong:.{digits}f}")
    assert not right(gold, f"{gold}{sign}{value:.{digits}f}{sign}{value:.{digits}f}")
    assert not right(gold, f"7{sign}{value:.{digits}f}")
    assert not right(gold, f"{value:.{digits}f}{sign}{gold}")


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("2\\pmod{6}", "3-1\\pmod{6}"), ("2\\pmod{6}", "2+od{6},2-od{6}"),
        ("f(x)=2x+3", "2x-y+3=0"), ("2x-y+3=0", "f(x)=2x+3"),
        *((f"{x}=5,{y}=6", "6,5") for x, y in ("xy", ("\\bar x", "\\bar y"), ("\\alpha", "\\beta"))),
        ("x=5,y=6", "x=6,y=5"), ("2\\pm\\sqrt3", "2+\\sqrt3"), ("(1,2)", "(y,x)=(1,2)"),
        ("5s", "5\\cdots"), ("2x", "2\\cdotx"), ("C", "C1"), ("x+1", "x1+1"), ("x+1", 'x"+1'), ("x+1", "x#+1"),
        *(("1,2", f"x={one},y={other}") for one, other in ((2, 1), (2, 2), (1, 3))), ("\\{1,2\\}", "x=1,y=2"),
        *((gold, answer) for gold, answer in permutations(("\\{1,2\\}", "\\{1,\\{2\\}\\}", "\\{\\{1,2\\}\\}"), 2)),
        ("1,2", "\\{1,\\{2\\}\\}"), ("\\{1,\\{2\\}\\}", "1,2"), ("(x,y)=(1,2)", "x=2, y=1"), ("1:2", "b:a=1:2"),
        *((gold, f"{other}=C") for gold in ("C", "\\text{C}", "(C)") for other in ("A", "\\text{A}", "AB", "A=C=B")),
        *((gold, f"{given}\\text{{{other}}}") for gold in ("D", "(D)", "\\text{D}") for other in (" A", "C", "min")
          for given in ("D", "\\text{D}", "(D)", "\\text{(D)}")),
        ("(1,2)", "x=2,y=1"), ("(1,2)", "y=1,x=2"), ("[1,2]", "x=1,y=2"), ("(1,2,3)", "a=1,b=2"),
        *((gold, answer) for gold, answer in permutations(("(x,y)=(1,2)", "a=1,b=2", "1<x<2"), 2)),
        *((gold, answer) for gold, answer in permutations(("(x,y)=(1,2)", "x\\in(1,2)"), 2)),
        ("x=1,y=2", "x\\in(1,2)"), ("x\\in(1,2)", "x=1,y=2"), ("\\vec a=(1,2)", "\\vec b=(1,2)"),
        ("x=1,x=2", "(1,2)"), ("x=1", "(1,1)"), ("y=2,x=1", "(2,1)"), ("x=1,y=2", "[1,2]"),
        ("1<x<2", "x_1=1,x_2=2"), ("(x,y)=(1,2),(3,4)", "x=1,y=2"), ("(x,y,z)=(1,2,3)", "x=1,y=2"),
        *(("\\infty", f"{before}\\infty{after}") for before in ("2", "-", "x") for after in ("", "+1")),
        *(("-\\infty", f"-{before}\\infty{after}") for before in ("2", "\\frac{1}{2}") for after in ("", "^2")),
    ],
)  # fmt: skip
def test_p04_names_and_signs_keep_their_values(gold: str, answer: str) -> None:
    assert not right(gold, answer)


@pytest.mark.parametrize("letter", ["n", "x", "k", "e", "\\delta", "\\omega"])
@pytest.mark.parametrize(("gold", "answers"), [
    ("{0}+2{1}", ("3{0}", "3{1}", "2{0}+{1}")), ("{0}^2+{1}", ("{1}^2+{0}", "{0}^2+{0}")),
    ("\\frac{{{0}}}{{{1}}}", ("\\frac{{{1}}}{{{0}}}", "1")), ("{0}{1}", ("{0}^2", "{1}^2")), ("2{1}", ("{0}+{1}",)),
])  # fmt: skip
def test_p04_a_letter_in_both_cases_is_two_letters(gold: str, answers: tuple[str, ...], letter: str) -> None:
    large = f"\\{letter[1:].title()} " if letter[0] == "\\" else letter.upper()
    small = letter + " " * (len(letter) > 1)
    asked = gold.format(small, large)
    assert right(asked, asked)
    assert right(f"{asked}+\\pi", f"\\pi+{asked}")
    assert [answer for answer in answers if right(asked, answer.format(small, large))] == []


@pytest.mark.parametrize("dress", ["{{ {} }}", "\\mathbf{{{}}}", "\\boldsymbol {{{}}}", "{{\\bm{{ {} }}}}"])
def test_p04_braces_and_styles_around_an_answer_are_not_seen(dress: str) -> None:
    answers = (
        "\\frac{1}{2}", "x=\\frac{\\pi}{3}+2k\\pi, k\\in\\mathbb{Z}", "x<1 \\text{ or } x>3", "\\text{even}",
        "5 \\text{ cm}", "-{7}", "\\{1,\\frac{3}{2}\\}", "\\text{no solution}", "(\\text{B})", "y=x+\\sqrt{2}",
        "p\\land \\neg q",
    )  # fmt: skip
    for gold, answer in product(answers, repeat=2):
        assert right(gold, dress.format(answer)) == (gold == answer), (gold, answer)


PARTED = ("{},{}", "({},{})", "[{},{})", "\\{{{},{}\\}}", "{}:{}", "x={},y={}", "x={},x={}", "({},0)\\cup ({},7)")


@pytest.mark.parametrize("form", PARTED)
@pytest.mark.parametrize("braced", ["{{{}}}", "{{{{{}}}}}", "{{ {} }}"])
def test_p04_braces_around_a_part_are_not_seen(form: str, braced: str) -> None:
    values = ("2", "3", "-1", "\\frac{1}{2}", "{1\\over 2}", "\\sqrt{2}", "\\frac{x}{2}")
    for one, other in permutations(values, 2):
        if {one, other} == {"\\frac{1}{2}", "{1\\over 2}"}:
            continue
        gold, answers = form.format(one, other), [(braced.format(one), other), (one, braced.format(other))]
        answers.append((braced.format(one), braced.format(other)))
        assert [answer for answer in answers if not right(gold, form.format(*answer))] == [], gold
        assert all(right(form.format(*answer), gold) for answer in answers), gold
        assert not right(gold, form.format(braced.format("9"), other)), gold
        assert not right(gold, form.format(one, braced.format(f"{other}+1"))), gold


def test_p04_a_list_in_plain_braces_is_in_any_order() -> None:
    assert all(right("{1,2,x+1}", f"{{{','.join(parts)}}}") for parts in permutations(("1", "2", "1+x")))
    assert not any(right("{1,2}", answer) for answer in ("{1,3}", "{1,1}", "(1,2)", "{1,2,2}", "{12}"))


@pytest.mark.parametrize(("gold", "answer"), [
    ("({2},3)", "(4/2,3)"), ("{2},3", "\\sqrt{4},3"), ("2,3", "{4\\over 2},3"), ("(1,2,3)", "({1,2},3)"),
    *(("1200", form) for form in ("{1},{200}", "1,{200}", "{1},200")),
    ("(1,2)", "({2},{1})"), ("2:3", "{3}:{2}"), ("\\{1,2\\}", "({1},{2})"), ("12", "{1},{2}"),
])  # fmt: skip
def test_p04_braces_hide_nothing(gold: str, answer: str) -> None:
    assert not right(gold, answer)


FACTORS = (
    ("{0}({1})", "({0})({1})", "{0}{{{1}}}", "({0}){{{1}}}", "{{{0}}}{{{1}}}", "{0}[{1}]", "{0}(({1}))", "{0}({{{1}}})",
     "{0}(+{1})", "\\frac{{{0}0}}{{10}}({1})", "\\frac{{{0}0}}{{10}}\\frac{{{1}0}}{{10}}", "{0}(\\frac{{{1}0}}{{10}})",
     "{0}({1}0/10)", "{0}\\frac{{{1}\\binom{{5}}{{2}}}}{{10}}"),
    ("{0}\\binom{{{1}}}{{1}}", "\\binom{{{0}}}{{1}}\\binom{{{1}}}{{1}}", "\\binom{{{0}}}{{1}}({1})",
     "\\frac{{\\binom{{{0}}}{{1}}\\binom{{{1}}}{{1}}}}{{\\binom{{7}}{{0}}}}", "{0}(\\binom{{{1}}}{{1}})"),
)  # fmt: skip
PLACES = (
    "{}x",
    "x+{}",
    "x-{}",
    "\\frac{{x}}{{{}}}",
    "{}\\pi",
    "\\sqrt{{{}}}x",
    "\\frac{{{}}}{{x}}",
    "\\sqrt{{{}+x}}",
    "x={}y",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", [form for forms in FACTORS for form in forms])
def test_p04_two_numbers_side_by_side_are_a_product(form: str, place: str) -> None:
    """math-verify takes each pair for a mixed number, 2(3) for 5."""
    for pair in ((3, 2), (7, 12)):
        answer = place.format(form.format(*pair))
        assert right(place.format(math.prod(pair)), answer), answer
        assert not right(place.format(sum(pair)), answer), answer


@pytest.mark.parametrize(
    ("gold", "answer", "others"),
    [
        ("2\\binom{8}{4}", "140", ("72", "2+\\binom{8}{4}")), ("\\binom{4}{2}\\binom{5}{2}", "60", ("16",)),
        ("\\frac{\\binom{4}{2}\\binom{6}{3}}{\\binom{10}{5}}", "\\frac{10}{21}", ("\\frac{13}{126}",)),
        ("2\\binom{n}{0}x", "2x", ("3x",)), ("3\\binom{n}{2}", "\\frac{3n(n-1)}{2}", ("3+\\frac{n(n-1)}{2}",)),
        ("2\\frac{-1}{-3}x", "\\frac{2x}{3}", ("\\frac{7x}{3}",)),
        ("x+2\\frac{1}{3}", "x+\\frac{7}{3}", ("x+\\frac{2}{3}",)), ("x+2{1\\over 3}", "x+\\frac{7}{3}", ()),
        ("x+\\log_{2}(8)", "\\log_{2}(8)+x", ("x+\\log_{2}(16)",)), ("\\sin^{2}(2)", "1-\\cos^{2}(2)", ("2\\sin(2)",)),
        ("\\sqrt[3]{2}(5)", "5\\sqrt[3]{2}", ("5+\\sqrt[3]{2}",)), ("x^{2}(x+1)", "x^3+x^2", ("x^{2x+2}",)),
        ("\\binom{n}{2}+N", "N+\\binom{n}{2}", ("\\binom{N}{2}+n",)),
        ("x_1(2)", "2x_1", ("x_1+2",)), ("2^{3}(4)x", "32x", ("12x", "2^{12}x")), ("-2(3)x", "-6x", ("x", "-5x")),
    ],
)  # fmt: skip
def test_p04_a_product_of_numbers_has_its_value_and_no_other(gold: str, answer: str, others: tuple[str, ...]) -> None:
    assert right(gold, answer)
    assert [other for other in others if right(gold, other)] == []


SIDES = (
    ("2x+1", "y"), ("x^2", "y-3"), ("\\sin x", "2y"), ("\\sqrt{x}", "y+\\sqrt{3}"), ("\\ln x", "y"),
    ("\\frac{1}{x}", "y"), ("x^2+1", "0"), ("|x|", "-2"),
)  # fmt: skip
SIGNS = {"=": "=", "<": ">", ">": "<", "\\le ": "\\ge ", "\\ge ": "\\le ", "\\ne ": "\\ne "}
"""Each with that of the sides exchanged."""


@pytest.mark.parametrize(("sides", "sign"), product(SIDES, SIGNS))
def test_p04_a_relation_is_right_times_a_number_and_with_its_sides_exchanged(sides, sign, monkeypatch) -> None:
    """math-verify would solve it: for seconds, and two without solutions are the same to it."""
    monkeypatch.delattr("math_verify.grader.solve")
    (a, b), turned = sides, SIGNS[sign]
    same = (f"{b}{turned}{a}", f"({a})-({b}){sign}0", f"3({a}){sign}3({b})", f"-({a}){turned}-({b})")
    other = (f"{a}+1{sign}{b}", f"3({a}){sign}2({b})+1", f"\\sec({a}){sign}{b}", f"{a}{sign}{b}-\\tan x")
    other += () if sign == turned else (f"{a}{turned}{b}", f"-({a}){sign}-({b})", f"{b}{sign}{a}")
    assert [answer for answer in same if not right(f"{a}{sign}{b}", answer)] == []
    assert [answer for answer in other if right(f"{a}{sign}{b}", answer)] == []


def test_p05_a_failure_of_sympy_finds_no_equality_and_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert right("x(x+1)", "x^2+x")
    monkeypatch.setattr("compositionality.domains.math.symbols._are_equal", lambda *_: 1 / 0)
    assert judge_math("\\boxed{x^2+x}", ["x(x+1)"]).reason is Reason.WRONG


def test_p04_what_would_keep_sympy_busy_never_gets_there() -> None:
    """Large products in an exponent, powers of powers, of exp and its kin too, deep brackets."""
    inner = (
        "99\\cdot99999",
        "99\\times99",
        "99*99",
        "(99)(99)",
        "9(99(99))",
        "-(-99999999)",
        "x^9",
        "9^9",
        "\\sqrt{9^9}",
    )
    towers: tuple[str, ...] = (
        *(f"9^{{{exponent}}}" for exponent in inner),
        *(f"\\exp({exponent})" for exponent in inner),
    )
    grows = ("\\exp({})", "\\exp {}", "e^{{{}}}", "\\sinh({})", "\\cosh{{{}}}", "\\exp\\frac{{{}}}{{2}}")
    towers += tuple(one.format(other.format("x")) for one, other in product(grows, repeat=2))
    powers = ("9^(999999999)", "9^9^9", "9^\\frac{999}{1}", "x^{\\frac{1}{2}}^{9}", "((x^{99})^{99})^{99}", "x^{100}")
    assert [text for text in (*towers, *powers, "(" * 90 + "x" + ")" * 90) if is_expression(text)] == []


EXPONENTS = (
    ("\\frac{x}{2}", "x/2"), ("-x^2", "-x^{2}"), ("-\\frac{x^2}{2\\sigma^2}", "-\\frac{1}{2\\sigma^2}x^2"),
    ("-(x+1)", "-x-1"), ("n^2+3n+2", "(n+1)(n+2)"), ("3+\\sqrt{x}", "\\sqrt{x}+3"),
)  # fmt: skip


@pytest.mark.parametrize(("one", "other"), EXPONENTS)
def test_p04_an_exponent_may_be_written_in_another_way(one: str, other: str) -> None:
    for base in ("e", "2"):
        assert right(f"{base}^{{{one}}}", f"{base}^{{{other}}}")
        assert not right(f"{base}^{{{one}}}", f"{base}^{{{other}+1}}")
    assert right(f"e^{{{one}}}", f"\\exp({other})")


def test_p04_all_comparisons_of_an_answer_have_one_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of the parts of a set, of which each is compared with each, and of several golds."""

    def compare_for_long(*_: object) -> bool:
        begun = time.process_time()
        while time.process_time() - begun < 0.2:
            pass
        return False

    right("x(x+1)", "x^2+x")
    monkeypatch.setattr("compositionality.domains.math.judge.SYMBOLS_S", 0.3)
    monkeypatch.setattr("compositionality.domains.math.symbols._are_equal", compare_for_long)
    begun = time.process_time()
    verdict = judge_math("\\boxed{\\{x,2x,3x,4x\\}}", ["\\{5x,6x,7x,8x\\}", "\\{9x,x,x,x\\}"])
    assert (verdict.reason, time.process_time() - begun < 0.7) == (Reason.WRONG, True)


@pytest.mark.parametrize(("text", "readings"), [
    ("{0}/{1}x", ("\\frac{{{0}x}}{{{1}}}", "\\frac{{{0}}}{{{1}x}}")),
    ("{0}/{1}(3)x", ("\\frac{{{0}\\cdot 3}}{{{1}}}x", "\\frac{{{0}}}{{{1}\\cdot 3}}x")),
    ("{0}/{1}\\pi", ("\\frac{{{0}\\pi}}{{{1}}}", "\\frac{{{0}}}{{{1}\\pi}}")),
    ("x/{1}\\sqrt{{3}}", ("\\frac{{x\\sqrt{{3}}}}{{{1}}}", "\\frac{{x}}{{{1}\\sqrt{{3}}}}")),
    ("{0}\\div {1}x", ("\\frac{{{0}x}}{{{1}}}", "\\frac{{{0}}}{{{1}x}}")),
    *((f"{{0}}/{divisor}y", (f"\\frac{{{{{{0}}y}}}}{{{{{divisor}}}}}", f"\\frac{{{{{{0}}}}}}{{{{{divisor}y}}}}"))
      for divisor in ("x_1", "|x|", "\\sqrt[3]{{2}}", "\\frac{{1}}{{17}}", "((x+1)^2+1)")),
    ("{0}/x^2y", ("\\frac{{{0}y}}{{x^2}}", "\\frac{{{0}}}{{x^2y}}")),
    ("{0}/(x+1)(x-1)", ("\\frac{{{0}(x-1)}}{{x+1}}", "\\frac{{{0}}}{{(x+1)(x-1)}}")),
    ("{1}\\frac{{{0}}}{{17}}x", ("{1}\\cdot\\frac{{{0}x}}{{17}}", "({1}+\\frac{{{0}}}{{17}})x")),
])  # fmt: skip
def test_p04_what_has_two_readings_is_neither(text: str, readings: tuple[str, ...]) -> None:
    for numbers in ((7, 2), (3, 5)):
        answer = text.format(*numbers)
        assert right(answer, answer)
        assert [reading for reading in readings if right(reading.format(*numbers), answer)] == []
        assert all(right(reading.format(*numbers), f"0+{reading.format(*numbers)}") for reading in readings)
    assert right("\\frac{x}{2}", "1/2\\cdot x")
    assert right("\\frac{x^2y}{2}", "x^2\\frac{1}{2}y")
    assert not right("\\frac{1}{2x}", "1/2\\cdot x")
    assert right("\\frac{7x}{2}", "7\\div 2\\cdot x")
    assert all(
        right(f"\\frac{{7}}{{{divisor}}}", f"7/{divisor}") for divisor in ("\\frac{x}{2}", "x_1^2", "|x|", "(x(x+1))")
    )
    assert not right("\\frac{7}{2x}", "7\\div 2\\cdot x")


@pytest.mark.parametrize("size", range(-12, 4))
def test_p04_a_decimal_is_as_near_to_a_small_number_as_to_a_large_one(size: int) -> None:
    value = math.pi * 10.0**size
    gold = f"\\pi\\times 10^{{{size}}}"
    assert right(gold, f"{value:.{max(9 - size, 1)}f}") or size < -4
    assert right(gold, f"{10 ** max(size, 0)}\\pi" if size >= 0 else f"\\frac{{\\pi}}{{{10**-size}}}")
    assert not any(right(gold, f"{value * share:.{max(9 - size, 1)}f}") for share in (0, 0.99, 1.0001, 0.99999, -1))


@pytest.mark.parametrize("factor", ["5", "\\sqrt{3}", "\\pi", "(x+1)", "\\frac{x}{2}"])
def test_p04_no_factor_can_be_left_out_as_a_unit(factor: str) -> None:
    """math-verify takes letters at the end for units: t, h and 33 more, and 34 pairs."""
    for letters in (*ascii_letters, *(name for name in _UNITS if len(name) == 2 and name.isalpha())):
        assert not right(f"{factor}{letters}", factor), letters


DROPPED = (
    "ldots", "mbox{6}", "mathit{6}", "mod 6", "pmod{6}", "bmod 6", "approx 6", "approx{6}", "equiv 6", "sim 6", "to 6",
    "mid 6", "phantom{6}", "vspace{6}", "vspace", "hspace{6}", "thinspace", "tag{6}", "color{red}6", "prime",
    "cap 6", "setminus 6", "ast 6", "circ 6", "oplus 6", "land 6", "iff 6", "implies 6", "dots+6", "cdots", "unknown",
)  # fmt: skip


@pytest.mark.parametrize("gold", ["x+y", "2\\sqrt{3}", "\\frac{x}{y}", "3+4i", "y=2x+1", "x>5", "\\sin x"])
def test_p04_no_command_is_left_out_unread(gold: str) -> None:
    for command in DROPPED:
        assert not right(gold, f"{gold}\\{command}"), command
        assert not right(gold, f"\\{command} {gold}"), command
