"""Rows as other libraries write them and of users in their own columns: read, judged, refused by file and row."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compositionality.data.problems import _are_chats, is_rl_schema, read_problems
from compositionality.data.row_format import RL_SCHEMA, RowFormat, RowSettings
from compositionality.errors import UserError
from compositionality.reward.judge import judge_response
from compositionality.reward.verl_reward import compute_score
from compositionality.tasks.registry import task_of
from compositionality.tasks.task import truth_text

ASK = "Reach {target} with {nums}."
LETTERS = st.characters(exclude_categories=["Cs"])
COUNTDOWN = st.lists(st.tuples(st.integers(1, 999), st.lists(st.integers(1, 99), min_size=2, max_size=5)), min_size=1)
TEXTS = st.lists(st.tuples(st.text(LETTERS, min_size=1), st.integers(-99, 99)), min_size=1)


def chat(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def rl_rows(prompts: Sequence[str], truths: Sequence[Any], source: str) -> list[dict[str, Any]]:
    return [
        {"data_source": source, "prompt": chat(prompt), "reward_model": {"style": "rule", "ground_truth": truth}}
        for prompt, truth in zip(prompts, truths, strict=True)
    ]


def read(path: Path, row_format: RowFormat = RL_SCHEMA) -> list[tuple[Any, ...]]:
    """What a model is asked and a judge reads, and level and group, of every row."""
    rows = read_problems(path, row_format).to_pylist()
    truths = (task_of(row["data_source"]).parse_truth(row["reward_model"]["ground_truth"]) for row in rows)
    return [
        (row["prompt"], row["data_source"], truth, row["level"], row["group"])
        for row, truth in zip(rows, truths, strict=True)
    ]


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
@given(rows=COUNTDOWN)
@settings(max_examples=15)
def test_countdown_in_its_own_columns_is_what_it_is_in_the_rl_schema(
    tmp_path_factory: pytest.TempPathFactory, ending: str, rows: list[tuple[int, list[int]]]
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    prompts = [ASK.format(target=target, nums=nums) for target, nums in rows]
    truths = [json.dumps({"target": target, "numbers": nums}) for target, nums in rows]
    expected = read(write(folder / "rl.parquet", rl_rows(prompts, truths, "countdown")))
    own = [{"target": target, "nums": nums} for target, nums in rows]
    keys = {"source": "countdown", "truth_key": ("target", "nums")}
    columns: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "messages": ([chat(prompt) for prompt in prompts], {"prompt_key": "messages"}),
        "prompt": (prompts, {}),
        "other": (prompts, {"template": ASK}),
    }
    for name, (values, more) in columns.items():
        made = [{**row, name: value} for row, value in zip(own, values, strict=True)]
        assert read(write(folder / f"{name}.{ending}", made), RowFormat(**keys, **more)) == expected


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
@given(rows=TEXTS)
@example(rows=[("a\u2028b\x85c {answer} {}", 1)])
@settings(max_examples=15)
def test_a_question_and_its_answer_are_what_they_are_in_the_rl_schema(
    tmp_path_factory: pytest.TempPathFactory, ending: str, rows: list[tuple[str, int]]
) -> None:
    """Any text: line breaks of every kind and braces too."""
    folder = tmp_path_factory.mktemp("rows")
    questions, answers = [text for text, _ in rows], [answer for _, answer in rows]
    expected = read(write(folder / "rl.parquet", rl_rows(questions, list(map(str, answers)), "math")))
    own = [{"question": question, "answer": answer} for question, answer in rows]
    path = write(folder / f"own.{ending}", own)
    form = RowFormat(source="math", truth_key=("answer",), prompt_key="question")
    assert read(path, form) == expected
    assert read(path, RowFormat(source="math", truth_key=("answer",), template="{question}")) == expected
    named = write(folder / f"named.{ending}", [{**row, "judged_by": "math"} for row in own])
    assert read(named, RowFormat("question", "judged_by", ("answer",))) == expected


def test_the_rl_schema_itself_may_be_json_lines(tmp_path: Path) -> None:
    rows = rl_rows(["a", "b"], ["1", "2"], "math")
    lines, table = write(tmp_path / "rl.jsonl", rows), write(tmp_path / "rl.parquet", rows)
    assert read(lines) == read(table)
    assert [is_rl_schema(path, RL_SCHEMA) for path in (lines, table)] == [False, True]
    structs = write(tmp_path / "structs.parquet", rl_rows(["a"], [{"x": 1}], "any"))
    assert [is_rl_schema(structs, RowFormat(any_source=flag)) for flag in (False, True)] == [True, True]
    text = write(tmp_path / "text.parquet", [{**row, "prompt": "a"} for row in rows])
    assert not is_rl_schema(text, RL_SCHEMA)


def test_a_template_keeps_what_is_no_column_in_braces(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [{"q": "{q} {z}", "answer": 1}])
    (tmp_path / "t.txt").write_text('{q}\n{"a": {}} $x^{-1}$ \\boxed{ }\n<think>\n')
    form = RowSettings(prompt_template=str(tmp_path / "t.txt"), source="math", truth_key=["answer"]).row_format()
    assert read(path, form)[0][0] == chat('{q} {z}\n{"a": {}} $x^{-1}$ \\boxed{ }\n<think>')


OWN = [{"question": "1+1?", "answer": "2"}, {"question": "1+2?", "answer": "3"}]
MATH: dict[str, Any] = {"source": "math", "truth_key": ["answer"], "prompt_key": "question"}


@pytest.mark.parametrize(
    ("rows", "keys", "template", "message"),
    [
        (OWN, {}, None, "has no column prompt, reward_model, data_source; it has question, answer"),
        (OWN, MATH | {"prompt_key": "text"}, None, "has no column text; it has question, answer"),
        (OWN, MATH | {"truth_key": ["answer", "nums"]}, None, "has no column nums; it has question, answer"),
        (OWN, MATH, "What is {sum}?", "has no column sum; it has question, answer"),
        (OWN, MATH, "What is it?", "t.txt: has no {COLUMN}"),
        (OWN, MATH | {"source": "sums"}, None, "row 0: unknown data_source 'sums'; known: "),
        ([{**row, "data_source": "math"} for row in OWN], MATH, None, "has a column data_source; leave source=math"),
        ([*OWN, {"answer": "2"}], MATH, None, "row 2: a turn of the prompt has no content"),
        ([*OWN, {"answer": "2"}], MATH, "Say {question}", "row 2: question is empty but in prompt_template"),
        ([*OWN, {"question": "", "answer": "2"}], MATH, None, "row 2: a turn of the prompt has no content"),
        ([*OWN, {"question": "?", "answer": 2}], MATH, None, "column answer: has values of different types"),
        ([{"question": "?", "n": 2**70}], MATH | {"truth_key": ["n"]}, None, "column n: has values of different types"),
        ([{"question": "?", "target": 3, "nums": []}], MATH | {"source": "countdown", "truth_key": ["target", "nums"]},
         None, "row 0: ground_truth .* has 0 numbers"),
    ],
)  # fmt: skip
def test_p18_what_is_wrong_is_one_line(
    tmp_path: Path, rows: list[dict[str, Any]], keys: dict[str, Any], template: str | None, message: str
) -> None:
    path, more = write(tmp_path / "rows.jsonl", rows), {}
    if template is not None:
        (tmp_path / "t.txt").write_text(template)
        more = {"prompt_template": str(tmp_path / "t.txt")}
    with pytest.raises(UserError, match=message.replace("{", r"\{")) as error:
        read_problems(path, RowSettings(**keys, **more).row_format())
    assert str(error.value).startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"question": "a"}\n{"question": \n', "line 2: damaged"),
        ('{"question": "a"}\n\n[1]\n', "line 3: damaged .a JSON list, not an object"),
        ("\n", "has no rows"),
        ('{"question": "\\ud800", "answer": "1"}', "column question: has values of different types"),
    ],
)
def test_p18_a_broken_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_problems(path, RowSettings(**MATH).row_format())


def test_a_byte_order_mark_before_the_first_line_is_none_of_it(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", rl_rows(["a", "b"], ["1", "2"], "math"))
    expected = read_problems(path).to_pylist()
    path.write_bytes("\ufeff".encode() + path.read_bytes())
    assert read_problems(path).to_pylist() == expected


def test_p18_two_columns_of_one_name_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table([[1], [2]], names=["nums", "nums"]), path)
    with pytest.raises(UserError, match=r"rows.parquet: has two columns nums; rename one"):
        read_problems(path)


# ---- rows of other libraries

COLUMNS = ("data_source", "prompt", "ability", "reward_model", "extra_info")
TINYZERO = {"target": 22, "numbers": [3, 5, 7]}
RIGHT, WRONG = "<think>3*5=15</think>\n<answer>3*5+7</answer>", "<answer>3+5+7</answer>"


def foreign(path: Path, truths: Sequence[Any], source: str = "countdown") -> Path:
    """With all columns of verl's schema."""
    rows = rl_rows([f"problem {number}" for number in range(len(truths))], truths, source)
    more = [{"ability": "math", "extra_info": {"split": "train", "index": number}} for number in range(len(truths))]
    return write(path, [{name: {**row, **one}[name] for name in COLUMNS} for row, one in zip(rows, more, strict=True)])


