"""P4: notations that are read by a list of them, each beside what looks like it and has another value."""

import time
from itertools import combinations, permutations, product

import pytest

from compositionality.domains.math.expressions import is_expression
from compositionality.domains.math.judge import judge_math
from compositionality.domains.math.numbers import is_above, real_of
from compositionality.types import Reason


def right(gold: str, answer: str) -> bool:
    return judge_math(f"so \\boxed{{{answer}}}", [gold]).score == 1


BODIES = ("2{}", "x=\\frac{{\\pi}}{{4}}+{}\\pi", "x = 2{0}\\pi \\text{{ or }} x = \\pi+2{0}\\pi", "({0},{0}+1)")
SIDES = [
    (*ends, below, above, more_below, more_above, opened, closed)
    for ends in (("1", "\\frac{7}{2}"), ("-\\sqrt{2}", "\\frac{\\pi}{2}"))
    for below, more_below, opened in (("<", ">", "("), ("\\le ", "\\ge ", "["))
    for above, more_above, closed in (("<", ">", ")"), ("\\le ", "\\ge ", "]"))
]
"""Both ends, their signs, the same with the sides exchanged, and the brackets of the interval."""

GROUPS = {
    "family": (
        [tuple(body.format(letter) for letter in ("k", "n", "3k")) for body in BODIES],
        (
            "{0}, k\\in\\mathbb{{Z}}", "{0},\\ k \\in \\mathbb Z", "{0} \\quad (k\\in ℤ)", "{0}, k \\text{{ integer}}",
            "{0} \\text{{ where }} k\\in\\mathbb{{Z}}", "{0}, \\text{{ where }} k \\text{{ is an integer}}",
            "{0} \\text{{ for some integer }} k", "{0}\\text{{ (where k is any integer)}}",
            "\\{{{0} \\mid k\\in\\mathbb{{Z}}\\}}", "\\{{{0} : k \\in \\mathbb{{Z}}\\}}",
            "{1}, n\\in\\mathbb{{Z}}", "{1} \\text{{ for all integers }} n", "\\{{{1} | n\\in\\mathbb{{Z}}\\}}",
            "{1}, n \\in \\mathbf{{Z}}", "{1}, \\forall n\\in Z",
        ),
        (
            "{0}", "{0}, k\\in\\mathbb{{N}}", "{0}, k\\in\\mathbb{{R}}", "{0}, n\\in\\mathbb{{Z}}", "{0}, k=2",
            "{0}, k \\text{{ odd}}", "{0}, \\text{{ where }} k \\text{{ is an even integer}}",
            "{0}, k \\text{{ is no integer}}", "{1}, k\\in\\mathbb{{Z}}", "{2}, k\\in\\mathbb{{Z}}",
            "\\{{{2} \\mid k\\in\\mathbb{{Z}}\\}}", "{2} \\text{{ for some integer }} k",
            "k={0}, k\\in\\mathbb{{Z}}", "\\{{k \\mid k={0}, k\\in\\mathbb{{Z}}\\}}",
            "k\\in\\{{{0} : k\\in\\mathbb{{Z}}\\}}",
        ),
    ),
    "intervals of a family": (
        [tuple(end.format(letter) for letter in "kn" for end in ends) for ends in (
            ("2{}\\pi", "2{}\\pi+\\pi"), ("3{}", "3{}+1"), ("-{}-\\frac{{1}}{{3}}", "-{}"))],
        (
            "{0}<x<{1}, k\\in\\mathbb{{Z}}", "({0},{1}), k\\in\\mathbb{{Z}}",
            "{3}>x>{2} \\text{{ for all integers }} n",
            "\\{{x \\mid {2}<x<{3}, n\\in\\mathbb{{Z}}\\}}", "x\\in({0},{1}) \\text{{ where }} k \\in ℤ",
        ),
        (
            "{0}\\le x<{1}, k\\in\\mathbb{{Z}}", "({0},{1}]", "({1},{0}), k\\in\\mathbb{{Z}}", "{0}<x<{1}",
            "{0}<x<{1}, k\\in\\mathbb{{N}}", "{0}<x<{3}, k\\in\\mathbb{{Z}}", "{0}<k<{1}, k\\in\\mathbb{{Z}}",
            "{0}<2x<{1}, k\\in\\mathbb{{Z}}", "x>{0}, k\\in\\mathbb{{Z}}",
            "\\{{n \\mid {0}<x<{1}, k\\in\\mathbb{{Z}}\\}}",
        ),
    ),
    "inverse function": (
        [*product(("sin", "cos", "tan"), ("2", "x", "\\frac{1}{3}", "\\sqrt{2}"))],
        (
            "\\arc{0} {1}", "\\{0}^{{-1}}{1}", "\\{0}^{{-1}} {1}", "\\{0}^{{ −1 }}({1})",
            "\\operatorname{{arc{0}}}{{{1}}}",
        ),
        (
            "\\frac{{1}}{{\\{0} {1}}}", "\\{0} {1}", "\\{0}^{{-2}}{1}", "(\\{0} {1})^{{-1}}", "\\{0}^{{-1}}5",
            "\\{0}{1}^{{-1}}",
        ),
    ),
    "binomial": (
        [("n", "2"), ("n", "k"), ("m", "3")],
        (
            "\\binom{{{0}}}{{{1}}}", "\\binom {0} {1}", "\\dbinom {0}{1}", "\\tbinom{{{0}}}{1}", "{{{0} \\choose {1}}}",
            "y={{{0} \\choose {1}}}", "\\binom{{{0}}} {1}", "\\binom{0}{{{1}}}",
        ),
        ("\\binom {1} {0}", "\\frac{{{0}}}{{{1}}}", "\\binom {0} 4", "{{{1}\\choose {0}}}", "\\binom {0} {1}+1"),
    ),
    "brackets after a name": (
        [("5",), ("-3",), ("\\frac{1}{2}",), ("x+1",), ("2\\sqrt{3}",)],
        ("{0}", "y=({0})", "y = \\left({0}\\right)", "y=({{{0}}})", "{{({0})}}"),
        ("y=(7)", "m+n=(7)", "y\\in({0})", "y=({0},{0})", "(y=7)"),
    ),
    "fraction in brackets after a name": (
        [("1", "2"), ("12", "35")],
        (
            "-\\frac{{{0}}}{{{1}}}", "x=-({0}\\over {1})", "x = -\\left({{{0} \\over {1}}}\\right)",
        ),
        ("x=-({1}\\over {0})", "x=-{0}", "x=-({0}\\over {1},{0})", "x=({0}\\over {1})", "-(-({0}\\over {1}))"),
    ),
    "no solution": (
        [()],
        (
            "\\emptyset", "\\{{\\}}", "\\text{{no solution exist}}", "No solution exists", "∅",
            "\\text{{no solution}}", "No solutions", "\\text{{There is no solution.}}",
            "\\text{{empty set}}", "x\\in\\emptyset",
        ),
        (
            "no", "0", "\\{{0\\}}", "\\text{{no real solution}}", "\\text{{no positive solutions}}",
            "\\text{{one solution}}", "\\text{{no solution but 5}}", "5 \\text{{ or no solution}}", "\\text{{nothing}}",
            "\\text{{no solution or }} 5", "\\text{{not no solution}}", "\\text{{nonempty set}}",
            "\\text{{no unique solution}}", "\\{{\\emptyset\\}}",
        ),
    ),
    "and": (
        SIDES,
        (
            "{6}{0},{1}{7}", "{0}{2}x{3}{1}", "x{4}{0} \\text{{ and }} x{3}{1}", "x{3}{1} and {0}{2}x",
            "x{3}{1}, \\text{{and }} x{4}{0}", "{0}{2}x \\land x{3}{1}", "x{4}{0} ∧ {1}{5}x",
            "(x{4}{0} \\wedge x{3}{1})",
            "\\{{x \\mid {0}{2}x{3}{1}\\}}", "\\{{x\\in\\mathbb{{R}} : x{3}{1} and x{4}{0}\\}}", "x{3}{1}, x{4}{0}",
        ),
        (
            "x{4}{0} \\text{{ or }} x{3}{1}", "x{3}{1} or x{4}{0}", "x{4}{0} \\lor x{3}{1}", "x{3}{0} and x{4}{1}",
            "(-\\infty,{0}{7}\\cup{6}{1},\\infty)", "x{4}{0} and y{3}{1}", "x{4}{0} and x{4}{1}", "x{3}{0} and x{3}{1}",
            "x{4}{0} and x{3}{1} or x>5", "x{4}{0} and x{3}{1} and x<2", "x{4}{0} and x\\ne {1}",
            "\\{{y \\mid {0}{2}x{3}{1}\\}}", "\\{{x\\in\\mathbb{{Z}} : {0}{2}x{3}{1}\\}}", "x{3}{0}, x{4}{1}",
        ),
    ),
    "or": (
        SIDES,
        (
            "(-\\infty,{0}{7}\\cup{6}{1},\\infty)", "x{3}{0} \\text{{ or }} x{4}{1}", "x{4}{1} or x{3}{0}",
            "x{3}{0} \\lor {1}{2}x", "x{3}{0} ∨ x{4}{1}", "\\{{x : x{3}{0} \\vee x{4}{1}\\}}", "x{3}{0}, x{4}{1}",
            "(-\\infty,{0}{7}\\bigcup {6}{1},\\infty)",
        ),
        (
            "x{3}{0} \\text{{ and }} x{4}{1}", "x{4}{1} and {0}{5}x", "x{3}{0} \\land x{4}{1}", "{1}{2}x{3}{0}",
            "{6}{0},{1}{7}", "x{3}{0} or y{4}{1}", "x{3}{0} or x{4}{1} and x>0", "\\mathbb{{R}}", "\\emptyset",
            "\\{{y : x{3}{0} \\vee x{4}{1}\\}}", "x{4}{0}, x{3}{1}", "(-\\infty,{0}{7}\\cap {6}{1},\\infty)",
        ),
    ),
    "letter": (
        [("\\theta", "x"), ("N", "n"), ("\\lambda", "\\mu"), ("t", "T")],
        (
            "1<{0}\\le 4", "4 \\ge {0} > 1", "{0}>1, {0}\\le 4", "{0}\\le 4 \\text{{ and }} 1<{0}", "{0} \\in (1,4]",
            "\\{{{0} \\mid 1<{0}\\le 4\\}}", "\\{{{0}\\in\\mathbb{{R}} : {0}>1 \\land {0}\\le 4\\}}",
        ),
        (
            "1<{1}\\le 4", "{1} \\in (1,4]", "1\\le {0}<4", "1<{0}", "{0}\\le 4", "-4\\le {0}<-1",
            "{0}>1 \\text{{ or }} {0}\\le 4", "{0}<1, {0}\\ge 4", "{0}>1, {1}\\le 4", "\\{{{1} \\mid 1<{0}\\le 4\\}}",
            "1<{0}\\le {1}", "{1}<{0}\\le 4", "[1,4)", "{0} \\in [1,4)", "1<{0}^2\\le 4", "\\emptyset",
        ),
    ),
    "residue class": (
        [("2", "6"), ("3", "11"), ("0", "4")],
        (
            "{0} \\pmod {{{1}}}", "x \\equiv {0} \\pmod{{{1}}}", "{0}\\pmod {1}", "{0}\\;(\\bmod\\;{1})",
            "{0} \\bmod {1}", "{0} \\text{{ mod }} {1}", "x≡{0}\\ (\\text{{mod }}{1})",
            "x \\equiv {0}\\,(\\mathrm{{mod}}\\,{1})",
            "{1}k+{0}, k\\in\\mathbb{{Z}}", "\\{{{0}+{1}n \\mid n\\in\\mathbb{{Z}}\\}}",
        ),
        (
            "{0}", "{1}", "{1} \\pmod {{1{0}}}", "{0} \\pmod {{1{1}}}", "5{0} \\pmod {1}", "x \\equiv {0}",
            "{0} \\pmod n", "x \\not\\equiv {0} \\pmod {1}", "2x \\equiv {0} \\pmod {1}",
            "x^2 \\equiv {0} \\pmod {1}", "{1}k+{0}",
            "{1}k+{0}, k\\in\\mathbb{{N}}", "{1}k+{0}+1, k\\in\\mathbb{{Z}}", "{0}k+{1}, k\\in\\mathbb{{Z}}", "{0},{1}",
            "x={0}", "{0} \\pmod {1}, 1 \\pmod {1}", "\\pm 1 \\pmod {1}", "{0}:{1}", "\\frac{{{0}}}{{{1}}}", "{0}mod",
        ),
    ),
    "all but an interval": (
        [("1", "3"), ("-\\sqrt{2}", "\\frac{1}{2}"), ("0", "2\\pi"), ("\\frac{1-\\sqrt{5}}{2}", "\\sqrt[3]{2}")],
        (
            "\\mathbb{{R}} \\setminus [{0},{1}]", "(-\\infty,{0})\\cup({1},\\infty)",
            "\\mathbb R \\backslash [{0}, {1}]", "\\mathbb{{R}} - [{0},{1}]", "x<{0} \\text{{ or }} x>{1}",
            "x \\in \\mathbb{{R}}\\setminus[{0},{1}]",
            "(-\\infty,\\infty)\\setminus [{0},{1}]", "({1},\\infty)\\cup(-\\infty,{0})",
        ),
        (
            "\\mathbb{{R}}\\setminus({0},{1})", "\\mathbb{{R}}\\setminus[{0},{1})", "\\mathbb{{R}}\\setminus({0},{1}]",
            "\\mathbb{{R}}\\setminus\\{{{0},{1}\\}}", "[{0},{1}]", "\\mathbb{{R}}", "\\mathbb{{R}}\\cap[{0},{1}]",
            "\\mathbb{{Z}}\\setminus[{0},{1}]", "[{0},{1}]\\setminus\\mathbb{{R}}", "\\mathbb{{R}}\\setminus[{1},{0}]",
            "\\mathbb{{R}}\\setminus {0}", "\\mathbb{{R}}\\cup[{0},{1}]", "\\mathbb{{R}}\\setminus[{0},\\infty)",
            "\\mathbb{{R}}\\setminus[{0},{1}]\\cup\\{{{0}\\}}", "\\mathbb{{R}}\\setminus[{0},a]", "\\emptyset",
        ),
    ),
    "all but numbers": (
        [("1", "3"), ("-\\sqrt{2}", "\\frac{1}{2}"), ("0", "2\\pi")],
        (
            "\\mathbb{{R}}\\setminus\\{{{0},{1}\\}}", "\\mathbb{{R}} - \\{{{1}, {0}\\}}",
            "(-\\infty,{0})\\cup({0},{1})\\cup({1},\\infty)", "x\\in\\mathbb{{R}}\\backslash\\{{{0},{1}\\}}",
            "\\mathbb{{R}}\\setminus(\\{{{1}\\}}\\cup\\{{{0}\\}})",
        ),
        (
            "\\mathbb{{R}}\\setminus\\{{{0}\\}}", "\\mathbb{{R}}\\setminus\\{{{0},{1},7\\}}", "\\{{{0},{1}\\}}",
            "\\mathbb{{R}}", "\\mathbb{{R}}\\setminus({0},{1})", "\\mathbb{{R}}\\setminus\\{{{0},{0}\\}}", "({0},{1})",
            "\\{{{0},{1}\\}}-\\mathbb{{R}}", "(-\\infty,{0}]\\cup({0},{1})\\cup({1},\\infty)",
            "(-\\infty,{0})\\cup({1},\\infty)", "\\mathbb{{R}}\\setminus{0},{1}",
        ),
    ),
}  # fmt: skip
"""Values, the forms that are one answer of them, and forms that are others."""


