"""Overrides of a script of several steps: each reaches the steps that know it, and must be known by one.

The scripts say themselves what their steps are: with LIST_STEPS they print the commands that they would run.
"""

import difflib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compositionality.config.cli import SWITCHES, parse, split_layers
from compositionality.config.problem_sets import set_settings
from compositionality.config.profile import schema_of
from compositionality.errors import UserError
from compositionality.ranges import keys_of, kind_of

ROOT = Path(__file__).parents[2]
OF_EVERY_STEP = ("--cfg", "--dry-run")
FROM_THE_SCRIPT = ("profile", "experiment")
OUTPUTS = ("output", "trainer.output")


@dataclass(frozen=True)
class ScriptStep:
    """One command of a script: an entry point with its words."""

    entry_point: str
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """As bash/env.sh's ``run`` calls it: problems have other settings for each task and set."""
        made = next((word for word in self.words if word.startswith(("task=", "set="))), "")
        return f"{self.entry_point}/{made}" if made else self.entry_point

    def schema(self) -> type[Any]:
        """The dataclass of its settings."""
        return set_settings(self.words) if self.entry_point == "create_problems" else schema_of(self.entry_point)


def steps_of(command: Sequence[str], variables: Mapping[str, str]) -> list[ScriptStep]:
    """The steps that a command of a script would run. UserError with its own words where it would fail."""
    listing = {**variables, "DRY_RUN": "1", "LIST_STEPS": "1", "LEFT_OUT": "", "TIMES": "", "DRY_STEPS": ""}
    done = subprocess.run(command, cwd=ROOT, env=listing, capture_output=True, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines() or [f"exit code {done.returncode}"]
        raise UserError(next((line[7:] for line in lines if line.startswith("error: ")), lines[-1]))
    return listed(done.stdout)


def listed(content: bytes) -> list[ScriptStep]:
    """The steps that bash/functions.sh has listed: ``+``, the entry point and its words, each with a NUL behind it."""
    steps: list[list[str]] = []
    for word in map(os.fsdecode, content.split(b"\0")[:-1]):
        if word == "+":
            steps.append([])
        else:
            steps[-1].append(word)
    return [ScriptStep(name, tuple(words)) for name, *words in steps]


def left_out(overrides: Sequence[str], steps: Sequence[ScriptStep], script: str) -> str:
    """``STEP:KEY …``, the keys that bash/env.sh's ``run`` leaves out of a step, as the step does not have them.

    UserError for a key that no step has, for a value that one of them cannot take, and for one output of several steps.
    """
    schemas = {step: step.schema() for step in steps}
    for word in dict.fromkeys(overrides):
        _check_override(word, schemas, script)
    unknown = {step: {_head(word) for word in step.words if not _knows(schemas[step], word)} for step in steps}
    valued = {word for word in overrides if "=" in word}
    reached = {(step.name, frozenset(valued & set(step.words))): step for step in reversed(steps)}
    for (_, given), step in reached.items():
        if given:
            _check_values(step, [word for word in step.words if _head(word) not in unknown[step]])
    return " ".join(sorted({f"{step.name}:{head}" for step in steps for head in unknown[step]}))


def _check_override(word: str, schemas: Mapping[ScriptStep, type[Any]], script: str) -> None:
    if word in OF_EVERY_STEP or not ("=" in word or word.startswith("-")):  # the name of an arm
        return
    key = _key(word)
    if key in FROM_THE_SCRIPT:
        raise UserError(f"{word}: the steps of {script} have their own; give PROFILE=NAME before the command")
    reached = [step for step, schema in schemas.items() if word in step.words and _knows(schema, word)]
    if not reached:
        known = sorted({name for schema in set(schemas.values()) for name in keys_of(schema)})
        near = difflib.get_close_matches(key, known, n=3) or [name for name in known if name.endswith(f".{key}")]
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UserError(f"{word}: no step of {script} has this setting{hint}")
    own = {other for step in reached for other in step.words if _key(other) == key and other != word}
    if key in OUTPUTS and len(own) > 1:
        folders = "DATA_DIR, CKPT_DIR or RESULTS_DIR, or a script's OUTPUT"
        raise UserError(
            f"{word}: steps of {script} that write to places of their own; give {folders} before the command"
        )


def _check_values(step: ScriptStep, words: Sequence[str]) -> None:
    schema = step.schema()
    given = [SWITCHES.get(word, word) for word in words if word not in OF_EVERY_STEP]
    overrides, layers = split_layers(schema, given, getattr(schema, "entry_point", step.entry_point))
    try:
        parse(schema, overrides, layers)
    except UserError as error:
        raise UserError(f"{error} (examples/{step.entry_point}.py)") from error


def _head(word: str) -> str:
    return word.partition("=")[0]


def _key(word: str) -> str:
    return _head(SWITCHES.get(word, word)).lstrip("+~")


def _knows(schema: type[Any], word: str) -> bool:
    key = _key(word)
    return word in OF_EVERY_STEP or key in FROM_THE_SCRIPT or kind_of(schema, key) is not None
