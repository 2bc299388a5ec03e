"""A user's reward function judges rollouts; filter and evaluation read its verdicts, of any data source."""

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fake_engine import FakeEngine, fake_settings, write_problems
from own_rows import OWN, SOURCE, write_own_rows

from compositionality.data.parquet import read_table, write_table
from compositionality.errors import UserError
from compositionality.evaluate.collect import EvaluationSettings, evaluate, open_evaluation
from compositionality.reward.function import FunctionSettings
from compositionality.rft.filter import FilterProblemsSettings, FilterSettings, filter_problems, filter_rollouts
from compositionality.rollout.collect import check, collect
from compositionality.rollout.settings import SamplingSettings
from compositionality.rollout.store import read_rollouts, rollout_manifest


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return write_own_rows(write_problems(tmp_path / "made.parquet", 20), tmp_path / "own.parquet")


def rollouts(own: Path, output: Path, function: str = "by_word") -> Any:
    own_settings = FunctionSettings(f"{OWN}:{function}")
    return fake_settings(own, output, n_samples=4, reward=own_settings, max_error_rate=0.0)


def filtered(folder: Path, problems: Path, **keys: Any) -> pa.Table:
    places = {"rollouts": [str(folder / "rollouts")], "problems": str(problems), "output": str(folder / "sft")}
    filter_rollouts(FilterSettings(**places, val_prompts=0, **keys))
    return read_table(folder / "sft" / "train.parquet")


def test_rollouts_filter_and_evaluation_take_its_verdicts(own: Path, tmp_path: Path, capsys: Any) -> None:
    settings = rollouts(own, tmp_path / "rollouts")
    collect(settings, FakeEngine())
    rows = [row for table in read_rollouts(tmp_path / "rollouts") for row in table.to_pylist()]
    expected = [1.01 if f"word{row['problem']}" in row["response"] else 0.02 for row in rows]
    assert [row["score"] for row in rows] == pytest.approx(expected)
    assert [row["reason"] for row in rows] == ["correct" if score > 1 else "wrong" for score in expected]
    assert {(row["group"], row["level"]) for row in rows} == {("all", 0)}
    rule = "correct: acc of own_reward.py:by_word, without it a score of 1 or more"
    assert rule in capsys.readouterr().out
    assert "reward.function:by_word" in rollout_manifest(tmp_path / "rollouts").inputs
    with pytest.raises(UserError, match="was made from other"):
        collect(rollouts(own, tmp_path / "rollouts", "as_dict"), FakeEngine())

    table = filtered(tmp_path, own)
    assert table.num_rows > 5
    assert set(table["data_source"].to_pylist()) == {SOURCE}
    assert all("word" in row[-1]["content"] for row in table["messages"].to_pylist())


def test_both_filters_read_columns_of_ones_own(own: Path, tmp_path: Path) -> None:
    """By the keys that the rollouts were made with."""
    asked = read_table(own)
    question = [turns[-1]["content"] for turns in asked["prompt"].to_pylist()]
    path, keys = tmp_path / "named.parquet", {"prompt_key": "question", "truth_key": ["answer"], "source": "mine"}
    answer = [truth["ground_truth"] for truth in asked["reward_model"].to_pylist()]
    write_table(pa.table({"question": question, "answer": answer}), path)
    collect(dataclasses.replace(rollouts(path, tmp_path / "rollouts"), **keys), FakeEngine())
    chats = filtered(tmp_path, path, **keys)["messages"].to_pylist()
    assert {chat[0]["content"] for chat in chats} <= {*question}
    shared = {"rollouts": tmp_path / "rollouts", "problems": path}
    output = filter_problems(FilterProblemsSettings(output=tmp_path / "kept.parquet", **shared, **keys))
    assert {*read_table(output)["data_source"].to_pylist()} == {"mine"}
    with pytest.raises(UserError, match="has no column prompt, reward_model, data_source; it has question, answer"):
        filter_problems(FilterProblemsSettings(output=tmp_path / "no.parquet", **shared))


def test_evaluation_says_by_which_rule(own: Path, tmp_path: Path, capsys: Any) -> None:
    settings, output = rollouts(own, tmp_path), tmp_path / "evaluated"
    shared = {entry.name: getattr(settings, entry.name) for entry in dataclasses.fields(SamplingSettings)}
    settings = EvaluationSettings(**shared, models=[f"fake:{tmp_path}"], problems=[f"own:{own}"], output=output)
    for job in open_evaluation(settings, "evaluate_accuracy").jobs.values():
        collect(job, FakeEngine())
    evaluate(settings)
    printed = capsys.readouterr().out
    assert printed.count("correct: acc of own_reward.py:by_word, without it a score of 1 or more") == 2
    rows = read_table(output / "results.parquet").to_pylist()
    assert {(row["group"], row["level"]) for row in rows} == {("all", 0)}
    assert 0 < sum(row["right"] for row in rows) < sum(row["judged"] for row in rows) == 80


@pytest.mark.parametrize(
    ("function", "said"), [("nothing", "has no function nothing"), ("raises", "the judge failed on")]
)
def test_p18_bad_functions_are_one_line(own: Path, tmp_path: Path, function: str, said: str) -> None:
    settings = rollouts(own, tmp_path / "out", function)
    with pytest.raises(UserError, match=said):
        collect(settings, FakeEngine())
    if function == "nothing":
        with pytest.raises(UserError, match=said):
            check(settings)
    assert not (tmp_path / "out").exists()