@pytest.mark.parametrize(("name", "values"), [(name, one) for name, (values, *_) in GROUPS.items() for one in values])
def test_p04_all_forms_of_an_answer_are_one_and_no_other_is(name: str, values: tuple[str, ...]) -> None:
    _, forms, others = GROUPS[name]
    same, other = ([form.format(*values) for form in forms] for forms in (forms, others))
    assert [(gold, answer) for gold, answer in product(same, same) if not right(gold, answer)] == []
    assert [(gold, answer) for gold, answer in product(same, other) if right(gold, answer)] == []
    assert [(gold, answer) for gold, answer in product(other, same[:2]) if right(gold, answer)] == []


@pytest.mark.parametrize(
    ("gold", "answers"),
    [
        ("k+ax, k\\in\\mathbb{Z}", [f"{body}, {letter}\\in\\mathbb{{Z}}" for body, letter in (
            ("n+nx", "n"), ("a+ax", "a"), ("k+ax", "n"), ("x+ax", "x"))]),
        ("k+nx, k\\in\\mathbb{Z}", ["n+nx, n\\in\\mathbb{Z}", "a+nx, n\\in\\mathbb{Z}"]),
        ("\\frac{\\pi}{4}", ["\\tan^{-1}1", "\\sin^{-1}\\frac{\\sqrt{2}}{2}"]),
        ("66", ["\\binom{12}{2}", "\\binom {12} 2", "{12\\choose 2}", "y=({12\\choose 2})"]),
        ("9", ["y=(3^2)", "y=((4)+(5))", "y=(3)(3)", "y=(\\frac{18}{2})"]),
        ("\\frac{n(n+1)}{2}", ["\\binom{n}{2}"]), ("x<1 and x>0 or x>3", ["x<1 or x>0 and x>3"]),
        ("2\\pmod 6", ["8\\pmod 6", "-4\\pmod 6", "6k+8, k\\in\\mathbb{Z}", "2+0\\pmod 6", "1+1\\pmod 6"]),
        ("1,5\\pmod 6", ["1,1\\pmod 6", "1,5", "5\\pmod 6", "x=1, y=5\\pmod 6", "1\\pmod 6,5", "1,5,7\\pmod 6"]),
        *((f"1<{letter}\\le 4", [f"2<2{letter}\\le 8", f"0<{letter}-1\\le 3"]) for letter in ("\\theta", "N", "x")),
        ("(1,4]", ["2<2\\theta\\le 8", "1\\le N<4"]), ("x<1", ["y\\in(-\\infty,1)"]),
        ("(-\\infty,1)\\cup(3,5)\\cup(6,\\infty)", ["\\mathbb{R}\\setminus[1,3]\\cup[5,6]"]),
        ("x\\in\\{1,2\\}", ["y\\in\\{1,2\\}"]),
        ("x>1 \\text{ and } y<3", ["x>1 \\text{ or } y<3"]), ("-3,5", ["x=-3 \\land x=5"]),
        *((f"p{sign}q", ["p, q", "p and q", "p or q", *(f"{p}{other}{r}" for p in ("p", "p, q", "pq") for r in "qr")])
          for sign, other in (("\\land ", "\\lor "), ("\\lor ", "\\land "))),
    ],
)  # fmt: skip
def test_p04_what_only_looks_the_same_is_wrong(gold: str, answers: list[str]) -> None:
    assert [answer for answer in answers if right(gold, answer)] == []


