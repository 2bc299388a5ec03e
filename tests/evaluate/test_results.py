"""Counts per problem, groups, rows and the table on the screen."""

import io
import json
import re
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.evaluate.accuracy.rows import GROUP, SCHEMA, Row, parts_of, rows_of
from compositionality.evaluate.counts import REASONS, ProblemCounts, Stratum, clusters_of, tally
from compositionality.evaluate.tables import print_curves, print_results
from compositionality.rollout.store import SCHEMA as ROLLOUT_SCHEMA
from compositionality.types import Problem, TrainingReport

LABELS = {"model": "base", "problems": "test", "n_samples": 2, "temperature": 1.0, "seed": 0}


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
def test_the_tally_counts_everything_however_it_is_cut(answers: list[tuple[int, str, int]], size: int) -> None:
    parts = [shard(answers[start : start + size]) for start in range(0, len(answers), size)]
    counts = tally(parts, 5)
    for number in range(5):
        mine = [(reason, tokens) for problem, reason, tokens in answers if problem == number]
        assert counts.correct[number] == sum(reason == "correct" for reason, _ in mine)
        assert counts.judged[number] == sum(reason != "error" for reason, _ in mine)
        assert counts.tokens[number] == sum(tokens for _, tokens in mine)
    assert counts.responses == len(answers)
    assert sum(counts.shares().values()) == pytest.approx(1.0 if answers else 0.0)


def test_unknown_problems_and_verdicts_are_refused() -> None:
    with pytest.raises(UserError, match="unknown"):
        tally([shard([(5, "correct", 1)])], 5)
    with pytest.raises(UserError, match="unknown"):
        tally([shard([(0, "splendid", 1)])], 5)


def test_parts_are_levels_and_skills_in_natural_order() -> None:
    table = problems([10, 2, 2], [["func_10", "func_9"], ["func_9"], []])
    found = {tuple(part.labels.values()): list(part.problems) for part in parts_of(table)}
    assert list(found.items()) == [
        (("all",), [0, 1, 2]),
        (("level", "heldout", 2, "string-heldout-level2"), [1, 2]),
        (("level", "heldout", 10, "string-heldout-level10"), [0]),
        (("skill", "func_9"), [0, 1]),
        (("skill", "func_10"), [0]),
    ]


def both(second: str = "rl") -> list[Row]:
    table = problems([1, 1, 2], [["func_1"], ["func_2"], ["func_1", "func_2"]])
    base = tally([shard([(0, "correct", 2), (1, "wrong", 4), (2, "error", 6)])], 3)
    other = tally([shard([(0, "correct", 2), (1, "correct", 2), (2, "overlong", 8)])], 3)
    groups = parts_of(table)
    return [*rows_of(base, None, groups, LABELS), *rows_of(other, base, groups, {**LABELS, "model": second})]


def test_rows_hold_the_figures() -> None:
    rows = {(row["model"], row["data_source"] or row["skill"] or "all"): row for row in both()}
    base = rows["base", "string-heldout-level1"]
    assert (base["accuracy"], base["n_problems"], base["n_judged"], base["mean_tokens"]) == (0.5, 2, 2, 3.0)
    assert base["low"] < 0.5 < base["high"]
    assert base["difference"] is None
    assert rows["rl", "string-heldout-level1"]["difference"] == 0.5
    assert rows["base", "all"]["share_error"] == pytest.approx(1 / 3)
    assert rows["rl", "func_1"]["accuracy"] == 0.5
    table = pa.Table.from_pylist(list(rows.values()), schema=SCHEMA)
    assert set(rows["rl", "all"]) == set(table.column_names)


def test_p05_a_verifier_failure_is_no_wrong_answer() -> None:
    row = next(row for row in both() if row["level"] == 2)
    assert (row["accuracy"], row["n_judged"], row["n_responses"], row["share_error"]) == (None, 0, 1, 1.0)


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
    groups = parts_of(to_table(made, "test"))
    found = {part.labels["group"]: part.problems.tolist() for part in groups if part.labels["by"] == GROUP}
    assert found == {"a": [0, 1], "b": [2]}
    assert not any(part.labels["by"] == GROUP for part in parts_of(to_table(made[:2], "test")))
    counts = tally([shard([(0, "correct", 2), (1, "wrong", 4), (2, "wrong", 6)])], 3)
    screen = Console(file=io.StringIO(), width=80)
    print_results(list(rows_of(counts, None, groups, LABELS)), screen)
    line = next(line for line in screen.file.getvalue().splitlines() if "a, all levels" in line)  # type: ignore[attr-defined]
    assert re.split(r"  +", line.strip())[1:2] == ["2"]
    assert "50.0 [" in line


def curve(model: str, *values: float) -> Row:
    shared = {"problems": "test", "group": "math", "level": 0, "n_problems": 4, "pass_at_k": list(values)}
    return {"model": model, **shared, "k": [1, 2], "low": [0.0, 0.0], "high": [1.0, 1.0]}


def test_checkpoints_along_training_show_what_was_gained_for_the_flops() -> None:
    report = asdict(TrainingReport(updates=2, groups=8, groups_with_signal=4))
    runs = {"step1": {"flops": 2e6, **report}, "step2": {"flops": 4e6, **report, "groups_with_signal": 0}}
    content = {"curves": [curve("base", 0.25, 0.5), curve("step1", 0.5, 0.75), curve("step2", 0.25, 0.5)], "runs": runs}
    console = Console(file=io.StringIO(), width=120)
    content |= {"n_samples": 2, "temperature": 1, **{key: [] for key in ("missing", "differences", "reranking")}}
    print_curves(content, [1, 2], console)
    lines = console.file.getvalue().split("along training")[1].splitlines()  # type: ignore[attr-defined]
    cells = {line.split()[0]: line.split()[1:] for line in lines if line.strip().startswith(("base", "step"))}
    assert cells["base"] == ["–", "25.0", "50.0", "–", "–"]
    assert cells["step1"] == ["2.00e+06", "50.0", "75.0", "+25.00", "+12.50"]
    assert cells["step2"] == ["4.00e+06", "25.0", "50.0", *["not", "testable"] * 2]


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
    found = clusters_of(to_table(made, "test"))
    assert (found[0], len(set(found))) == (found[1], 5)
    counts = ProblemCounts([Stratum("heldout", 2)] * 6, np.ones(6), np.ones(6), clusters=found)
    assert counts.cluster_numbers[0] == counts.cluster_numbers[1]
