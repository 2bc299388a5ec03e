"""The paper's Countdown problems: number for number the library's, solvable, and judged right."""

import hashlib
import json

import pytest

from compositionality.errors import UserError
from compositionality.tasks.countdown.task import TASK, CountdownPaperOptions
from compositionality.tasks.countdown.wording import text_answer
from compositionality.tasks.registry import task_of
from compositionality.types import Problem, Reason

pytest.importorskip("reasoning_gym")
GOLDEN = {
    (2, 100): "ffc5f6a9367885d25184df37783b22e132e782419325a21ef1ed267f9a0d833b",
    (3, 100): "908d981467b3f7f1c85d8d96a5d4ce2b5aeab08af6ec217526207e064a1e700a",
    (4, 100): "f272c7612ef6d68bb5d6ee307cc0804bdb3fda44bcfa5c9f8293394ff5368df5",
    (5, 100): "11f9894849b5badf326e0c0ba0474855b679d8998a20adca8bd705d3a2504f3d",
    (2, 2000): "a53d51ffa39825a139d56c1cc271f9b12fb62a8ab2916851c8028263b2a9ecc8",
    (3, 512): "3ae1d373da38c99fecd3e1b8b1da0c2ac8e0e1eb153cd9d711ea5c9436f3cb09",
    (4, 512): "503baf97268966d8ad69083751047edc645e45c8e234a04ae6540805b32c8b5b",
    (5, 512): "dccfa267a4a540431b95ff73d54701daf24cef647f0e112dfa62e0e064ed90e2",
}
EVERY_TENTH = "338aebcf8c43667a79e362c632eedfbd315c8ba13f7f8e1dbd467cf9ef035a60"


def digest(problems: list[Problem]) -> str:
    rows = [f"{problem.ground_truth}\t{problem.metadata['expression']}\n" for problem in problems]
    return hashlib.sha256("".join(rows).encode()).hexdigest()


@pytest.mark.parametrize(
    ("level", "count"), [pytest.param(*key, marks=pytest.mark.slow if key[1] > 100 else ()) for key in GOLDEN]
)
def test_the_papers_problems_are_solvable_and_their_gold_answers_right(level: int, count: int) -> None:
    problems = list(TASK.problems(CountdownPaperOptions((level,)), "train", 0, count))
    assert digest(problems) == GOLDEN[level, count]
    for problem in problems:
        truth = json.loads(problem.ground_truth)
        assert problem.data_source == f"reasoning-gym-countdown-depth{len(truth['numbers'])}"
        gold = text_answer(problem.metadata["expression"])
        assert task_of(problem.data_source).verdict(gold, problem.ground_truth).reason == Reason.CORRECT
        longer = text_answer(f"{problem.metadata['expression']} + 0")
        assert task_of(problem.data_source).verdict(longer, problem.ground_truth).reason == Reason.WRONG_NUMBERS
        assert task_of(problem.data_source).verdict(problem.prompt, problem.ground_truth).score == 0


@pytest.mark.slow
def test_every_tenth_row_of_the_whole_training_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows 0, 10, …, 49,990: the library makes each from its number alone."""
    from reasoning_gym.games.countdown import CountdownDataset

    row = CountdownDataset.__getitem__
    monkeypatch.setattr(CountdownDataset, "__getitem__", lambda self, index: row(self, 10 * index))
    problems = list(TASK.problems(CountdownPaperOptions((2,)), "train", 0, 5_000))
    assert digest(problems) == EVERY_TENTH
    truths = [json.loads(problem.ground_truth) for problem in problems]
    assert len({(truth["target"], *sorted(truth["numbers"])) for truth in truths}) == 4_067


def test_rows_go_level_after_level() -> None:
    rows = [(problem.level, problem.index) for problem in TASK.problems(CountdownPaperOptions((3, 4)), "train", 0, 4)]
    assert rows == [(3, 0), (3, 1), (4, 0), (4, 1)]


@pytest.mark.parametrize(("levels", "count"), [((), 1), ((1,), 1), ((3, 4), 5), ((3,), 0)])
def test_bad_options_are_refused(levels: tuple[int, ...], count: int) -> None:
    with pytest.raises(UserError):
        list(TASK.problems(CountdownPaperOptions(levels), "train", 0, count))
