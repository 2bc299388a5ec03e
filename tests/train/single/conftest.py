"""A tiny model that solves some problems of level 1 and fewer of level 2, and the problems."""

from pathlib import Path

import pytest
from assets import taught


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model/, train.parquet and validation.parquet."""
    return taught(tmp_path_factory.mktemp("small"), {"train": 120, "validation": 24}, steps=150, feed_forward=64)
