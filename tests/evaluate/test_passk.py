"""pass@k end to end on rollout folders of known counts, and what is refused in one line."""

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from claim_studies import answers, results_of
from rich.console import Console

from compositionality.data.artefact import Recipe, new_artefact, tree_hash, verify
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import COLUMNS, read_problems, to_table
from compositionality.errors import UserError
from compositionality.evaluate.collect import open_evaluation
from compositionality.evaluate.passk import PasskSettings, curves, passk, print_curves
from compositionality.evaluate.results import read_results
from compositionality.evaluate.summary import share
from compositionality.evaluate.table import read
from compositionality.evaluate.types import Metric
from compositionality.rollout.store import SCHEMA, STEP, read_by_problem
from compositionality.train.training_report import TrainingReport
from compositionality.types import Problem

LEVELS = [1, 2, 1, 2, 1, 2]
N = 4


SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_tokens": 64}


def problem_file(path: Path, levels: Sequence[int]) -> Path:
    made = [
        Problem(f"string-heldout-level{level}", level, "heldout", f"func_3:{row}", '{"ref_output": "ab"}', row)
        for row, level in enumerate(levels)
    ]
    write_table(to_table(made, "test"), path)
    return path


def rows_of(correct: Sequence[int], n_samples: int) -> list[dict[str, Any]]:
    """Rows of a rollout folder; the first so many samples of each problem are right."""
    answer = {"response": "ab", "answer": "ab", "n_tokens": 3, "finish_reason": "stop"}
    return [
        {**answer, "problem": problem, "sample": sample, "score": float(sample < count),
         "reason": "correct" if sample < count else "wrong"}
        for problem, count in enumerate(correct)
        for sample in range(n_samples)
    ]  # fmt: skip


def rollout_folder(path: Path, problems: Path, rows: Sequence[dict[str, Any]], **settings: Any) -> Path:
    recipe = Recipe(STEP, {**SAMPLING, **settings}, {"problems": problems})
    with new_artefact(path, recipe) as partial:
        for shard, part in enumerate(np.array_split(np.arange(len(rows)), 2)):
            table = pa.Table.from_pylist([rows[row] for row in part], schema=SCHEMA)
            write_table(table, partial / f"shard-{shard:05d}.parquet")
    return path


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    return problem_file(tmp_path / "test.parquet", LEVELS)


def folder(tmp_path: Path, problems: Path, name: str, correct: Sequence[int], **changes: Any) -> str:
    settings = {"n_samples": N, **changes}
    return f"{name}:{rollout_folder(tmp_path / name, problems, rows_of(correct, N), **settings)}"


def settings(tmp_path: Path, test_file: Path, rollouts: list[str], **changes: Any) -> PasskSettings:
    given = {"problems": [f"test:{test_file}"], "output": tmp_path / "out", "n_samples": N}
    return PasskSettings(**{**given, "rollouts": rollouts, **changes})


@pytest.fixture
def two(tmp_path: Path, problems: Path) -> list[str]:
    return [
        folder(tmp_path, problems, "base", [4, 0, 2, 1, 4, 0]),
        folder(tmp_path, problems, "rl", [4, 2, 4, 2, 4, 0]),
    ]