def test_p04_a_union_of_families_is_in_any_order_and_of_any_letters() -> None:
    built = "\\{{{} \\mid {}\\in\\mathbb{{Z}}\\}}"
    bodies = ("2{}", "3{}", "\\frac{{\\pi}}{{4}}+{}\\pi", "x=-{}+1")
    for one, other in permutations(bodies, 2):
        gold = " \\cup ".join(built.format(body.format("k"), "k") for body in (one, other))
        for first, last in product("kn", repeat=2):
            sets = [built.format(one.format(first), first), built.format(other.format(last), last)]
            assert right(gold, "\\cup ".join(sets)), gold
            assert right(gold, "\\cup".join(reversed(sets))), gold
            wrong = [sets[0], "\\cup".join([*sets, sets[0]]), "\\cup".join([sets[0], built.format("5k", "k")])]
            wrong += ["\\cup".join([sets[0], built.format(other.format("m"), last)]), " \\cap ".join(sets)]
            wrong += ["\\cup".join(sets).replace("Z", "N"), ",".join([one.format(first), other.format(last)])]
            assert [answer for answer in wrong if right(gold, answer)] == [], gold


@pytest.mark.parametrize(
    "ends", [(1, 3), (-2, 0), (5, 5), ("\\frac{1}{3}", "0.5"), (1, "\\sqrt{3}"), ("-\\pi", 0), ("\\pi", "\\pi")]
)
def test_p04_what_no_number_is_in_is_the_empty_set_of_the_gold_answer_alone(ends: tuple[object, object]) -> None:
    """As an answer it is the question; with *or* or a comma it is another set."""
    low, high = ends
    gold, words = f"x<{low} \\text{{ and }} x>{high}", ("\\emptyset", "\\text{no solution}", "\\{\\}")
    same = (*words, f"x>{high} and x<{low}", f"{high}<x<{low}")
    assert [answer for answer in same if not right(gold, answer)] == []
    union = (f"x<{low} or x>{high}", f"x<{low}, x>{high}", f"(-\\infty,{low})\\cup({high},\\infty)")
    others = (*union, f"({high},{low})", f"({low},{high})", f"x<{low}", "\\mathbb{R}", "\\{0\\}", f"[{low},{high}]")
    assert [answer for answer in others if right(gold, answer)] == []
    assert [(one, other) for one, other in product(words, (gold, *same[3:], *union)) if right(one, other)] == []
    assert not right(f"x\\le {low} and x\\ge {high}", "\\emptyset") or low != high
    assert all(right(union[2], answer) for answer in (*union, f"({high},\\infty) \\text{{ or }} (-\\infty,{low})"))


