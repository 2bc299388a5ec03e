"""Markers that hold for whole files, in one place."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LONG = {
    "test_scripts.py": "starts a hundred scripts",
    "test_section43.py": "starts scripts",
    "test_section44.py": "starts scripts",
    "test_section45.py": "starts scripts",
    "test_study.py": "starts scripts",
    "train/single/test_grpo_ranks.py": "GRPO on several processes, again and again",
    "train/single/test_grpo_learning.py": "six runs long enough to learn",
    "train/single/test_grpo_command.py": "runs that are killed and resumed",
}
"""Files with more than ten seconds of processor time: bash/test.sh --fast leaves them out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(TESTS).as_posix() if TESTS in item.path.parents else ""
        if path.startswith("benchmarks/"):
            item.add_marker("benchmark")
        if path in LONG:
            item.add_marker("long")