def test_curves_of_two_checkpoints_by_level_and_pooled(
    tmp_path: Path, problems: Path, two: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    output = passk(settings(tmp_path, problems, two))
    made = verify(output / "results.parquet")
    assert (made.settings["models"], made.settings["pairs"]) == (["base", "rl"], [["rl", "base"]])
    assert (made.settings["sampling"]["n_samples"], made.settings["sampling"]["temperature"]) == (N, 1.0)
    assert made.inputs["problems/test"] == tree_hash(problems)
    results = read_results([f"run:{output}"], metric=Metric.PASS_AT_K)
    easy, hard = sorted(results.sets)
    assert (hard.group, results.size(hard)) == ("heldout", 3)
    found = [share(results, "base", hard, f"pass@{k}") for k in (1, 2, 3, 4)]
    assert [one and one.value for one in found] == pytest.approx([1 / 12, 1 / 6, 1 / 4, 1 / 3])
    # 4, 2 and 4 of 4 are right: C(2, k) / C(4, k) for the one in between
    found = [share(results, "base", easy, f"pass^{k}") for k in (1, 2, 3, 4)]
    assert [one and one.value for one in found] == pytest.approx([2.5 / 3, (2 + 1 / 6) / 3, 2 / 3, 2 / 3])
    rows = curves(results, [("rl", "base")], lambda _: [1])
    pooled = rows[(rows["level"] == 0) & (rows["base"] == "base")].iloc[0]
    assert (pooled["model"], pooled["n_problems"]) == ("rl", 6)
    assert pooled["value"] == pytest.approx(5 / 24)
    shown = capsys.readouterr().out
    for words in ("base on test: pass@k in %", "rl − base on test", "k=4", "crosses at k"):
        assert words in shown


def test_some_levels_and_the_first_problems_of_each(tmp_path: Path, problems: Path, two: list[str]) -> None:
    """Rollouts of the whole file serve: the problems that are not asked for are left out."""
    output = passk(settings(tmp_path, problems, two, levels=[2], per_level=2))
    rows = read(output / "results.parquet")
    assert rows[rows["arm"] == "rl"]["right"].tolist() == [2, 2]
    assert set(rows["level"]) == {2}
    asked = read_table(output / "problems/test.parquet")
    assert [row["index"] for row in asked["extra_info"].to_pylist()] == [1, 3]


def test_p06_a_verifiers_failure_is_a_missing_sample(
    tmp_path: Path, problems: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of([1] * 6, N)
    rows[7]["reason"] = "error"  # a wrong one of problem 1
    given = f"m:{rollout_folder(tmp_path / 'm', problems, rows, n_samples=N)}"
    results = read_results([f"run:{passk(settings(tmp_path, problems, [given]))}"], metric=Metric.PASS_AT_K)
    assert share(results, "m", sorted(results.sets)[1], "pass@1").value == pytest.approx((1 / 3 + 1 / 4 + 1 / 4) / 3)
    shown = capsys.readouterr().out
    assert "m on test: 1 samples have no verdict" in shown
    assert "k=3" in shown
    assert "k=4" not in shown


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda rows: rows.pop(), r"problem 5 has no sample 3, and 1 samples are missing in all"),
        (lambda rows: rows.append(dict(rows[9])), r"problem 2 has sample 1 more than once"),
        (lambda rows: rows.__setitem__(3, {**rows[3], "sample": 4}), r"has an invalid sample or problem number"),
    ],
)
def test_p06_samples_that_are_missing_or_there_twice_are_refused(
    tmp_path: Path, problems: Path, spoil: Any, told: str
) -> None:
    rows = rows_of([1] * 6, N)
    spoil(rows)
    given = f"m:{rollout_folder(tmp_path / 'm', problems, rows, n_samples=N)}"
    with pytest.raises(UserError, match=told):
        passk(settings(tmp_path, problems, [given]))
    assert not (tmp_path / "out/results.parquet").exists()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"temperature": 0.6}, r"hot and base: sampled differently \(temperature: 0.6 and 1.0\)"),
        ({"max_tokens": 8}, r"sampled differently \(max_tokens: 8 and 64\)"),
        ({"n_samples": 8}, r"hot: has 8 samples per problem"),
    ],
)
def test_checkpoints_sampled_in_different_ways_are_refused(
    tmp_path: Path, problems: Path, two: list[str], changes: dict[str, Any], told: str
) -> None:
    hot = folder(tmp_path, problems, "hot", [1] * 6, **changes)
    with pytest.raises(UserError, match=told):
        passk(settings(tmp_path, problems, [*two, hot]))