def test_structs_become_text(tmp_path):
    path = foreign(tmp_path / "rows.parquet", [TINYZERO, {"target": 8, "numbers": [3, 5]}])
    table = read_problems(path)
    models = table["reward_model"].to_pylist()
    assert [json.loads(model["ground_truth"]) for model in models] == [TINYZERO, {"target": 8, "numbers": [3, 5]}]
    assert {model["style"] for model in models} == {"rule"}
    assert table.column_names == [*pq.read_schema(path).names, "level", "group"]
    assert judge_response("countdown", RIGHT, models[0]["ground_truth"]).score == 1


def test_structs_of_mixed_rows_have_null_keys(tmp_path):
    compact = {"target": 22, "numbers": [3, 5, 7], "style": "compact"}
    models = read_problems(foreign(tmp_path / "rows.parquet", [TINYZERO, compact]))["reward_model"].to_pylist()
    assert judge_response("countdown", RIGHT, models[0]["ground_truth"]).score == 1
    assert judge_response("countdown", "7,3*5=15\n,7+15=22", models[1]["ground_truth"]).score == 1


def test_text_stays_as_it_is(tmp_path):
    path = foreign(tmp_path / "rows.parquet", [json.dumps(TINYZERO)], "countdown-clean-level3")
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


def with_columns(path: Path, truths: Sequence[Any] = (), **columns: Sequence[Any]) -> Path:
    """As many sound rows, with these columns in the place of theirs."""
    count = len(truths) or len(next(iter(columns.values())))
    table = pq.read_table(foreign(path, truths or [TINYZERO] * count))
    for name, values in columns.items():
        kept = table.drop_columns([name] if name in table.column_names else [])
        table = kept.append_column(name, pa.array(values))
    pq.write_table(table, path, row_group_size=2)
    return path


