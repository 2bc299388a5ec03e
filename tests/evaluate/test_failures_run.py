"""From rollouts to labels, shares and counts: real problem files and folders, answers made by hand."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from failure_runs import (
    N_PROBLEMS,
    always_right,
    evaluation,
    first_line_only,
    problem_file,
    rollouts,
    rows_of,
    settings,
    wrong_at_the_end,
)

from compositionality.console import new_console
from compositionality.errors import UserError
from compositionality.evaluate.failures import (
    FailureSettings,
    by_function,
    by_pair,
    class_shares,
    find_failures,
    print_failures,
    read_labels,
)
from compositionality.evaluate.results import Results, read_results
from compositionality.evaluate.types import CHAIN, Metric
from compositionality.stats.estimate import over_problems
from compositionality.tasks.diagnosis import FAILURES

MODELS = {"good": always_right, "lazy": first_line_only, "slip": wrong_at_the_end}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation of three models on 24 problems, two answers to each; not to be changed."""
    home = tmp_path_factory.mktemp("failures")
    evaluation(home / "run", problem_file(home / "heldout.parquet"), MODELS)
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


def results_of(output: Path) -> Results:
    return read_results([f"run:{output}"], metric=Metric.FAILURES)


def shares(output: Path, kind: str, level: int) -> dict[str, float]:
    rows = class_shares(results_of(output))
    return {row["model"]: row["share"] for row in rows if (row["class"], row["level"]) == (kind, level)}


def test_classes_by_model_and_level(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = find_failures(settings(home))
    assert shares(output, "correct", 3) == {"good": 1, "lazy": 0, "slip": 0.5}
    assert shares(output, "ignores_composition", 3) == {"good": 0, "lazy": 1, "slip": 0}
    assert shares(output, "correct", 1) == {"good": 1, "lazy": 1, "slip": 0.5}
    assert shares(output, "atomic_error", 2) == {"good": 0, "lazy": 0, "slip": 0.5}
    results = results_of(output)
    assert results.arms == ("good", "lazy", "slip")
    assert {(one.group, results.size(one)) for one in results.sets} == {("heldout", 8)}
    told = capsys.readouterr().out
    assert "heldout, level 3: % of responses [95 % interval], 8 problems" in told
    assert "ignores composition" in told
    assert "% that also apply each function to the result before it: good 100.0, lazy 0.0, slip 100.0" in told


def test_shares_that_a_task_cannot_tell_are_not_printed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = find_failures(settings(home))
    labels = read_labels(output / "labels.parquet").astype(dict.fromkeys(CHAIN, object))
    capsys.readouterr()
    for models, told in (({"good"}, {"lazy", "slip"}), ({"good", "lazy", "slip"}, set())):
        labels.loc[labels["arm"].isin(models), [*CHAIN]] = None
        print_failures(results_of(output), labels, 3, new_console())
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("% ")]
        assert len(lines) == (len(CHAIN) if told else 0)
        assert all(set(re.findall("good|lazy|slip", line)) == told and "nan" not in line for line in lines)


def test_shares_add_up_and_their_intervals_are_clustered_by_problem(home: Path) -> None:
    output = find_failures(settings(home))
    rows = [row for row in class_shares(results_of(output)) if (row["model"], row["level"]) == ("slip", 3)]
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    counts = [row for row in rows_of(output / "results.parquet") if row["arm"] == "slip"]
    assert [row["problem"] for row in counts] == list(range(N_PROBLEMS))
    assert all(sum(row[f"failure_{kind}"] for kind in FAILURES) == row["n"] == row["judged"] == 2 for row in counts)
    deep = [row for row in counts if row["level"] == 3]
    interval = over_problems(np.array([row["right"] for row in deep]), np.array([row["n"] for row in deep]))
    found = next(row for row in rows if row["class"] == "correct")
    assert (found["share"], found["low"], found["high"]) == (interval.value, interval.low, interval.high)


def test_functions_and_pairs(home: Path) -> None:
    output = find_failures(settings(home))
    table = read_labels(output / "labels.parquet")
    steps = [row for row in by_function(table).to_dict("records") if row["model"] == "slip"]
    assert sum(row["reached"] for row in steps) == 2 * (8 + 16 + 24)
    assert sum(row["wrong"] for row in steps) == N_PROBLEMS
    assert all(row["error_rate"] == row["wrong"] / row["reached"] for row in steps)
    assert {row["alone"] for row in steps if row["alone"] == row["alone"]} == {0.5}
    pairs = [row for row in by_pair(table).to_dict("records") if row["model"] == "slip"]
    assert sum(row["n"] for row in pairs) == 16
    assert {row["accuracy"] for row in pairs} == {0.5}
    labels = [row for row in rows_of(output / "labels.parquet") if row["arm"] == "slip" and row["sample"] == 1]
    assert {row["fault"] for row in labels} == {"result"}
    assert all(row["step"] == row["level"] for row in labels)
    assert all(row["applied"][-1] == row["function"] for row in labels)


def test_p15_new_answers_are_followed(home: Path) -> None:
    output = find_failures(settings(home))
    rollouts(home / "run/rollouts/lazy/heldout", home / "heldout.parquet", always_right)
    find_failures(settings(home))
    assert shares(output, "correct", 3)["lazy"] == 1


def test_models_and_levels_can_be_narrowed(home: Path) -> None:
    output = find_failures(settings(home, models=["slip", "good"], levels=[2]))
    assert results_of(output).arms == ("slip", "good")
    assert {one.level for one in results_of(output).sets} == {2}


def test_p18_single_folders_find_their_problem_file_and_what_does_not_fit_is_one_line(home: Path) -> None:
    other = problem_file(home / "other.parquet", seed=5)
    folders = [f"m:{home}/run/rollouts/slip/heldout", f"m:{rollouts(home / 'more', other, always_right)}"]
    files = [f"heldout:{home / 'heldout.parquet'}", f"other:{other}"]
    output = find_failures(FailureSettings(problems=files, output=home / "out", rollouts=folders))
    found = {row["problems"]: row["share"] for row in class_shares(results_of(output)) if row["class"] == "correct"}
    assert found == {"heldout": 0.5, "other": 1}
    with pytest.raises(UserError, match="answers none of the files in problems"):
        find_failures(FailureSettings(problems=files[:1], output=home / "out", rollouts=folders))
    with pytest.raises(UserError, match="m answers heldout twice"):
        find_failures(FailureSettings(problems=files, output=home / "out", rollouts=[folders[0], folders[0]]))
    with pytest.raises(UserError, match="has no answers of best"):
        find_failures(settings(home, models=["best"]))
