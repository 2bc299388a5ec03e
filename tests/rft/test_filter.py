"""The filter as a step: rollout folders in, train and test files out, or the problems that are solved in part."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rollout_folders import answer, problem, problem_file, rollout_folder
from string_rows import row, write_rows

from compositionality.data.artefact import verify
from compositionality.data.parquet import read_table, write_table
from compositionality.errors import UserError
from compositionality.rft.filter import FilterProblemsSettings, FilterSettings, filter_problems, filter_rollouts
from compositionality.rft.rows import SCHEMA, prompt_key
from compositionality.train.tiny.model import build_tokenizer


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    return problem_file(tmp_path / "problems.parquet", [problem(index) for index in range(6)])


def mixed(numbers: range = range(6)) -> list[dict[str, Any]]:
    """Two samples per problem: one correct, one wrong."""
    rows = [(answer(n, 0, f"right {n}<|eot_id|>"), answer(n, 1, "w", "wrong")) for n in numbers]
    return [row for pair in rows for row in pair]


def run(tmp_path: Path, problems: Path, rows: list[dict[str, Any]], **changes: Any) -> tuple[Path, dict[str, Any]]:
    folder = rollout_folder(tmp_path / "rollouts", problems, rows, rows_per_shard=3)
    output = tmp_path / "data"
    filter_rollouts(FilterSettings(rollouts=[str(folder)], problems=str(problems), output=str(output), **changes))
    return output, verify(output).facts


def test_rows_are_chats_with_exactly_the_answer(tmp_path: Path, problems: Path) -> None:
    output, facts = run(tmp_path, problems, mixed(), val_prompts=2)
    train, test = (read_table(output / f"{name}.parquet") for name in ("train", "test"))
    assert train.schema.equals(SCHEMA)
    assert (train.num_rows, test.num_rows) == (4, 2) == (facts["rows"]["train"], facts["rows"]["test"])
    rows = sorted(pa.concat_tables([train, test]).to_pylist(), key=lambda row: row["problem"])
    asked, answered = {"role": "user", "content": "func_3:3"}, {"role": "assistant", "content": "right 3"}
    assert rows[3]["messages"] == [asked, answered]
    assert rows[3]["data_source"] == "string-trained-level1"
    assert rows[3]["extra_info"] == {"index": 3, "split": "train", "sample": 0, "skills": ["func_3"]}
    assert sorted(path.name for path in output.iterdir()) == ["manifest.json", "test.parquet", "train.parquet"]


def test_totals_add_up_and_are_told_per_level_and_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chains = [("func_3",), ("func_3", "func_10"), ("func_2",)]
    made = [problem(index, level=len(names), functions=names) for index, names in enumerate(chains)]
    path = problem_file(tmp_path / "problems.parquet", made)
    rows = [
        *(answer(0, sample, f"{sample}") for sample in range(3)),  # always solved
        answer(1, 0, "a"), answer(1, 1, "a"), answer(1, 2, "x", "wrong"),
        answer(2, 0, "b", finish_reason="length", reason="overlong"), answer(2, 1, "c"), answer(2, 2, "d", "error"),
        answer(2, 3, "x", "malformed"),
    ]  # fmt: skip
    _, facts = run(tmp_path, path, rows, val_prompts=1)
    assert facts["outcomes"] == {
        "kept": 2, "unfinished": 1, "wrong": 1, "malformed": 1, "error": 1, "too_easy": 3, "duplicate": 1
    }  # fmt: skip
    assert sum(facts["outcomes"].values()) == facts["responses"] == len(rows)
    levels = facts["outcomes_by_level"]
    assert list(levels) == ["trained level 1", "trained level 2"]
    assert sum(sum(counts.values()) for counts in levels.values()) == len(rows)
    assert levels["trained level 2"] == {"kept": 1, "wrong": 1, "duplicate": 1}
    assert list(facts["outcomes_by_skill"]) == ["func_2", "func_3", "func_10"]
    assert facts["outcomes_by_skill"]["func_3"] == {"kept": 1, "wrong": 1, "too_easy": 3, "duplicate": 1}
    assert (facts["prompts"], facts["prompts_kept"]) == (3, 2)
    shown = capsys.readouterr().out
    assert "too easy" in shown
    assert "2 of 10 responses kept" in shown
    assert "…" not in shown


@pytest.mark.parametrize("changes", [{"val_prompts": 0}, {"val_fraction": 0.0}, {}])
def test_without_prompts_for_validation_there_is_no_such_file(
    tmp_path: Path, problems: Path, changes: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """The third: of one prompt none is held out."""
    kept = range(6) if changes else range(1)
    output, facts = run(tmp_path, problems, mixed(kept), **(changes or {"val_prompts": 3}))
    assert sorted(path.name for path in output.iterdir()) == ["manifest.json", "train.parquet"]
    assert (facts["rows"], facts["val_prompts"]) == ({"train": len(kept), "test": 0}, 0)
    assert ("val_prompts=3: 0, since only 1 prompts have" in capsys.readouterr().out) == (not changes)


def test_half_written_characters_are_dropped_and_counted(tmp_path: Path, problems: Path) -> None:
    """With a tokenizer also what it has no tokens for: the tiny one's has none for é."""
    tokenizer = tmp_path / "tokenizer"
    build_tokenizer(["reverse"]).save_pretrained(tokenizer)
    rows = [answer(0, sample, text) for sample, text in enumerate(("ab\ufffd", "abé", "«ab»"))]
    rows.append(answer(0, 3, "w\ufffd", "wrong"))
    _, facts = run(tmp_path / "without", problems, rows)
    assert facts["outcomes"] == {"kept": 2, "wrong": 1, "lost_characters": 1}
    _, facts = run(tmp_path / "with", problems, rows, tokenizer=str(tokenizer))
    assert facts["outcomes"] == {"kept": 1, "wrong": 1, "lost_characters": 2}


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from("pqrst"), st.integers(0, 3)), min_size=5, max_size=12),
    st.integers(0, 9),
    st.floats(0.05, 0.6),
)
def test_no_prompt_is_in_both_splits(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[str, int]], seed: int, fraction: float
) -> None:
    """Equal prompts at different rows, with any number of correct responses each, go to one side together."""
    tmp_path = tmp_path_factory.mktemp("split")
    path = problem_file(tmp_path / "p.parquet", [problem(i, prompt=text) for i, (text, _) in enumerate(made)])
    rows = [answer(i, s, f"{s}") for i, (_, count) in enumerate(made) for s in range(count)]
    prompts = {text for text, count in made if count}
    if len(prompts) < 2:
        return
    output, facts = run(tmp_path, path, rows, seed=seed, val_fraction=fraction, max_correct_ratio=None)
    sides = [
        {prompt_key(turns[:-1]) for turns in read_table(output / name)["messages"].to_pylist()}
        for name in ("train.parquet", "test.parquet")
    ]
    assert not sides[0] & sides[1]
    assert len(sides[0] | sides[1]) == len(prompts)
    assert len(sides[1]) == facts["val_prompts"]


