"""The 25 functions do what the paper's do; prior functions are other skills."""

import random
import re
from itertools import combinations

import pytest

from compositionality.errors import UserError
from compositionality.tasks.string.functions import (
    ALIASES,
    ATOMS,
    PAPER_HELDOUT,
    PAPER_TRAIN,
    PRESETS,
    Function,
    select_functions,
    side,
)
from compositionality.tasks.string.prior import prior_functions
from compositionality.tasks.string.program import Call, frozen_call
from compositionality.tasks.string.task import PROBES, fingerprint

MOST = 210
EXAMPLES = [
    (0, None, "abcdefghij", "adgjcfibeh"),
    (0, None, "abcdef", "afedcb"),
    (0, None, "abc", "acb"),
    (0, None, "", ""),
    (1, 3, "ab", "ababab"),
    (2, None, "Ayaeiou", "y"),
    (3, None, "b«A1", "1Ab«"),
    (4, None, "one two", "two one"),
    (5, "xy", "ab", "xyab"),
    (6, "xy", "ab", "abxy"),
    (7, "123", "abcde", "a1b2c3de"),
    (7, "123", "a", "a123"),
    (8, 3, "ab", "ba"),
    (8, 3, "", ""),
    (9, None, "abc", "abccba"),
    (10, None, "a1BcD", "a1bCd"),
    (11, 3, "xYz-a", "aBc-d"),
    (12, None, "aEiOuy", "12345y"),
    (13, "_", "abc", "a_b_c"),
    (14, None, "ab", "aabb"),
    (15, None, "ab", "«a»«b»"),
    (16, None, "aaBbbA", "aBbA"),
    (16, None, "", ""),
    (17, None, "abc", "cba"),
    (18, 2, "ab", "abab"),
    (19, 3, "ab", "ba"),
    (19, 2, "", ""),
    (20, "12", "abcd", "a1b2cd"),
    (20, "1234", "ab", "a1b234"),
    (21, None, "a1-«é»", "aé"),
    (22, None, "abc", "ab"),
    (22, None, "ab", "ab"),
    (23, 3, "ab", "ab1"),
    (23, 1, "a2", "a2"),
    (24, 2, "ab", "abba"),
    (24, 2, "aba", "aba"),
]


@pytest.mark.parametrize(("id", "parameter", "text", "expected"), EXAMPLES)
def test_semantics(id: int, parameter: int | str | None, text: str, expected: str) -> None:
    assert Call(ATOMS[id], parameter=parameter)(text) == expected


def test_every_function_has_an_example() -> None:
    assert {id for id, *_ in EXAMPLES} == set(ATOMS) == set(range(25))


def test_the_papers_split_covers_all_once() -> None:
    assert sorted(PAPER_TRAIN + PAPER_HELDOUT) == list(range(25))
    assert (len(PAPER_TRAIN), len(PAPER_HELDOUT)) == (13, 12)


def test_the_shown_definition_is_the_function() -> None:
    for function in ATOMS.values():
        scope: dict[str, object] = {}
        exec(function.source(), scope)
        call = Call(function, parameter=function.frozen)
        arguments = () if function.frozen is None else (function.frozen,)
        for text in ("abcde", "Hello9", "aab"):
            assert scope[function.alias](text, *arguments) == call(text)  # type: ignore[operator]
        assert function.name not in function.source()
        assert '"""' in function.source()


@pytest.mark.parametrize(("one", "other"), [(1, 18), (8, 19), (7, 20)])
def test_twins_are_equal(one: int, other: int) -> None:
    chooser = random.Random(3)
    for _ in range(500):
        text = "".join(chooser.choices("abcXY12-«", k=chooser.randint(0, 12)))
        parameter = "xyz" if one == 7 else chooser.choice((1, 2, 3))
        assert ATOMS[one].run(text, parameter) == ATOMS[other].run(text, parameter)


def test_p02_clean_splits_differ_in_behaviour() -> None:
    assert not set(PRESETS["trained"]) & set(PRESETS["heldout"])
    assert PRESETS["heldout"] == (0, 2, 6, 10, 12, 14, 16, 21)
    prints = {
        id: {fingerprint(Call(ATOMS[id], parameter=value)) for value in ATOMS[id].choices or (ATOMS[id].frozen,)}
        for id in PRESETS["all"]
    }
    for trained in PRESETS["trained"]:
        for heldout in PRESETS["heldout"]:
            assert not prints[trained] & prints[heldout]


def calls_of(function: Function) -> list[Call]:
    """The function with each parameter it can take, or with one that stands for all texts."""
    return [Call(function, parameter=value) for value in function.choices or (function.frozen,)]