ASKED = chat("?")


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"truths": [TINYZERO, {"target": 22, "numbers": []}]}, "row 1: .*0 numbers"),
        ({"truths": [TINYZERO, TINYZERO, {"target": 22}]}, "row 2: .*no list of numbers"),
        ({"truths": [{"numbers": [3, 5]}]}, "row 0: .*no target"),
        ({"truths": [{"target": 22.5, "numbers": [3, 5]}]}, "row 0: .*no whole number"),
        ({"truths": [json.dumps(TINYZERO), "3*5 + 7"]}, "row 1: .*no JSON"),
        ({"truths": [json.dumps(TINYZERO), None]}, "row 1: there is no ground_truth"),
        ({"reward_model": ["3*5 + 7"]}, "reward_model has no ground_truth"),
        ({"extra_info": [1, 2]}, "column extra_info is int64, not a struct; correct it or leave it out"),
        ({"extra_info": ["a", "b"]}, "column extra_info is string, not a struct; correct it or leave it out"),
        ({"prompt": [ASKED, ASKED, ASKED, None]}, "row 3 has an empty prompt"),
        ({"prompt": [ASKED, []]}, "row 1 has an empty prompt"),
        ({"prompt": [None, None]}, "row 0: the prompt is null; give a list of turns"),
        ({"prompt": ["What is 1+1?", None]}, "row 1: a turn of the prompt has no content"),
        ({"prompt": [ASKED, [*ASKED, {"role": "assistant", "content": "!"}]]}, "row 1: the prompt ends with an assist"),
        ({"prompt": [ASKED, [{"role": "usr", "content": "?"}]]}, "row 1: a turn's role is 'usr', none of system, "),
        ({"prompt": [5, 6]}, "row 0: the prompt is int64; give a list of turns"),
        ({"prompt": [["What is 1+1?"]]}, "row 0: the prompt is list<.*>; give a list of turns"),
        ({"prompt": [[{"role": "user"}]]}, "row 0: the prompt's turns have no content of text"),
        ({"prompt": [[{"role": "user", "content": 5}]]}, "row 0: the prompt's turns have no content of text"),
        ({"prompt": [ASKED, ASKED, [*ASKED, {"role": "user", "content": None}]]}, "row 2: a turn of the prompt has no"),
        ({"prompt": [ASKED, [None]]}, "row 1: a turn of the prompt has no role"),
        ({"data_source": ["countdown", None]}, "row 1: unknown data_source 'None'"),
        (
            {"truths": ["71", "72"], "data_source": ["countdown", "x"]},
            "row 1: unknown data_source 'x'; known: .*count",
        ),
        ({"extra_info": [{"level": "2"}, {"level": "hard"}]}, "row 1: level 'hard' is not a whole number"),
        *(({"level": [1, level]}, "row 1: level must be int32 from 0 in every row") for level in (None, -1)),
        ({"level": ["easy", "hard"]}, "column level is string, not int32"),
        ({"level": [2, 2.5]}, "column level is double, not int32"),
        ({"group": [None, "ood"]}, "row 0: group must be string in every row"),
    ],
)
def test_p18_a_damaged_row_is_named(tmp_path, columns, problem):
    """Of two faults the unknown data source first."""
    with pytest.raises(UserError, match=f"rows.parquet: {problem}"):
        read_problems(with_columns(tmp_path / "rows.parquet", **columns))


