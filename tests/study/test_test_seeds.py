"""The ledger of test seeds."""

from pathlib import Path

import pytest

from compositionality.errors import UserError
from compositionality.study.registered import check_not_registered, check_test_seed, note_test_seed


def test_a_seed_that_something_else_used_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "test_seeds.yaml"
    check_test_seed(7, "a1", path)
    note_test_seed(7, "a1", "one.json", path)
    note_test_seed(8, "2e5", "two.json", path)  # stays text
    before = path.read_bytes()
    for seed, by in ((7, "a1"), (8, "2e5"), (9, "b2")):
        check_test_seed(seed, by, path)
    note_test_seed(7, "a1", "later.json", path)
    for use in (lambda: check_test_seed(7, "b2", path), lambda: note_test_seed(7, "b2", "x.json", path)):
        with pytest.raises(UserError, match=r"test seed 7 was used by a1 \(one.json\), not by b2.*TEST_SEED"):
            use()
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["7: a1\n", "7: {by: a1}\n", "7: {by: [1], record: a}\n", "- 7\n", "7: {\n"])
def test_a_damaged_ledger_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "test_seeds.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"test_seeds.yaml: \S"):
        check_test_seed(7, "a1", path)


def test_the_seed_of_a_registered_study_is_kept_for_it(tmp_path: Path) -> None:
    path = tmp_path / "test_seeds.yaml"
    check_not_registered(7, path)
    note_test_seed(7, "0.1.0", "one.json", path)
    note_test_seed(8, "registration small abc", "small.json", path)
    check_not_registered(7, path)
    told = r"TEST_SEED=8: reserved for registration small abc \(small.json\); choose a number"
    with pytest.raises(UserError, match=told):
        check_not_registered(8, path)


def test_the_seed_of_the_records_is_known() -> None:
    with pytest.raises(UserError, match="test seed 2027 was used"):
        check_test_seed(2027, "new")