def test_p02_no_prior_function_behaves_like_a_target_with_any_parameter() -> None:
    made = [call for function in prior_functions(MOST) for call in calls_of(function)]
    targets = {fingerprint(call) for function in ATOMS.values() for call in calls_of(function)}
    prints = {fingerprint(call) for call in made}
    assert len(prints) == len(made)
    assert not prints & targets
    for call in made:
        assert not texts_that_make_it_a_target(call), call


def texts_that_make_it_a_target(call: Call) -> list[str]:
    """Texts with which a target does the same; a single character shows what the text would have to be."""
    shown = call("q")
    texts = {shown[1:], shown[:-1]} if "q" in shown else set()
    targets = [ATOMS[id] for id in (5, 6, 7, 20)]
    return [
        text
        for text in texts
        if 2 <= len(text) <= 4
        and any(fingerprint(Call(target, parameter=text)) == fingerprint(call) for target in targets)
    ]


def test_the_search_for_a_text_finds_one() -> None:
    for id in (5, 6, 7, 20):
        assert texts_that_make_it_a_target(Call(ATOMS[id], parameter="xyz")) == ["xyz"]


def test_more_prior_functions_leave_the_first_ones_as_they_are() -> None:
    assert prior_functions() == prior_functions(MOST)[:34]
    assert [function.alias for function in prior_functions(MOST)] == [f"other_{id}" for id in range(30, 30 + MOST)]
    names = [function.name for function in (*prior_functions(MOST), *ATOMS.values())]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"\w+", name) for name in names)
    assert sum(function.parametrised for function in prior_functions(60)) == 20
    for count in (0, MOST + 1):
        with pytest.raises(UserError, match="prior_functions"):
            prior_functions(count)


def test_every_prior_function_stays_total() -> None:
    for function in prior_functions(MOST):
        for call in calls_of(function):
            for text in ("", "a", "ab", "«1-_|Z»"):
                assert isinstance(call(text), str)


@pytest.mark.parametrize("drop", [(), (0, 3)])
@pytest.mark.parametrize("kept", [(), (1, 5, 9, 11), (11, 19)])
def test_a_division_is_random_of_the_same_functions_in_as_many(drop: tuple[int, ...], kept: tuple[int, ...]) -> None:
    """The functions that are always trained apart, each is held out in some division."""
    divisions = [[side(name, split, drop, kept) for name in ("trained", "heldout")] for split in range(40)]
    for split, (trained, heldout) in enumerate(divisions):
        assert {*kept} <= trained
        assert not trained & heldout
        assert trained | heldout == side("all", split, drop) == {*PRESETS["all"]} - {*drop}
        assert len(trained) == len(side("trained", 0, drop))
        assert split == 0 or heldout & {11, 19} or {11, 19} <= {*kept}  # on short strings level 8 needs one of them
    assert len({tuple(sorted(heldout)) for _, heldout in divisions}) > 30
    assert set().union(*(heldout for _, heldout in divisions)) == side("all", 0, drop) - {*kept}
    if not kept:
        chosen = select_functions("heldout", drop=drop, split=1)
        assert {function.id for function in chosen} == divisions[1][1] == GOLDEN_SPLIT[drop]


GOLDEN_SPLIT: dict[tuple[int, ...], set[int]] = {
    (): {2, 5, 10, 12, 14, 16, 19, 20},
    (0, 3): {2, 10, 12, 14, 16, 19, 20},
}


def test_p02_no_split_has_functions_that_behave_alike_on_both_sides() -> None:
    chooser = random.Random(5)
    texts = ["".join(chooser.choices("abcdefghij", k=chooser.randint(3, 6))) for _ in range(400)]
    calls = [frozen_call(function) for function in select_functions("all")]
    for one, other in combinations(calls, 2):
        changed = [text for text in texts if not one(text) == other(text) == text]
        assert sum(one(text) == other(text) for text in changed) < len(changed) / 5, (one, other)


@pytest.mark.parametrize("split", [1, 2, 61, 62, 63])
def test_p02_no_split_trains_what_a_held_out_composition_does(split: int) -> None:
    def results(preset: str, level: int) -> set[tuple[str, ...]]:
        calls = [frozen_call(function) for function in select_functions(preset, drop=(0, 3), split=split)]
        found = {PROBES}
        for _ in range(level):
            found = {tuple(map(call, values)) for values in found for call in calls}
        return found

    for level in (2, 3):
        assert not results("trained", 2) & results("heldout", level)


def test_selection() -> None:
    assert [function.id for function in select_functions("trained", drop=(0, 3))][:3] == [1, 5, 9]
    assert [function.id for function in select_functions("trained", ids=(9, 2))] == [2, 9]
    assert ALIASES["func_7"].name == "interlace_str"
    with pytest.raises(UserError, match=r"always_trained=\[2\]: func_2 is none of"):
        side("heldout", 1, (0, 3), (2,))
    assert side("trained", 1, (0, 3, 1), (1, 5)) == side("trained", 1, (0, 3, 1), (5,))  # what is left out is neither
