"""Profiles: the hardware and the size of a study, one typed YAML file each in ``config/profile/``.

A profile overrides the defaults of the dataclasses. Its ``settings`` are keys of the entry points by name
(``train_grpo: {rollout: {n: 16}}``), its ``steps`` the same for one script of ``bash/``, or some (``section43/*``).
``base`` names a profile to build on; ``engines`` has the settings that differ by engine: a profile supports the engines
listed there.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from compositionality.config.verbs import VERBS, entry_point
from compositionality.data.create_problems import problem_settings
from compositionality.errors import UserError
from compositionality.ranges import OF_PROFILE, REQUIRED, NonNegativeInt, OneOf, PositiveInt, marks_of
from compositionality.train.run_folder import flatten
from compositionality.train.settings import ENGINES
from compositionality.validation import choices, validated
from compositionality.yaml_files import flow_list, named_yaml, read_yaml_mapping

FOLDER = Path(__file__).parent / "profile"

TRAINERS = ("train_grpo", "train_sft", "pretrain_tiny")
Keys = dict[str, Any]
"""Keys and values, nested."""
FILES = {
    "countdown_validation": ["countdown_task/validation_level2", "countdown_task/validation"],
    "countdown_test": ["countdown_task/test_level2", "countdown_task/test"],
    "igsm_test": ["igsm_task/test", "igsm_task/test_ood"],
    "scaling_train": [f"scaling_task/train-level{level}" for level in range(1, 7)],
    "scaling_test": ["scaling_task/holdout", "scaling_task/deeper", "scaling_task/longer"],
}
"""Lists of problem files that most profiles share."""
CREATE = "create_problems/"
"""Settings of ``create_problems`` are kept by task: ``create_problems/string``."""


@dataclass
class Sampling:
    """Sampling in training and evaluation: the rollout engine, limits in tokens."""

    engine: str = REQUIRED
    max_prompt_tokens: PositiveInt = REQUIRED
    max_tokens: PositiveInt = REQUIRED

    def settings(self, entry_point: str) -> dict[str, Any]:
        """Return the values as keys of an entry point."""
        if entry_point in ("collect_rollouts", "evaluate", "passk"):
            return asdict(self)
        if entry_point != "train_grpo":
            return {}
        engine = "vllm" if self.engine == "ray" else self.engine  # Ray only spreads vLLM's work
        rollout = {"engine": engine, "max_tokens": self.max_tokens}
        return {"data": {"max_prompt_tokens": self.max_prompt_tokens}, "rollout": rollout}


@dataclass
class StudyChanges:
    """The start model and the arms of a study that differ from the profile's."""

    base_model: str = ""
    chat_template: str = ""
    arms: list[str] = field(default_factory=list)


@dataclass
class Profile:
    """The hardware and the size of a study."""

    title: str = REQUIRED
    base: str = ""  # the profile that this one builds on
    device: Annotated[str, OneOf(("", "cpu", "gpu"))] = ""  # empty: a GPU if there is one
    engine: str = REQUIRED  # in a loaded profile: the engine that it was loaded for
    base_model: str = ""  # empty: one is pretrained
    chat_template: str = ""  # value for examples/set_chat_template.py; empty: the model's own
    studies: dict[str, StudyChanges] = field(default_factory=dict)  # studies with another model or other arms
    arms: list[str] = REQUIRED  # arms of sections 4.1 and 4.2 to train, the longest first
    lanes: NonNegativeInt = 0  # how many steps run side by side on one GPU
    sampling: Sampling = field(default_factory=Sampling)
    files: dict[str, list[str]] = field(default_factory=lambda: {**FILES})  # lists of problem files: FOLDER/@NAME
    passk: list[str] = REQUIRED  # models for pass@k; differences are to the first
    problems: dict[str, Keys | None] = field(default_factory=dict)  # changes to problem sets
    settings: dict[str, Keys | None] = field(default_factory=dict)
    steps: dict[str, dict[str, Keys | None] | None] = field(default_factory=dict)
    engines: dict[str, Keys | None] = field(default_factory=dict)

    def for_study(self, name: str) -> "Profile":
        """Return the profile with the base model and the arms of this study."""
        if (changes := self.studies.get(name)) is None:
            return self
        return replace(self, **{**vars(changes), "arms": changes.arms or self.arms})


