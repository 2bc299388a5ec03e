"""What git says of a file: its commit, changes since, ancestry."""

import subprocess
from pathlib import Path

import pytest

from compositionality.data.git import changed_files, check_ancestor, commit_of
from compositionality.errors import UserError

WHO = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *WHO, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, message: str) -> str:
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def test_a_files_commit_is_the_last_that_changed_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    path = tmp_path / "claims.yaml"
    path.write_text("a")
    with pytest.raises(UserError, match="not in a git repository with a commit"):
        commit_of(path)
    first = commit(tmp_path, "first")
    (tmp_path / "other").write_text("b")
    with pytest.raises(UserError, match=r"other: not committed"):
        commit_of(tmp_path / "other")
    assert changed_files(tmp_path, ["other", "claims.yaml"]) == ["?? other"]
    commit(tmp_path, "second")
    assert commit_of(path) == first
    path.write_text("c")
    with pytest.raises(UserError, match=rf"claims.yaml: changed since its commit {first[:12]}"):
        commit_of(path)
    assert commit_of(tmp_path / "other") != first


def test_a_commit_of_another_history_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("a")
    first = commit(tmp_path, "first")
    check_ancestor(tmp_path, first, "study")
    git(tmp_path, "checkout", "-q", "--orphan", "new")
    (tmp_path / "a").write_text("b")
    commit(tmp_path, "elsewhere")
    with pytest.raises(UserError, match=f"study: its commit {first[:12]} is not an ancestor"):
        check_ancestor(tmp_path, first, "study")
