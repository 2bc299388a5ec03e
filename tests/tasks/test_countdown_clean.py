"""P2 and P3 for the clean mode; the streams: test_streams.py, gold and mutated gold: test_contract.py."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from task_options import COUNTDOWN as ALL

from compositionality.errors import UserError
from compositionality.tasks.countdown.clean import CountdownOptions, owner, problems
from compositionality.tasks.countdown.solve import solve
from compositionality.tasks.countdown.task import TASK
from compositionality.tasks.draws import SEED_CLASSES, SPLITS
from compositionality.types import Problem

PLAIN, COMPACT = ALL["plain"], ALL["compact"]


def some(options: CountdownOptions, split: str = "train", seed: int = 1, count: int = 60) -> list[Problem]:
    return list(problems(options, split, seed, range(count)))


def asked(problem: Problem) -> tuple[list[int], int]:
    truth = json.loads(problem.ground_truth)
    return truth["numbers"], truth["target"]


@settings(max_examples=30)
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
                list(TASK.problems(options, split, seed, 150))
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
        (gold,) = [one for one in found if one.expression == problem.metadata["expression"]]
        assert gold.whole or not any(one.whole for one in found)


def test_targets_are_spread_over_what_the_numbers_reach() -> None:
    problems = [asked(problem) for problem in some(CountdownOptions(levels=(3,)), count=4000)]
    tens = Counter(target // 100 for _, target in problems)
    assert min(tens[ten] for ten in range(1, 10)) > 40
    assert 45 < sum(sum(numbers) for numbers, _ in problems) / 12_000 < 56