@dataclass(frozen=True)
class Layer:
    """Settings of one entry point from one source: nested keys, and the name to show for the source."""

    source: str
    values: Mapping[str, Any]


def profile_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_profile(word: str) -> Profile:
    """Return the profile NAME/ENGINE with the overrides of that engine, or NAME with its default engine.

    UserError, naming file and key, for an unknown profile or key, a wrong type, a missing number, an engine that the
    profile does not support.
    """
    return _loaded(word, tuple((path, path.stat().st_mtime_ns) for path in sorted(FOLDER.glob("*.yaml"))))


@lru_cache(maxsize=32)
def _loaded(word: str, _files_then: tuple[tuple[Path, int], ...]) -> Profile:
    """Return a profile from files of these times; cached, as every step of a plan loads it. Do not modify it."""
    name, _, engine = word.partition("/")
    files, path = _files(name), FOLDER / f"{name}.yaml"
    engine = engine or next((str(data["engine"]) for data in reversed(files.values()) if "engine" in data), "")
    if not files:
        raise UserError(f"no profile {word}; {choices(name, profile_names())}")
    if engine not in ENGINES:
        raise UserError(f"no engine {engine} (sampling.engine is another key); {choices(engine, ENGINES)}")
    engines = [data.get("engines") or {} for data in files.values()]
    if not any(engine in numbers for numbers in engines):
        raise UserError(f"{path}: engines: profile {name} has no numbers for {engine}; give PROFILE={name}")
    values = asdict(Profile())
    for file, data in files.items():
        overrides = (data.get("engines") or {}).get(engine) or {}
        validated(Profile, overrides, shown(file), f"engines.{engine}.")
        values = merge(merge(values, data), overrides)
    values |= {"engine": engine, "engines": {key: {} for numbers in engines for key in numbers}}
    if missing := missing_keys(values):
        raise UserError(f"{path}: no value for {missing}")
    profile = validated(Profile, values, shown(path))
    sections = {"settings": profile.settings, **{f"steps.{step}": parts for step, parts in profile.steps.items()}}
    for section_name, section in sections.items():
        for entry in section or ():
            if entry not in VERBS and not entry.startswith(CREATE):
                options = choices(entry, [*VERBS, f"{CREATE}TASK"])
                raise UserError(f"{shown(path)}: {section_name}.{entry}: no entry point; {options}")
    return profile


def layers_of(word: str, entry_point: str, steps: Sequence[str] = ()) -> list[Layer]:
    """Return the layers of ``profile=NAME[/ENGINE]`` for an entry point, then its layers for these ``steps``.

    UserError if $N_GPUS, the processes of a training, is not a number.
    """
    profile, file = load_profile(word), shown(FOLDER / f"{word.partition('/')[0]}.yaml")
    gpus = os.environ.get("N_GPUS", "")
    if gpus and not (gpus.isdecimal() and int(gpus)):
        raise UserError(f"N_GPUS={gpus}: give a whole number from 1, or leave it out")
    parts = {
        f"{file}: device, engine": machine_settings(profile, entry_point),
        f"{file}: sampling": profile.sampling.settings(entry_point),
        f"{file}: settings.{entry_point}": profile.settings.get(entry_point),
        "N_GPUS": {"run": {"processes": int(gpus)}} if gpus and entry_point in TRAINERS else {},
        **{
            f"{file}: steps.{name}": (entries or {}).get(entry_point)
            for step in steps
            for name, entries in sorted(profile.steps.items(), key=lambda item: "*" not in item[0])
            if fnmatchcase(step, name)
        },
    }
    return [Layer(source, values) for source, values in parts.items() if values]


