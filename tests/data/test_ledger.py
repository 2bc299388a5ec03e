"""P2: the ledger refuses a planted leak, and lets clean files pass."""

from pathlib import Path

import pytest
from string_rows import countdown_row, row, write_rows

from compositionality.data.ledger import SplitLedger, identities
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.tasks.string.clean import StringOptions
from compositionality.tasks.string.task import TASK

TRAIN = [row("func_3(func_9(x))", "abc"), row("func_1(func_5(x, 'ab'), 2)", "xyz"), row("func_17(x)", "xyz")]


@pytest.fixture
def ledger(tmp_path: Path) -> SplitLedger:
    made = SplitLedger()
    made.add_training(write_rows(tmp_path / "train.parquet", TRAIN))
    return made


def test_p02_a_clean_file_passes(ledger: SplitLedger, tmp_path: Path) -> None:
    rows = [row("func_3(func_9(x))", "abd", "string-trained-level2"), row("func_2(func_14(x))", "abc")]
    ledger.check(write_rows(tmp_path / "test.parquet", rows))


def test_p02_a_problem_that_was_trained_on_is_refused(ledger: SplitLedger, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "test.parquet", [row("func_2(x)", "abc"), row("func_3(func_9(x))", "abc")])
    with pytest.raises(UserError, match=r"test.parquet: row 1 has the same problem .*train.parquet row 0; 1 such"):
        ledger.check(path)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("func_3(func_9(x))", "composition"),
        ("func_1(func_5(x, 'cd'), 3)", "composition"),
        ("func_3(func_18(x, 2))", "behaviour"),
        ("func_18(func_5(x, 'ab'), 2)", "behaviour"),
    ],
)
def test_p02_a_trained_composition_in_a_heldout_file_is_refused(
    ledger: SplitLedger, tmp_path: Path, expression: str, kind: str
) -> None:
    path = write_rows(tmp_path / "test.parquet", [row(expression, "other", "string-heldout-level2")])
    assert [leak.kind for leak in ledger.leaks(path)] == [kind]
    with pytest.raises(UserError, match=f"same {kind}"):
        ledger.check(path)


def test_single_functions_may_come_back(ledger: SplitLedger, tmp_path: Path) -> None:
    ledger.check(write_rows(tmp_path / "t.parquet", [row("func_17(x)", "abc", "string-heldout-level1")]))


def test_a_row_of_another_task_is_named(ledger: SplitLedger, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.parquet", [row("func_17(x)", "abc"), row("open(x)", "abc")])
    with pytest.raises(UserError, match=r"t.parquet: row 1 is no row of the string task"):
        ledger.check(path)


def test_p02_a_countdown_problem_is_known_in_any_order_and_by_any_name(tmp_path: Path) -> None:
    ledger = SplitLedger()
    ledger.add_training(write_rows(tmp_path / "train.parquet", [countdown_row([3, 5, 7], 22), TRAIN[0]]))
    other = countdown_row([7, 3, 5], 22, "countdown")
    path = write_rows(tmp_path / "test.parquet", [countdown_row([7, 3, 5], 23), other])
    with pytest.raises(UserError, match=r"test.parquet: row 1 has the same problem \(3\|5\|7>22\) as .*row 0; 1 such"):
        ledger.check(path)
    ledger.check(write_rows(tmp_path / "good.parquet", [countdown_row([3, 5, 7], 1), countdown_row([3, 5, 5], 22)]))


def test_p02_order_sensitive_problems_of_held_out_functions_are_held_out(tmp_path: Path) -> None:
    options = StringOptions(functions="heldout", levels=(2,), order_sensitive=True)
    path = tmp_path / "ordered.parquet"
    write_table(to_table([TASK.problem(options, "test", 1, index) for index in range(5)], "test"), path)
    assert all(held_out for _, held_out, _ in identities(path))
