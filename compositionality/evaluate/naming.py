"""Names for checkpoints and problem files, from the user's entries."""

import re
from collections.abc import Sequence
from pathlib import Path

from compositionality.errors import UserError

_NAMED = re.compile(r"[\w.-]+[=:].+")
_PLAIN = re.compile(r"[\w-][\w.-]*")
# Folders of checkpoints inside a run: the run's name says more than theirs.
_INNER_FOLDERS = ("final", "best")


def named_paths(kind: str, entries: Sequence[str]) -> dict[str, str]:
    """Return paths by name, from ``name=path``, ``name:path`` or bare paths; names become folders of the results."""
    if not entries:
        raise UserError(f"{kind}: give at least one, as {kind}=[NAME:PATH,...]")
    named: dict[str, str] = {}
    for entry in entries:
        if _NAMED.fullmatch(entry) or (re.search("[=:]", entry) and not Path(entry).exists()):
            name, path = re.split("[=:]", entry, maxsplit=1)
        else:
            name, path = _name_of(Path(entry)), entry
        if not path:
            raise UserError(f"{kind}: {entry}: no path after the name; write NAME:PATH")
        check_name(kind, name)
        if name in named:
            raise UserError(f"{kind}: {named[name]} and {path} have the same name {name!r}; write NAME:PATH for one")
        named[name] = path
    return named


def check_name(kind: str, name: str) -> None:
    """Raise UserError for a name that is unsafe as a file name."""
    if not _PLAIN.fullmatch(name):
        raise UserError(f"{kind}: name {name!r}: only letters, digits, . _ -, and no . in front; write NAME:PATH")


def _name_of(path: Path) -> str:
    """Return ``run`` for run/final, ``folder-test`` for folder/test.parquet, else the path's last part."""
    if path.suffix == ".parquet":
        parts = [part for part in (path.parent.name, path.stem) if part]
    else:
        parts = [path.parent.name if path.name in _INNER_FOLDERS and path.parent.name else path.name]
    return "-".join(re.sub(r"[^\w.-]", "-", part) for part in parts)


def add_run_names(entries: Sequence[str]) -> list[str]:
    """Return NAME:PATH for every entry; a bare path gets the name of its run, RUN/SECTION/results.parquet."""
    named = []
    for entry in entries:
        folder = Path(entry).parent if Path(entry).suffix else Path(entry)
        run = re.sub(r"[^\w.-]", "-", folder.absolute().parent.name) or "run"
        named.append(entry if _NAMED.fullmatch(entry) else f"{run}:{entry}")
    return named
