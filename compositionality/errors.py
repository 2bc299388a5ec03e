"""Errors in one line without secrets: mistakes that a user can fix, and errors of the operating system."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

SECRET_VARIABLES = ("_API_KEY", "_TOKEN", "PASSWORD")
SHORTEST_SECRET = 6  # shorter values ("none", "EMPTY") mean "no key", and hiding them would hide ordinary words
HIDDEN = "***"
INTERRUPTED = "interrupted; run the same command again to continue"
_USER_OF_URL = re.compile(r"(\b[a-z][a-z0-9+.-]*:/{1,2})[^\s]*@|(?<![\w/.])[^\s/@:'\"]+:[^\s/@]+@", re.IGNORECASE)
_VALUE_OF_QUERY = re.compile(r"([?&][\w.-]+=)[^\s&#\"'<>]+")


class UserError(Exception):
    """Bad input: the message names the file, the row and the fix. Entry points print it and exit with code 2."""

    exit_code = 2


class MissingPackageError(UserError):
    """A package is not installed; the message has the command that installs it."""


def check_installed(package: str, feature: str) -> None:
    """Raise MissingPackageError if ``package``, a part of the full set-up that ``feature`` needs, is not installed."""
    if find_spec(package) is None:  # an import takes seconds for some
        raise MissingPackageError(f"{feature}: the package {package} is not installed; run: bash bash/setup.sh --full")


@contextmanager
def installed(package: str, requirement: str) -> Iterator[None]:
    """Raise UserError with the command that installs ``package`` if an import inside the block fails for lack of it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:
            raise
        raise UserError(f"{package} is not installed; pip install '{requirement}'") from error


def file_in_path(folder: Path, target: Path) -> str:
    """Return what to say of ``target`` if ``folder``, or a parent of it, is a file; empty if none is."""
    file = next((place for place in (folder, *folder.parents) if place.exists() and not place.is_dir()), None)
    return f"{target}: {file} is a file, not a folder; choose another path, or move that file away" if file else ""


def check_can_be_made(target: Path) -> None:
    """Raise UserError for a path at which no result can be: it has no name, or a parent of it is a file."""
    if not target.name:
        raise UserError(f"{target}: not a place for a result; give the path of a file or folder to make")
    if said := file_in_path(target.parent, target):
        raise UserError(said)


def without_secrets(text: str) -> str:
    """Replace users and keys in URLs, and values of ``SECRET_VARIABLES`` (ends of names in the environment), by ***."""
    secrets = {value for name, value in os.environ.items() if name.upper().endswith(SECRET_VARIABLES)}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return public_url(text)


def public_url(text: str) -> str:
    """Replace user and password (http://user:password@host) and the values of queries in URLs by ***."""
    return _VALUE_OF_QUERY.sub(rf"\g<1>{HIDDEN}", _USER_OF_URL.sub(lambda match: f"{match[1] or ''}{HIDDEN}@", text))


# ---- of the operating system: a full disk, a read-only folder, no memory

FIXES = {
    errno.ENOSPC: "free some, or choose another place",
    errno.EROFS: "choose another place",
    errno.EACCES: "choose another place, or change who may read and write there",
    errno.EISDIR: "give a file, not a folder",
    errno.ENAMETOOLONG: "give a shorter one",
    errno.ELOOP: "the link leads back to itself; give another path",
}
"""Advice for an error of the system."""


def system_error(error: OSError | MemoryError) -> str:
    """Return one line for an error of the system: a full disk, a read-only folder, no memory."""
    if isinstance(error, MemoryError):
        return f"out of memory{f' ({error})' if str(error) else ''}; free some, or use smaller batches or files"
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    if isinstance(error, FileExistsError | NotADirectoryError) and names:
        path = Path(names[0])
        if said := file_in_path(path, path):
            return said
    if isinstance(error, FileNotFoundError) and names and names[0].endswith(".lock"):  # made first, beside a result
        return f"{names[0]}: no file can be made there; choose another path"
    reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
    fixes = [fix for code, fix in FIXES.items() if code == error.errno or os.strerror(code) in reason]
    reason = "; ".join([reason, *fixes[:1]])
    return f"{' and '.join(names)}: {reason}" if names else reason
