"""How entry points read settings and tell of errors."""

import subprocess
import sys
from dataclasses import dataclass, field, fields

import pytest
from omegaconf import MISSING

from compositionality.config.cli import help_text, parse
from compositionality.data.create_problems import problem_settings
from compositionality.errors import UserError
from compositionality.tasks.registry import all_tasks


@dataclass
class Settings:
    output: str = MISSING
    count: int = 3
    levels: list[int] = field(default_factory=lambda: [1])


def test_overrides_become_a_typed_object() -> None:
    settings = parse(Settings, ["output=here", "levels=[1,2]"])
    assert settings == Settings(output="here", count=3, levels=[1, 2])


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ([], "output"),
        (["output=x", "colour=red"], "colour"),
        (["output=x", "count=many"], "many"),
        (["output=x", "levels=[1"], "levels"),
    ],
)
def test_p18_bad_settings_are_one_line(overrides: list[str], named: str) -> None:
    with pytest.raises(UserError, match=named) as caught:
        parse(Settings, overrides)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("task", list(all_tasks()))
def test_every_task_shows_its_options(task: str) -> None:
    schema = problem_settings([f"task={task}", "--help"])
    shown = help_text(schema, "Makes problems.")
    assert all(field.name in shown for field in fields(schema))


def test_help_lists_every_setting() -> None:
    shown = help_text(Settings, "Does a thing.")
    assert all(name in shown for name in ("Does a thing.", "output", "required", "count", "levels"))


def test_user_errors_exit_with_2_and_one_line() -> None:
    code = (
        "from compositionality.config.cli import with_errors_in_one_line\n"
        "from compositionality.errors import UserError\n"
        "def body():\n    raise UserError('file.parquet: row 3: mend it')\n"
        "with_errors_in_one_line(body)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: file.parquet: row 3: mend it\n"


def test_a_reader_that_stops_reading_is_no_error() -> None:
    """As ``… --help | head -1`` does."""
    command = [sys.executable, "examples/evaluate.py", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141