@pytest.mark.parametrize(("less", "more"), [("<", ">"), (">", "<"), ("\\le ", "\\ge "), ("\\ge ", "\\le ")])
@pytest.mark.parametrize("end", [3, -2, 40])
def test_p04_an_inequality_is_solved_where_the_gold_answer_is(less: str, more: str, end: int) -> None:
    unsolved = (
        f"2x{less}{2 * end}",
        f"x+1{less}{end + 1}",
        f"-x{more}{-end}",
        f"x-({end}){less}0",
        f"0{more}x-({end})",
    )
    assert [answer for answer in unsolved if right(f"x{less}{end}", answer)] == []
    assert all(right(gold, f"x{less}{end}") for gold in unsolved)
    assert right(f"x{less}{end}", f"{end}{more}x")
    assert not right(f"x{less}{end}", f"y{less}{end}")


@pytest.mark.parametrize("values", SIDES)
def test_p04_a_comma_between_inequalities_is_the_and_of_the_gold_answer(values: tuple[str, ...]) -> None:
    gold, *others = (form.format(*values) for form in (
        "x{4}{0} \\text{{ and }} x{3}{1}", "x{3}{0}, x{4}{1}", "x{4}{0}, y{3}{1}", "x{4}{0}", "x{4}{0}, x{3}7",
        "x{4}{0}, x{3}{1}, x<2", "x{4}{0}, x{4}{1}", "x>{0}, x<{1}", "x\\ge {0}, x\\le {1}", "{0},{1}",
    ))  # fmt: skip
    same = [form.format(*values) for form in ("x{4}{0}, x{3}{1}", "x{3}{1}; x{4}{0}", "{0}{2}x,\\ x{3}{1}")]
    assert [answer for answer in same if not right(gold, answer)] == []
    assert [answer for answer in others if answer not in same and right(gold, answer)] == []


