"""A study (``config/study/NAME.yaml``), its arms, its replicates, and requests to run it."""

import os
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from compositionality.config.cli import BASH
from compositionality.config.profile import Profile, load_profile, merge
from compositionality.errors import UserError
from compositionality.validation import choices, validated
from compositionality.yaml_files import read_yaml_mapping

FOLDER = Path(__file__).parents[1] / "config" / "study"
ROOTS = {"data": "DATA_DIR", "checkpoints": "CKPT_DIR", "results": "RESULTS_DIR"}
"""The roots of a study's folders, and the variables that replace them."""


@dataclass
class Stage:
    """One script on the way to a model or a file.

    ``{data}``, ``{ckpt}``, ``{results}`` in its values stand for the replicate's folders, ``{arm}`` for the arm,
    ``{start}`` for the model that the arm starts from.
    """

    script: str  # below bash/, without .sh
    env: dict[str, str] = field(default_factory=dict)  # variables of the script that differ from its defaults
    words: list[str] = field(default_factory=list)  # key=value
    per_split: bool = False  # run for every split of the functions, not once for a seed


@dataclass
class Arm:
    """One way to train a model, and its style in figures."""

    title: str
    model: str  # its folder below the checkpoints, {last} for the last iteration of RFT; empty: the base model
    start: str = ""  # the arm whose model it starts from
    script: str = ""  # the script that trains it; empty: steps, rft or a stage
    steps: dict[str, Stage] = field(default_factory=dict)  # by name; the last one trains it
    rft: bool = False  # iterations of rollouts, filter and SFT
    env: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)  # key=value of its script, or STEP:key=value of its steps
    after: list[str] = field(default_factory=list)  # arms whose finished runs it reads
    like: str = ""  # the arm whose profile entry steps.STUDY/ARM also applies to it
    colour: str = ""
    marker: str = ""
    line: str = ""
    width: float = 1.5

    @property
    def is_trained(self) -> bool:
        """True unless a stage makes its model."""
        return bool(self.script or self.steps or self.rft)

    def words_of(self, part: str) -> list[str]:
        """Return its words for one of its steps; all words if the arm is a single step."""
        return [word.removeprefix(f"{part}:") for word in self.words if not part or word.startswith(f"{part}:")]


@dataclass
class Study:
    """A study: the stages before its arms, in order, and the arms in the order of the tables."""

    title: str
    name: str  # of its folders, plus -PROFILE if that is not the default one
    stages: dict[str, Stage]
    arms: dict[str, Arm]
    evaluated: list[str]  # arms that are evaluated but not trained, such as the base model
    evaluate: list[str]  # scripts that make a replicate's tables; completions for the first are collected arm by arm
    base: str = ""  # the study that this one builds on
    trained: list[str] = field(default_factory=list)  # default arms to train, the longest first; empty: the profile's
    owns: list[str] = field(default_factory=list)  # tasks whose settings in a profile only this study reads
    reported: list[str] = field(default_factory=list)  # further steps for a report: passk, failure_modes, influence
    compared: list[str] = field(default_factory=list)  # further steps over all replicates: fits, ranks
    seeds: int = 1  # default number of seeds
    claims: str = ""  # a file of config/claims
    claimed: dict[str, str] = field(default_factory=dict)  # inputs of claims by kind: FILE or STUDY:FILE
    tested: str = ""  # for the page: the profile's list of test files
    learned: list[str] = field(default_factory=list)  # for the page: the training files
    # Arms that differ in one ingredient each: whose text they learn from, when it is sampled, whether wrong answers
    # count and are normalised. The other arms are compared with the gain of the last one.
    ladder: dict[str, list[str]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)  # STEP:key=value for every replicate
    variants: dict[str, list[str]] = field(default_factory=dict)  # instead of one study several: STEP:key=value


class Replicate(NamedTuple):
    """One independent repetition. Split 0 is the paper's."""

    study: str
    seed: int
    split: int = 0

    @property
    def name(self) -> str:
        """Name in tables, and of its folder below the study's: ``seed20-split61``."""
        return f"seed{self.seed}" + (f"-split{self.split}" if self.split else "")

    def folder(self, root: str) -> str:
        """Return ``data/STUDY/seedN``: below the root data, checkpoints or results."""
        return f"{study_folder(root, self.study)}/{self.name}"

    def fill(self, text: str) -> str:
        """Replace ``{data}``, ``{ckpt}``, ``{results}`` in ``text`` by its folders."""
        for key, root in (("data", "data"), ("ckpt", "checkpoints"), ("results", "results")):
            text = text.replace(f"{{{key}}}", self.folder(root))
        return text

    @property
    def shared(self) -> "Replicate":
        """The replicate whose folders have the files shared by all splits of its seed."""
        return self._replace(split=0)


