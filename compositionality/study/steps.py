"""A step of a study: a command with its variables and words, its typed settings, what it reads and writes.

The command is in a script of ``bash/``: assignments ``NAME=${NAME:-default}`` and one ``run`` line. They are parsed
here without bash; tests/test_scripts.py checks that bash agrees.
"""

import fnmatch
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from compositionality.config import cli
from compositionality.config.cli import BASH
from compositionality.config.problem_sets import check_problem_set, file_settings
from compositionality.config.verbs import MADE_BY, RESULTS, entry_point
from compositionality.data.artefact import check_maker, manifest_path, read_manifest
from compositionality.data.json_files import read_json_object
from compositionality.errors import UserError
from compositionality.study.model import ROOTS, Replicate, check_scripts
from compositionality.train.run_folder import RECIPE, flatten, refuse_strangers
from compositionality.validation import choices

STEP_VARIABLES = ("MODEL_PATH", "TRAIN_FILES", "VAL_FILES", "OUTPUT", "DATA", "N_SAMPLES")
"""Variables that a script takes in addition to the identity of its run (bash/env.sh)."""
IS_STEP_WORD = re.compile(r"[\w.*?\[\]-]+:[^=]+=")
_ASSIGNMENT = re.compile(r"^([A-Z_]+)=(.*)$", re.MULTILINE)
_RUN = re.compile(r"^run (\w+)((?:[^\n]*\\\n)*[^\n]*)$", re.MULTILINE)
_EXPANSION = re.compile(r"\$\{(\w+)(?:(:-|-|:\+|%)((?:[^{}]|\$\{[^{}]*\})*))?\}|\$(\w+)")


@dataclass(frozen=True)
class Script:
    """An entry point, the words of its command and the values of variables, before they are expanded."""

    entry_point: str
    words: tuple[str, ...]
    assignments: tuple[tuple[str, str], ...]


@cache
def read_script(name: str) -> Script | None:
    """Return bash/NAME.sh; None for a script of several steps. UserError if there is no such file."""
    path = BASH / f"{name}.sh"
    check_scripts()
    if not path.is_file():
        raise UserError(f"bash/{name}.sh: no such script")
    text = path.read_text()
    runs = _RUN.findall(text)
    if len(runs) != 1 or re.search(r"^\s*(for|if|case|script)\b", text, re.MULTILINE):
        return None
    words = shlex.split(runs[0][1].replace("\\\n", " ").replace("$((SEED + 1))", "$NEXT_SEED"))
    text = re.sub(r"^([A-Z_]+=(?:\$\{\w+:?-)?)~/", r"\1$HOME/", text, flags=re.MULTILINE)
    assigned = tuple((key, shlex.split(value)[0] if value else "") for key, value in _ASSIGNMENT.findall(text))
    return Script(runs[0][0], tuple(words), assigned)


def words_of(script: Script, variables: Mapping[str, str], more_words: tuple[str, ...] = ()) -> list[str]:
    """Return the words of the script's command with these variables; ``more_words`` are its arguments."""
    model = re.sub(r"(/final|/best)?/?\]?$", "", variables.get("MODEL_PATH", ""))
    model_name = re.sub("^.*[/:]", "", model, flags=re.DOTALL)
    values = {**variables, "PROBLEMS": variables.get("DATA_FILE", ""), "OWN": model_name and f"-{model_name}"}
    values["NEXT_SEED"] = str(int(variables["SEED"]) + 1)
    for name, value in script.assignments:
        values[name] = _expanded(value, values)
    words = [word if word == "$@" else _expanded(word, values) for word in script.words]
    return [part for word in words if word for part in (more_words if word == "$@" else [word])]


def _expanded(text: str, values: Mapping[str, str]) -> str:
    """Return ``text`` with its variables as bash expands them."""

    def value(match: re.Match[str]) -> str:
        name, sign, other = match[1] or match[4], match[2], match[3] or ""
        if sign == "%":  # scripts use only %/*
            return re.sub("/[^/]*$", "", values.get(name, ""))
        if sign == ":+":
            return _expanded(other, values) if values.get(name) else ""
        if not sign and name not in values:  # a variable of the user, such as $HOME
            return os.environ.get(name, "")
        is_given = name in values if sign == "-" else bool(values.get(name))
        return values[name] if is_given else _expanded(other, values)

    return _EXPANSION.sub(value, text)


