"""Adapters import their library only when they are imported, and say how to get one that is missing."""

import re
import subprocess
import sys

import pytest

from compositionality.errors import UserError, installed


def test_a_missing_package_is_one_line_with_the_command() -> None:
    told = r"^no_such_library is not installed; pip install 'no_such_library>=1'$"
    with pytest.raises(UserError, match=told), installed("no_such_library", "no_such_library>=1"):
        import no_such_library.part  # noqa: F401


def test_what_a_library_itself_lacks_is_not_hidden() -> None:
    with pytest.raises(ModuleNotFoundError), installed("json", "json"):
        import no_such_library  # noqa: F401


@pytest.mark.parametrize(
    ("module", "package"),
    [("inspect_task", "inspect_ai"), ("lighteval_task", "lighteval"), ("verifiers_env", "verifiers")],
)
def test_an_adapter_without_its_library(module: str, package: str) -> None:
    code = f"import sys; sys.modules['{package}'] = None; import compositionality.adapters.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    told = rf"UserError: {package} is not installed; pip install '{package}>=[\d.]+'$"
    assert re.search(told, done.stderr.splitlines()[-1])
