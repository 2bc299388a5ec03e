"""Problem files: both modes, the published schema, leaks refused, nothing done twice."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from string_rows import row, write_rows

from compositionality.config.cli import parse
from compositionality.data.artefact import exclusive, file_hash, read_manifest
from compositionality.data.audit import AuditData, audit_data
from compositionality.data.create_problems import create_problems, problem_settings, settings_for
from compositionality.data.problems import read_problems, to_table
from compositionality.errors import UserError


def make(path: Path, **changes: object) -> Path:
    return create_problems(settings_for("string", output=str(path), **changes))  # type: ignore[arg-type]


def test_paper_file(tmp_path: Path) -> None:
    path = make(tmp_path / "t.parquet", mode="paper", stage=2, split="test", max_level=8, count=80)
    rows = read_problems(path).to_pylist()
    assert len(rows) == 80
    assert rows[0]["extra_info"] == {"index": 0, "split": "dummy"}
    assert rows[-1]["data_source"] == "codeio-forward-incomplete-depth8"
    manifest = read_manifest(path)
    assert manifest is not None
    assert manifest.facts["by_level"]["3"] == 10


def test_clean_file_has_every_level_evenly_and_no_duplicates(tmp_path: Path) -> None:
    path = make(tmp_path / "c.parquet", levels=[1, 2], count=600, input_length=[3, 3])
    rows = read_problems(path).to_pylist()
    assert [sum(row["level"] == level for row in rows) for level in (1, 2)] == [300, 300]
    assert len({(row["reward_model"]["ground_truth"]) for row in rows}) == 600
    assert rows[5]["extra_info"]["functions"]


def test_p07_same_settings_same_bytes_and_nothing_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = make(tmp_path / "a.parquet", count=50), make(tmp_path / "b.parquet", count=50)
    assert file_hash(one) == file_hash(two)
    make(tmp_path / "a.parquet", count=50, workers=2)
    assert "already there" in capsys.readouterr().out
    with pytest.raises(UserError, match="seed"):
        make(tmp_path / "a.parquet", count=50, seed=2)
    make(tmp_path / "a.parquet", count=50, seed=2, force=True)
    assert file_hash(one) != file_hash(two)


def test_p08_two_at_once_do_not_share_a_file(tmp_path: Path) -> None:
    with exclusive(tmp_path / "a.parquet"), pytest.raises(UserError, match="another process is writing it"):
        make(tmp_path / "a.parquet", count=50)
    with exclusive(tmp_path / "audit.json"), pytest.raises(UserError, match="another process is writing it"):
        audit_data(AuditData(files=[str(make(tmp_path / "a.parquet", count=50))], output=str(tmp_path / "audit.json")))


def test_seeds_that_may_share_problems_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path / "a.parquet", count=50, seed=7)
    assert "note" not in capsys.readouterr().out
    make(tmp_path / "b.parquet", count=50, seed=9)
    assert (
        "seed=9 may share problems with other seeds that are 1 modulo 8; 0 to 7 share none" in capsys.readouterr().out
    )


def test_p02_a_leak_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    train = make(tmp_path / "train.parquet", levels=[1, 2], count=100)
    make(tmp_path / "test.parquet", split="test", functions="heldout", levels=[1, 2], count=100, avoid=[str(train)])
    with pytest.raises(UserError, match=r"leak.parquet: row 0 has the same problem"):
        make(tmp_path / "leak.parquet", levels=[1, 2], count=50, avoid=[str(train)])
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


@pytest.mark.parametrize(
    "changes", [{"mode": "both"}, {"count": 0}, {"levels": [1, 2], "count": 3}, {"input_length": [3]}, {"split": "dev"}]
)
def test_bad_settings_are_one_line(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(UserError) as caught:
        make(tmp_path / "x.parquet", **changes)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("*.parquet"))


def test_settings_come_from_the_command_line() -> None:
    settings = parse(
        problem_settings(["task=string"]),
        ["task=string", "output=x", "levels=[1,2]", "functions=heldout", "drop=[0,3]", "style=compact"],
    )
    assert (settings.levels, settings.drop, settings.style) == ([1, 2], [0, 3], "compact")
