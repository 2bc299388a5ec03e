"""Metrics of a run on disk: a line cut off by a crash is left out, any other damage is named."""

from pathlib import Path

import pytest

from compositionality.errors import UserError
from compositionality.train.metrics import read_metrics, truncate_metrics


@pytest.mark.parametrize("torn", [b'{"step": 3, "tr', b'{"step": 3', b'{"a": "\xc3', b"\x00\x00"])
def test_a_torn_last_line_is_left_out(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n\n{"step": 2}\n' + torn)
    assert read_metrics(path) == [{"step": 1}, {"step": 2}]
    assert read_metrics(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize("line", [b"[1]", b"3", b"{", b"\xff", b'{"loss": 1}', b'{"step": "x"}', b'{"step": null}'])
def test_p18_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 2}\n')
    with pytest.raises(UserError, match=r"metrics\.jsonl: line 2: .*; delete that line") as raised:
        read_metrics(path)
    assert "\n" not in str(raised.value)


def test_p18_a_damaged_row_of_a_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text("[")
    with pytest.raises(UserError, match=r"metrics\.json: damaged .*; delete this checkpoint"):
        truncate_metrics(tmp_path / "metrics.jsonl", 3, tmp_path)
