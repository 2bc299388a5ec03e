"""The page's tables as CSV."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from compositionality.report.page.inputs import AUDIT, COUNTDOWN, FAILURES, PASS_AT_K, SEEDS, Inputs

ACCURACY = (
    *("model", "functions", "level", "accuracy", "low", "high", "interval", "problems_low", "problems_high", "values"),
    *("n_seeds", "n_problems", "problems"),
)
DIFFERENCES = ("model", "base", "functions", "level", "difference", *ACCURACY[4:])
CURVES = ("model", "problems", "functions", "level", "n_problems", "k", "pass_at_k", "low", "high", "pass_hat_k")
PAIRS = ("model", "base", "problems", "functions", "level", "n_problems", "k", "difference", "low", "high")
Row = Mapping[str, Any]


def csv_of(rows: Iterable[Row], columns: Iterable[str] = ()) -> bytes:
    """A CSV file: these columns, or those of the rows as they come; lists as JSON."""
    rows = list(rows)
    names = list(columns) or list(dict.fromkeys(name for row in rows for name in row))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(row.get(name)) for name in names} for row in rows)
    return stream.getvalue().encode()


def tables_of(inputs: Inputs) -> dict[str, tuple[bytes, tuple[str, ...]]]:
    """CSV files of the inputs that are tables already: name → bytes and the inputs they are made from."""
    found: dict[str, tuple[bytes, tuple[str, ...]]] = {}
    for name, source, key, columns in (
        ("accuracy", SEEDS, "accuracy", ACCURACY),
        ("differences", SEEDS, "differences", DIFFERENCES),
        ("countdown", COUNTDOWN, "accuracy", ACCURACY),
        ("countdown_differences", COUNTDOWN, "differences", DIFFERENCES),
        ("failure_modes", FAILURES, "shares", ()),
        ("failures_by_function", FAILURES, "by_function", ()),
        ("failures_by_pair", FAILURES, "by_pair", ()),
    ):
        if source in inputs:
            found[name] = (csv_of(inputs.json(source)[key], columns), (source,))
    if PASS_AT_K in inputs:
        curves = inputs.json(PASS_AT_K)
        found["passk"] = (csv_of(_by_k(curves["curves"], CURVES[6:]), CURVES), (PASS_AT_K,))
        found["passk_differences"] = (csv_of(_by_k(curves["differences"], PAIRS[7:]), PAIRS), (PASS_AT_K,))
    if AUDIT in inputs:
        audited = [{"file": file, **level} for file, levels in inputs.json(AUDIT).items() for level in levels]
        found["data"] = (csv_of(audited), (AUDIT,))
    return found


def _by_k(rows: Iterable[Row], lists: tuple[str, ...]) -> Iterable[Row]:
    """One row a k from rows that hold lists over k."""
    for row in rows:
        for place, k in enumerate(row["k"]):
            yield {**row, "k": k, **{name: row[name][place] for name in lists}}


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value
