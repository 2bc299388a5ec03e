"""P4: residue classes by rule: random unions and systems, which are equal if the same whole numbers are in both."""

from collections.abc import Sequence
from itertools import product
from math import lcm
from random import Random

import pytest

from compositionality.domains.math.judge import judge_math
from compositionality.domains.math.residues import LARGEST

Classes = Sequence[tuple[int, int]]
MODULI = (2, 3, 4, 6, 8, 9, 12)
PERIOD = lcm(*MODULI)
ONE_CLASS = ("{0}\\pmod{{{1}}}", "x\\equiv {0}\\pmod {1}", "x \\equiv {0} (\\text{{mod }}{1})", "{0}\\;(\\bmod\\;{1})")
JOINTS = {"or": (" or ", " \\text{ or } ", "\\lor "), "and": (" and ", ", \\text{ and } ", " \\land ")}


def right(gold: str, answer: str) -> bool:
    return judge_math(f"so \\boxed{{{answer}}}", [gold]).score == 1


def numbers(classes: Classes, joint: str) -> set[int]:
    holds = all if joint == "and" else any
    return {n for n in range(PERIOD) if holds((n - residue) % modulus == 0 for residue, modulus in classes)}


def written(classes: Classes, joint: str, draws: Random) -> str:
    form = draws.choice(ONE_CLASS)
    return draws.choice(JOINTS[joint]).join(form.format(*one) for one in draws.sample(classes, len(classes)))


def drawn(draws: Random, most: int = 3) -> list[tuple[int, int]]:
    moduli = [draws.choice(MODULI) for _ in range(draws.randint(1, most))]
    return [(draws.randrange(-(modulus // 2), modulus), modulus) for modulus in moduli]


def in_other_words(classes: Classes, draws: Random) -> list[tuple[int, int]]:
    """Return a union of the same numbers: classes as those of a multiple of their modulus, or next to 0."""
    pieces = list[tuple[int, int]]()
    for residue, modulus in classes:
        times = draws.choice([n for n in (1, 2, 3) if PERIOD % (n * modulus) == 0])
        pieces += [((residue + step * modulus) % (times * modulus), times * modulus) for step in range(times)]
    return [(residue - draws.choice((0, modulus * (2 * residue >= modulus))), modulus) for residue, modulus in pieces]


@pytest.mark.parametrize("seed", range(8))
def test_p04_unions_of_classes_are_equal_as_sets(seed: int) -> None:
    draws = Random(f"unions {seed}")
    for _ in range(40):
        gold, other = drawn(draws), drawn(draws)
        text = written(gold, "or", draws)
        same = written(in_other_words(gold, draws), "or", draws)
        assert right(text, same), (text, same)
        for classes in (other, [*gold, *other], gold[1:] or other):
            answer = written(classes, "or", draws)
            assert right(text, answer) is (numbers(gold, "or") == numbers(classes, "or")), (text, answer)


@pytest.mark.parametrize("seed", range(8))
def test_p04_a_system_is_solved_by_one_class_and_is_no_union(seed: int) -> None:
    draws = Random(f"systems {seed}")
    for _ in range(40):
        modulus, *moduli = (draws.choice(MODULI) for _ in range(draws.randint(2, 3)))
        number = draws.randrange(PERIOD)
        system = [(number % one, one) for one in (modulus, *moduli)]
        common = lcm(modulus, *moduli)
        text, solved = written(system, "and", draws), f"{number % common}\\pmod{{{common}}}"
        assert right(text, solved), text
        assert right(text, written(system, "and", draws)), text
        assert not right(text, f"{number + 1}\\pmod{{{common}}}"), text
        if len({*system}) > 1:
            assert not right(solved, text), "it is the question"
            one_of = written(system, "or", draws)
            assert right(text, one_of) is right(one_of, solved) is (numbers(system, "or") == numbers(system, "and"))
        if len({one for _, one in system}) > 1:
            listed = ", ".join(ONE_CLASS[0].format(*one) for one in system)
            assert right(listed, solved)
            assert right(listed, written(system, "and", draws))
            assert not right(solved, listed)


@pytest.mark.parametrize(("residue", "modulus"), [(1, 6), (2, 7), (5, 12), (3, 6), (0, 4)])
def test_p04_both_signs_are_two_classes(residue: int, modulus: int) -> None:
    forms = [f"\\pm{residue}\\pmod {modulus}", f"x\\equiv \\pm {residue} \\pmod{{{modulus}}}"]
    forms += [f"{modulus}k\\pm{residue}, k\\in\\mathbb{{Z}}"] if residue else []
    gold = ",".join(str(one) for one in sorted({residue, -residue % modulus}))
    for form, letter, other in product(forms, ("", "x\\equiv "), ((residue + 1) % modulus, modulus + residue)):
        assert right(f"{letter}{gold}\\pmod {modulus}", form), form
        assert not right(f"{letter}{gold},{other}\\pmod {modulus}", form) or other % modulus in (residue, -residue)
        assert not right(f"{residue}\\pmod {modulus}", form) or (2 * residue) % modulus == 0


def test_p04_two_numbers_of_one_modulus_are_a_list_whatever_the_word_between_them() -> None:
    for form in ("1 and 5\\pmod 6", "1\\text{ or }5\\pmod 6", "x\\equiv 1 \\text{ and } 5 \\pmod{6}", "5,1\\pmod 6"):
        assert right("1,5\\pmod 6", form)
        assert right(form, "1,5\\pmod 6")
        assert not right("1,5\\pmod{12}", form)


def test_p04_classes_of_several_letters_are_each_of_its_own() -> None:
    gold = "x\\equiv 1\\pmod 2, y\\equiv 2\\pmod 3"
    assert right(gold, "x=1\\pmod 2, y=2\\pmod 3")
    for answer in ("x\\equiv 2\\pmod 3, y\\equiv 1\\pmod 2", "5\\pmod 6", gold.replace(",", " or"), "1\\pmod 2"):
        assert not right(gold, answer), answer
    assert not right("x\\equiv 1\\pmod 2", "y\\equiv 1\\pmod 2")


def test_p04_classes_of_large_moduli_are_compared_in_time() -> None:
    large = 10**14 + 31
    assert right(f"{large - 1}\\pmod{{{large}}}", f"-1\\pmod{{{large}}}")
    assert right(f"3,5\\pmod{{{large}}}", f"5,3\\pmod{{{large}}}")
    assert not right(f"3,5\\pmod{{{large}}}", f"3,6\\pmod{{{large}}}")
    assert right("1\\pmod{9973} and 1\\pmod{9967}", f"1\\pmod{{{9973 * 9967}}}")
    union = f"1\\pmod{{{LARGEST - 1}}} or 1\\pmod{{{LARGEST + 1}}}"
    assert right(union, union)
    assert not right(union, union.replace("or", "and"))
