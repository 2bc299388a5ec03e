"""Evaluation end to end: real folders and judges, with answers made by hand or by a tiny random model."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from assets import save, tiny_model
from studies import evaluation, problem_file

from compositionality.config.cli import parse
from compositionality.data.artefact import tree_hash, verify
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.evaluate.collect import EvaluationSettings, evaluate
from compositionality.evaluate.results import read_results
from compositionality.evaluate.summary import share
from compositionality.evaluate.table import read
from compositionality.types import Problem


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    made = [
        Problem(
            f"string-heldout-level{level}", level, "heldout", f"func_17:{'ab' * level}{'c' * index}",
            json.dumps({"ref_output": f"{'ab' * level}{'c' * index}"[::-1], "style": "compact"}), index,
            {"functions": ["func_17"] if level == 1 else ["func_17", "func_3"]},
        )
        for level in (1, 2)
        for index in range(4)
    ]  # fmt: skip
    path = tmp_path / "test.parquet"
    write_table(to_table(made, "test"), path)
    return path


@pytest.fixture
def asked(play: Any) -> list[str]:
    """Models that are asked, in order: "good" is always right, "even" on prompts of even length."""

    def answer(model: str, prompt: str, _: int) -> str:
        text = prompt.partition(":")[2]
        return f",{prompt}={text[::-1] if model == 'good' or len(text) % 2 == 0 else 'no'}"

    return play(answer)


def model(tmp_path: Path, name: str, content: str = "x") -> str:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    (folder / "weights").write_text(content)
    return str(folder)


def settings(tmp_path: Path, problems: Path, models: Sequence[str], **changes: Any) -> EvaluationSettings:
    paths = [model(tmp_path, name) for name in models]
    given: dict[str, Any] = {"engine": "builtin", **changes}
    return EvaluationSettings(models=paths, problems=[f"test:{problems}"], output=tmp_path / "out", **given)


def test_accuracy_by_level_of_two_checkpoints(
    tmp_path: Path, problems: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    output = evaluate(settings(tmp_path, problems, ["even", "good"]))
    rows = read_table(output / "results.parquet").to_pandas()
    assert rows.groupby(["arm", "level"])["right"].sum().to_dict() == {
        ("even", 1): 2, ("even", 2): 2, ("good", 1): 4, ("good", 2): 4,
    }  # fmt: skip
    assert rows["skills"].map(len).groupby(rows["level"]).first().to_dict() == {1: 1, 2: 2}
    assert set(rows["tokens"]) == {7}
    assert "rollouts/good/test" in verify(output / "results.parquet").inputs
    shown = capsys.readouterr().out
    for line in (
        "L2 +50 .15–85. +100 ",
        "all levels +50 .2[0-9]–7[0-9]. +100 ",
        "L2 +.50.0 .",
        "even +7.0 +50.0 +50.0",
    ):
        assert re.search(rf"\n *{line}", shown), line
    assert (output / "rollouts/even/test/manifest.json").is_file()


def test_only_new_and_changed_checkpoints_are_asked(tmp_path: Path, problems: Path, asked: list[str]) -> None:
    """A table may grow; a changed model, or one that is left out, needs force."""
    output = evaluate(settings(tmp_path, problems, ["even"]))
    before = tree_hash(output)
    evaluate(settings(tmp_path, problems, ["even"]))
    assert (asked, tree_hash(output)) == (["even"], before)
    evaluate(both := settings(tmp_path, problems, ["even", "good"]))
    assert asked == ["even", "good"]
    assert set(read(output / "results.parquet")["arm"]) == {"even", "good"}
    with pytest.raises(UserError, match=r"results.parquet: was made from other inputs"):
        evaluate(settings(tmp_path, problems, ["good"]))
    model(tmp_path, "good", "y")
    with pytest.raises(UserError, match="model has changed"):
        evaluate(both)
    evaluate(replace(both, force=True))
    assert asked == ["even", "good", "good"]
    evaluate(settings(tmp_path, problems, ["even"], force=True))
    assert (asked, set(read(output / "results.parquet")["arm"])) == (["even", "good", "good"], {"even"})


def test_p18_every_model_is_checked_before_the_first_is_sampled(tmp_path: Path, problems: Path) -> None:
    save(tmp_path / "sound", *tiny_model(["func_3", "func_17"]))
    evaluation = EvaluationSettings(
        models=[f"{tmp_path}/sound", f"{tmp_path}/gone"], problems=[f"test:{problems}"], output=tmp_path / "out",
        engine="builtin", max_tokens=4,
    )  # fmt: skip
    with pytest.raises(UserError, match="gone: no such model folder"):
        evaluate(evaluation)
    assert not [*tmp_path.glob("out/rollouts/*/*")]


def test_several_samples_and_a_limit(tmp_path: Path, problems: Path, asked: list[str]) -> None:
    output = evaluate(settings(tmp_path, problems, ["even"], n_samples=3, limit=2))
    assert read(output / "results.parquet")["n"].tolist() == [3, 3]


def test_columns_of_ones_own_reach_the_collection(tmp_path: Path) -> None:
    words = ["models=[base:a/b]", "problems=[x.jsonl]", "output=out", "truth_key=[target,nums]", "source=countdown"]
    collection = parse(EvaluationSettings, words).collection("a/b", "x.jsonl", tmp_path)
    assert (collection.truth_key, collection.form().source) == (["target", "nums"], "countdown")


def test_handed_on_responses_are_counted_where_the_task_can_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = {"string-heldout-level2": 8, "countdown-clean-level2": 2}
    table = problem_file(tmp_path / "test.parquet", sources, programs=True)
    reasons = ["correct", "wrong", "wrong", "error", "wrong", "wrong", "wrong", "wrong"]
    outcomes = {"rl": {"string-heldout-level2": reasons, "countdown-clean-level2": ["correct", "wrong"]}}
    output = evaluation(tmp_path / "out", {"level2": table}, outcomes, handing_on={"rl": 4})
    counts = read_table(output / "results.parquet")
    assert counts["handed_on"].to_pylist() == [1, 1, 1, 0, 0, 0, 0, 0, None, None]  # a failed judge is no response
    results = read_results([f"run:{output}"])
    level2, countdown = results.sets
    right, handed_on = (share(results, "rl", level2, part) for part in ("correct", "handed_on"))
    assert (right.value, handed_on.value, handed_on.n_problems) == (1 / 7, 3 / 7, 7)
    assert handed_on.low < 3 / 7 < handed_on.high
    assert share(results, "rl", countdown, "handed_on") is None
    shown = capsys.readouterr().out
    assert "% that also apply each function to the result before it" in shown
    assert "43 [16–75]" in shown