def machine_settings(profile: Profile, entry_point: str) -> dict[str, Any]:
    """Return the keys of an entry point for device, engine and workers."""
    cores, run = len(os.sched_getaffinity(0)), {"run": {"device": profile.device}} if profile.device else {}
    if entry_point in ("train_grpo", "train_sft"):
        return {**run, "engine": profile.engine}
    if entry_point == "pretrain_tiny":  # on a GPU, workers prepare the text in advance
        return {**run, "workers": max(cores - 2, 1)} if profile.device == "gpu" else run
    if entry_point == "set_chat_template":
        base = {"model": profile.base_model} if profile.base_model else {}
        return {**base, "chat_template": profile.chat_template or "own"}
    return {"workers": cores} if entry_point.startswith(("create_problems", "make_domain", "prepare_guru")) else {}


def use_device(profile: Profile) -> None:
    """Tell this process and its children whether to use GPUs (``gpu`` also for checks on a machine without one)."""
    os.environ["COMPOSITIONALITY_DEVICE"] = profile.device
    if profile.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def expand_files(profile: Profile, word: str) -> str:
    """Expand ``key=FOLDER/@NAME`` to ``key=[FOLDER/a.parquet,…]``, the profile's files NAME; return others unchanged.

    UserError for a name that the profile does not have.
    """
    key, _, value = word.partition("=")
    folder, _, name = value.rpartition("/@")
    if not folder or not re.fullmatch(r"\w+", name):
        return word
    if name not in profile.files:
        raise UserError(f"{word}: no files.{name} in the profile; {choices(name, profile.files)}")
    return f"{key}={flow_list(f'{folder}/{file}.parquet' for file in profile.files[name])}"


def algorithm_layer(name: str) -> Layer:
    """Return the keys of a file of ``config/algorithm``, given by its name or by a path that ends in .yaml.

    Keys that it leaves out have their defaults, and the profile's if they are ``OfProfile``. UserError without keys.
    """
    from compositionality.train.grpo_settings import AlgorithmSettings  # after the import of the command line

    path = named_yaml(FOLDER.with_name("algorithm"), "algorithm", name)
    values, marks = read_yaml_mapping(path), marks_of(AlgorithmSettings)
    if not isinstance(values.get("algorithm"), dict):
        raise UserError(f"{shown(path)}: algorithm: no keys; give it those that differ from the defaults in --help")
    defaults = {key: value for key, value in asdict(AlgorithmSettings()).items() if OF_PROFILE not in marks[key]}
    return Layer(shown(path), merge({"algorithm": defaults}, values))


def schema_of(name: str) -> type[Any]:
    if name.startswith(CREATE):
        return problem_settings([f"task={name.removeprefix(CREATE)}"])
    return entry_point(name).schema


def merge(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested ``values`` with ``overrides`` on top; a list replaces a list."""
    merged = dict(values)
    for key, value in overrides.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def with_key(values: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return nested ``values`` with the value of a dotted key replaced."""
    for name in reversed(key.split(".")):
        value = {name: value}
    return merge(values, value)


def missing_keys(values: dict[str, Any]) -> str:
    """Return the dotted keys without a value, joined by commas."""
    return ", ".join(sorted(key for key, value in flatten(values).items() if value == REQUIRED))


def _files(name: str) -> dict[Path, Keys]:
    """Return the files of a profile and of its bases, the first base first, and the keys of each."""
    files: dict[Path, Keys] = {}
    while name:
        path = FOLDER / f"{name}.yaml"
        if not path.is_file():
            raise UserError(f"no profile {name}; {choices(name, profile_names())}")
        if path in files:
            raise UserError(f"{path}: base: {name} builds on itself; give another base")
        files = {path: read_yaml_mapping(path), **files}
        name = validated(Profile, files[path], shown(path)).base
    return files


def shown(path: Path) -> str:
    """Return the path relative to the repository if it is in it."""
    root = FOLDER.parents[2]
    return str(path.relative_to(root)) if path.is_absolute() and path.is_relative_to(root) else str(path)