def test_answers_to_other_problems_are_refused(tmp_path: Path, problems: Path) -> None:
    other = problem_file(tmp_path / "other.parquet", [1, 1, 1, 1, 1, 1])
    with pytest.raises(UserError, match=r"answers other problems than those of .*test.parquet"):
        passk(settings(tmp_path, problems, [folder(tmp_path, other, "m", [1] * 6)]))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ks": [1, 5]}, r"ks: 5: must lie between 1 and n_samples=4"),
        ({"per_level": 9}, r"has 3 problems of heldout L1; lower per_level=9"),
        ({"rollouts": []}, r"give at least one"),
        ({"problems": ["a.parquet", "b.parquet"]}, r"rollouts=\[...\] needs exactly one problem file"),
        ({"limit": 3}, r"limit=3: not with levels, per_level or rollouts; give only per_level"),
        ({"models": ["rl:x"]}, r"models and rollouts both have 'rl'"),
        ({"models": ["x:x"], "temperature": 0.0}, r"temperature=0: every sample"),
    ],
)
def test_p18_bad_settings_are_one_line(
    tmp_path: Path, problems: Path, two: list[str], changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(UserError, match=told):
        passk(settings(tmp_path, problems, **{"rollouts": two, **changes}))


@pytest.fixture
def engines(play: Any) -> list[str]:
    """Models that are asked; an answer is right wherever the seed of the request is odd."""
    return play(lambda model, prompt, seed: '{"output": "ab"}' if seed % 2 else "no")


def asked(tmp_path: Path, problems: Path, **changes: Any) -> PasskSettings:
    for name in ("base", "rl"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "weights").write_text(name)
    models = [f"{name}:{tmp_path / name}" for name in ("base", "rl")]
    return settings(tmp_path, problems, [], models=models, engine="builtin", **{"n_samples": 16, **changes})


def test_the_plan_says_what_can_be_seen_and_how_many_answers_are_missing(
    tmp_path: Path, problems: Path, engines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    output = passk(asked(tmp_path, problems, plan=True))
    shown = " ".join(capsys.readouterr().out.split())
    assert "192 answers to collect, 16 samples of each problem. The smallest paired difference" in shown
    assert "test heldout L1 3 100" in shown
    assert not engines
    assert not (output / "rollouts").exists()


def test_several_processes_may_choose_the_same_problems(tmp_path: Path, problems: Path, engines: list[str]) -> None:
    chosen = replace(asked(tmp_path, problems, answers_only=True), levels=[2], per_level=2)
    with ThreadPoolExecutor(8) as pool:
        opened = [pool.submit(open_evaluation, chosen, "passk") for _ in range(8)]
    tables = [each.result().problems["test"].table for each in opened]
    assert all(table.equals(tables[0]) and table.num_rows == 2 for table in tables)


def test_models_are_asked_once_and_the_plan_comes_first(
    tmp_path: Path, problems: Path, engines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    output = passk(asked(tmp_path, problems, answers_only=True))
    assert "smallest paired difference" not in capsys.readouterr().out
    assert engines == ["base", "rl"]
    for model in (output / "rollouts").iterdir():
        one_file = read_table(model / "all.parquet", [*COLUMNS, "responses"]).to_pylist()
        assert [row.pop("responses") for row in one_file] == [
            rows["response"].to_pylist() for _, rows in read_by_problem(model / "test")
        ]
        assert one_file == read_problems(problems).select(COLUMNS).to_pylist()
    output = passk(asked(tmp_path, problems))
    assert engines == ["base", "rl"]
    rows = read(output / "results.parquet")
    assert 0.3 < rows["right"].sum() / rows["judged"].sum() < 0.7
    right = rows.pivot_table("right", "problem", "arm")
    assert right["base"].tolist() == right["rl"].tolist()  # the seeds of the samples are the same


def test_checkpoints_along_training_show_what_was_gained_for_the_flops() -> None:
    report = TrainingReport(updates=2, groups=8, groups_with_signal=4)
    runs = {"step1": (2e6, report), "step2": (4e6, replace(report, groups_with_signal=0))}
    right = {"base": [1, 0], "step1": [2, 0], "step2": [1, 0]}
    tables = [answers(arm, "math", 0, counts, 2, file="test") for arm, counts in right.items()]
    results = results_of([tables], sampling={"n_samples": 2, "temperature": 1.0})
    console = Console(file=io.StringIO(), width=120, markup=False)
    print_curves(results, [], [1, 2], runs, console)
    lines = console.file.getvalue().split("along training")[1].splitlines()  # type: ignore[attr-defined]
    cells = {line.split()[0]: line.split()[1:] for line in lines if line.strip().startswith(("base", "step"))}
    assert cells["base"] == ["–", "25.0", "50.0", "–", "–"]
    assert cells["step1"] == ["2.00e+06", "50.0", "50.0", "+25.00", "+12.50"]
    assert cells["step2"] == ["4.00e+06", "25.0", "50.0", *["not", "testable"] * 2]
