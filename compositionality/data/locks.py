"""Locks that end with their process, on file systems with flock and without."""

import errno
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from compositionality.errors import UserError

NO_FLOCK = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""What flock answers where the file system has none (Lustre without -o flock, some NFS)."""


def acquire(path: Path, owner: Path, busy: str, wait: float = 0.0) -> BaseFileLock:
    """Return the lock ``path``, held; without flock the file ``owner`` with the process. UserError ``busy`` if taken.

    ``wait``: seconds until then. An ``owner`` that a process left behind is taken over on the machine where that ran.
    """
    lock: BaseFileLock = FileLock(path, timeout=wait, fallback_to_soft=False)
    try:
        lock.acquire()
        return lock
    except Timeout as error:
        if not path.exists():  # filelock takes a folder that it cannot write to for a lock that others hold
            path.touch()
        raise UserError(busy) from error
    except OSError as error:
        if error.errno not in NO_FLOCK:
            raise
    lock = SoftFileLock(owner, timeout=max(wait, 1))  # an owner that is gone is found out at the second try
    try:
        lock.acquire()
    except Timeout as error:
        process = " on ".join(owner.read_text().split()[:2]) if owner.is_file() else "gone by now"
        raise UserError(f"{busy}, or delete {owner} if it is gone (process {process})") from error
    return lock
