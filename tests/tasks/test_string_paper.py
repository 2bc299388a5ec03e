"""Paper mode gives the original's very sequence."""

import hashlib
import json
from collections import Counter

import pytest

from compositionality.errors import UserError
from compositionality.tasks.registry import find_judge
from compositionality.tasks.string.paper import PAPER_FILES, PaperFile, PaperSampler, paper_items, paper_problems
from compositionality.tasks.string.program import parse

DIGESTS = {
    "stage1_level1/train": "a593daf7ec1a2011ff7120bfae7142edc36d9b129372f943eea87fc533230f7d",
    "stage1_level1/test": "0f711f0126ade3a20333eb2d49ab451a04724e7a4ede6c47d225f62aa9dbe60e",
    "stage2_level1to2/train": "25854e76d9dd4e8789c613ebc039ef7ac8cb97e6ed310c464d531a0c44154960",
    "stage2_level1/train": "cce93eb833edb40bb4acffb888012168fa5b5a3c5383e2898605e271188fd77d",
    "stage2_level2/train": "a43b74c06ad0521533f59987f4c6bf0dd95a811d2cfdba359fbcecf2951d95be",
    "stage2_level1to8/test": "312e9cadc2a210d21e5583f6f1d958ab0280582d7255dc9ed368ebd7eede6f5e",
}
STAGE1_COUNTS = (
    *(1321, 1703, 1305, 1251, 1338, 3151, 3177, 6496, 1600, 1324, 1295, 1679, 1275),
    *(1650, 1277, 1298, 1341, 1233, 1710, 1682, 0, 1258, 1285, 1657, 1627),
)
TEST_USES_INPUT = (0.324, 0.605, 0.668, 0.734, 0.719, 0.766, 0.848, 0.816)
TEST_FUNCTIONS = (0.87, 1.95, 3.28, 4.90, 6.32, 8.66, 11.6, 14.5)


@pytest.mark.parametrize("name", DIGESTS)
def test_p01_sequence_is_exact(name: str) -> None:
    digest = hashlib.sha256()
    for item in paper_items(PAPER_FILES[name]):
        digest.update(f"{item.text}\t{item.input}\t{item.output}\n".encode())
    assert digest.hexdigest() == DIGESTS[name]


@pytest.mark.parametrize(
    ("name", "duplicates", "used"),
    [
        ("stage1_level1/train", 35_677, 0.231),
        ("stage2_level1/train", 36_377, 0.220),
        ("stage2_level2/train", 23_419, 0.414),
    ],
)
def test_flaws_are_the_originals(name: str, duplicates: int, used: float) -> None:
    options = PAPER_FILES[name]
    sampler = PaperSampler(options.active())
    items = list(sampler.items(options))
    assert sampler.duplicates == duplicates
    assert sum(item.program.uses_input for item in items) / len(items) == pytest.approx(used, abs=0.0005)


def test_stage1_function_counts() -> None:
    counts = Counter(
        name for item in paper_items(PAPER_FILES["stage1_level1/train"]) for name in set(item.program.functions)
    )
    assert tuple(counts[f"func_{id}"] for id in range(25)) == STAGE1_COUNTS


def test_test_set_by_level() -> None:
    items = list(paper_items(PAPER_FILES["stage2_level1to8/test"]))
    for level in range(1, 9):
        rows = [item for item in items if item.level == level]
        assert len(rows) == 256
        used = sum(item.program.uses_input for item in rows) / 256
        assert used == pytest.approx(TEST_USES_INPUT[level - 1], abs=0.0005)
        mean = sum(len(item.program.functions) for item in rows) / 256
        assert mean == pytest.approx(TEST_FUNCTIONS[level - 1], abs=0.06)
    assert max(len(item.output) for item in items) == 2676


def test_stage1_test_is_the_head_of_train() -> None:
    train = paper_items(PAPER_FILES["stage1_level1/train"])
    assert list(paper_items(PAPER_FILES["stage1_level1/test"])) == [next(train) for _ in range(128)]


def test_rows_have_the_published_form_and_judge_their_gold_right() -> None:
    for problem in paper_problems(PaperFile(2, "test", 1, 8, 80)):
        truth = json.loads(problem.ground_truth)
        assert list(truth) == ["ref_input", "ref_output", "ref_code", "funcname"]
        assert problem.data_source == f"codeio-forward-incomplete-depth{problem.level}"
        assert truth["ref_code"] in problem.prompt
        gold = json.dumps({"output": truth["ref_output"]})
        assert find_judge(problem.data_source)(gold, problem.ground_truth).score == 1
        assert find_judge(problem.data_source)(problem.prompt, problem.ground_truth).score == 0


def test_only_stage_1_shows_definitions() -> None:
    shown = next(paper_problems(PaperFile(1, "train", 1, 1, 1))).prompt
    hidden = next(paper_problems(PaperFile(2, "train", 1, 1, 1))).prompt
    assert "def func_4(text):" in shown
    assert "def func_4" not in hidden
    assert "reverse_words" not in shown + hidden


def test_expressions_are_read_back() -> None:
    for item in paper_items(PaperFile(2, "test", 1, 8, 800)):
        assert parse(item.text) == item.program


@pytest.mark.parametrize(
    "text", ["x + 1", "func_99(x)", "open('f')", "func_1(x)", "(" * 5000, "x.title()", "x if x else x"]
)
def test_anything_else_is_no_expression(text: str) -> None:
    with pytest.raises(UserError):
        parse(text)
