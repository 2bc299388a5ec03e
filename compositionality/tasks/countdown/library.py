"""The paper's Countdown data: reasoning-gym's ``countdown`` with the paper's parameters, number for number.

The library is a source only. Its flaws are kept on purpose (50,000 problems with two numbers are about 12,000 different
ones; neighbouring seeds share nearly all rows); ``clean.py`` is the mode without them. The wording is our own.
"""

from collections.abc import Iterator

from compositionality.errors import check_installed
from compositionality.tasks.countdown.options import GROUP, CountdownPaperOptions
from compositionality.tasks.countdown.prompts import ground_truth, text_prompt
from compositionality.types import Problem

SEED = 42
NUMBERS, TARGETS = (1, 100), (1, 999)


def paper_problems(options: CountdownPaperOptions, count: int) -> Iterator[Problem]:
    """``count`` of the paper's problems, level after level. UserError without reasoning-gym."""
    options.check(count)
    check_installed("reasoning_gym", "mode=paper")
    return _problems(options, count)


def _problems(options: CountdownPaperOptions, count: int) -> Iterator[Problem]:
    for level in options.levels:
        for index, (numbers, target, expression) in enumerate(_rows(level, count // len(options.levels))):
            source, metadata = f"reasoning-gym-countdown-depth{level}", {"split": "train", "expression": expression}
            prompt, truth = text_prompt(numbers, target), ground_truth(numbers, target)
            yield Problem(source, level, GROUP, prompt, truth, index, metadata)


def _rows(level: int, count: int) -> Iterator[tuple[list[int], int, str]]:
    """Numbers, target and the library's own solution."""
    from reasoning_gym.games.countdown import CountdownConfig, CountdownDataset

    (smallest, largest), (lowest, highest) = NUMBERS, TARGETS
    config = CountdownConfig(level, level, smallest, largest, lowest, highest, seed=SEED, size=count)
    for row in CountdownDataset(config):
        found = row["metadata"]
        yield found["numbers"], found["target"], found["expression"]
