"""Merging data sets: everything in order, nothing twice."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rollout_folders import problem, problem_file

from compositionality.data.parquet import read_table, write_table
from compositionality.errors import UserError
from compositionality.rft.merge import MergeSettings, merge_data
from compositionality.rft.rows import to_table


def sft_file(path: Path, prompts: list[str]) -> Path:
    rows = [
        {
            "messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": "a"}],
            "data_source": "string-trained-level1",
            "problem": number,
            "extra_info": {"index": number, "split": "train", "depth": 1, "sample": 0, "skills": []},
        }
        for number, prompt in enumerate(prompts)
    ]
    write_table(to_table(rows), path)
    return path


def changed_row(source: Path, path: Path, messages: Any) -> Path:
    """The file with other messages in row 0."""
    rows = read_table(source).to_pylist()
    rows[0]["messages"] = messages
    write_table(to_table(rows), path)
    return path


def merge(inputs: list[Path], output: Path, *, allow: bool = False) -> Path:
    return merge_data(
        MergeSettings(inputs=[str(path) for path in inputs], output=str(output), allow_shared_prompts=allow)
    )


def test_problem_files_are_joined_in_order(tmp_path: Path) -> None:
    a, b = (
        problem_file(tmp_path / f"{name}.parquet", [problem(index) for index in numbers])
        for name, numbers in (("a", (0, 1)), ("b", (2,)))
    )
    merged = merge([b, a], tmp_path / "merged.parquet")
    assert read_table(merged).equals(pa.concat_tables([read_table(b), read_table(a)]))


def test_a_prompt_of_both_is_named_unless_allowed(tmp_path: Path) -> None:
    a = sft_file(tmp_path / "a.parquet", ["p", "q", "q"])
    b = sft_file(tmp_path / "b.parquet", ["r", "q"])
    with pytest.raises(UserError, match=r"b.parquet: row 1 .*a.parquet"):
        merge([a, b], tmp_path / "merged.parquet")
    assert not (tmp_path / "merged.parquet").exists()
    assert read_table(merge([a, b], tmp_path / "merged.parquet", allow=True)).num_rows == 5


def test_folders_are_joined_split_by_split(tmp_path: Path) -> None:
    for name in "ab":
        sft_file(tmp_path / name / "train.parquet", [f"{name}1", f"{name}2"])
        sft_file(tmp_path / name / "test.parquet", [f"{name}3"])
    merged = merge([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    rows = {path.name: read_table(path).num_rows for path in merged.glob("*.parquet")}
    assert rows == {"train.parquet": 4, "test.parquet": 2}


def test_a_prompt_never_ends_up_in_train_and_test(tmp_path: Path) -> None:
    sft_file(tmp_path / "a" / "train.parquet", ["p"])
    sft_file(tmp_path / "b" / "train.parquet", ["q"])
    sft_file(tmp_path / "b" / "test.parquet", ["p"])
    with pytest.raises(UserError, match="trains on"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "merged", allow=True)


def test_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    a = sft_file(tmp_path / "a.parquet", ["p"])
    b = tmp_path / "b.parquet"
    write_table(read_table(sft_file(b, ["q"])).drop_columns(["problem"]), b)
    with pytest.raises(UserError, match="has columns"):
        merge([a, b], tmp_path / "merged.parquet")
    table = read_table(sft_file(b, ["q"]))
    write_table(
        table.set_column(table.schema.get_field_index("problem"), "problem", table["problem"].cast(pa.string())), b
    )
    with pytest.raises(UserError, match="column problem is string"):
        merge([a, b], tmp_path / "merged.parquet")
    with pytest.raises(UserError, match=r"has columns .*reward_model"):
        merge([a, problem_file(tmp_path / "c.parquet", [problem(0)])], tmp_path / "merged.parquet")
    assert not (tmp_path / "merged.parquet").exists()


@pytest.mark.parametrize(
    "messages", [None, [], [{"role": "assistant", "content": "a"}], [{"role": None, "content": "q"}] * 2]
)
def test_a_row_without_a_prompt_is_named(tmp_path: Path, messages: Any) -> None:
    a = sft_file(tmp_path / "a.parquet", ["p"])
    b = changed_row(sft_file(tmp_path / "b.parquet", ["q", "r"]), tmp_path / "c.parquet", messages)
    with pytest.raises(UserError, match=r"c.parquet: row 0 has no prompt in its column messages"):
        merge([a, b], tmp_path / "merged.parquet")


def test_again_does_nothing_and_other_inputs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, c = (sft_file(tmp_path / f"{name}.parquet", [name]) for name in "abc")
    output = merge([a, b], tmp_path / "merged.parquet")
    capsys.readouterr()
    merge([a, b], output)
    assert capsys.readouterr().out == f"{output} is already there\n"
    with pytest.raises(UserError, match="other inputs"):
        merge([a, c], output)
    with pytest.raises(UserError, match="two or more"):
        merge([a], output)
