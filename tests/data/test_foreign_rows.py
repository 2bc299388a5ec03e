"""Countdown rows as other libraries write them: read, judged, and refused by file and row where they are damaged."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compositionality.data.problems import RowFormat, read_problems
from compositionality.errors import UserError
from compositionality.reward import judge_response
from compositionality.reward.verl_reward import compute_score
from compositionality.tasks.task import truth_text

TINYZERO = {"target": 22, "numbers": [3, 5, 7]}
RIGHT, WRONG = "<think>3*5=15</think>\n<answer>3*5+7</answer>", "<answer>3+5+7</answer>"


def write(path, truths, data_source="countdown"):
    rows = [
        {
            "data_source": data_source,
            "prompt": [{"role": "user", "content": f"problem {index}"}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": truth},
            "extra_info": {"split": "train", "index": index},
        }
        for index, truth in enumerate(truths)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_structs_become_text(tmp_path):
    path = write(tmp_path / "rows.parquet", [TINYZERO, {"target": 8, "numbers": [3, 5]}])
    table = read_problems(path)
    models = table["reward_model"].to_pylist()
    assert [json.loads(model["ground_truth"]) for model in models] == [TINYZERO, {"target": 8, "numbers": [3, 5]}]
    assert {model["style"] for model in models} == {"rule"}
    assert table.column_names == [*pq.read_schema(path).names, "level", "group"]
    assert judge_response("countdown", RIGHT, models[0]["ground_truth"]).score == 1


def test_structs_of_mixed_rows_have_null_keys(tmp_path):
    compact = {"target": 22, "numbers": [3, 5, 7], "style": "compact"}
    models = read_problems(write(tmp_path / "rows.parquet", [TINYZERO, compact]))["reward_model"].to_pylist()
    assert judge_response("countdown", RIGHT, models[0]["ground_truth"]).score == 1
    assert judge_response("countdown", "7,3*5=15\n,7+15=22", models[1]["ground_truth"]).score == 1


def test_text_stays_as_it_is(tmp_path):
    path = write(tmp_path / "rows.parquet", [json.dumps(TINYZERO)], "countdown-clean-level3")
    assert read_problems(path).drop_columns(["level", "group"]).equals(pq.read_table(path))


@pytest.mark.parametrize(
    "truth",
    [
        json.dumps(TINYZERO),
        TINYZERO,
        {"target": np.int64(22), "numbers": np.array([3, 5, 7])},
        {"target": 22, "numbers": np.array([3, 5, 7], dtype=object)},
        {"answer": np.array(22), "numbers": (3, 5, 7)},
        {"question": "?", "answer": "3*5 + 7", "metadata": {"target": 22, "numbers": np.array([7, 5, 3])}},
    ],
)
def test_verl_may_hand_over_structs_with_numpy_inside(truth):
    assert judge_response("countdown", RIGHT, truth).score == 1
    right, wrong = compute_score("countdown", RIGHT, truth), compute_score("countdown", WRONG, truth)
    assert (right["score"], wrong["score"], wrong["wrong_value"], right["error"]) == (1, 0, 1, 0)


@pytest.mark.parametrize("truth", [{"target": 22}, {"target": 22, "numbers": {1, 2}}, {"target": 1j}, b"x", np.nan, 22])
def test_p05_a_ground_truth_that_cannot_be_read_is_an_error(truth):
    assert compute_score("countdown", RIGHT, truth)["error"] == 1


def test_an_endless_struct_is_refused():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(UserError, match="ground_truth of type list"):
        truth_text(loop)


@pytest.mark.parametrize(
    ("truths", "problem"),
    [
        ([TINYZERO, {"target": 22, "numbers": []}], "row 1: .*0 numbers"),
        ([TINYZERO, TINYZERO, {"target": 22}], "row 2: .*no list of numbers"),
        ([{"numbers": [3, 5]}], "row 0: .*no target"),
        ([{"target": 22.5, "numbers": [3, 5]}], "row 0: .*no whole number"),
        ([json.dumps(TINYZERO), "3*5 + 7"], "row 1: .*no JSON"),
        ([json.dumps(TINYZERO), None], "row 1: .*no object"),
    ],
)
def test_a_damaged_row_is_named(tmp_path, truths, problem):
    with pytest.raises(UserError, match=f"rows.parquet: {problem}") as error:
        read_problems(write(tmp_path / "rows.parquet", truths))
    assert "\n" not in str(error.value)


def test_rows_without_ground_truth_are_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    columns = ("data_source", "prompt", "ability", "reward_model", "extra_info")
    pq.write_table(pa.Table.from_pylist([dict.fromkeys(columns, "countdown")]), path)
    with pytest.raises(UserError, match=r"rows.parquet: reward_model has no ground_truth"):
        read_problems(path)


def with_prompts(path, prompts, **columns):
    table = pq.read_table(write(path, [TINYZERO] * len(prompts)))
    for name, values in {"prompt": prompts, **columns}.items():
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, pa.array(values))
    pq.write_table(table, path, row_group_size=2)
    return path


ASK = [{"role": "user", "content": "?"}]


@pytest.mark.parametrize(
    ("prompts", "problem"),
    [
        ([ASK, ASK, ASK, None], "row 3 has an empty prompt"),
        ([ASK, []], "row 1 has an empty prompt"),
        ([None, None], "row 0: the prompt is null; give a list of turns"),
        (["What is 1+1?", None], "row 1: a turn of the prompt has no content"),
        ([ASK, ASK, [*ASK, {"role": "assistant", "content": "!"}]], "row 2: the prompt ends with an assistant's turn"),
        ([5, 6], "row 0: the prompt is int64; give a list of turns"),
        ([["What is 1+1?"]], "row 0: the prompt is list<.*>; give a list of turns"),
        ([[{"role": "user"}]], "row 0: the prompt's turns have no content of text"),
        ([[{"role": "user", "content": 5}]], "row 0: the prompt's turns have no content of text"),
        ([ASK, ASK, [*ASK, {"role": "user", "content": None}]], "row 2: a turn of the prompt has no content"),
        ([ASK, [None]], "row 1: a turn of the prompt has no role"),
    ],
)
def test_p18_a_prompt_that_is_none_is_named_by_row(tmp_path, prompts, problem):
    with pytest.raises(UserError, match=f"rows.parquet: {problem}") as error:
        read_problems(with_prompts(tmp_path / "rows.parquet", prompts))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"data_source": ["countdown", None]}, "row 1: unknown data_source 'None'"),
        ({"extra_info": [{"level": "2"}, {"level": "hard"}]}, "row 1: extra_info: level 'hard' is no whole number"),
        ({"level": [1, None]}, "row 1: level must be int32 in every row"),
        ({"level": ["easy", "hard"]}, "column level holds string, not int32"),
        ({"level": [2, 2.5]}, "column level holds double, not int32"),
        ({"group": [None, "ood"]}, "row 0: group must be string in every row"),
    ],
)
def test_p18_a_source_level_or_group_that_is_none_is_named_by_row(tmp_path, columns, problem):
    with pytest.raises(UserError, match=f"rows.parquet: {problem}"):
        read_problems(with_prompts(tmp_path / "rows.parquet", [ASK, ASK], **columns))


def test_p18_the_unknown_data_source_is_said_first(tmp_path):
    path = write(tmp_path / "rows.parquet", ["71", "72"])
    table = pq.read_table(path).set_column(0, "data_source", pa.array(["countdown", "nobody/knows"]))
    with_text = table.drop_columns(["prompt"]).append_column("prompt", pa.array(["?", "?"]))
    pq.write_table(with_text, path)
    with pytest.raises(UserError, match=r"rows.parquet: row 1: unknown data_source 'nobody/knows'; known: .*countdown"):
        read_problems(path)


@pytest.mark.parametrize(
    "truths",
    [["seven", "3*5 + 7"], [7, 8], [TINYZERO, {"target": 8, "numbers": [3]}]],
    ids=["text", "number", "struct"],
)
def test_rows_of_any_source_are_taken_as_they_are(tmp_path, truths):
    path = write(tmp_path / "rows.parquet", truths, "nobody/knows-level4")
    rows = read_problems(path, RowFormat(any_source=True)).to_pylist()
    assert [row["reward_model"]["ground_truth"] for row in rows] == truths
    assert {(row["data_source"], row["level"], row["group"]) for row in rows} == {("nobody/knows-level4", 0, "all")}
    pq.write_table(pq.read_table(path).append_column("level", pa.array([3, 5])), path)
    assert read_problems(path, RowFormat(any_source=True))["level"].to_pylist() == [3, 5]