def test_files_of_the_paper_are_filtered_too(tmp_path: Path) -> None:
    """Code in the ground truth, nothing of ours in extra_info."""
    rows = [row("func_20(x, x)", f"a{number}", "codeio-forward-incomplete-depth1") for number in range(4)]
    for (turn,) in (made["prompt"] for made in rows):
        turn["content"] = turn["content"].replace("def main", "def func_20(a, b):\n    return a + b\n\ndef main")
    path = write_rows(tmp_path / "published.parquet", rows)
    output, facts = run(tmp_path, path, mixed(range(4)), hide_definitions=True, val_prompts=1)
    assert facts["outcomes_by_skill"] == {"func_20": {"kept": 4, "wrong": 4}}
    (turn, _) = read_table(output / "test.parquet")["messages"].to_pylist()[0]
    assert "def func_20" not in turn["content"]
    assert turn["content"].endswith("return func_20(x, x)")
    train = read_table(output / "train.parquet")
    assert train.schema.equals(SCHEMA)


def test_several_folders_count_as_samples_of_the_same_prompts(tmp_path: Path, problems: Path) -> None:
    samples = {
        "a": [answer(0, 0, "x"), answer(1, 0, "x"), answer(2, 0, "z")],
        "b": [answer(0, 0, "x"), answer(1, 0, "w", "wrong"), answer(3, 0, "q")],
    }
    folders = [str(rollout_folder(tmp_path / name, problems, rows)) for name, rows in samples.items()]
    output = tmp_path / "data"
    filter_rollouts(FilterSettings(rollouts=folders, problems=str(problems), output=str(output), val_prompts=0))
    train = read_table(output / "train.parquet").to_pylist()
    assert [(row["problem"], row["messages"][-1]["content"]) for row in train] == [(1, "x")]
    with pytest.raises(UserError, match=r"rollouts: .*a is given twice"):
        filter_rollouts(FilterSettings(rollouts=folders[:1] * 2, problems=str(problems), output=str(output)))