@pytest.mark.parametrize(("gold", "same", "others"), [
    ("x\\ne {0} \\text{{ and }} x\\ne {1}", ("x\\ne {0}, x\\ne {1}", "x\\neq {1} \\land x\\neq {0}"),
     ("x\\ne {0} \\text{{ or }} x\\ne {1}", "x\\ne {0} \\lor x\\ne {1}", "x\\ne {0}")),
    ("x\\ne {0}, x\\ne {1}", ("x\\ne {1} and x\\ne {0}",), ("x\\ne {0} or x\\ne {1}",)),
    ("x\\ne {0} or x\\ne {1}", ("x\\ne {1} \\lor x\\ne {0}",), ("x\\ne {1}, x\\ne {0}",)),
    ("({0},{1})", ("x={0}, y={1}", "x={0} and y={1}"), ("x={0} \\text{{ or }} y={1}", "x={0} \\lor y={1}")),
    ("x={0}, y={1}", ("y={1} and x={0}",), ("x={0} or y={1}", "y={1} \\lor x={0}", "x={0} \\lor {1}")),
    ("x={0} or y={1}", ("y={1} \\lor x={0}",), ("x={0}, y={1}", "x={0} and y={1}", "({0},{1})", "{0},{1}")),
    ("x=p{0},q{1}", ("x=p{0}, q{1}",), ("p{0}\\lor q{1}", "x=p{0}\\lor q{1}")),
    ("p_{0}\\lor q_{1}", ("q_{1} ∨ p_{0}",), ("x=p_{0},q_{1}", "x=p_{0} \\land x=q_{1}")),
    ("{0},{1}", ("x={0} or x={1}", "x={1} \\lor x={0}", "x_1={0} \\lor x_2={1}", "x={1} or {0}", "x_1={0} or x_2={1}",
      "x={0}\\text{{, or }}x={1}", "{1}\\mbox{{ and }}{0}", "{0}\\textbf{{, and }}{1}"),
     ("x={0}\\text{{, or }}y={1}", "x={0} \\lor y={1}", "x={0} or y={1}", "x={0} \\land x={1}")),
    ("x=2k+{0}, x=3k+{1}, k\\in\\mathbb{{Z}}", ("x=2k+{0} \\lor x=3k+{1}, k\\in\\mathbb{{Z}}",),
     ("x=2k+{0} \\lor y=3k+{1}, k\\in\\mathbb{{Z}}",)),
])  # fmt: skip
def test_p04_and_is_not_or(gold: str, same: tuple[str, ...], others: tuple[str, ...]) -> None:
    for pair in ((1, 2), (3, 7)):
        asked = gold.format(*pair)
        assert right(asked, asked)
        assert [form for form in same if not right(asked, form.format(*pair))] == []
        assert [form for form in others if right(asked, form.format(*pair))] == []