@dataclass(frozen=True)
class Request:
    """A request to run a study: its profile, replicates and arms."""

    study: str
    profile: str  # NAME or NAME/ENGINE
    replicates: tuple[Replicate, ...]
    arms: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()  # arms trained only in the first split of each seed
    words: tuple[str, ...] = ()  # STEP:key=value
    report: bool = False  # also the steps that a report needs
    passk: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    countdown: str = ""  # the study of section 4.3 that claims and page read
    registration: str = ""
    record: bool = False
    test_seed: int = 2027
    base_model: str = ""  # in place of the profile's
    chat_template: str = ""  # in place of the profile's
    gpu: bool = False

    @cached_property
    def loaded(self) -> Study:
        return load_study(self.study)

    @cached_property
    def settings(self) -> Profile:
        """The profile, with its changes for this study."""
        return load_profile(self.profile).for_study(self.loaded.base or self.study)

    @cached_property
    def trained(self) -> list[str]:
        """The arms of every replicate, the longest first. UserError for an unknown one."""
        arms, names = self.loaded.arms, self.arms or self.loaded.trained or self.settings.arms
        if not self.arms and names and arms.keys().isdisjoint(names):
            raise UserError(
                f"PROFILE={self.profile} has no arms of the study {self.study}; give ARMS: {' '.join(arms)}"
            )
        return [name for name in names if find_arm(self.loaded, name)]

    @property
    def name(self) -> str:
        """The study's name in its folders, STUDY."""
        return self.replicates[0].study.partition("/")[0]

    def root(self, kind: str) -> str:
        return study_folder(kind, self.name)

    def record_folder(self, place: Replicate) -> Path:
        """Return the folder of a replicate's record: its tables, and every step of its training."""
        return Path("results", "records", self.name, place.name)

    @property
    def section(self) -> str:
        """The folder of its tables below results/STUDY, named as that of its scripts."""
        return self.loaded.evaluate[0].partition("/")[0]


def study_folder(root: str, study: str) -> str:
    """Return a folder such as ``results/STUDY``, below $RESULTS_DIR if that is set."""
    return str(Path(os.environ.get(ROOTS[root]) or root, study))


def study_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def check_scripts() -> None:
    """Raise UserError if the package is installed without its repository: a study runs the scripts of bash/."""
    if not BASH.is_dir():
        raise UserError(
            "a study needs the scripts of bash/, which pip does not install; git clone the repository of this package, "
            "run pip install -e . in the clone, then run this again"
        )


def load_study(name: str) -> Study:
    """Return the study of this name. UserError, naming file and key, for invalid entries."""
    path = FOLDER / f"{name}.yaml"
    if not path.is_file():
        raise UserError(f"no study {name}; {choices(name, study_names())}")
    study = validated(Study, _values(path), str(path))
    arms = {"evaluated": study.evaluated, "trained": study.trained, "ladder": [*study.ladder]}
    scripts = {f"stages.{name}": stage.script for name, stage in study.stages.items()}
    for name, arm in study.arms.items():
        named = {"start": [arm.start], "like": [arm.like], "after": arm.after}
        arms |= {f"arms.{name}.{key}": [*filter(None, names)] for key, names in named.items()}
        scripts |= {f"arms.{name}.steps.{part}": stage.script for part, stage in arm.steps.items()}
        scripts |= {f"arms.{name}": arm.script} if arm.script else {}
    for where, name in ((where, name) for where, names in arms.items() for name in names):
        find_arm(study, name, f"{path}: {where}: ")
    for where, script in scripts.items():
        if BASH.is_dir() and not (BASH / f"{script}.sh").is_file():  # figures need only titles, not the scripts
            raise UserError(f"{path}: {where}.script: bash/{script}.sh: no such file")
    return study


def _values(path: Path, children: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return the keys of a study's file, on top of the keys of its ``base``."""
    if path in children:
        raise UserError(f"{path}: base: {path.stem} builds on itself; give another base")
    values = read_yaml_mapping(path)
    return merge(_values(path.with_stem(values["base"]), (*children, path)), values) if values.get("base") else values


def find_arm(study: Study, name: str, where: str = "") -> Arm:
    if name not in study.arms:
        raise UserError(f"{where}no arm {name}; {choices(name, study.arms)}")
    return study.arms[name]


@cache
def all_arms() -> dict[str, Arm]:
    """Return by name the arms of all studies without a ``base``, for figures and tables that show several studies."""
    studies = [study for study in map(load_study, study_names()) if not study.base]
    return {name: arm for study in studies for name, arm in study.arms.items()}