@dataclass
class Step:
    """One command: a script of ``bash/`` with ``env`` and ``words``, or only an entry point."""

    name: str
    place: Replicate  # the replicate that it belongs to
    profile: str
    entry_point: str = ""
    script: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    after: tuple[str, ...] = ()  # keys of steps that come first; a plan adds those whose outputs it reads
    test_seed: int = 2027
    one_lane: bool = False  # it may run beside others; else it has the machine to itself
    whole: bool = False  # it belongs to the whole study; place is then its first replicate
    gpu: bool = False  # it computes on GPUs
    ray: bool = False  # it gets them from Ray, as verl does

    @property
    def key(self) -> str:
        """Unique name in a plan, such as ``seed0/rl-level2``."""
        variant = self.place.study.partition("/")[2]
        return self.name if self.whole else "/".join(filter(None, [variant, self.place.name, self.name]))

    @property
    def variables(self) -> dict[str, str]:
        """The environment of its command: the identity of its run, and the variables of its script."""
        return {
            "PROFILE": self.profile,
            "STUDY": self.place.study,
            "SEED": str(self.place.seed),
            "SPLIT": str(self.place.split),
            "TEST_SEED": str(self.test_seed),
            **self.env,
        }

    @cached_property
    def command_words(self) -> list[str]:
        """The words of its entry point's command, or the arguments of a script of several steps."""
        if not self.script:
            return [f"profile={self.profile}", *self.words]
        if (script := read_script(self.script)) is None:
            return [*self.words]
        roots = {"DATA": "data", "CKPT": "checkpoints", "RESULTS": "results"}
        folders = {key: self.place.folder(root) for key, root in roots.items()}
        values = {**self.variables, **folders, "DATA_FILE": self.env.get("DATA", "")}
        return [f"profile={self.profile}", f"step={self.script}", *words_of(script, values, self.words)]

    @cached_property
    def settings(self) -> Any:
        """The typed settings of its entry point; for a problem set, the settings of each file by name.

        None for a script of several steps. UserError, which names the step, for words that it does not accept.
        """
        if not self.entry_point:
            return None
        try:
            return settings_of(self.entry_point, self.command_words)
        except UserError as error:
            raise UserError(f"{self.name}: {error} (examples/{self.entry_point}.py)") from error

    @cached_property
    def flat(self) -> dict[str, Any]:
        """Its settings by dotted keys; empty for a problem set."""
        return {} if self.settings is None or isinstance(self.settings, dict) else flatten(asdict(self.settings))

    @cached_property
    def outputs(self) -> list[str]:
        """The files and folders that it makes."""
        if isinstance(self.settings, dict):
            return [str(Path(file.output)) for file in self.settings.values()]
        return [str(Path(self.flat[key])) for key in ("output", "trainer.output") if self.flat.get(key)]

    @property
    def inputs(self) -> set[str]:
        """Every text in its settings that may be a path, and the part after ``NAME:`` in it."""
        values = [value for key, value in self.flat.items() if not key.endswith("output")]
        texts = [text for value in values for text in (value if isinstance(value, list | tuple) else [value])]
        parts = {part for text in map(str, texts) for part in (text, text.partition(":")[2]) if "/" in part}
        return parts - {*self.outputs}

    def check(self) -> None:
        """Check the settings as at its start, except inputs that do not exist yet. UserError as at its start."""
        if isinstance(self.settings, dict):
            check_problem_set(self.command_words)
            return
        verb = entry_point(self.entry_point)
        if "dry_run" in verb.schema.__dataclass_fields__:
            verb.step(replace(self.settings, dry_run=True))
        elif verb.check:
            verb.check(self.settings)

    def check_outputs(self) -> None:
        """Raise UserError if another step or a person made one of its outputs, or problem files have other settings."""
        if isinstance(self.settings, dict):
            check_problem_set(self.command_words)
            return
        verb = "collect_rollouts" if self.flat.get("answers_only") else self.entry_point
        maker = verb if self.flat.get("engine") == "verl" else MADE_BY.get(verb, verb)
        check: Callable[..., object] = check_starter if "trainer.output" in self.flat else check_maker
        for result in (result for output in self.outputs for result in self._results(output)):
            check(result, maker, force=bool(self.flat.get("force")))

    def command(self, python: str) -> tuple[str, ...]:
        if self.script:
            return ("bash", f"bash/{self.script}.sh", *self.words)
        return (python, f"examples/{self.entry_point}.py", *self.command_words)

    def shell(self) -> str:
        """Return its command line for bash, to be run in the repository's root."""
        roots = {key: os.environ[key] for key in ROOTS.values() if os.environ.get(key)}
        assignments = [f"{key}={shlex.quote(value)}" for key, value in {**roots, **self.variables}.items()]
        program, *words = self.command("")
        return " ".join([*assignments, program or "${PYTHON:-.venv/bin/python}", shlex.join(words)])

    def why(self) -> str:
        """Return why it would run: missing, older than its inputs, other settings; empty if it is done."""
        if not self.outputs:
            return "a script of several steps" if self.script else "no output"
        if self.flat.get("force"):
            return "force"
        for result in (self._results(output)[-1] for output in self.outputs):
            manifest = read_manifest(result) if result.exists() else None
            if manifest is None:
                return f"missing: {result}"
            recorded = {key: value for key, value in manifest.settings.items() if _is_choice(value)}
            if other := [
                key for key, value in recorded.items() if self.flat.get(key) != value and _is_choice(self.flat.get(key))
            ]:
                return f"other settings: {other[0]}={self.flat[other[0]]}, made with {recorded[other[0]]}"
            written = manifest_path(result).stat().st_mtime
            if newer := [path for path in map(Path, self.inputs) if path.is_file() and path.stat().st_mtime > written]:
                return f"older: {newer[0]} has changed since"
        return ""

    def _results(self, output: str) -> list[Path]:
        """Return the files or folders of an output that have a manifest; the last is there when the step is done."""
        if not self.flat.get("answers_only"):
            return [Path(output + ending) for ending in RESULTS.get(self.entry_point, ("",))]
        rollouts = Path(output, "rollouts", self.flat["models"][0].partition(":")[0])
        return sorted(filter(Path.is_dir, rollouts.glob("[!.]*")), reverse=True) or [rollouts]