def test_p04_forms_that_only_symbols_tell_apart() -> None:
    assert right("k+ax, k\\in\\mathbb{Z}", "n+ax, n\\in\\mathbb{Z}")
    assert right("\\binom{n}{2}+1", "1+\\binom n2")
    assert right("\\frac{n(n-1)}{2}", "\\binom{n}{2}")
    assert right("2^{\\binom{n}{2}}", "2^{\\binom n2}")
    assert right("x>1, y<3", "y<3 and x>1")
    assert right("p\\lor q", "q ∨ p")
    assert right("(-\\infty,1)\\cup(3,5)\\cup(6,\\infty)", "\\mathbb{R}\\setminus([5,6]\\cup[1,3])")
    assert right("(-\\infty,1)", "\\mathbb{R}\\setminus[1,+\\infty)")
    assert all(right("(1,4]", form) for form in ("1<\\theta\\le 4", "N\\in(1,4]", "1<N, N\\le 4"))
    assert all(right("-1\\pmod 7", form) for form in ("6\\pmod 7", "x\\equiv -1\\pmod 7", "x\\equiv 6\\pmod 7"))
    assert all(right("1,5\\pmod 6", form) for form in ("5,1\\pmod 6", "1\\pmod 6 or 5\\pmod 6", "x\\equiv 5,1\\pmod 6"))
    assert right("x=2k, k\\in\\mathbb{Z}", "\\{x \\mid x=2n, n\\in\\mathbb{Z}\\}")
    assert right("\\binom{n+1}{2}", "\\binom{n+1}2")
    assert right("\\frac{10}{7}", "\\frac{10}7")
    assert not right("\\frac{10}{7}", "\\frac{10}71")
    assert right("\\frac{1}{2}", "x=(1\\over 2)")
    assert not right("2", "x=(1\\over 2)")


