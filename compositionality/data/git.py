"""Facts from git: the commit of a file, and changes since."""

import subprocess
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from compositionality import __version__
from compositionality.errors import UserError

CODE = ("bash", "compositionality", "examples")
"""Folders of the repository that results depend on."""


def commit_of(path: Path) -> str:
    """Return the commit that last changed a file. UserError if the file is not committed, or changed since."""
    _needs_repository(path.parent)
    commit = _git(path.parent, "log", "-1", "--format=%H", "--", path.name)
    if not commit:
        raise UserError(f"{path}: not committed; commit it first, so that its commit is older than the results")
    if changed := changed_files(path.parent, [path.name]):
        raise UserError(f"{path}: changed since its commit {commit[:12]} ({changed[0]}); commit it, or restore it")
    return commit


def changed_files(folder: Path, names: Sequence[str]) -> list[str]:
    """Return the files below these places in ``folder`` that differ from the last commit or are new."""
    _needs_repository(folder)
    lines = _git(folder, "status", "--porcelain", "--untracked-files=all", "--", *names) or ""
    return [line.strip() for line in lines.splitlines()]


def commit_date(commit: str) -> str:
    """Return the day of a commit of this repository, 2026-01-31; empty if the commit is not in it."""
    return _git(Path(__file__).parent, "show", "--no-patch", "--format=%cs", commit) or ""


def check_ancestor(folder: Path, commit: str, where: str) -> None:
    """Raise UserError, which begins with ``where``, unless ``commit`` is an ancestor of HEAD."""
    if _git(folder, "merge-base", "--is-ancestor", commit, "HEAD") is None:
        raise UserError(f"{where}: its commit {commit[:12]} is not an ancestor of HEAD; check out a history with it")


def tree_ids(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return git's id at HEAD of each folder below ``folder``; empty if it is not committed."""
    return {name: _git(folder, "rev-parse", f"HEAD:./{name}") or "" for name in names}


def hash_at(path: Path, commit: str) -> str:
    """Return the sha256 of a file in a commit; empty if the commit does not contain it."""
    done = subprocess.run(["git", "show", f"{commit}:./{path.name}"], cwd=path.parent, capture_output=True, check=False)
    return sha256(done.stdout).hexdigest() if done.returncode == 0 else ""


@cache
def code_version() -> str:
    """Return the version of the package, in a repository with the commit, and -dirty if the code differs from it."""
    root = Path(__file__).resolve().parents[2]
    commit = _git(root, "rev-parse", "--short", "HEAD") if (root / ".git").exists() else None
    if not commit:
        return __version__
    return f"{__version__}+{commit}{'-dirty' if changed_files(root, CODE) else ''}"


def _needs_repository(folder: Path) -> None:
    if _git(folder, "rev-parse", "HEAD") is None:
        raise UserError(f"{folder}: not in a git repository with a commit; a registered study needs one")


def _git(folder: Path, *words: str) -> str | None:
    """Return the output of git; None if it fails or is not installed."""
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None
