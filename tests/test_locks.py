"""The lock files: what each set-up installs is complete, since it is installed without resolving dependencies."""

import re
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(name: str) -> set[str]:
    return {canonical(pin.split("==")[0]) for pin in (ROOT / f"requirements-{name}.lock").read_text().split()}


def missing(present: set[str]) -> Iterator[str]:
    """What the installed packages among ``present`` require and ``present`` lacks."""
    for package in distributions():
        if canonical(package.metadata["Name"]) in present:
            for requirement in map(Requirement, package.requires or []):
                wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
                if wanted and canonical(requirement.name) not in present:
                    yield f"{package.metadata['Name']} requires {requirement}"


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_small_and_the_test_packages_are_complete(device: str) -> None:
    """What ``bash bash/setup.sh --dev`` installs, and bash/test.sh --fast uses."""
    assert not list(missing(locked(f"{device}-small") | locked("dev")))
    assert not list(missing(locked(f"{device}-small")))
