"""The audit of Countdown files: planted flaws are seen, clean files are right, the paper's flaws are known."""

import json
from pathlib import Path

import pytest
from string_rows import countdown_row, row, write_rows

from compositionality.data.audit import AuditData, audit_data, audit_file
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.tasks.countdown import TASK
from compositionality.tasks.countdown.clean import CountdownOptions, problems
from compositionality.tasks.countdown.task import CountdownPaperOptions


def test_p03_planted_flaws_are_counted(tmp_path: Path) -> None:
    rows = [
        countdown_row([3, 5, 7], 22),
        countdown_row([7, 5, 3], 22),  # duplicate
        countdown_row([3, 5, 7], 997),  # no solution
        countdown_row([1, 5, 7], 35),  # 5*7 does without the 1
        countdown_row([3, 3, 9], 9),  # the target is one of the numbers
    ]
    rows[3]["extra_info"]["depth"] = 2
    train = write_rows(tmp_path / "train.parquet", [countdown_row([1, 7, 5], 35, "countdown")])
    _, (level,) = audit_file(write_rows(tmp_path / "f.parquet", rows), [train])
    assert (level["level"], level["rows"], level["duplicates"], level["overlap_problems"], level["wrong_level"]) == (
        3,
        5,
        1,
        1,
        1,
    )
    assert (level["solvable"], level["whole"], level["fewer_numbers"]) == (0.8, 0.8, 0.4)
    assert (level["target_given"], level["equal_numbers"]) == (0.2, 0.2)
    assert (level["target_lowest"], level["target_highest"], level["solutions_median"]) == (9, 997, 1)


def test_a_wrong_gold_answer_and_a_wrong_stream_are_counted(tmp_path: Path) -> None:
    options = CountdownOptions(levels=(2,))
    path = tmp_path / "moved.parquet"
    table = to_table(list(problems(options, "train", 1, range(20))), "test").to_pylist()
    table[3]["extra_info"]["expression"] = "1+1"
    _, (level,) = audit_file(write_rows(path, table))
    assert (level["wrong_gold"], level["wrong_stream"]) == (1, 20)


@pytest.mark.parametrize("style", ["text", "compact"])
def test_prompts_that_are_not_the_truths_are_counted(tmp_path: Path, style: str) -> None:
    options = CountdownOptions(levels=(3,), style=style)
    table = to_table(list(problems(options, "train", 1, range(20))), "train").to_pylist()
    table[3]["prompt"] = table[5]["prompt"]
    _, (level,) = audit_file(write_rows(tmp_path / "f.parquet", table))
    assert (level["wrong_prompt"], level["wrong_level"], level["prompt_unchecked"]) == (1, 0, 0)
    others = [countdown_row([3, 5, 7], 22) for _ in range(3)]
    others[1]["prompt"][0]["content"] = "Reach 22 from [3, 5, 8]."
    others[2]["prompt"][0]["content"] = "Reach the target."
    _, (level,) = audit_file(write_rows(tmp_path / "others.parquet", others))
    assert (level["wrong_prompt"], level["prompt_unchecked"]) == (1, 1)


@pytest.mark.parametrize(
    "options",
    [
        CountdownOptions(levels=(2, 3, 4), minimal=True),
        CountdownOptions(levels=(2, 3), use="any", operators="+-", style="compact"),
    ],
)
def test_p03_clean_files_are_sound(tmp_path: Path, options: CountdownOptions) -> None:
    path = tmp_path / "clean.parquet"
    write_table(to_table(list(TASK.problems(options, "train", 5, 120)), "train"), path)
    for level in audit_file(path)[1]:
        assert level["solvable"] == level["whole"] == 1
        assert level["duplicates"] == level["wrong_level"] == level["wrong_gold"] == level["wrong_stream"] == 0
        assert level["fewer_numbers"] == 0 or not options.minimal


def test_the_papers_file_repeats_problems(tmp_path: Path) -> None:
    pytest.importorskip("reasoning_gym")
    path = tmp_path / "paper.parquet"
    write_table(to_table(list(TASK.problems(CountdownPaperOptions((2,)), "train", 0, 2000)), "train"), path)
    _, (level,) = audit_file(path)
    assert (level["rows"], level["duplicates"], level["solvable"], level["wrong_gold"]) == (2000, 141, 1, 0)


def test_report_and_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write_rows(tmp_path / "f.parquet", [countdown_row([3, 5, 7], 22)]), tmp_path / "audit.json"
    audit_data(AuditData(files=[str(path)], output=str(out)))
    assert json.loads(out.read_text())["f.parquet"][0]["solvable"] == 1
    assert "f.parquet" in capsys.readouterr().out


def test_what_cannot_be_audited_is_one_line(tmp_path: Path) -> None:
    mixed = write_rows(tmp_path / "m.parquet", [countdown_row([3, 5, 7], 22), row("func_3(x)", "abc")])
    with pytest.raises(UserError, match=r"m.parquet: rows of different tasks"):
        audit_file(mixed)
    many = write_rows(tmp_path / "n.parquet", [countdown_row([1] * 7, 7)])
    with pytest.raises(UserError, match=r"n.parquet: row 0: 7 numbers: the solver takes 1 to 6"):
        audit_file(many)
