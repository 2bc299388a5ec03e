"""Problem files of both tasks and modes: even, repeatable, without leaks; a wrong option of any task is one line."""

import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from string_rows import row, write_rows

from compositionality.data.artefact import file_hash, verify
from compositionality.data.create_problems import create_problems, settings_for
from compositionality.data.problems import read_problems, to_table
from compositionality.errors import UserError

BOTH = pytest.mark.parametrize("task", ["string", "countdown"])
LEVELS = {"string": [1, 2], "countdown": [2, 3]}


def make(path: Path, task: str = "string", **changes: Any) -> Path:
    return create_problems(settings_for(task, output=str(path), **changes))


def test_paper_mode_without_the_library_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(UserError, match=r"^mode=paper: .* reasoning_gym is not installed; run: bash bash/setup"):
        make(tmp_path / "t.parquet", "countdown", mode="paper", levels=[2], count=10)


@BOTH
def test_clean_file_has_every_level_evenly_and_no_duplicates(tmp_path: Path, task: str) -> None:
    levels = LEVELS[task]
    more = {"input_length": [3, 3]} if task == "string" else {"style": "compact", "seed": 3}
    path = make(tmp_path / "c.parquet", task, levels=levels, count=600, **more)
    rows = read_problems(path).to_pylist()
    assert [sum(row["level"] == level for row in rows) for level in levels] == [300, 300]
    assert len({row["reward_model"]["ground_truth"] for row in rows}) == 600
    names = {"string": {"functions"}, "countdown": {"solutions", "operations", "fewest_numbers", "trace"}}[task]
    assert rows[5]["extra_info"].keys() >= {"seed", *names}
    assert verify(path).facts == {"rows": 600, "by_level": {str(level): 300 for level in levels}}


@BOTH
def test_p07_same_settings_same_bytes_whatever_the_workers(tmp_path: Path, task: str) -> None:
    one, two, other = (
        make(tmp_path / f"{workers}{seed}.parquet", task, count=50, workers=workers, seed=seed)
        for workers, seed in ((1, 1), (2, 1), (1, 2))
    )
    assert file_hash(one) == file_hash(two) != file_hash(other)
    assert verify(one).settings == verify(two).settings


def test_seeds_that_may_share_problems_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path / "a.parquet", count=50, seed=7)
    assert "note" not in capsys.readouterr().out
    make(tmp_path / "b.parquet", count=50, seed=9)
    told = "seed=9 may share problems with other seeds that are 1 modulo 8; 0 to 7 share none"
    assert told in capsys.readouterr().out


@BOTH
def test_p02_a_leak_is_refused_and_nothing_is_written(tmp_path: Path, task: str) -> None:
    levels, other = LEVELS[task], {"functions": "heldout"} if task == "string" else {}
    train = make(tmp_path / "train.parquet", task, levels=levels, count=200)
    made = {"levels": levels, "avoid": [str(train)]}
    make(tmp_path / "test.parquet", task, split="test", count=200, **made, **other)
    with pytest.raises(UserError, match=r"leak.parquet: row 0 has the same problem"):
        make(tmp_path / "leak.parquet", task, count=50, style="compact", **made)
    assert not (tmp_path / "leak.parquet").exists()


def test_published_files_load_unchanged(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "forward_test.parquet", [row("func_2(x)", "abc", level=1)])
    table = read_problems(path)
    assert table.num_rows == 1
    ours = pq.read_schema(make(tmp_path / "t.parquet", mode="paper", count=1))
    assert set(ours.names) == set(table.schema.names)
    for name in ("prompt", "reward_model", "extra_info"):
        inner = ours.field(name).type, table.schema.field(name).type
        inner = tuple(kind.value_type if name == "prompt" else kind for kind in inner)
        published = {field.name for field in inner[1]} - {"depth"}  # the column level here
        assert {field.name for field in inner[0]} == published


def test_empty_table_has_the_schema() -> None:
    assert to_table([], "train").num_rows == 0


