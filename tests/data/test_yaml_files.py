"""A YAML file that cannot be read is one line that names the file and the place in it."""

from pathlib import Path

import pytest

from compositionality.errors import UserError
from compositionality.yaml_files import read_yaml, read_yaml_mapping


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a: [1\nb: 2\n", r"not readable as YAML: line 2, column \d+: .*expected"),
        (b"a:\n\t- 1\n", r"not readable as YAML: line 2, column 1: found character '\\t'"),
        (b"a: 1\na: 2\n", r"not readable as YAML: line 2, column 1: a is there twice; keep one"),
        (b"a:\n  20: 1\n  20: 2\n", r"not readable as YAML: line 3, column 3: 20 is there twice; keep one"),
        (b"a: \xff\n", r"not UTF-8 at byte 3; save it as UTF-8"),
        (b"a: \x00\n", r"not readable as YAML: "),
        (b"!!python/object/apply:os.system [id]\n", r"not readable as YAML: line 1, column 1: could not determine"),
        (b"[" * 5000, r"not readable as YAML: nested too deeply"),
        (b"- 1\n- 2\n", r"not a mapping of keys to values"),
        (b"17\n", r"not a mapping of keys to values"),
    ],
)
def test_p18_a_damaged_file_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"^/\S*own\.yaml: {told}") as raised:
        read_yaml_mapping(path)
    assert "\n" not in str(raised.value)


def test_p18_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"own\.yaml: no such file"):
        read_yaml(tmp_path / "own.yaml")


def test_yaml_is_read(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("a: [é, 1.5]\nb: {c: null}\n")
    assert read_yaml(path) == read_yaml_mapping(path) == {"a": ["é", 1.5], "b": {"c": None}}
    path.write_text("")
    assert read_yaml_mapping(path) == {}
