"""P1 to P4 for the clean mode."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compositionality.errors import UserError
from compositionality.tasks.countdown import TASK
from compositionality.tasks.countdown.clean import CountdownOptions, owner, problems
from compositionality.tasks.countdown.solve import Solution, solve
from compositionality.tasks.draws import SEED_CLASSES, SPLITS
from compositionality.tasks.registry import find_judge
from compositionality.types import Problem, Reason

PLAIN = CountdownOptions(levels=(2, 3, 4))
COMPACT = CountdownOptions(levels=(2, 3), numbers=(1, 30), target=(1, 99), style="compact")
MINIMAL = CountdownOptions(levels=(3, 4), whole=False, minimal=True, numbers=(1, 12))
ANY = CountdownOptions(levels=(3, 4), use="any", operators="+-", numbers=(1, 50), style="compact")
DEEP = CountdownOptions(levels=(5,))
ALL = {"plain": PLAIN, "compact": COMPACT, "minimal": MINIMAL, "any": ANY, "deep": DEEP}
GOLDEN = {
    "plain": "acaac1fce47dd45f",
    "compact": "a33e7f9c936051a2",
    "minimal": "d6264de4820585d1",
    "any": "1a5d9ec6917f59bf",
    "deep": "dbaada26ed941f1e",
}


def row_text(problem: Problem) -> str:
    """Every field but the group, in the wording that the golden digests were taken over."""
    names = ("data_source", "level", "prompt", "ground_truth", "index", "metadata")
    return f"Problem({', '.join(f'{name}={getattr(problem, name)!r}' for name in names)})"


def digest(options: CountdownOptions, workers: int = 1, count: int = 60) -> str:
    """Over everything that a row holds."""
    result = hashlib.sha256()
    for problem in TASK.problems(options, "train", 7, count, workers):
        result.update(f"({row_text(problem)}, {dict(problem.metadata)!r})".encode())
    return result.hexdigest()


def some(options: CountdownOptions, split: str = "train", seed: int = 1, count: int = 60) -> list[Problem]:
    return list(problems(options, split, seed, range(count)))


def asked(problem: Problem) -> tuple[list[int], int]:
    truth = json.loads(problem.ground_truth)
    return truth["numbers"], truth["target"]


@pytest.mark.parametrize("name", ALL)
def test_p01_golden_digest(name: str) -> None:
    assert digest(ALL[name])[:16] == GOLDEN[name]


@pytest.mark.parametrize("hash_seed", ["0", "1234"])
def test_p01_hash_seed_does_not_matter(hash_seed: str) -> None:
    script = "import test_countdown_clean as t; print(*[t.digest(t.ALL[name])[:16] for name in t.ALL])"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.path.dirname(__file__)}  # noqa: PTH120
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [GOLDEN[name] for name in ALL]


def test_p01_number_of_processes_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compositionality.tasks.stream.ALONE_S", 0.0)
    options = CountdownOptions(levels=(3, 4))
    alone = digest(options, 1, 900)
    assert digest(options, 2, 900) == alone


@pytest.mark.parametrize("name", ALL)
def test_p01_access_by_index_equals_iteration(name: str) -> None:
    for problem in islice(TASK.problems(ALL[name], "test", 3, 60), 20):
        assert TASK.problem(ALL[name], "test", 3, problem.index) == problem


def test_p01_a_batch_in_any_order_gives_the_same() -> None:
    alone = {index: TASK.problem(COMPACT, "train", 1, index) for index in (7, 3, 1000, 8)}
    assert list(problems(COMPACT, "train", 1, [1000, 8, 7, 3])) == [alone[index] for index in (1000, 8, 7, 3)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**40), st.integers(1, SEED_CLASSES - 1), st.sampled_from(SPLITS), st.sampled_from(SPLITS))
def test_p02_neighbouring_seeds_and_other_splits_share_nothing(seed: int, step: int, split: str, other: str) -> None:
    def problems(split: str, seed: int) -> set[tuple[int, ...]]:
        return {(target, *sorted(numbers)) for numbers, target in map(asked, some(COMPACT, split, seed, 150))}

    mine = problems(split, seed)
    assert not mine & problems(split, seed + step)
    assert other == split or not mine & problems(other, seed)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(SPLITS), st.integers(0, 10**9), st.sampled_from(["plain", "compact", "minimal", "any"]))
def test_p02_every_problem_shows_whose_it_is(split: str, seed: int, name: str) -> None:
    for problem in some(ALL[name], split, seed, 12):
        numbers, target = asked(problem)
        assert owner(numbers, target) == owner(sorted(numbers), target) == (split, seed % SEED_CLASSES)


def test_p02_streams_are_large_in_small_ranges_and_say_when_they_are_empty() -> None:
    options = CountdownOptions(levels=(2,), numbers=(1, 20), target=(1, 99), style="compact")
    sizes = {}
    for split in SPLITS:
        for seed in range(SEED_CLASSES):
            with pytest.raises(
                UserError, match=r"level 2 has only \d+ different problems among .*; ask for fewer"
            ) as e:
                list(TASK.problems(options, split, seed, 400))
            sizes[split, seed] = int(str(e.value).split("only ")[1].split()[0])
    every = {(a, b, t) for a in range(1, 21) for b in range(a, 21) for t in (a + b, b - a, a * b, b / a)}
    assert sum(sizes.values()) == sum(1 <= t <= 99 and t == int(t) for _, _, t in every)
    assert min(sizes.values()) >= 15
    assert min(sizes["train", seed] for seed in range(SEED_CLASSES)) >= 45


@pytest.mark.parametrize("name", ALL)
def test_p03_the_metadata_are_what_the_solver_says(name: str) -> None:
    options = ALL[name]
    for problem in some(options, count=24):
        numbers, target = asked(problem)
        found = solve(numbers, target, options.operators, options.use)
        fewest = min(one.operations + 1 for one in solve(numbers, target, options.operators, "any"))
        assert len(numbers) == problem.level
        assert all(options.numbers[0] <= number <= options.numbers[1] for number in numbers)
        assert options.target[0] <= target <= options.target[1]
        assert problem.metadata["solutions"] == len(found) > 0
        assert problem.metadata["operations"] == min(one.operations for one in found) > 0
        assert problem.metadata["fewest_numbers"] == fewest
        assert fewest == problem.level or not options.minimal
        assert not options.whole or any(one.whole for one in found)
        assert gold_of(problem, found).whole or not any(one.whole for one in found)


def gold_of(problem: Problem, found: list[Solution]) -> Solution:
    (gold,) = [one for one in found if one.expression == problem.metadata["expression"]]
    return gold


def test_p03_equal_numbers_are_counted_as_values() -> None:
    options = CountdownOptions(levels=(4,), numbers=(1, 4), target=(1, 60))
    repeated = [problem for problem in some(options, count=60) if len(set(asked(problem)[0])) < 4]
    assert len(repeated) > 40
    for problem in repeated:
        assert problem.metadata["solutions"] == len(solve(*asked(problem)))


@pytest.mark.parametrize("name", ALL)
def test_p04_gold_scores_one_and_the_prompt_none(name: str) -> None:
    for problem in some(ALL[name]):
        gold = TASK.gold(problem)
        assert find_judge(problem.data_source)(gold, problem.ground_truth).reason == Reason.CORRECT
        assert find_judge(problem.data_source)(problem.prompt, problem.ground_truth).score == 0
        changed = gold.replace("</answer>", "+1</answer>") if ALL[name].style == "text" else gold + "1"
        assert find_judge(problem.data_source)(changed, problem.ground_truth).score == 0


def test_targets_are_spread_over_what_the_numbers_reach() -> None:
    problems = [asked(problem) for problem in some(CountdownOptions(levels=(3,)), count=4000)]
    tens = Counter(target // 100 for _, target in problems)
    assert min(tens[ten] for ten in range(1, 10)) > 40
    assert 45 < sum(sum(numbers) for numbers, _ in problems) / 12_000 < 56


def test_rows() -> None:
    problem = TASK.problem(replace(COMPACT, levels=(3,), use="any"), "train", 1, 4)
    numbers, target = asked(problem)
    assert (problem.data_source, problem.level) == ("countdown-clean-level3", 3)
    assert problem.prompt == f"+-*/:{'|'.join(map(str, numbers))}>{target}"
    truth = {"target": target, "numbers": numbers, "style": "compact", "use": "any"}
    assert json.loads(problem.ground_truth) == truth
    text = TASK.problem(PLAIN, "train", 1, 0)
    assert "<answer>" in text.prompt
    assert "</answer>" not in text.prompt
    assert "</answer>" not in TASK.problem(replace(PLAIN, use="any"), "train", 1, 0).prompt


def test_ranges_without_a_sound_problem_are_refused() -> None:
    options = CountdownOptions(levels=(2,), numbers=(1, 3), target=(7, 9))
    with pytest.raises(UserError, match="no sound problem of level 2"):
        TASK.problem(options, "train", 2, 0)
