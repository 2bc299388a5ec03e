"""Names for checkpoints and problem files, from what the user wrote."""

import re
from collections.abc import Sequence
from pathlib import Path

from compositionality.errors import UserError

_NAMED = re.compile(r"([\w.-]+)[=:](.+)")
# Folders in which a checkpoint lies inside its run: the run's name tells more than theirs.
_INNER_FOLDERS = ("final", "best")


def named_paths(kind: str, entries: Sequence[str]) -> dict[str, str]:
    """Names → paths from ``name=path``, ``name:path`` or a bare path. UserError if two have the same name."""
    if not entries:
        raise UserError(f"{kind}: give at least one, as {kind}=[NAME:PATH,...]")
    named: dict[str, str] = {}
    for entry in entries:
        match = _NAMED.fullmatch(entry)
        name, path = match.groups() if match else (_name_of(Path(entry)), entry)
        if name in named:
            raise UserError(f"{kind}: {named[name]} and {path} are both called {name!r}; write NAME:PATH for one")
        named[name] = path
    return named


def _name_of(path: Path) -> str:
    """``run`` for run/final, ``folder-test`` for folder/test.parquet, else the last part of the path."""
    if path.suffix == ".parquet":
        return "-".join(part for part in (path.parent.name, path.stem) if part)
    return path.parent.name if path.name in _INNER_FOLDERS and path.parent.name else path.name


def with_run_names(entries: Sequence[str]) -> list[str]:
    """NAME:PATH for every entry; a bare path is named after the run's folder, RUN/SECTION/accuracy.json."""
    return [entry if _NAMED.fullmatch(entry) else f"{_run_of(Path(entry))}:{entry}" for entry in entries]


def _run_of(path: Path) -> str:
    folder = path.parent if path.suffix else path
    return re.sub(r"[^\w.-]", "-", folder.absolute().parent.name) or "run"
