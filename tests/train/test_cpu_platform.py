"""Our CPU platform for verl: there when asked for, without any effect otherwise."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.full

STATE = """
import importlib.metadata, os, torch.distributed as dist
before = (importlib.metadata.version, dist.init_process_group, os.environ.get("VERL_ENGINE_DEVICE"))
import verl
from verl.plugin.platform import PlatformRegistry, get_platform
after = (importlib.metadata.version, dist.init_process_group, os.environ.get("VERL_ENGINE_DEVICE"))
registered = PlatformRegistry.get("cpu")
print(registered and registered.__module__, get_platform().device_name if registered else "", before == after)
"""


def ask(code: str, **variables: str) -> str:
    """The last line printed by ``code`` in a fresh interpreter."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VERL")}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**kept, **variables}, capture_output=True, text=True, timeout=600, check=True
    )
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "None  True"),
        ({"VERL_PLATFORM": "cpu"}, "compositionality.train.verl.cpu_platform cpu False"),
    ],
)
def test_verl_sees_the_cpu_platform_only_when_asked(variables: dict[str, str], expected: str) -> None:
    assert ask(STATE, **variables) == expected


def test_a_broken_plugin_is_an_error_and_not_silence() -> None:
    with pytest.raises(subprocess.CalledProcessError) as failure:
        ask("import verl", VERL_PLATFORM="cpu", VERL_USE_EXTERNAL_MODULES="compositionality.train.verl.no_such_module")
    assert "no_such_module" in failure.value.stderr


def test_vllm_plugin_changes_nothing_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    from compositionality.train.verl import vllm_cpu

    monkeypatch.delenv("VERL_PLATFORM", raising=False)
    monkeypatch.setitem(sys.modules, "vllm", None)  # importing vllm would now raise
    vllm_cpu.keep_weights()
