"""Errors of the operating system in one line, with what to do: a full disk, a read-only folder, no memory."""

import errno
import os
from pathlib import Path

from compositionality.errors import file_in_path

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
    reason += next(
        (f"; {fix}" for code, fix in FIXES.items() if code == error.errno or os.strerror(code) in reason), ""
    )
    return f"{' and '.join(names)}: {reason}" if names else reason
