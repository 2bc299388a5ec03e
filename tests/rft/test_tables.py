"""Chunks of problems for iterative rejection fine-tuning and the budget that sizes them; data sets joined to one."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rollout_folders import problem, problem_file

from compositionality.data.artefact import Recipe, new_artefact, tree_hash, verify
from compositionality.data.parquet import read_table, write_table
from compositionality.errors import UserError
from compositionality.rft.rows import to_table
from compositionality.rft.tables import ChunkSettings, MergeSettings, merge_data, split_chunks


def cut(tmp_path: Path, name: str = "chunks", **changes: Any) -> tuple[Path, list[list[str]]]:
    path = tmp_path / "problems.parquet"
    if not path.exists():
        problem_file(path, [problem(index) for index in range(20)])
    output = split_chunks(ChunkSettings(problems=str(path), output=str(tmp_path / name), **changes))
    files = sorted(output.glob("*.parquet"), key=lambda file: int(file.stem))
    return output, [[turns[0]["content"] for turns in read_table(file)["prompt"].to_pylist()] for file in files]


def test_chunks_have_the_size_asked_for_and_share_nothing(tmp_path: Path) -> None:
    output, chunks = cut(tmp_path, chunks=3, rows_per_chunk=6)
    assert [len(chunk) for chunk in chunks] == [6, 6, 6]
    together = [prompt for chunk in chunks for prompt in chunk]
    assert len(set(together)) == 18
    assert together != sorted(together, key=lambda text: int(text.partition(":")[2]))
    assert verify(output).facts == {"rows": [6, 6, 6], "rows_left": 2}
    assert cut(tmp_path, "without a size", chunks=3)[1] == chunks  # as many as there are


def test_a_column_of_ones_own_is_left_out_in_so_many_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "problems.parquet"
    problem_file(path, [problem(index) for index in range(20)])
    table = read_table(path)
    write_table(table.append_column("mine", pa.array(range(20))).append_column("note", pa.array(["a"] * 20)), path)
    output, _ = cut(tmp_path, chunks=2)
    assert {*read_table(output / "0.parquet").column_names} == {*table.column_names}
    said = f"{path}: its columns mine, note are ignored; verl's RL schema does not have them\n"
    assert capsys.readouterr().err == said


def test_the_seed_decides(tmp_path: Path) -> None:
    first, same, other = (
        tree_hash(cut(tmp_path, name, chunks=2, rows_per_chunk=5, seed=seed)[0])
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == same != other


def test_the_budget_of_rl_is_never_exceeded(tmp_path: Path) -> None:
    assert [len(chunk) for chunk in cut(tmp_path, chunks=2, rollout_budget=30, n_samples=2)[1]] == [7, 7]
    with pytest.raises(UserError, match="a budget of 10 rollouts is too small for 6 chunks x 2 samples"):
        cut(tmp_path, "x", chunks=6, rollout_budget=10, n_samples=2)


def test_a_budget_may_be_that_of_a_finished_run(tmp_path: Path) -> None:
    """A run that is not finished, or does not say, is named."""
    for run, facts in (("rl", {"training": {"completions": 20}}), ("mute", {"training": {"completions": None}})):
        with new_artefact(tmp_path / run / "final", Recipe("train_grpo", {}), facts) as folder:
            folder.mkdir(parents=True)
    output, chunks = cut(tmp_path, completions_of=str(tmp_path / "rl"), n_samples=2, chunks=5)
    assert [len(chunk) for chunk in chunks] == [2] * 5
    assert verify(output).settings["rollout_budget"] == 20
    with pytest.raises(UserError, match=r"mute/final: has no number of completions; give rollout_budget"):
        cut(tmp_path, "other", completions_of=str(tmp_path / "mute"))
    (tmp_path / "rl").rename(tmp_path / "unfinished")
    (tmp_path / "rl").mkdir()
    with pytest.raises(UserError, match="rl: not a finished run, so its number of completions is unknown"):
        cut(tmp_path, "other", completions_of=str(tmp_path / "rl"))


def test_the_problems_may_be_those_that_a_run_was_asked_in_its_order(tmp_path: Path) -> None:
    """Each once, over the end of a pass; the first pass of seed 1 over ten rows: tests/train/test_grpo_state.py."""
    run, path = tmp_path / "rl", tmp_path / "problems.parquet"
    problem_file(path, [problem(index) for index in range(10)])

    def finish(groups: int, problems: Path = path) -> None:
        settings = {"data.seed": 1, "data.shuffle": True, "data.train_limit": None}
        recipe = Recipe("train_grpo_single", settings, {"train_files/problems.parquet": problems})
        facts = {"training": {"groups": groups}}
        with new_artefact(run / "final", recipe, facts) as partial:
            partial.mkdir()

    with pytest.raises(UserError, match="rl: not a finished run, so its problems are unknown"):
        cut(tmp_path, chunks=1, prompts_of=str(run))
    finish(4)
    _, chunks = cut(tmp_path, "four", chunks=1, prompts_of=str(run))
    rows = [turns[0]["content"] for turns in read_table(path)["prompt"].to_pylist()]
    assert chunks == [[rows[place] for place in (8, 4, 7, 0)]]
    finish(12)
    assert [len(chunk) for chunk in cut(tmp_path, "all", chunks=2, prompts_of=str(run))[1]] == [5, 5]
    other = tmp_path / "other.parquet"
    problem_file(other, [problem(99)])
    finish(4, other)
    with pytest.raises(UserError, match=r"rl: was not trained on exactly .*problems.parquet"):
        cut(tmp_path, "none", chunks=1, prompts_of=str(run))


# ---- data sets joined


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


def merge(inputs: list[Path], output: Path, *, allow: bool = False) -> Path:
    return merge_data(
        MergeSettings(inputs=[str(path) for path in inputs], output=str(output), allow_shared_prompts=allow)
    )


def test_columns_that_may_be_empty_and_those_that_may_not_go_together(tmp_path: Path) -> None:
    one, other = (sft_file(tmp_path / f"{name}.parquet", [name]) for name in "ab")
    table = read_table(other)
    strict = [field.with_nullable(table[field.name].null_count > 0) for field in table.schema]
    write_table(table.cast(pa.schema(strict)), other)
    assert read_table(merge([one, other], tmp_path / "c.parquet")).num_rows == 2


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
    with pytest.raises(UserError, match=r"b.parquet: has columns"):
        merge([a, b], tmp_path / "merged.parquet")
    table = read_table(sft_file(b, ["q"]))
    place = table.column_names.index("problem")
    write_table(table.set_column(place, "problem", table["problem"].cast(pa.string())), b)
    with pytest.raises(UserError, match="column problem is string"):
        merge([a, b], tmp_path / "merged.parquet")


@pytest.mark.parametrize(
    "messages", [None, [], [{"role": "assistant", "content": "a"}], [{"role": None, "content": "q"}] * 2]
)
def test_a_row_without_a_prompt_is_named(tmp_path: Path, messages: Any) -> None:
    a, b = sft_file(tmp_path / "a.parquet", ["p"]), sft_file(tmp_path / "b.parquet", ["q", "r"])
    first, second = read_table(b).to_pylist()
    write_table(to_table([{**first, "messages": messages}, second]), b)
    with pytest.raises(UserError, match=r"b.parquet: row 0 has no prompt in its column messages"):
        merge([a, b], tmp_path / "merged.parquet")


def test_one_input_is_not_joined(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="two or more"):
        merge([sft_file(tmp_path / "a.parquet", ["a"])], tmp_path / "merged.parquet")
