"""SFT rows from a task's own solutions: arms that are paired."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compositionality.data.artefact import read_manifest
from compositionality.data.create_problems import create_problems, settings_for
from compositionality.errors import UserError
from compositionality.rft.solutions import SolutionSettings, write_solutions
from compositionality.tasks.registry import task_of


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "sft.parquet"
    return create_problems(
        settings_for(
            "igsm", output=str(path), count=12, levels=[4, 5], modulus=10, most_edges=8, most_common=0.5,
            style="compact", process=True,
        )
    )  # fmt: skip


def rows(problems: Path, folder: Path, **changes: Any) -> list[dict[str, Any]]:
    settings = SolutionSettings(problems=str(problems), output=str(folder), **changes)
    return pq.read_table(write_solutions(settings) / "train.parquet").to_pylist()


def test_arms_share_their_problems_and_every_row_is_right(problems: Path, tmp_path: Path) -> None:
    truths = [row["reward_model"]["ground_truth"] for row in pq.read_table(problems).to_pylist()]
    arms = {
        "vanilla": {},
        "bridge": {"subgoals": True, "analysis": 2, "reflection": 0.5},
        "flat": {"analysis_chance": 1.0},
        "padded": {"padded": True},
        "pp-aug": {"prompt_orders": 4},
        "rc-aug": {"solution_orders": 4},
    }
    made = {name: rows(problems, tmp_path / name, **changes) for name, changes in arms.items()}
    for name, found in made.items():
        assert len(found) == (48 if name.endswith("aug") else 12)
        first = [row for row in found if row["extra_info"]["sample"] == 0]
        assert [row["messages"][0] for row in first] == [row["messages"][0] for row in made["vanilla"]]
        for row in found:
            verdict = task_of(row["data_source"]).verdict(row["messages"][1]["content"], truths[row["problem"]])
            assert verdict.score == 1, (name, row["messages"])
    solutions = {name: [row["messages"][1]["content"] for row in found] for name, found in made.items()}
    assert solutions["vanilla"] != solutions["bridge"] != solutions["flat"]
    assert len({row["messages"][0]["content"] for row in made["pp-aug"]}) > 40
    assert len(set(solutions["rc-aug"])) > len(set(solutions["vanilla"]))
    assert {row["messages"][0]["content"] for row in made["rc-aug"]} == {
        row["messages"][0]["content"] for row in made["vanilla"]
    }


def test_the_first_problems_alone(problems: Path, tmp_path: Path) -> None:
    few, all_ = rows(problems, tmp_path / "few", limit=3), rows(problems, tmp_path / "all")
    assert few == all_[:3]
    assert rows(problems, tmp_path / "other", seed=2, reflection=1.0) != rows(
        problems, tmp_path / "another", seed=3, reflection=1.0
    )


def test_it_is_counted_how_many_rows_are_plain(problems: Path, tmp_path: Path) -> None:
    for name, changes in (("plain", {}), ("injected", {"reflection": 1.0}), ("ordered", {"prompt_orders": 3})):
        found = rows(problems, tmp_path / name, **changes)
        plain = {row["problem"]: row["messages"] for row in rows(problems, tmp_path / "plain")}
        expected = sum(row["messages"] == plain[row["problem"]] for row in found)
        assert read_manifest(tmp_path / name).facts["plain"] == expected
    assert 0 < expected < len(found)


def test_a_solution_between_tags(problems: Path, tmp_path: Path) -> None:
    """A thought and an answer that the judge reads alone; the same solution, and refused where it does not."""
    made = create_problems(
        settings_for("igsm", output=str(tmp_path / "text.parquet"), count=4, levels=[4], style="text")
    )
    truths = [row["reward_model"]["ground_truth"] for row in pq.read_table(made).to_pylist()]
    bare = rows(made, tmp_path / "bare", subgoals=True)
    for row, untagged in zip(rows(made, tmp_path / "tags", subgoals=True, tags=True), bare, strict=True):
        thought, answer = row["messages"][1]["content"].split("\n</think>\n")
        assert thought == f"<think>\n{untagged['messages'][1]['content']}"
        assert answer.startswith("<answer>\nSo ")
        assert task_of(row["data_source"]).judge(answer, truths[row["problem"]]).score == 1
        assert row["messages"][0] == untagged["messages"][0]
    with pytest.raises(UserError, match=r"tags=true: the judge of igsm-level\d cannot read this answer"):
        rows(problems, tmp_path / "compact", tags=True)


def test_turns_before_the_question_stay(problems: Path, tmp_path: Path) -> None:
    system = {"role": "system", "content": "Be brief."}
    table = pq.read_table(problems).to_pylist()
    asked = [{**row, "prompt": [system, *row["prompt"]]} for row in table]
    pq.write_table(pa.Table.from_pylist(asked), tmp_path / "asked.parquet")
    plain, found = (rows(path, tmp_path / path.stem) for path in (problems, tmp_path / "asked.parquet"))
    assert [row["messages"] for row in found] == [[system, *row["messages"]] for row in plain]
    assert read_manifest(tmp_path / "asked").facts["plain"] == len(plain)


def test_bad_input_is_one_line(problems: Path, tmp_path: Path) -> None:
    for changes, message in (
        ({"analysis": 5}, "analysis"),
        ({"prompt_orders": 2, "solution_orders": 2}, "give only one of the two"),
        ({"analysis": 1, "analysis_chance": 0.5}, "give only one of the two"),
        ({"limit": 2, "parts": 2}, "limit, parts: give only one of the two"),
        ({"parts": 13}, "parts=13: .*sft.parquet has only 12 problems"),
    ):
        with pytest.raises(UserError, match=message):
            rows(problems, tmp_path / "bad", **changes)
    strings = tmp_path / "string.parquet"
    create_problems(settings_for("string", output=str(strings), count=2))
    with pytest.raises(UserError, match="task string has no behaviours"):
        rows(strings, tmp_path / "bad", subgoals=True)
    with pytest.raises(UserError, match="task string has no other form"):
        rows(strings, tmp_path / "bad", prompt_orders=2)
    assert not (tmp_path / "bad").exists()
