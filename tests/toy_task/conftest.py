"""A folder of installed packages for one test, in which tasks can be registered."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from toy_registry import HERE

from compositionality.tasks import registry


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder on the path of this process and of those that it starts; tasks are looked for anew."""
    path = tmp_path / "site"
    path.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(HERE), str(path)])
    inherited = filter(None, [os.environ.get("PYTHONPATH")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(path), *inherited]))
    _forget()
    yield path
    _forget()


def _forget() -> None:
    registry.all_tasks.cache_clear()
    registry.task_of.cache_clear()
