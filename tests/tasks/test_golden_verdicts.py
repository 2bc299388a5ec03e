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
PROBLEMS = 8
"""Of each style or kind."""
LEFT_OUT = {"code", "simulation", "reasoning_gym"}
"""Judges that run programs under a limit of time, of which a busy machine may make an error, or another's package."""
NAMES = [name for name in BUILT_IN if name not in LEFT_OUT]
EDITS = 4
LETTERS = "019ax-+.,/\\{}()=: \n"


def problems_of(name: str) -> Iterator[Problem]:
    task = find_task(name)
    mode = next(iter(task.modes.values()))
    chosen: list[dict[str, Any]] = [*({"style": one} for one in task.styles), *({"kind": one} for one in task.kinds)]
    for changes in chosen or [{}]:
        options = mode.options(**changes)
        yield from (task.problem(options, "test", 5, index) for index in range(PROBLEMS))


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
        for text in responses(gold, golds[number - 1], Random(f"{name} {number}")):  # the same in every process
            verdict = judge_with(task.verdict, text, problem.ground_truth)
            reasons[verdict.reason.value] += 1
            digest.update(json.dumps([text, verdict.score, verdict.reason.value, verdict.answer]).encode())
    return {"reasons": dict(sorted(reasons.items())), "sha256": digest.hexdigest()}


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_are_those_committed(name: str) -> None:
    assert verdicts(name) == json.loads(GOLDEN_FILE.read_text())[name], (
        "on purpose? then write the file anew, see above"
    )


if __name__ == "__main__":
    GOLDEN_FILE.write_text(json.dumps({name: verdicts(name) for name in NAMES}, indent=1) + "\n")