@pytest.mark.parametrize("text", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("to_list", [pa.list_, pa.large_list, partial(pa.list_, list_size=2)])
def test_chats_are_told_apart_in_every_kind_of_list_and_text(tmp_path, to_list, text):
    """In one pass of Arrow; 200,000 chats one by one would take half a second."""
    kind = to_list(pa.struct([("role", text), ("content", text)]))
    answered = [*ASKED, {"role": "assistant", "content": "!"}]
    chats = [[*ASKED, *ASKED], [*reversed(answered)], [*ASKED, *ASKED]]
    table = read_problems(with_columns(tmp_path / "rows.parquet", prompt=pa.array(chats, kind)))
    assert table["prompt"].to_pylist() == chats
    assert _are_chats(table["prompt"])
    with pytest.raises(UserError, match="row 2: the prompt ends with an assistant's turn"):
        read_problems(with_columns(tmp_path / "rows.parquet", prompt=pa.array([*chats[:2], answered], kind)))


@pytest.mark.parametrize(
    "truths",
    [["seven", "3*5 + 7"], [7, 8], [TINYZERO, {"target": 8, "numbers": [3]}]],
    ids=["text", "number", "struct"],
)
def test_rows_of_any_source_are_taken_as_they_are(tmp_path, truths):
    path = foreign(tmp_path / "rows.parquet", truths, "nobody/knows-level4")
    rows = read_problems(path, RowFormat(any_source=True)).to_pylist()
    assert [row["reward_model"]["ground_truth"] for row in rows] == truths
    assert {(row["data_source"], row["level"], row["group"]) for row in rows} == {("nobody/knows-level4", 0, "all")}
    pq.write_table(pq.read_table(path).append_column("level", pa.array([3, 5])), path)
    assert read_problems(path, RowFormat(any_source=True))["level"].to_pylist() == [3, 5]