def refused(folder: Path, task: str, mode: str, options: dict[str, Any]) -> str:
    with pytest.raises(UserError) as raised:
        create_problems(settings_for(task, mode, output=str(folder / "x.parquet"), **{"count": 2, **options}))
    assert not list(folder.glob("[!.]*"))
    return str(raised.value)


BAD_LEVELS = ([], [0], [2, 2], [100_000])
OPTIONS: dict[str, list[tuple[dict[str, Any], str]]] = {  # of a task and mode; what is said
    "string clean": [
        ({"count": 0}, "count=0: give a whole number from 1 on"),
        *(({"levels": levels}, f"levels={levels}: give different whole numbers from 1 to 12") for levels in BAD_LEVELS),
        ({"functions": "nosuch"}, "functions=nosuch: no such preset; known: trained, heldout, all"),
        ({"function_split": -1}, "function_split=-1: give 0 (the paper's split) or a number from 1 on"),
        ({"function_split": 1, "drop": [0, 2, 6, 10, 12, 14, 16]}, "12 trained and 1 held-out; leave two"),
        ({"ids": [1, 1]}, "ids=[1, 1]: give every id once"),
        ({"drop": [3, 77]}, "drop=[3, 77]: no function has the id 77; ids go from 0 to 24"),
        ({"ids": [1], "drop": [1]}, "drop=[1]: no function is left; leave at least one of [1]"),
        ({"shape": "ring"}, "shape=ring: choose one of chain, tree"),
        ({"style": "yaml"}, "style=yaml: choose one of json, compact"),
        ({"shape": "tree", "style": "compact"}, "style=compact is for chains; use style=json with shape=tree"),
        ({"order_sensitive": True}, "only chains of two or more functions have an order"),
        ({"order_sensitive": True, "levels": [2], "shape": "tree"}, "order_sensitive=true shape=tree levels=[2]: only"),
        ({"input_length": [3]}, "input_length=[3]: give shortest and longest, as [3,10]"),
        ({"input_length": [2, 5]}, "input_length=[2,5] max_length=100: need 3 <= shortest"),
        ({"input_length": [10, 3]}, "input_length=[10,3] max_length=100: need 3 <= shortest"),
        ({"max_length": 4}, "input_length=[3,10] max_length=4: need 3 <= shortest"),
        ({"input_length": [3, 10**8], "max_length": 10**9}, "shortest <= longest <= max_length <= 10000"),
        ({"alphabet": "ab"}, "alphabet='ab' is too small"),
        ({"alphabet": "abc=defghij"}, "use ASCII letters and digits; ['='] are reserved"),
        ({"alphabet": "абвгдежзик"}, "use ASCII letters and digits"),
    ],
    "string both": [({}, "mode=both: choose clean or paper")],
    "string paper": [
        ({"stage": 3}, "stage=3: choose 1 or 2"),
        ({"split": "dev"}, "split=dev: choose one of train, test"),
        *(({"min_level": low, "max_level": high}, f"min_level={low} max_level={high}: need 1 <= min_level <= max_level")
          for low, high in ((0, 1), (3, 1), (1, 90))),
        ({"count": 3, "max_level": 2}, "count=3: give a multiple of 2"),
    ],
    "countdown clean": [
        ({"count": 3, "levels": [2, 3]}, "count=3: give a multiple of 2, the number of levels"),
        *(({"levels": levels}, f"levels={levels}: give different whole numbers from 2 to 6") for levels in BAD_LEVELS),
        *(({key: ends}, f"{key}={ends}: give smallest and largest, whole numbers from 1 on")
          for key, ends in (("numbers", [0, 5]), ("numbers", [5]), ("target", [9, 5]))),
        ({"numbers": [1, 10**9]}, "numbers=[1, 1000000000]: levels up to 3 are solved with numbers up to 104031"),
        ({"numbers": [1, 10**6], "levels": [6]}, "levels up to 6 are solved with numbers up to 228"),
        ({"numbers": [1, 3], "target": [500, 999]}, "target=[500, 999] is out of reach of 3 numbers up to 3"),
        ({"numbers": [1, 3], "target": [7, 9], "levels": [2]}, "no sound problem of level 2 found for train/1/0"),
        ({"operators": "-"}, "operators=-: choose one of +, *, +-"),
        ({"use": "some"}, "use=some: choose one of all, any"),
        ({"style": "latex"}, "style=latex: choose one of text, compact"),
        ({"style": "compact", "whole": False}, "style=compact writes whole numbers only; use whole=true"),
    ],
    "logic ": [
        ({"kind": "chess"}, "kind=chess: choose one of zebra, ordering, graph, arc"),
        *(({"levels": few}, f"levels={few}: give different sizes of kind=zebra, 2 to 5") for few in BAD_LEVELS),
        ({"attributes": 1}, "attributes=1: give 2 to 5"),
        ({"branches": 4}, "branches=4: give 2 to 3"),
        ({"kind": "arc", "operations": 3}, "operations=3: give 1 to 2"),
        ({"kind": "arc", "examples": 1}, "examples=1: give 2 to 5"),
        ({"kind": "ordering", "levels": [9]}, "levels=[9]: give different sizes of kind=ordering, 3 to 8"),
        ({"split": "dev"}, "split=dev: no such split; known: train, validation, test, pretrain"),
    ],
    "stem ": [
        ({"kind": "essay"}, "kind=essay: choose one of choice, free"),
        *(({"levels": levels}, "give different whole numbers from 1 to 3") for levels in BAD_LEVELS),
    ],
    "table ": [
        *(({"levels": levels}, "give different whole numbers from 1 to 4") for levels in BAD_LEVELS),
        ({"rows": 3}, "rows=3: give 4 to 12"),
        ({"columns": 0}, "columns=0: give 1 to 6"),
    ],
    "code ": [
        *(({"levels": levels}, "give different whole numbers from 1 to 12") for levels in BAD_LEVELS),
        ({"kind": "other"}, "kind=other: choose one of functional, stdio, pytest"),
        ({"group": "a b"}, "group=a b: give a word"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("task", "options", "told"), [(task, *one) for task, rows in OPTIONS.items() for one in rows], ids=repr
)
def test_p18_a_wrong_option_is_one_line(tmp_path: Path, task: str, options: dict[str, Any], told: str) -> None:
    assert told in refused(tmp_path, *task.split(" "), options)


def test_levels_that_have_no_more_problems_are_found_out_soon_and_three_problems_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("compositionality.tasks.stream.MAX_CANDIDATES_WITHOUT_NEW", 100)
    options = {"levels": [2], "numbers": [1, 2], "target": [1, 3], "count": 10**6}
    told = refused(tmp_path, "countdown", "clean", options)
    found = re.fullmatch(r"level 2 has only (\d+) different problems among (\d+) candidates; .*", told)
    assert found
    assert int(found[2]) < 200
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == min(3, int(found[1]))
    assert all(re.match(r"level 2: '.*\d", line) for line in shown)


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"level": 0}, "level=0: give a whole number from 1 on"),
        ({"dataset": "spel_backward"}, "dataset=spel_backward: reasoning-gym has no such data set; near it are spell_"),
        ({"dataset": "xyz"}, "dataset=xyz: reasoning-gym has no such data set; there are ab, acre"),
        ({"parameters": {"foo": 1}}, "parameters.foo: spell_backward has no such parameter; it has min_word_len, "),
        ({"parameters": {"min_word_len": "abc"}}, "parameters.min_word_len=abc: a value like the default is needed, 3"),
        ({"parameters": {"min_word_len": True}}, "parameters.min_word_len=True: a value like the default is needed, 3"),
        ({"parameters": {"min_word_len": -5}}, "parameters={'min_word_len': -5}: min_word_len must be positive"),
        ({"count": 0}, "count=0: give a whole number from 1 on"),
    ],
)
def test_p18_options_of_reasoning_gym(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    assert told in refused(tmp_path, "reasoning_gym", "", options)
