"""Every row of instructions.yaml holds, and the page is rendered from it.

Scripts, keys, tests and records exist; commands pass every check that their start makes, or are refused in their line.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from bash_runs import OF_A_PERSON
from compositionality.study.dry_run import STEPS, check_steps
from compositionality.study.environment import environment
from compositionality.study.overrides import ScriptStep, listed
from instructions import PAGE, RENDER, ROOT, Command, Part, Row, command, decision, load, render, rows
from test_readmes import names

from compositionality.config.profile import SCHEMAS, schema_of
from compositionality.ranges import keys_of

SYSTEMS = load()
ROWS = list(rows(SYSTEMS))
CHECKED = [(part, row) for _, part, row in ROWS if row.dry_run or row.refused]


def marked(part: Part, row: Row) -> object:
    """A row as a parameter, with the marks that it asks for."""
    marks = [getattr(pytest.mark, name) for name in ("full", "slow") if getattr(row, name)]
    return pytest.param(part, row, marks=marks, id=f"{row.command or part.behind}"[:90])


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no input is but what is committed, whatever else lies in the repository; no variable of the caller's."""
    monkeypatch.chdir(tmp_path)
    for name in ("bash", "compositionality"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in (*OF_A_PERSON, "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def settings(asked: Command, row: Row) -> dict[str, str]:
    """Variables of a command; in rows that are not slow those of bash/env.sh too, as for a script within another."""
    machine = {"N_GPUS": "8"} if row.dry_run == "paper" else {"DEVICE": "cpu"}
    variables = {"PROFILE": row.dry_run or "tiny"} | machine | asked.variables
    if row.slow or asked.program != "bash":
        return variables
    section = re.search(r"^export SECTION=(\w+)", (ROOT / asked.script).read_text(), re.MULTILINE)
    variables |= {"SECTION": section[1]} if section else {}
    return variables | of_the_scripts(tuple(variables.items()))


@cache
def of_the_scripts(given: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """What bash/env.sh would ask a process of its own for."""
    return environment(dict(given))


@cache
def steps(
    program: str, script: str, words: tuple[str, ...], variables: tuple[tuple[str, str], ...]
) -> list[ScriptStep]:
    """What a command would run; of a script as it says itself, in a dry run."""
    if program != "bash":
        return [ScriptStep(Path(script).stem, words)]
    with tempfile.NamedTemporaryFile() as file:
        dry = {"DRY_RUN": "1", STEPS: file.name, "PYTHON": sys.executable}
        done = subprocess.run(
            ["bash", script, *words], cwd=ROOT, env={**os.environ, **dict(variables), **dry},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return listed(Path(file.name).read_bytes())


def checked_steps(part: Part, row: Row) -> tuple[list[ScriptStep], dict[str, str]]:
    """The steps of a row's command with their variables; words alone stand behind the part's command."""
    asked = command(part.behind or row.command)
    words = tuple(row.command.split()) if part.behind else ()
    variables = settings(asked, row)
    if row.slow:
        return steps(asked.program, asked.script, (*asked.words, *words), tuple(variables.items())), variables
    found = steps(asked.program, asked.script, asked.words, tuple(variables.items()))  # once for all rows of a part
    return [ScriptStep(step.entry_point, (*step.words, *words)) for step in found], variables


@pytest.mark.parametrize(("part", "row"), [marked(part, row) for part, row in CHECKED if row.dry_run])
def test_the_command_passes_every_check_of_its_start(part: Part, row: Row) -> None:
    if row.full:
        pytest.importorskip("verl")
    found, variables = checked_steps(part, row)
    assert found or row.slow  # a script that does without bash/env.sh checks its commands itself
    assert check_steps(found, variables) == 0


@pytest.mark.parametrize(("part", "row"), [marked(part, row) for part, row in CHECKED if row.refused])
def test_p18_the_command_is_refused_in_its_line(part: Part, row: Row, capsys: pytest.CaptureFixture[str]) -> None:
    found, variables = checked_steps(part, row)
    assert check_steps(found, variables) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert row.refused in said


def commands() -> Iterator[Command]:
    """Every whole command of the table."""
    for _, part, row in ROWS:
        if part.behind or row.command:
            yield command(part.behind or row.command)


def test_every_script_exists() -> None:
    assert not [one.script for one in commands() if not (ROOT / one.script).is_file()]


def test_every_test_and_record_exists() -> None:
    tests = [row.test.split("::") for _, _, row in ROWS if row.test]
    assert not [f"{path}::{name}" for path, name in tests if name not in names(path)]
    assert not [row.record for _, _, row in ROWS if row.record and not (ROOT / row.record).is_file()]
    assert all(decision(row) for _, _, row in ROWS if row.claim)


def known_keys() -> set[str]:
    """Keys of all entry points, and of every task's problems."""
    tasks = [f"create_problems/{task}" for task in ("string", "countdown", "igsm")]
    return {key for entry_point in (*SCHEMAS, *tasks) for key in keys_of(schema_of(entry_point))}


def test_every_key_of_a_note_exists() -> None:
    keys = known_keys()
    text = " ".join(f"{row.note} {row.missing}" for _, _, row in ROWS)
    files = r"json|jsonl|parquet|yaml|py|md|sh"
    named = re.findall(rf"`([a-z_.]+)=|`((?!\w+\.(?:{files})`)[a-z_]+(?:\.[a-z_]+)+)`", text)
    assert len(named) > 9
    assert not [key for key in map("".join, named) if key not in keys and not key.startswith("verl.")]


def test_the_page_is_rendered_from_the_table() -> None:
    assert PAGE.read_text() == render(SYSTEMS), f"run: {RENDER}"


def test_a_row_is_held_in_one_way() -> None:
    for given in ({}, {"dry_run": "tiny", "missing": "it is"}):
        with pytest.raises(ValueError, match="give one of dry_run, test, record, refused, missing"):
            Row(there="x", command="bash x.sh", **given)
