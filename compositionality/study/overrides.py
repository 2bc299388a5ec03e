"""Overrides of a script of several steps: each reaches the steps that know it, and must be known by one.

The scripts say themselves what their steps are: with LIST_STEPS they print the commands that they would run.
"""

import difflib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_origin

from compositionality.config.cli import SWITCHES, parse, split_layers
from compositionality.config.profile import schema_of
from compositionality.data.create_problems import problem_settings
from compositionality.errors import UserError

ROOT = Path(__file__).parents[2]
OF_EVERY_STEP = ("--cfg", "--dry-run")
FROM_THE_SCRIPT = ("profile", "experiment")
OUTPUTS = ("output", "trainer.output")


@dataclass(frozen=True)
class Step:
    """One command of a script: an entry point with its words."""

    entry_point: str
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """As bash/env.sh's ``run`` calls it: problems have other settings for each task."""
        task = next((word.removeprefix("task=") for word in self.words if word.startswith("task=")), "")
        return f"{self.entry_point}/{task}" if task else self.entry_point

    def schema(self) -> type[Any]:
        """The dataclass of its settings."""
        return problem_settings(self.words) if self.entry_point == "create_problems" else schema_of(self.entry_point)


def steps_of(command: Sequence[str], variables: Mapping[str, str]) -> list[Step]:
    """The steps that a command of a script would run. UserError with its own words where it would fail."""
    listing = {**variables, "DRY_RUN": "1", "LIST_STEPS": "1", "LEFT_OUT": "", "TIMES": ""}
    done = subprocess.run(command, cwd=ROOT, env=listing, capture_output=True, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines() or [f"exit code {done.returncode}"]
        raise UserError(next((line[7:] for line in lines if line.startswith("error: ")), lines[-1]))
    steps: list[list[str]] = []
    for word in map(os.fsdecode, done.stdout.split(b"\0")[:-1]):
        if word == "+":
            steps.append([])
        else:
            steps[-1].append(word)
    return [Step(name, tuple(words)) for name, *words in steps]


def left_out(overrides: Sequence[str], steps: Sequence[Step], script: str) -> str:
    """``STEP:KEY …``, the keys that bash/env.sh's ``run`` leaves out of a step, as the step does not have them.

    UserError for a key that no step has, for a value that one of them cannot take, and for one output of several steps.
    """
    keys = {step: list(keys_of(step.schema())) for step in steps}
    for word in dict.fromkeys(overrides):
        _check_override(word, keys, script)
    unknown = {step: {_head(word) for word in step.words if not _knows(keys[step], word)} for step in steps}
    valued = {word for word in overrides if "=" in word}
    reached = {(step.name, frozenset(valued & set(step.words))): step for step in reversed(steps)}
    for (_, given), step in reached.items():
        if given:
            _check_values(step, [word for word in step.words if _head(word) not in unknown[step]])
    return " ".join(sorted({f"{step.name}:{head}" for step in steps for head in unknown[step]}))


def keys_of(schema: type[Any], prefix: str = "") -> Iterator[str]:
    """The dotted keys of a settings dataclass; that of a mapping, below which any key goes, ends in a dot."""
    for entry in fields(schema):
        value = entry.default if entry.default_factory is MISSING else entry.default_factory()
        if is_dataclass(value) and not isinstance(value, type):
            yield from keys_of(type(value), f"{prefix}{entry.name}.")
        else:
            yield f"{prefix}{entry.name}{'.' if get_origin(entry.type) is dict else ''}"


def _check_override(word: str, keys: Mapping[Step, Sequence[str]], script: str) -> None:
    if word in OF_EVERY_STEP or not ("=" in word or word.startswith("-")):  # the name of an arm
        return
    key = _key(word)
    if key in FROM_THE_SCRIPT:
        raise UserError(f"{word}: the steps of {script} have their own; give PROFILE=NAME before the command")
    reached = [step for step, known in keys.items() if word in step.words and _knows(known, word)]
    if not reached:
        near = difflib.get_close_matches(key, sorted({key for known in keys.values() for key in known}))
        raise UserError(
            f"{word}: no step of {script} has this setting" + (f"; near: {', '.join(near)}" if near else "")
        )
    own = {other for step in reached for other in step.words if _key(other) == key and other != word}
    if key in OUTPUTS and len(own) > 1:
        folders = "DATA_DIR, CKPT_DIR or RESULTS_DIR, or a script's OUTPUT"
        raise UserError(
            f"{word}: steps of {script} that write to places of their own; give {folders} before the command"
        )


def _check_values(step: Step, words: Sequence[str]) -> None:
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


def _knows(keys: Sequence[str], word: str) -> bool:
    key = _key(word)
    if word in OF_EVERY_STEP or key in FROM_THE_SCRIPT:
        return True
    return any(key == one or one.startswith(f"{key}.") or (one.endswith(".") and key.startswith(one)) for one in keys)
