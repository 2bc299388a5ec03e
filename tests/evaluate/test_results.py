"""Counts per problem, groups, rows and the table on the screen."""

import io
import json
import re
from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.evaluate.accuracy import Row, accuracy_rows
from compositionality.evaluate.summary import by_problem
from compositionality.evaluate.table import REASONS, count, problem_columns
from compositionality.evaluate.tables import GROUP, print_results
from compositionality.rollout.store import SCHEMA as ROLLOUT_SCHEMA
from compositionality.types import Problem, TrainingReport

LABELS = {"n_samples": 2, "temperature": 1.0, "seed": 0}


def shard(answers: Sequence[tuple[int, str, int]]) -> pa.Table:
    """Rollout rows from (problem, reason, tokens)."""
    rows = [
        {
            "problem": number, "sample": sample, "response": "", "n_tokens": tokens, "finish_reason": "stop",
            "score": float(reason == "correct"), "reason": reason, "answer": None,
        }
        for sample, (number, reason, tokens) in enumerate(answers)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=ROLLOUT_SCHEMA)


def problems(levels: Sequence[int], functions: Sequence[Sequence[str]]) -> pa.Table:
    return to_table(
        [
            Problem(
                f"string-heldout-level{level}", level, "heldout", f"p{index}", "{}", index, {"functions": list(names)}
            )
            for index, (level, names) in enumerate(zip(levels, functions, strict=True))
        ],
        "test",
    )


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(REASONS), st.integers(1, 9)), max_size=40), st.integers(1, 7)
)
def test_the_table_counts_everything_however_it_is_cut(answers: list[tuple[int, str, int]], size: int) -> None:
    parts = [shard(answers[start : start + size]) for start in range(0, len(answers), size)]
    counts = count(parts, 5)
    for number in range(5):
        mine = [(reason, tokens) for problem, reason, tokens in answers if problem == number]
        row = counts.iloc[number]
        assert row["right"] == sum(reason == "correct" for reason, _ in mine)
        assert row["judged"] == sum(reason != "error" for reason, _ in mine)
        assert row["tokens"] == sum(tokens for _, tokens in mine)
        assert row["n"] == len(mine) == sum(row[f"reason_{reason}"] for reason in REASONS)
    assert counts["n"].sum() == len(answers)


def test_unknown_problems_and_verdicts_are_refused() -> None:
    with pytest.raises(UserError, match="unknown"):
        count([shard([(5, "correct", 1)])], 5)
    with pytest.raises(UserError, match="unknown"):
        count([shard([(0, "splendid", 1)])], 5)


def rows_of(table: pa.Table, **shards: Sequence[tuple[int, str, int]]) -> list[Row]:
    """The rows of models by name, from their answers."""
    tables = [
        pd.concat([problem_columns(table), count([shard(answers)], table.num_rows)], axis=1).assign(
            arm=arm, file="test"
        )
        for arm, answers in shards.items()
    ]
    rows = pd.concat(tables, ignore_index=True).assign(file="test")
    return [{**row, **LABELS} for row in accuracy_rows(rows, rows["skills"])]


def test_rows_are_levels_and_skills_in_natural_order() -> None:
    table = problems([10, 2, 2], [["func_10", "func_9"], ["func_9"], []])
    rows = rows_of(table, base=[(0, "wrong", 1), (1, "correct", 1), (2, "wrong", 1)])
    assert [(row["by"], row["level"], row["skill"], row["n_problems"], row["accuracy"]) for row in rows] == [
        ("all", None, None, 3, 1 / 3),
        ("level", 2, None, 2, 0.5),
        ("level", 10, None, 1, 0.0),
        ("skill", None, "func_9", 2, 0.5),
        ("skill", None, "func_10", 1, 0.0),
    ]


def both() -> list[Row]:
    table = problems([1, 1, 2], [["func_1"], ["func_2"], ["func_1", "func_2"]])
    base = [(0, "correct", 2), (1, "wrong", 4), (2, "error", 6)]
    return rows_of(table, base=base, rl=[(0, "correct", 2), (1, "correct", 2), (2, "overlong", 8)])


