"""Every row of instructions.yaml holds, and the page is rendered from it.

Scripts, keys, tests and records exist; commands pass every check that their start makes, or are refused in their line.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from bash_runs import OF_A_PERSON, warm_python
from instructions import PAGE, RENDER, ROOT, Command, Part, Row, command, decision, load, render, rows
from test_readmes import names

from compositionality.config.cli import parse
from compositionality.config.profile import load_profile, schema_of, use_device
from compositionality.config.verbs import VERBS
from compositionality.data.create_problems import check as check_problems
from compositionality.data.create_problems import problem_settings
from compositionality.errors import UserError
from compositionality.study.model import Replicate
from compositionality.study.run import RunStudySettings, run_study
from compositionality.study.steps import IS_STEP_WORD, Step
from compositionality.tasks.igsm import generate
from compositionality.validation import keys_of

SYSTEMS = load()
ROWS = list(rows(SYSTEMS))
CHECKED = [(part, row) for _, part, row in ROWS if row.dry_run or row.refused]


def marked(part: Part, row: Row) -> object:
    """A row as a parameter, with the marks that it asks for."""
    marks = [getattr(pytest.mark, name) for name in ("full", "slow") if getattr(row, name)]
    return pytest.param(part, row, marks=marks, id=f"{row.command or part.behind}"[:90])


@pytest.fixture(scope="module", autouse=True)
def few_draws() -> Iterator[None]:
    """How often iGSM's answers come is counted in fewer problems of each level, which takes most of a check's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate, "_SAMPLE", 60)
        generate.answer_shares.cache_clear()
        yield
    generate.answer_shares.cache_clear()


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no input is but what is committed, whatever else lies in the repository; no variable of the caller's."""
    monkeypatch.chdir(tmp_path)
    for name in ("bash", "compositionality"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in (*OF_A_PERSON, "RANK", "WORLD_SIZE", "COMPOSITIONALITY_DEVICE"):
        monkeypatch.delenv(name, raising=False)


def variables(asked: Command, row: Row) -> dict[str, str]:
    """Those of a command, and the machine that its profile is for; one seed, since all seeds' commands are alike."""
    machine = {"N_GPUS": "8"} if row.dry_run == "paper" else {}
    return {"PROFILE": row.dry_run or "tiny", "SEEDS": "1", "CUDA_VISIBLE_DEVICES": "", **machine, **asked.variables}


@cache
def commands_of(script: str, words: tuple[str, ...], given: tuple[tuple[str, str], ...]) -> list[list[str]]:
    """The commands of a script with these variables, as it prints them."""
    own = {**os.environ, **dict(given), "PYTHON": "true", "DRY_RUN": "1"}
    done = subprocess.run(["bash", script, *words], cwd=ROOT, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [shlex.split(line) for line in done.stderr.splitlines() if line.startswith("+ ")]
    return [[Path(words[2]).stem, *(word for word in words[3:] if word != "--dry-run")] for words in lines]


def check(name: str, words: list[str]) -> None:
    """Check a command as its start would. UserError as at its start."""
    profile = next((word[8:] for word in words if word.startswith("profile=")), "")
    if profile:
        use_device(load_profile(profile))
    if name == "run_study":
        own = [word for word in words if IS_STEP_WORD.match(word)]
        others = [word for word in words if word not in own and not word.startswith("step=")]
        run_study(replace(parse(RunStudySettings, others), dry_run=True), own)
    elif name == "create_problems" and not any(word.startswith("set=") for word in words):
        check_problems(parse(problem_settings(words), words))
    else:
        Step("checked", Replicate("s", 0), profile, name, words=tuple(words)).check()


def check_row(part: Part, row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check every command of a row; words alone stand behind the part's command."""
    asked = command(part.behind or row.command)
    own = tuple(row.command.split()) if part.behind else ()
    given = variables(asked, row)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    if asked.script.startswith("bash/scaling_law/"):  # it has scripts of several steps, which are started
        monkeypatch.setenv("PYTHON", warm_python())
    if asked.program == "bash":
        found = commands_of(asked.script, asked.words, tuple(given.items()))  # once for all rows of a part
        assert found or "single_file" in asked.script  # which checks its commands itself
        for name, *words in found:
            check(name, [*words, *own])
    else:
        check(Path(asked.script).stem, [*asked.words, *own])


@pytest.mark.parametrize(("part", "row"), [marked(part, row) for part, row in CHECKED if row.dry_run])
def test_the_command_passes_every_check_of_its_start(part: Part, row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    if row.full:
        pytest.importorskip("verl")
    check_row(part, row, monkeypatch)


@pytest.mark.parametrize(("part", "row"), [marked(part, row) for part, row in CHECKED if row.refused])
def test_p18_the_command_is_refused_in_its_line(part: Part, row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=re.escape(row.refused)):
        check_row(part, row, monkeypatch)


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


def test_a_decision_that_the_correction_changes_is_told_with_it() -> None:
    told = {row.claim: decision(row) for _, _, row in ROWS if row.claim}
    assert (told["H2"], told["H2-deeper"]) == ("supported, after Holm undecided", "undecided")


def known_keys() -> set[str]:
    """Keys of all entry points, and of every task's problems."""
    names = VERBS.keys() - {"create_problems", "run_study"}
    tasks = [f"create_problems/{task}" for task in ("string", "countdown", "igsm")]
    return {key for name in (*names, *tasks) for key in keys_of(schema_of(name))}


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