def test_p04_a_binomial_coefficient_of_large_numbers_or_powers_is_not_worked_out() -> None:
    inner = ("{999}{9}", "{n}{999}", "{\\binom{n}{2}}{2}", "{9^9}{2}")
    heavy = (*(f"\\binom{parts}" for parts in inner), "2^{\\binom{n}{2}}", "\\exp(\\binom{9}{2})")
    assert is_expression("\\binom{n+1}{2}+\\binom{99}{k}")
    assert [text for text in heavy if is_expression(text)] == []


GLUED = {"5": ("cm", "kg", "ft", "cm^2"), "2.5": ("mL", "km", "Hz", "km/h")}


@pytest.mark.parametrize(("number", "unit"), [(number, unit) for number, units in GLUED.items() for unit in units])
def test_p04_a_unit_that_is_glued_to_the_gold_number_has_to_be_in_the_answer(number: str, unit: str) -> None:
    """The letters may be a product, of which nothing can be left out."""
    same = ("{0}{1}", "{0} {1}", "{0}\\text{{ {1}}}", "{0}\\,\\mathrm{{{1}}}", "x={0} {1}")
    other = ("{0}", "{0}\\text{{ kW}}", "{0} {1}^3", "7\\text{{ {1}}}", "{0}\\text{{ million {1}}}", "{0}x")
    assert [form for form in same if not right(number + unit, form.format(number, unit))] == []
    assert [form for form in other if right(number + unit, form.format(number, unit))] == []


