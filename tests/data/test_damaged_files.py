"""A JSON or YAML file that cannot be read is one line that names the file, the place in it and the fix."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compositionality.data.json_files import read_json_object
from compositionality.data.parquet import column_names, count_rows, read_table
from compositionality.errors import UserError
from compositionality.yaml_files import read_yaml, read_yaml_mapping

NO_OBJECT = r"damaged \(a JSON \w+, not an object\); delete it$"
JSON = {
    b"": r"damaged \(.*\); delete it$",
    b'{"a": 1': r"damaged \(.*\); delete it$",
    b'{"a": "\xff\xfe"}': r"damaged \(.*\); delete it$",
    b"[" * 100_000: r"damaged \(.*\); delete it$",
    b'{"a": ' + b"1" * 5000 + b"}": r"damaged \(.*\); delete it$",
    **dict.fromkeys((b"[]", b"1", b"null", b'"a"'), NO_OBJECT),
}
YAML = {
    b"a: [1\nb: 2\n": r"not readable as YAML: line 2, column \d+: .*expected",
    b"a:\n\t- 1\n": r"not readable as YAML: line 2, column 1: found character '\\t'",
    b"a: 1\na: 2\n": r"not readable as YAML: line 2, column 1: a is given twice; keep one",
    b"a:\n  20: 1\n  20: 2\n": r"not readable as YAML: line 3, column 3: 20 is given twice; keep one",
    b"a: \xff\n": r"not UTF-8 at byte 3; save it as UTF-8",
    b"a: \x00\n": r"not readable as YAML: ",
    b"!!python/object/apply:os.system [id]\n": r"not readable as YAML: line 1, column 1: could not determine",
    b"[" * 5000: r"not readable as YAML: nested too deeply",
    b"- 1\n- 2\n": r"not a mapping of keys to values",
    b"17\n": r"not a mapping of keys to values",
}
CASES = [("state.json", *one) for one in JSON.items()] + [("own.yaml", *one) for one in YAML.items()]


def read(path: Path) -> object:
    return read_json_object(path, "delete it") if path.suffix == ".json" else read_yaml_mapping(path)


@pytest.mark.parametrize(("name", "content", "told"), CASES, ids=range(len(CASES)))
def test_p18_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=rf"^/\S*{name}: {told}"):
        read(tmp_path / name)


def test_p18_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"state\.json: no such file; delete it"):
        read(tmp_path / "state.json")
    with pytest.raises(UserError, match=r"own\.yaml: no such file"):
        read(tmp_path / "own.yaml")


@pytest.mark.parametrize("read", [column_names, count_rows, read_table])
@pytest.mark.parametrize("name", ["rows.parquet", "rows.jsonl", "folder"])
def test_p18_missing_rows_are_not_told_as_damaged(tmp_path: Path, read: Callable[[Path], Any], name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=rf"{name}: (no such|not a) file"):
        read(tmp_path / name)


@pytest.mark.parametrize("read", [column_names, count_rows, read_table])
def test_p18_a_file_that_the_system_does_not_read_is_not_told_as_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], Any]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", "rows.parquet")

    (tmp_path / "rows.parquet").touch()
    for name in ("read_schema", "read_metadata"):
        monkeypatch.setattr(pq, name, refuse)
    with pytest.raises(PermissionError):
        read(tmp_path / "rows.parquet")


def test_what_is_sound_is_read(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"a": ["é"]}')
    assert read(tmp_path / "state.json") == {"a": ["é"]}
    path = tmp_path / "own.yaml"
    path.write_text("a: [é, 1.5]\nb: {c: null}\n")
    assert read_yaml(path) == read_yaml_mapping(path) == {"a": ["é", 1.5], "b": {"c": None}}
    path.write_text("")
    assert read_yaml_mapping(path) == {}
