"""Marks every test of this folder ``benchmark``: bash/test.sh runs them with --slow only."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("benchmark")
