"""Problem sets: the problem files of a study as data, a YAML file for each set in ``config/problems/``.

Its ``files`` have options of the set's task, and further keys:

- ``stream: N``: the seed is the run's seed + N (default 0); ``stream: test``: the seed of test problems
- ``per_level: N``: problems of each level, in place of ``count``
- ``per_split: true``: ``function_split`` of the run says which functions are held out
- ``avoid: [FILE, …]``: files of the set to share nothing with, if they exist or are made by the same command

A profile's ``problems.SET`` changes options of the files that match a name or pattern (``test*: {per_level: 8}``),
leaves them out (``null``), or takes the files of another set (``base: SET``).
"""

import fnmatch
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import Any

from compositionality.config.cli import SWITCHES, parse, run, split_layers
from compositionality.config.profile import Layer, Profile, load_profile, shown
from compositionality.data.artefact import exclusive, manifest_path, write_text
from compositionality.data.create_problems import CreateProblems, check, create_problems, problem_settings
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonEmptyStr, NonNegativeInt, PositiveInt, Seed
from compositionality.tasks.registry import find_task
from compositionality.validation import choices, validated
from compositionality.yaml_files import named_yaml, read_yaml_mapping

FOLDER = Path(__file__).parent / "problems"
TEST = "test"
SET_KEYS = ("stream", "per_level", "per_split")  # keys of a file that are not options of its task
CARD, BEGINS = "README.md", "---\nconfigs:\n- config_name: problems\n  default: true\n  data_files:\n"
LATER = """\
- config_name: sft
  data_files:
  - {split: train, path: "**/data/train.parquet"}
  - {split: test, path: "**/data/test.parquet"}
- config_name: rollouts
  data_files: "**/rollouts/*.parquet"
---
"""
"""The part of a card for files that later steps write below the set's folder."""


@dataclass
class ProblemSetSettings:
    """Make the missing files of a problem set. Options of its task apply to every file."""

    task: str = ""  # the set's task; leave it empty
    set: NonEmptyStr = REQUIRED  # name of a set in compositionality/config/problems, or a path that ends in .yaml
    output: NonEmptyStr = REQUIRED  # folder of its files
    shared: str = ""  # folder for files that do not depend on the seed (the paper's): made once, linked from output
    files: list[str] = field(default_factory=list)  # make only these: names, or patterns such as test*
    seed: Seed = 0  # seed of all problems but the test problems
    test_seed: Seed = 2027  # seed of the test problems
    function_split: NonNegativeInt = 0  # which functions are held out
    per_level: PositiveInt | None = None  # problems of each level, in every file


@dataclass
class ProblemFiles:
    """A task in one of its modes, and the keys of every file. ``source`` names the YAML."""

    task: str
    mode: str
    files: dict[str, dict[str, Any]]
    source: str = ""

    @property
    def schema(self) -> type[CreateProblems]:
        """The dataclass of one file's settings."""
        return problem_settings([f"task={self.task}", f"mode={self.mode}"])

    def choose(self, patterns: Sequence[str]) -> list[str]:
        """Return the files that match names or patterns (none given: all). UserError for one without a match."""
        chosen = [
            name for name in self.files if not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
        ]
        if absent := [pattern for pattern in patterns if not chosen or not ("*" in pattern or pattern in chosen)]:
            raise UserError(f"{self.source}: no file {absent[0]}; {choices(absent[0], self.files)}")
        return chosen


def read_set(name: str, profile: Profile | None) -> ProblemFiles:
    """Return the set ``name`` with the changes of a profile. UserError, naming file and key, for invalid entries."""
    changes = dict(profile.problems.get(name) or {}) if profile else {}
    path = named_yaml(FOLDER, "set", str(changes.pop("base", name)))
    problems = validated(ProblemFiles, read_yaml_mapping(path), shown(path))
    problems.source = shown(path) + (f" with problems.{name} of the profile" if changes else "")
    for pattern, change in changes.items():
        if not (names := fnmatch.filter(problems.files, pattern)):
            raise UserError(f"{problems.source}: no file {pattern}; {choices(pattern, problems.files)}")
        if not isinstance(change, dict | None):
            raise UserError(f"{problems.source}: {pattern}: give a mapping of keys to values, or null")
        for file in names:
            if change is None:
                del problems.files[file]
            else:
                problems.files[file] |= change
    schema = problems.schema
    for file, entry in problems.files.items():
        if Path(file).is_absolute() or ".." in Path(file).parts:
            raise UserError(f"{problems.source}: {file}: give a name below the output folder")
        options = {key: value for key, value in entry.items() if key not in SET_KEYS}
        validated(schema, options, problems.source, f"{file}.")
    return problems


def main(about: str) -> None:
    """Make the file (``task=``) or the set of files (``set=``) of the command line; ``about`` is the verb's help."""
    words = sys.argv[1:]
    settings = set_settings(words)
    about = f"{about}\n{settings.__doc__}"
    if issubclass(settings, ProblemSetSettings):
        run(settings, lambda _: create_problem_set(words), about, check=lambda _: check_problem_set(words))
    run(settings, create_problems, about, check=check)


def set_settings(words: Sequence[str]) -> type[CreateProblems]:
    """Return the class of settings for ``words`` (key=value): of a set (``set=``), or of one file (``task=``)."""
    if not any(word.startswith("set=") for word in words):
        return problem_settings(words)
    problems = _read_set(words)
    about = f"{ProblemSetSettings.__doc__} Files: {', '.join(problems.files)}."
    return make_dataclass(
        "CreateProblemSet", [], bases=(ProblemSetSettings, problems.schema), namespace={"__doc__": about}
    )


