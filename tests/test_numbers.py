"""Every number of the READMEs that tell results is in a committed record; numbers_in_text.py has the rule."""

from pathlib import Path

import pytest
from numbers_in_text import entries, linked_records, read_record, unfound

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results" / "records"
TEXTS = [ROOT / "README.md", ROOT / "results" / "README.md", *sorted(RECORDS.glob("*/README.md"))]
RECORD = {
    "accuracy": [
        {"model": "stage1", "level": 3, "accuracy": 0.1285, "low": 0.083, "high": 0.194, "values": [0.11, 0.16]},
        {"model": "rl-level2", "level": 3, "accuracy": 0.5433, "low": 0.39, "high": 0.69, "values": [0.51, 0.57]},
        {"model": "rl-level1", "level": 3, "accuracy": 0.11, "low": 0.07, "high": 0.17, "values": [0.09, 0.13]},
    ],
    "notes": ["alone on the machine; set-up 62 s, everything after it 2575 s"],
    "parameters": 180288,
}
TEXT = """
One record:
RL goes from 13 to 54 %, in its runs 51 and 57 %, in 43 minutes, 0.18 M parameters.
The interval is [39, 69]; the paper has 30 %.

| level | stage1 | rl-level2 |
| --- | --- | --- |
| L3 | 13 [8–19] | 54 [39–69] |
"""


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_number_is_in_a_record(text: Path) -> None:
    known = [entry for record in linked_records(text, RECORDS) for entry in read_record(record)]
    assert known
    assert not unfound(text.read_text(), known)


def test_every_record_has_a_page() -> None:
    assert [path for path in RECORDS.iterdir() if path.is_dir() and not (path / "README.md").is_file()] == []


def test_a_planted_wrong_number_is_named() -> None:
    assert not unfound(TEXT, list(entries(RECORD)))
    for right, wrong in (
        ("13 to 54 %", "13 to 64 %"),
        ("51 and 57 %", "51 and 47 %"),
        ("43 minutes", "44 minutes"),
        ("0.18 M", "0.25 M"),
        ("[39, 69]", "[29, 69]"),
        ("54 [39–69]", "55 [39–69]"),
        ("13 [8–19]", "54 [39–69]"),  # of another arm
        ("13 to 54", "54 to 39"),
    ):
        assert right in TEXT
        assert unfound(TEXT.replace(right, wrong), list(entries(RECORD)))
