"""What ``results/field.md`` says of our measurements stands in the records that it names."""

import json
import re
from pathlib import Path

import pytest

RECORDS = Path(__file__).parents[1] / "results" / "records"
TEXT = (RECORDS.parent / "field.md").read_text(encoding="utf-8").replace("−", "-")
MEASURED = re.findall(r"(composition-\d)[^|`]*? `([^`]+)`: ([+-][\d.]+) \[([-\d.]+), ([-\d.]+)\]", TEXT)


@pytest.mark.parametrize(("record", "comparison", "value", "low", "high"), MEASURED, ids=lambda text: text[:40])
def test_a_figure_is_that_of_the_record(record: str, comparison: str, value: str, low: str, high: str) -> None:
    contents = [json.loads(path.read_text(encoding="utf-8")) for path in (RECORDS / record).rglob("record.json")]
    claims = [claim for content in contents for claim in content.get("claims", [])]
    rows = [row for claim in claims for row in claim["comparisons"]]
    row = next(row for row in rows if row["comparison"].replace("−", "-") == comparison)
    figures = [round(100 * row[key], 1) for key in ("difference", "low", "high")]
    assert figures == [float(figure) for figure in (value, low, high)]


def test_every_bracket_is_looked_up() -> None:
    assert len(MEASURED) == len(re.findall(r"\[[-\d.]+, [-\d.]+\]", TEXT)) >= 7