def test_rows_hold_the_figures() -> None:
    rows = {(row["model"], row["data_source"] or row["skill"] or "all"): row for row in both()}
    base = rows["base", "string-heldout-level1"]
    assert (base["accuracy"], base["n_problems"], base["n_responses"], base["mean_tokens"]) == (0.5, 2, 2, 3.0)
    assert base["low"] < 0.5 < base["high"]
    assert base["difference"] is None
    assert rows["rl", "string-heldout-level1"]["difference"] == 0.5
    assert rows["base", "all"]["share_error"] == pytest.approx(1 / 3)
    assert rows["rl", "func_1"]["accuracy"] == 0.5


def test_p05_a_verifier_failure_is_no_wrong_answer() -> None:
    row = next(row for row in both() if row["level"] == 2)
    assert (row["accuracy"], row["n_responses"], row["share_error"]) == (None, 1, 1.0)


@pytest.mark.parametrize("others", [0, 1, 2, 5])
def test_the_table_is_readable_at_80_columns(others: int) -> None:
    rows = both()
    shown = [row for row in rows if row["model"] == "base"]
    for number in range(others):
        shown += [{**row, "model": f"stage2-rl-level1to{number}"} for row in rows if row["model"] == "rl"]
    screen = Console(file=io.StringIO(), width=80)
    print_results(shown, screen)
    text = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "50.0 [9.5–90.5]" in text
    assert "heldout L1" in text
    assert "…" not in text
    assert all(len(line) <= 80 for line in text.splitlines())
    if others:
        assert "+50.0" in text
        assert f"stage2-rl-level1to{others - 1}" in text.replace("\n", "")


def test_arms_of_rl_without_signal_have_no_figures() -> None:
    """Neither their accuracy nor their difference; another arm, and one of which nothing is known, keep theirs."""
    for signal, shown in ((0, False), (1, True)):
        screen = Console(file=io.StringIO(), width=80)
        reports = [{"rl": asdict(TrainingReport(updates=2, groups=8, groups_with_signal=signal))}]
        print_results(both(), screen, reports=reports)
        text = screen.file.getvalue()  # type: ignore[attr-defined]
        assert ("+50.0" in text) == shown
        assert ("not testable" in text) != shown
        assert "50.0 [9.5–90.5]" in text  # the base's


def test_each_of_several_groups_has_a_line_of_all_its_levels() -> None:
    made = [Problem(f"math__{group}", level, group, "p", "1", 0) for group, level in (("a", 1), ("a", 2), ("b", 1))]
    answers = [(0, "correct", 2), (1, "wrong", 4), (2, "wrong", 6)]
    rows = rows_of(to_table(made, "test"), base=answers)
    assert [(row["group"], row["n_problems"]) for row in rows if row["by"] == GROUP] == [("a", 2), ("b", 1)]
    assert not any(row["by"] == GROUP for row in rows_of(to_table(made[:2], "test"), base=answers[:2]))
    screen = Console(file=io.StringIO(), width=80)
    print_results(rows, screen)
    line = next(line for line in screen.file.getvalue().splitlines() if "a, all levels" in line)  # type: ignore[attr-defined]
    assert re.split(r"  +", line.strip())[1:2] == ["2"]
    assert "50.0 [" in line


def test_functions_are_printed_when_asked_for() -> None:
    for asked in (False, True):
        screen = Console(file=io.StringIO(), width=80)
        print_results(both(), screen, by_skill=asked)
        assert ("func_1" in screen.file.getvalue()) == asked  # type: ignore[attr-defined]


def test_problems_of_one_composition_are_a_cluster() -> None:
    """The same two functions on other strings; in the other order; one function; a row that is not ours."""
    codes = ["func_17(func_16(x))", "func_17(func_16(x))", "func_16(func_17(x))", "func_16(x)", "func_16(x)"]
    truths = [
        json.dumps({"ref_code": f"def main_solution(x):\n    return {code}", "ref_input": {"x": f"ab{row}"}})
        for row, code in enumerate(codes)
    ]
    made = [
        Problem("string-heldout-level2", 2, "heldout", f"p{row}", truth, row)
        for row, truth in enumerate([*truths, json.dumps({"ref_output": "a"})])
    ]
    found = problem_columns(to_table(made, "test"))["cluster"]
    assert (found[0], len(set(found))) == (found[1], 5)
    rows = pd.DataFrame({"cluster": found, "right": 1, "judged": 1})
    clusters = by_problem(rows, "correct").clusters
    assert clusters is not None
    assert clusters[0] == clusters[1]
