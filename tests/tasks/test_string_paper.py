"""Paper mode gives the original's very sequence."""

import hashlib
import json

import pytest

from compositionality.errors import UserError
from compositionality.tasks.registry import task_of
from compositionality.tasks.string.paper import StringPaperOptions, paper_items, paper_problems
from compositionality.tasks.string.program import parse

DIGESTS = {
    ("train", 1, 1, 1, 50_000): "a593daf7ec1a2011ff7120bfae7142edc36d9b129372f943eea87fc533230f7d",
    ("test", 1, 1, 1, 128): "0f711f0126ade3a20333eb2d49ab451a04724e7a4ede6c47d225f62aa9dbe60e",
    ("train", 2, 1, 2, 50_000): "25854e76d9dd4e8789c613ebc039ef7ac8cb97e6ed310c464d531a0c44154960",
    ("train", 2, 1, 1, 50_000): "cce93eb833edb40bb4acffb888012168fa5b5a3c5383e2898605e271188fd77d",
    ("train", 2, 2, 2, 50_000): "a43b74c06ad0521533f59987f4c6bf0dd95a811d2cfdba359fbcecf2951d95be",
    ("test", 2, 1, 8, 2_048): "312e9cadc2a210d21e5583f6f1d958ab0280582d7255dc9ed368ebd7eede6f5e",
}
"""By split, stage, first and last level, rows: the files that the paper names."""


@pytest.mark.parametrize(("split", "stage", "low", "high", "count"), DIGESTS)
def test_p01_sequence_is_exact(split: str, stage: int, low: int, high: int, count: int) -> None:
    digest = hashlib.sha256()
    for item in paper_items(StringPaperOptions(stage, low, high), split, count):
        digest.update(f"{item.program.text}\t{item.input}\t{item.output}\n".encode())
    assert digest.hexdigest() == DIGESTS[split, stage, low, high, count]


def test_stage1_test_is_the_head_of_train() -> None:
    train = paper_items(StringPaperOptions(), "train", 50_000)
    assert list(paper_items(StringPaperOptions(), "test", 128)) == [next(train) for _ in range(128)]


def test_rows_have_the_published_form_and_judge_their_gold_right() -> None:
    for problem in paper_problems(StringPaperOptions(2, 1, 8), "test", 80):
        truth = json.loads(problem.ground_truth)
        assert list(truth) == ["ref_input", "ref_output", "ref_code", "funcname"]
        assert problem.data_source == f"codeio-forward-incomplete-depth{problem.level}"
        assert truth["ref_code"] in problem.prompt
        gold = json.dumps({"output": truth["ref_output"]})
        assert task_of(problem.data_source).verdict(gold, problem.ground_truth).score == 1
        assert task_of(problem.data_source).verdict(problem.prompt, problem.ground_truth).score == 0


def test_only_stage_1_shows_definitions() -> None:
    shown = next(paper_problems(StringPaperOptions(1), "train", 1)).prompt
    hidden = next(paper_problems(StringPaperOptions(2), "train", 1)).prompt
    assert "def func_4(text):" in shown
    assert "def func_4" not in hidden
    assert "reverse_words" not in shown + hidden


def test_expressions_are_read_back() -> None:
    for item in paper_items(StringPaperOptions(2, 1, 8), "test", 800):
        assert parse(item.program.text) == item.program


@pytest.mark.parametrize(
    "text", ["x + 1", "func_99(x)", "open('f')", "func_1(x)", "(" * 5000, "x.title()", "x if x else x"]
)
def test_anything_else_is_no_expression(text: str) -> None:
    with pytest.raises(UserError):
        parse(text)