def test_nothing_kept_shows_responses_and_says_what_to_try(
    tmp_path: Path, problems: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [answer(0, number, "w", "wrong") for number in range(4)]
    answers.append(answer(0, 4, "w w", "overlong", finish_reason="length"))
    with pytest.raises(UserError, match="no response passed the filter; none is right: sample more, or train"):
        run(tmp_path, problems, answers)
    assert capsys.readouterr().out.count("wrong: 'w'") == 3
    with pytest.raises(UserError, match="no response passed the filter; loosen it or sample more"):
        run(tmp_path / "short", problems, [answer(0, 0, "r", "correct")], max_tokens=1)
    assert not (tmp_path / "data").exists()


# ---- problems that a model solves in some samples and not in others

CORRECT = (0, 1, 2, 3, 4)
"""Of four completions of each problem."""


@pytest.fixture
def five(tmp_path: Path) -> Path:
    return problem_file(tmp_path / "problems.parquet", [problem(index) for index in range(len(CORRECT))])


def mixed_settings(tmp_path: Path, five: Path, **changes: Any) -> FilterProblemsSettings:
    rows = [
        answer(number, place, f"{place}", "correct" if place < correct else "wrong")
        for number, correct in enumerate(CORRECT)
        for place in range(4)
    ]
    folder = rollout_folder(tmp_path / "rollouts", five, rows, rows_per_shard=3)
    return FilterProblemsSettings(rollouts=folder, problems=five, **{"output": tmp_path / "kept.parquet", **changes})


def test_kept_are_problems_with_right_and_wrong_completions(tmp_path: Path, five: Path) -> None:
    output = filter_problems(mixed_settings(tmp_path, five))
    kept, before = read_table(output), read_table(five)
    assert kept.to_pylist() == before.select(kept.column_names).slice(1, 3).to_pylist()
    assert verify(output).facts == {"asked": 5, "never": 1, "always": 1}


def test_a_column_of_ones_own_is_left_out_in_so_many_words(
    tmp_path: Path, five: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(read_table(five).append_column("mine", pa.array(CORRECT)), five)
    filter_problems(mixed_settings(tmp_path, five))
    assert capsys.readouterr().err == f"{five}: its columns mine are ignored; verl's RL schema does not have them\n"


def test_limits_are_not_kept_themselves(tmp_path: Path, five: Path) -> None:
    output = filter_problems(mixed_settings(tmp_path, five, min_correct_ratio=0.25, max_correct_ratio=0.75))
    assert read_table(output)["prompt"].to_pylist() == read_table(five)["prompt"].to_pylist()[2:3]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"min_correct_ratio": 0.75},
            r"right completions above 0.75 and below 1; .*sample more, or loosen",
        ),
        ({"max_correct_ratio": 1.5}, "max_correct_ratio=1.5"),
        ({"output": Path("kept.csv")}, "must end in .parquet"),
    ],
)
def test_what_is_refused_leaves_nothing(tmp_path: Path, five: Path, changes: dict[str, Any], said: str) -> None:
    refused = mixed_settings(tmp_path, five, **changes)
    with pytest.raises(UserError, match=said):
        filter_problems(refused)
    assert not refused.output.exists()