def test_p04_ends_are_compared_by_their_values_where_these_are_known() -> None:
    known = (
        "-\\infty", "-100", "-2\\sqrt{3}", "-\\frac{1+\\sqrt{5}}{2}", "0", "\\sqrt[3]{2}", "\\sqrt{2}",
        "\\frac{\\pi}{2}", "1+\\sqrt{2}", "\\sqrt{2+\\sqrt{3}}\\cdot 2", "2\\pi/1", "4(\\sqrt{7}-1)", "9e60", "\\infty",
    )  # fmt: skip
    assert [(high, low) for low, high in combinations(known, 2) if not is_above(high, low) or is_above(low, high)] == []
    unknown = (
        "x", "e", "\\sqrt{-2}", "1/0", "\\frac{1}{0}", "2/3\\sqrt{2}", "\\sin 1", "2^{\\pi}", "", "(1", "1)", "\\sqrt2",
        "\\infty-\\infty", "9" * 59 + "+1", "(" * 50, "1+",
    )  # fmt: skip
    assert [text for text in unknown if is_above(text, "0") or is_above("0", text)] == []
    assert real_of("9" * 54 + "e300") is None
    assert not is_above("\\sqrt{4}", "2")


def test_p04_what_is_read_by_lists_is_read_in_time() -> None:
    parts = (
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
    )
    for part in parts:
        started = time.process_time()
        verdict = judge_math(f"Answer: {(part * 200)[:390]}", ["2k, k\\in\\mathbb{Z}"])
        assert verdict.reason is not Reason.CORRECT
        assert time.process_time() - started < 1, part


@pytest.mark.parametrize(("x", "y"), [("x", "y"), ("a", "b"), ("\\alpha", "\\beta"), ("M", "n")])
@pytest.mark.parametrize(("first", "second"), [("[0,1]", "[2,3]"), ("(0,1]", "(1,2)"), ("\\{1,2\\}", "\\{3\\}")])
@pytest.mark.parametrize("joint", [",", " \\text{ and } "])
def test_sets_of_several_letters_are_compared_letter_by_letter(
    x: str, y: str, first: str, second: str, joint: str
) -> None:
    gold = f"{x}\\in{first}{joint}{y}\\in{second}"
    assert right(gold, gold)
    assert right(gold, f"{y}\\in{second}{joint}{x}\\in{first}")
    assert not right(gold, f"{x}\\in{second}{joint}{y}\\in{first}")
    assert not right(gold, f"{x}\\in{first}")