def file_settings(words: Sequence[str]) -> dict[str, CreateProblems]:
    """Return by name the settings of every file that the ``words`` of a set choose; options in them come last."""
    return _read(words)[2]


def _read(words: Sequence[str]) -> tuple[Any, ProblemFiles, dict[str, CreateProblems]]:
    """Return the settings of a run, the set, and the settings of the chosen files by name."""
    problems, schema = _read_set(words), set_settings(words)
    arguments = [SWITCHES.get(word, word) for word in words if word not in ("--cfg", "--dry-run")]
    overrides, layers = split_layers(schema, arguments, schema.entry_point)
    run: Any = parse(schema, overrides, layers)
    chosen = problems.choose(run.files)
    set_keys = {"task", "mode", *(entry.name for entry in fields(ProblemSetSettings))}
    if run.task or run.mode:
        raise UserError(f"task={run.task} mode={run.mode}: set={run.set} has its own; leave them out")
    if run.function_split and not any(problems.files[name].get("per_split") for name in chosen):
        raise UserError(f"function_split={run.function_split}: no file of {', '.join(chosen)} uses it; leave it out")
    options = [word for word in overrides if word.partition("=")[0] not in set_keys]
    file_schema, layers_of_file = problems.schema, {name: _layer(problems, name, run, chosen) for name in chosen}
    return run, problems, {name: parse(file_schema, options, [*layers, layers_of_file[name]]) for name in chosen}


def check_problem_set(words: Sequence[str]) -> tuple[Any, ProblemFiles, list[tuple[CreateProblems, Path | None]]]:
    """Return the settings of a run, the set, and each file's settings with the shared file that it becomes a link to.

    UserError for settings that the task refuses, and for outputs that cannot be written.
    """
    run, problems, settings_by_file = _read(words)
    files = list[tuple[CreateProblems, Path | None]]()
    for settings in settings_by_file.values():
        check(settings)
        path, shared = Path(settings.output), None
        uses_seed = "seed" in find_task(settings.task).modes[settings.mode].uses
        if run.shared and not uses_seed and not path.exists():
            shared = Path(run.shared, path.relative_to(run.output))
            check(replace(settings, output=str(shared)))
        files.append((settings, shared))
    return run, problems, files


def create_problem_set(words: Sequence[str]) -> list[Path]:
    """Make the missing files and return all paths. UserError before the first if one of them would be refused."""
    run, problems, files = check_problem_set(words)
    folder = Path(run.output)
    paths = [
        _link_shared(settings, shared, Path(run.shared)) if shared else create_problems(settings)
        for settings, shared in files
    ]
    with exclusive(folder / CARD, wait=3600):  # no artefact.make: each file is a step, their card is not a result
        names = [name for name in problems.files if (folder / f"{name}.parquet").is_file()]
        splits = {name: re.sub(r"\W", "_", name.removesuffix("/train")) for name in names}
        lines = "".join(f"  - {{split: {split}, path: {name}.parquet}}\n" for name, split in splits.items())
        if not (card := folder / CARD).exists() or card.read_text(encoding="utf-8").startswith(BEGINS):
            write_text(card, BEGINS + lines + LATER)  # lets datasets.load_dataset read the folder
    return paths


def _link_shared(settings: CreateProblems, shared: Path, place: Path) -> Path:
    """Make the shared file, below ``place``, and a link to it; return the path of the link."""
    path = Path(settings.output)
    with exclusive(place, wait=3600):  # seconds; several seeds may need it at the same time
        create_problems(replace(settings, output=str(shared)))
    path.parent.mkdir(parents=True, exist_ok=True)
    manifest_path(path).unlink(missing_ok=True)
    try:
        os.link(manifest_path(shared), manifest_path(path))
        os.link(shared, path)
    except OSError:  # a file system without hard links
        create_problems(settings)
    return path


def _read_set(words: Sequence[str]) -> ProblemFiles:
    values = dict(word.split("=", 1) for word in words if "=" in word)
    name, profile = (re.sub(r"^(['\"])(.*)\1$", r"\2", values.get(key, "")) for key in ("set", "profile"))
    return read_set(name, load_profile(profile) if profile else None)


def _layer(problems: ProblemFiles, name: str, run: Any, chosen: Sequence[str]) -> Layer:
    """Return the settings that the set gives a file in this run."""
    where = f"{problems.source}: {name}"
    entry = {**problems.files[name], **({"per_level": run.per_level} if run.per_level else {})}
    sizes = [entry[key] for key in ("count", "per_level") if key in entry]
    if len(sizes) != 1 or type(sizes[0]) is not int or ("per_level" in entry and not entry.get("levels")):
        raise UserError(f"{where}: give one whole number: count, or per_level with levels")
    count = sizes[0] * (len(entry["levels"]) if "per_level" in entry else 1)
    values = {key: value for key, value in entry.items() if key not in SET_KEYS}
    values |= {"task": problems.task, "mode": problems.mode, "count": count}
    if (stream := entry.get("stream", 0)) != TEST and type(stream) is not int:
        raise UserError(f"{where}: stream: {stream}: give a whole number, or {TEST}")
    if "seed" in find_task(problems.task).modes[problems.mode].uses:
        values["seed"] = run.test_seed if stream == TEST else run.seed + stream
    if entry.get("per_split"):
        values["function_split"] = run.function_split
    paths = {file: Path(run.output, f"{file}.parquet") for file in problems.files}
    if absent := [file for file in entry.get("avoid", []) if file not in paths]:
        raise UserError(f"{where}: avoid: {absent[0]}: not a file of this set; {choices(absent[0], paths)}")
    avoided = [file for file in entry.get("avoid", []) if file in chosen or paths[file].is_file()]
    return Layer(where, values | {"output": str(paths[name]), "avoid": [str(paths[file]) for file in avoided]})
