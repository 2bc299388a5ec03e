"""Verdicts of the judges on problems of its own with right, altered and foreign solutions: as they were committed.

A verdict that changes is seen here and must change on purpose: ``python tests/tasks/test_golden_verdicts.py`` writes
``tests/golden/verdicts.json`` anew, whose difference goes into the commit that says why.
"""

import json
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest

from compositionality.reward.judge import judge_with
from compositionality.tasks.registry import BUILT_IN, find_task
from compositionality.types import Problem

GOLDEN_FILE = Path(__file__).parents[1] / "golden" / "verdicts.json"
LIBRARY = "reasoning_gym"
DATASETS = (
    "basic_arithmetic", "coin_flip", "cryptarithm", "game_of_life", "leg_counting", "number_sorting", "puzzle24",
    "simple_integration", "time_intervals", "tower_of_hanoi", "word_sorting",
)  # fmt: skip
"""Of reasoning-gym, whose package is not everywhere: forms, checks and solutions of each kind."""
PROBLEMS = {"code": 1, "simulation": 1, LIBRARY: 2}
"""Of each style, kind or data set, where that is fewer than MOST: an answer may take a start of the sandbox."""
MOST = 8
MARKS = {"code": [pytest.mark.slow], "simulation": [pytest.mark.slow], LIBRARY: [pytest.mark.full]}
EDITS = 4
LETTERS = "019ax-+.,/\\{}()=: \n"


def problems_of(name: str) -> Iterator[Problem]:
    task = find_task(name)
    mode = next(iter(task.modes.values()))
    chosen: list[dict[str, Any]] = [*({"style": one} for one in task.styles), *({"kind": one} for one in task.kinds)]
    if name == LIBRARY:
        chosen = [{"dataset": one} for one in DATASETS]
    for changes in chosen or [{}]:
        options = mode.options(**changes)
        yield from (task.problem(options, "test", 5, index) for index in range(PROBLEMS.get(name, MOST)))


def programs(gold: str) -> list[str]:
    """Return a program that is right, and changed: none that could run until a limit of time."""
    head, body = gold.removesuffix("```").split("\n", 1)
    ends = (
        "import os; os._exit(0)",
        "raise SystemExit",
        "exit()",
        "1/0",
        "print(7)",
        "import builtins; builtins.len = 7",
    )
    texts = [gold, "", body, gold.replace("python", "json"), gold.replace("python", ""), f"{head}\n{body}"]
    texts += [f"<think>{gold}</think>", f"{gold}\n```python\nprint(7)\n```", f"{head}\n{body.replace('x', 'y', 1)}```"]
    texts += [f"{head}\n{body.replace('return ', 'return not ')}```", f"{head}\n{body.replace('print(', 'repr(')}```"]
    return texts + [text for end in ends for text in (f"{head}\n{end}\n{body}```", f"{head}\n{body}\n{end}\n```")]


def responses(gold: str, other: str, draws: Random) -> list[str]:
    """Return a gold solution, texts with edits of one character, cut, doubled, in thoughts, or with another's."""
    texts = [gold, other, "", gold.upper(), gold.replace(" ", "  "), f"{gold} {gold}", f"{gold}\n{other}"]
    texts += [f"{other}\n{gold}", f"<think>{other}</think>{gold}", f"<think>{gold}</think>{other}", f"{gold}<think>"]
    for _ in range(EDITS):
        place, letter = draws.randrange(len(gold)), draws.choice(LETTERS)
        texts += [gold[:place], gold[:place] + gold[place + 1 :], gold[:place] + letter + gold[place:]]
        texts.append(gold[:place] + letter + gold[place + 1 :])
    return texts


def verdicts(name: str) -> dict[str, Any]:
    """Return how many verdicts of a task have each reason, and the digest of all."""
    task, problems = find_task(name), [*problems_of(name)]
    golds = [task.gold(problem) for problem in problems]
    reasons, digest = Counter[str](), sha256()
    for number, (problem, gold) in enumerate(zip(problems, golds, strict=True)):
        draws = Random(f"{name} {number}")  # the same in every process
        for text in programs(gold) if name == "code" else responses(gold, golds[number - 1], draws):
            verdict = judge_with(task.verdict, text, problem.ground_truth)
            reasons[verdict.reason.value] += 1
            digest.update(json.dumps([text, verdict.score, verdict.reason.value, verdict.answer]).encode())
    return {"reasons": dict(sorted(reasons.items())), "sha256": digest.hexdigest()}


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, [])) for name in BUILT_IN])
def test_verdicts_are_those_committed(name: str) -> None:
    if name == LIBRARY:
        pytest.importorskip(LIBRARY, reason="reasoning-gym comes with the full set-up only")
    assert verdicts(name) == json.loads(GOLDEN_FILE.read_text())[name], (
        "on purpose? then write the file anew, see above"
    )


if __name__ == "__main__":
    GOLDEN_FILE.write_text(json.dumps({name: verdicts(name) for name in BUILT_IN}, indent=1) + "\n")