def check_starter(target: Path, step: str, *, force: bool) -> None:
    """Raise UserError if another step made ``target`` or began its run, or a file in its folder is not a run's."""
    began = target.parent / RECIPE
    if check_maker(target, step, force=force) or force:
        return
    if not began.is_file():
        refuse_strangers(target.parent)
    elif (other := read_json_object(began, "add --force to start over").get("step")) != step:
        raise UserError(f"{target.parent}: holds a run of {other}, not of {step}; choose another folder or add --force")


def _is_choice(value: object) -> bool:
    """Return whether a setting is a number, a switch or a word; paths are inputs, identified by their content."""
    return isinstance(value, int | float) or (isinstance(value, str) and "/" not in value)


def settings_of(name: str, words: Sequence[str]) -> Any:
    """Return the settings of a command of this entry point. UserError for words that it does not accept."""
    words = [cli.SWITCHES.get(word, word) for word in words]
    if name == "create_problems" and any(word.startswith("set=") for word in words):
        return file_settings(words)
    schema = entry_point(name).schema
    overrides, layers = cli.split_layers(schema, words, name)
    return cli.parse(schema, overrides, layers)


def add_words(steps: Sequence[Step], words: Sequence[str]) -> list[Step]:
    """Return the steps with ``STEP:key=value`` words, STEP a name or a pattern. UserError for an unknown step."""
    for word in words:
        pattern, _, key = word.partition(":")
        if not fnmatch.filter(names := [step.name for step in steps], pattern):
            raise UserError(f"{word}: no step {pattern}; {choices(pattern, names)}")
        steps = [
            replace(step, words=(*step.words, step.place.fill(key))) if fnmatch.fnmatch(step.name, pattern) else step
            for step in steps
        ]
    return list(steps)
