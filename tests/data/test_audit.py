"""P3: the audit sees what is wrong with a file of either task, and that clean files are right."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from string_rows import countdown_row, row, write_rows

from compositionality.data.audit import AuditData, audit_data, audit_file
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.tasks.countdown.clean import CountdownOptions, problems
from compositionality.tasks.countdown.task import CountdownPaperOptions
from compositionality.tasks.registry import find_task
from compositionality.tasks.string.clean import StringGenerator, StringOptions
from compositionality.tasks.string.paper import StringPaperOptions, paper_problems


def test_p03_planted_flaws_are_counted(tmp_path: Path) -> None:
    rows = [
        row("func_3(func_9(x))", "cab"),
        row("func_3(func_9(x))", "cab"),  # duplicate
        row("func_1(func_5('abc', 'd'), 2)", "cab"),  # constant program
        row("func_9(func_22(x))", "ca"),  # no-op
        row("(x + func_9('b'))", "ca"),  # folds to depth 1
    ]
    _, (level,) = audit_file(write_rows(tmp_path / "f.parquet", rows))
    assert (level["rows"], level["duplicates"], level["wrong_gold"]) == (5, 1, 0)
    assert level["input_named"] == level["input_matters"] == 0.8
    assert (level["with_no_op"], level["with_constant"], level["real_depth"]) == (0.2, 0.4, 0.4)
    assert (level["functions"]["func_9"], level["balance"]) == (4, 0.25)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("func_1(x, 1000000000)", "not an expression of the string task"),
        ("func_19(x, 1000000000000)", "not an expression of the string task"),
        ("func_1(func_18(func_1(x, 900), 900), 900)", "func_18 would work on over 1,000,000 characters"),
        ("func_9(" * 40 + "x" + ")" * 40, "func_9 would work"),
        ("func_13(func_1(x, 1000), '" + "-" * 5000 + "')", "func_13 would work"),
        ("func_1(x, 'a')", "not an expression of the string task"),
        ("+".join("x" * 900), "not an expression of the string task"),
        ("x" + ".upper()" * 900, "not an expression of the string task"),
    ],
    ids=["repeat", "rotate", "repeats", "doubled", "separated", "no number", "long sum", "long chain"],
)
def test_p04_a_program_that_needs_gigabytes_is_one_line(tmp_path: Path, expression: str, said: str) -> None:
    import resource

    path = write_rows(tmp_path / "f.parquet", [row("func_17(x)", "cab")])
    bad = write_rows(tmp_path / "bad.parquet", [with_program(expression)])
    audit_file(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError, match=re.escape(f"{bad}: row 0: ") + ".*" + said):
        audit_file(bad)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def with_program(expression: str) -> dict[str, Any]:
    """A row that asks for a program which is not evaluated here."""
    made = row("func_17(x)", "cab")
    made["reward_model"]["ground_truth"] = made["reward_model"]["ground_truth"].replace("func_17(x)", expression)
    return made


def test_prompts_and_levels_that_are_not_the_truths_are_counted(tmp_path: Path) -> None:
    task = StringGenerator(StringOptions(levels=(2,)))
    rows = to_table([task.problem("train", 1, index) for index in range(20)], "train").to_pylist()
    rows[3]["prompt"], rows[4]["level"] = rows[5]["prompt"], 1
    rows[6]["prompt"][0]["content"] = rows[6]["prompt"][0]["content"].replace("Work it out", "Guess")
    _, (level,) = audit_file(write_rows(tmp_path / "clean.parquet", rows))
    assert (level["level"], level["wrong_prompt"], level["wrong_level"], level["prompt_unchecked"]) == (2, 2, 1, 0)
    others = [row("func_3(func_9(x))", "cab"), row("func_3(func_9(x))", "cab"), row("func_9(x)", "cab", level=2)]
    others[1]["prompt"][0]["content"] = others[2]["prompt"][0]["content"]
    one, two = audit_file(write_rows(tmp_path / "others.parquet", others))[1]
    assert (two["wrong_prompt"], two["wrong_level"]) == (1, 0)
    assert (one["level"], one["wrong_prompt"], one["wrong_level"]) == (1, 0, 1)


def test_an_input_that_is_named_but_cannot_matter(tmp_path: Path) -> None:
    _, (level,) = audit_file(write_rows(tmp_path / "f.parquet", [row("func_21(func_2('e'))", "abc")]))
    assert level["input_matters"] == 0


def test_a_wrong_gold_answer_and_a_wrong_stream_are_counted(tmp_path: Path) -> None:
    wrong = row("func_17(x)", "abc")
    wrong["reward_model"]["ground_truth"] = wrong["reward_model"]["ground_truth"].replace("cba", "abc")
    _, (level,) = audit_file(write_rows(tmp_path / "wrong.parquet", [wrong]))
    assert level["wrong_gold"] == 1
    task = StringGenerator(StringOptions())
    path = tmp_path / "moved.parquet"
    write_table(to_table([task.problem("train", 1, index) for index in range(20)], "test"), path)
    assert audit_file(path)[1][0]["wrong_stream"] == 20


def test_p03_planted_reducible_and_reordered_problems_are_counted(tmp_path: Path) -> None:
    programs = [
        "func_17(func_11(func_17(x), 1))",  # the reversals can be left out
        "func_13(func_11(func_17(x), 1), '-')",  # any order will do
        "func_6(func_11(func_17(x), 1), 'dh')",
        "func_17((x + func_11(x, 1)))",  # a tree
    ]
    path = write_rows(tmp_path / "planted.parquet", [row(program, "abc") for program in programs])
    levels = {level["level"]: level for level in audit_file(path)[1]}
    assert (levels[3]["reducible"], levels[3]["other_order"], levels[3]["chains"]) == (0.25, 1.0, 3)


def test_the_papers_test_file_has_the_known_flaws(tmp_path: Path) -> None:
    path, train = tmp_path / "test.parquet", tmp_path / "train.parquet"
    write_table(to_table(list(paper_problems(StringPaperOptions(2, 1, 8), "test", 2048)), "dummy"), path)
    write_table(to_table(list(paper_problems(StringPaperOptions(), "test", 128)), "dummy"), train)
    _, levels = audit_file(path, [train])
    matters = [round(level["input_matters"], 3) for level in levels]
    assert matters == [0.324, 0.605, 0.668, 0.734, 0.719, 0.766, 0.848, 0.816]
    assert [level["length_max"] for level in levels] == [40, 60, 100, 162, 360, 544, 1308, 2676]
    assert levels[0]["overlap_problems"] > 0
    assert sum(level["wrong_gold"] for level in levels) == 0


def test_the_report_is_json_and_the_tables_are_whole_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write_rows(tmp_path / "f.parquet", [row("func_3(func_9(x))", "cab")]), tmp_path / "audit.json"
    audit_data(AuditData(files=[str(path)], output=str(out)))
    assert json.loads(out.read_text())["f.parquet"][0]["rows"] == 1
    told = capsys.readouterr().out
    assert "len med/p90/max" in told
    assert "…" not in told


def test_an_audit_follows_the_files_that_it_is_held_against(tmp_path: Path) -> None:
    """A training file that was made later is no reason to refuse: the audit can always be made again."""
    test, level1, level2 = (
        str(write_rows(tmp_path / name / "f.parquet", [row("func_3(func_9(x))", text)]))
        for name, text in (("test", "ab"), ("level1", "cd"), ("level2", "ab"))
    )
    found = []
    for against in ([level1], [level2, level1]):
        audit_data(AuditData([test], against, str(tmp_path / "audit.json")))
        ((level,),) = json.loads((tmp_path / "audit.json").read_text()).values()
        found.append(level["overlap_problems"])
    assert found == [0, 1]


def test_p03_countdown_planted_flaws_are_counted(tmp_path: Path) -> None:
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
    names = ("level", "rows", "duplicates", "overlap_problems", "wrong_level")
    assert [level[name] for name in names] == [3, 5, 1, 1, 1]
    assert (level["solvable"], level["whole"], level["fewer_numbers"]) == (0.8, 0.8, 0.4)
    assert (level["target_given"], level["equal_numbers"]) == (0.2, 0.2)
    assert (level["target_lowest"], level["target_highest"], level["solutions_median"]) == (9, 997, 1)


def test_a_wrong_countdown_gold_answer_and_a_wrong_stream_are_counted(tmp_path: Path) -> None:
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


def test_the_papers_file_repeats_problems(tmp_path: Path) -> None:
    pytest.importorskip("reasoning_gym")
    path = tmp_path / "paper.parquet"
    write_table(
        to_table(list(find_task("countdown").problems(CountdownPaperOptions((2,)), "train", 0, 2000)), "train"), path
    )
    _, (level,) = audit_file(path)
    assert (level["rows"], level["duplicates"], level["solvable"], level["wrong_gold"]) == (2000, 141, 1, 0)


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    files = [write_rows(tmp_path / name / "train.parquet", [countdown_row([3, 5, 7], 22)]) for name in "ab"]
    audit_data(AuditData(files=[str(path) for path in files], output=str(tmp_path / "audit.json")))
    assert [*json.loads((tmp_path / "audit.json").read_text())] == ["a/train.parquet", "b/train.parquet"]
    for lists in ({"files": [str(files[0])] * 2}, {"files": [str(files[0])], "against": [str(files[1])] * 2}):
        with pytest.raises(UserError, match=r"train.parquet is given twice; give each file or folder once"):
            audit_data(AuditData(**lists))


def test_what_cannot_be_audited_is_one_line(tmp_path: Path) -> None:
    mixed = write_rows(tmp_path / "m.parquet", [countdown_row([3, 5, 7], 22), row("func_3(x)", "abc")])
    with pytest.raises(UserError, match=r"m.parquet: rows of different tasks"):
        audit_file(mixed)
    many = write_rows(tmp_path / "n.parquet", [countdown_row([1] * 7, 7)])
    with pytest.raises(UserError, match=r"n.parquet: row 0: 7 numbers: the solver takes 1 to 6"):
        audit_file(many)
