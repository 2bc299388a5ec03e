"""A damaged JSON file is one line that names the file and the fix."""

from pathlib import Path

import pytest

from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError

DAMAGED = {
    "empty": b"",
    "truncated": b'{"a": 1',
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "deeply nested": b"[" * 100_000,
    "a huge number": b'{"a": ' + b"1" * 5000 + b"}",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_p18_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"^/\S*state\.json: damaged \(.*\); delete it$") as raised:
        read_json_object(path, "delete it")
    assert "\n" not in str(raised.value)


def test_p18_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"state\.json: no such file; run it again"):
        read_json_object(tmp_path / "state.json", "run it again")


@pytest.mark.parametrize("content", ["[]", "1", "null", '"a"'])
def test_p18_an_object_is_wanted(tmp_path: Path, content: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"state\.json: damaged \(a JSON \w+, not an object\); delete it"):
        read_json_object(path, "delete it")


def test_json_is_read(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"a": ["é"]}')
    assert read_json_object(path, "") == {"a": ["é"]}
