"""Counts per problem, groups, rows and the table on the screen."""

import io
import json
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from claim_studies import answers
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.evaluate.collect import reasons_frame
from compositionality.evaluate.results import ReplicateTables, Results
from compositionality.evaluate.seeds import print_summary
from compositionality.evaluate.summary import by_problem, contrast, share, share_of_gain
from compositionality.evaluate.table import REASONS, count, problem_columns
from compositionality.evaluate.tables import training_frame
from compositionality.train.training_report import TrainingReport
from compositionality.types import Problem


def samples(answers: Sequence[tuple[int, str, int]]) -> pd.DataFrame:
    """Samples from (problem, reason, tokens)."""
    return pd.DataFrame(answers, columns=["problem", "reason", "n_tokens"]).astype({"problem": int, "n_tokens": int})


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


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(REASONS), st.integers(1, 9)), max_size=40))
def test_the_table_counts_everything(answers: list[tuple[int, str, int]]) -> None:
    counts = count(samples(answers), 5)
    for number in range(5):
        each = [(reason, tokens) for problem, reason, tokens in answers if problem == number]
        row = counts.iloc[number]
        assert row["right"] == sum(reason == "correct" for reason, _ in each)
        assert row["judged"] == sum(reason != "error" for reason, _ in each)
        assert row["tokens"] == sum(tokens for _, tokens in each)
        assert row["n"] == len(each) == sum(row[f"reason_{reason}"] for reason in REASONS)


def test_unknown_problems_and_verdicts_are_refused() -> None:
    with pytest.raises(UserError, match="unknown"):
        count(samples([(5, "correct", 1)]), 5)
    with pytest.raises(UserError, match="unknown"):
        count(samples([(0, "splendid", 1)]), 5)


def rows_of(table: pa.Table, **models: Sequence[tuple[int, str, int]]) -> pd.DataFrame:
    """The rows of models by name, from their answers."""
    tables = [
        pd.concat([problem_columns(table), count(samples(answers), table.num_rows)], axis=1).assign(arm=arm)
        for arm, answers in models.items()
    ]
    return pd.concat(tables, ignore_index=True).assign(file="test")


def results_of(rows: pd.DataFrame, groups_with_signal: int = 1) -> Results:
    """The results of one seed; of ``rl`` so many groups of its training had signal."""
    report = TrainingReport(updates=2, groups=8, groups_with_signal=groups_with_signal)
    training = {"rl": report} if "rl" in set(rows["arm"]) else {}
    return Results.of([rows], [ReplicateTables("run", sampling={"n_samples": 2}, training=training)])


def screen(results: Results) -> str:
    """What is printed on 80 columns."""
    console = Console(file=io.StringIO(), width=80, markup=False)
    print_summary(results, console)
    return console.file.getvalue()


def both() -> pd.DataFrame:
    table = problems([1, 1, 2], [["func_1"], ["func_2"], ["func_1", "func_2"]])
    base = [(0, "correct", 2), (1, "wrong", 4), (2, "error", 6)]
    return rows_of(table, base=base, rl=[(0, "correct", 2), (1, "correct", 2), (2, "overlong", 8)])


def test_p05_a_verifier_failure_is_no_wrong_answer() -> None:
    results = results_of(both())
    level1, level2 = results.sets
    right = share(results, "base", level1)
    assert (right.value, results.size(level1)) == (0.5, 2)
    assert right.low < 0.5 < right.high
    assert share(results, "base", level2) is None
    assert contrast(results, "rl", "base", level1).value == 0.5
    assert reasons_frame(both()).loc["base"].tolist() == ["4.0", "33.3", "33.3", "0.0", "33.3"]


def test_p05_a_share_of_a_gain_is_covered_by_its_interval() -> None:
    """Of 30 draws of 200 problems; an arm's own gain is its whole gain, and what gains nothing has none of it."""
    rng, found, chances = np.random.default_rng(2), [], {"base": 0.2, "half": 0.4, "rl": 0.6}
    for _ in range(30):
        rows = [answers(arm, "heldout", 1, (rng.random(200) < chance).astype(int)) for arm, chance in chances.items()]
        results = results_of(pd.concat(rows, ignore_index=True))
        found.append(share_of_gain(results, "half", "rl", "base", results.sets[0]))
    assert sum(share[1].low <= 0.5 <= share[1].high for share in found if share) >= 27
    for arm, value in (("base", 0), ("rl", 1)):
        share, ends = share_of_gain(results, arm, "rl", "base", results.sets[0])
        assert (share, *ends) == pytest.approx((value,) * 3, abs=2e-3)


@pytest.mark.parametrize("others", [0, 1, 2, 5])
def test_the_tables_are_readable_at_80_columns(others: int) -> None:
    rows = both()
    copies = [rows[rows["arm"] == "rl"].assign(arm=f"stage2-rl-level1to{number}") for number in range(others)]
    text = screen(results_of(pd.concat([rows[rows["arm"] == "base"], *copies])))
    assert "50 [9–91]" in text
    assert "held-out functions: % correct, one seed" in text.replace("\n", " ")
    assert "…" not in text
    assert all(len(line) <= 80 for line in text.splitlines())
    if others:
        assert "+50.0 [" in text
        assert f"stage2-rl-level1to{others - 1}" in text.replace("\n", "")


def test_arms_of_rl_without_signal_have_no_figures() -> None:
    """Neither their accuracy nor their difference; another arm, and one of which nothing is known, keep theirs."""
    for signal, shown in ((0, False), (1, True)):
        text = screen(results_of(both(), signal))
        assert ("+50.0" in text) == shown
        assert ("not testable" in text) != shown
        assert "50 [9–91]" in text  # the base's


def test_counts_of_training_that_are_not_known_are_a_dash() -> None:
    known = {"sft": {"updates": 3}, "rl": {"updates": 1000, "completions": 8}}
    assert training_frame({"": known}).to_numpy().tolist() == [["3", "–", "–"], ["1,000", "8", "–"]]


def test_each_of_several_groups_has_a_line_of_all_its_levels() -> None:
    """In natural order of the levels; groups of the same name in two files say which file."""
    made = [Problem(f"math__{group}", level, group, "p", "1", 0) for group, level in (("a", 10), ("a", 2), ("b", 1))]
    rows = rows_of(to_table(made, "test"), base=[(0, "correct", 2), (1, "wrong", 4), (2, "wrong", 6)])
    text = screen(results_of(rows))
    assert re.search(r"\n *L2 +0.0 \[.*\n *L10 +100 \[.*\n *all levels +50 \[", text)
    assert text.count("all levels") == 1  # b has one level
    assert "b (other): % correct" in screen(results_of(pd.concat([rows, rows.assign(file="other")])))


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
    assert clusters[0] == clusters[1]
