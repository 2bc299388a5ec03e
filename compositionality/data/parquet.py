"""Read and write parquet (read JSON lines too), with errors that name the file and the fix."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.data.json_files import parse_json_object, read_text
from compositionality.errors import UserError

JSON_LINES = ".jsonl"


def read_table(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    optional: Sequence[str] = (),
    types: pa.Schema | None = None,
    gaps: Sequence[str] = (),
    fix: str = "",
) -> pa.Table:
    """Read a parquet file, or one of JSON lines (NAME.jsonl).

    ``columns`` are required, ``optional`` ones are read if present. Columns in ``types`` are cast to these, and may
    not have empty cells unless they are in ``gaps``. ``fix`` ends the message for a missing column. UserError for a
    missing, damaged or empty file or column, and for a wrong type.
    """
    with _readable(path):
        lines = _read_json_lines(path) if path.suffix == JSON_LINES else None
        schema = pq.read_schema(path) if lines is None else lines.schema
        if repeated := [name for name in schema.names if schema.names.count(name) > 1]:
            raise UserError(f"{path}: has two columns {repeated[0]}; rename one")
        missing = [name for name in columns or () if name not in schema.names]
        if missing:
            raise UserError(f"{path}: has no column {', '.join(missing)}; it has {', '.join(schema.names)}{fix}")
        names = [*columns, *(name for name in optional if name in schema.names)] if columns else None
        table = pq.read_table(path, columns=names) if lines is None else lines.select(names or schema.names)
    if table.num_rows == 0:
        raise UserError(f"{path}: has no rows")
    return _typed(path, table, types, gaps) if types else table


def check_file(path: Path) -> None:
    """Raise UserError if there is no file at ``path``, or a folder."""
    if not path.exists():
        raise UserError(f"{path}: no such file; run the step that makes it or correct the path")
    if not path.is_file():
        raise UserError(f"{path}: not a file; give a parquet or {JSON_LINES} file")


def column_names(path: Path) -> list[str]:
    with _readable(path):
        return list((_read_json_lines(path).schema if path.suffix == JSON_LINES else pq.read_schema(path)).names)


def count_rows(path: Path) -> int:
    with _readable(path):
        return int(_read_json_lines(path).num_rows if path.suffix == JSON_LINES else pq.read_metadata(path).num_rows)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise UserError for a file that is not there, is damaged, or is none of its kind."""
    check_file(path)
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        if getattr(error, "errno", None):  # of the system, not of what the file holds
            raise
        kind = "JSON lines" if path.suffix == JSON_LINES else "parquet"
        raise UserError(
            f"{path}: not a readable {kind} file; give one (.parquet or .jsonl), or make a truncated one again"
        ) from error


def _read_json_lines(path: Path) -> pa.Table:
    """Return a column for each key of the objects, one per line. UserError names a damaged line or a mixed column."""
    fix = "correct that line"
    lines = enumerate(read_text(path, fix).split("\n"), start=1)
    rows = [parse_json_object(line, f"{path}: line {number}", fix) for number, line in lines if line.strip()]
    if not rows:
        raise UserError(f"{path}: has no rows")
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        try:
            columns[name] = pa.array([row.get(name) for row in rows])
        except (ValueError, TypeError, OverflowError) as error:
            reason = " ".join(str(error).split())[:100]
            raise UserError(f"{path}: column {name}: has values of different types ({reason}); correct it") from error
    return pa.table(columns)


def _typed(path: Path, table: pa.Table, types: pa.Schema, gaps: Sequence[str]) -> pa.Table:
    for number, name in enumerate(table.column_names):
        if name not in types.names:
            continue
        kind = types.field(name).type
        try:
            column = table[name].cast(kind)
        except pa.ArrowException as error:
            raise UserError(f"{path}: column {name} is {table[name].type}, not {kind}; make it again") from error
        if column.null_count and name not in gaps:
            raise UserError(f"{path}: column {name} has {column.null_count} empty cells; make it again")
        table = table.set_column(number, name, column)
    return table


def write_table(table: pa.Table, path: Path) -> None:
    """Write a parquet file; call it on a temporary path (see ``artefact.new_artefact``)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd")
