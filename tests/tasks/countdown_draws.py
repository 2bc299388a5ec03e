"""A tiny generator of solved Countdown problems, independent of the project's own, for the judge's tests."""

from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

Tree = Any  # a number, or (sign, left, right)
_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2}
_SPELLINGS = {"*": "*×·⋅", "/": "/÷", "-": "-−", "+": "+"}


@dataclass(frozen=True)
class Drawn:
    numbers: list[int]
    tree: Tree
    target: int


def draw(rng: Random) -> Drawn:
    """A problem of 2 to 6 numbers."""
    while True:
        numbers = [rng.randint(1, rng.choice((9, 100))) for _ in range(rng.randint(2, 6))]
        tree = _grow(rng, numbers)
        value = value_of(tree)
        if value is not None and value.denominator == 1 and abs(value) < 10**15:
            return Drawn(rng.sample(numbers, len(numbers)), tree, int(value))


def _grow(rng: Random, numbers: list[int]) -> Tree:
    if len(numbers) == 1:
        return numbers[0]
    cut = rng.randrange(1, len(numbers))
    return (rng.choice("++--**/"), _grow(rng, numbers[:cut]), _grow(rng, numbers[cut:]))


def value_of(tree: Tree) -> Fraction | None:
    if isinstance(tree, int):
        return Fraction(tree)
    left, right = value_of(tree[1]), value_of(tree[2])
    if left is None or right is None or (tree[0] == "/" and not right):
        return None
    return {"+": left.__add__, "-": left.__sub__, "*": left.__mul__, "/": left.__truediv__}[tree[0]](right)


def leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else leaves(tree[1]) + leaves(tree[2])


def is_solution(tree: Tree, drawn: Drawn) -> bool:
    return sorted(leaves(tree)) == sorted(drawn.numbers) and value_of(tree) == drawn.target


def expression(tree: Tree, rng: Random) -> str:
    """The tree as text, in one of the forms that are accepted; parentheses where needed, sometimes more."""
    if isinstance(tree, int):
        return str(tree) if rng.random() < 0.9 else f"({tree})"
    sign, left, right = tree
    texts = [expression(child, rng) for child in (left, right)]
    for place, child in enumerate((left, right)):
        strength = 3 if isinstance(child, int) else _STRENGTH[child[0]]
        if strength < _STRENGTH[sign] + (place and sign in "-/") or rng.random() < 0.2:
            texts[place] = f"({texts[place]})"
    space = rng.choice(("", "", " ", "\n"))
    return f"{space}{rng.choice(_SPELLINGS[sign])}{space}".join(texts)


def mutated(tree: Tree, rng: Random) -> Tree:
    """The tree with one operator, number or place changed; it may still be a solution."""
    if isinstance(tree, int):
        return rng.choice((tree + 1, tree + 10, tree * 10, rng.randint(1, 100)))
    sign, left, right = tree
    kind = rng.randrange(6)
    if kind == 0:
        return (rng.choice([other for other in "+-*/" if other != sign]), left, right)
    if kind == 1:
        return (sign, right, left)
    if kind == 2:
        return rng.choice((left, right, (sign, tree, rng.choice(leaves(tree)))))
    side = rng.randrange(2)
    children = [left, right]
    children[side] = mutated(children[side], rng)
    return (sign, *children)
