"""What is compared: a study of ``config/study/NAME.yaml``, its arms, and the replicates that repeat it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from compositionality.config.profile import merge
from compositionality.errors import UserError
from compositionality.ranges import validated
from compositionality.yaml_files import read_yaml_mapping

FOLDER = Path(__file__).parents[1] / "config" / "study"
BASH = Path(__file__).parents[2] / "bash"
ROOTS = {"data": "DATA_DIR", "checkpoints": "CKPT_DIR", "results": "RESULTS_DIR"}
"""The roots of a study's folders, and the variables that name others."""


@dataclass
class Stage:
    """One script of ``bash/`` (without .sh) on its way to a model or a file.

    ``env``: of MODEL_PATH, DATA, TRAIN_FILES, VAL_FILES, OUTPUT, where the script's defaults are not meant; ``{data}``,
    ``{ckpt}``, ``{results}``, ``{arm}``, ``{start}`` stand for folders, the arm and the model that it starts from.
    """

    script: str
    env: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)  # key=value
    per_split: bool = False  # run for every split of the functions, not once for a seed


@dataclass
class Arm:
    """One way to train a model, and how it is drawn.

    ``model``: its folder below the checkpoints, ``{last}`` for the last iteration of RFT; empty: the base model.
    ``start``: the arm whose model it starts from. ``script``: what trains it (empty: a stage before the arms), or
    ``steps`` by name, the last of which trains it; ``rft``: iterations of rollouts, filter and SFT. ``words``:
    key=value of the script, of several steps STEP:key=value. ``after``: arms whose finished runs it reads. ``like``:
    the arm whose steps in a profile (``steps: STUDY/ARM``) are its own too.
    """

    title: str
    model: str
    start: str = ""
    script: str = ""
    steps: dict[str, Stage] = field(default_factory=dict)
    rft: bool = False
    env: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    like: str = ""
    colour: str = ""
    marker: str = ""
    line: str = ""
    width: float = 1.5

    @property
    def is_trained(self) -> bool:
        """Whether something else than the stages makes its model."""
        return bool(self.script or self.steps or self.rft)


@dataclass
class Study:
    """The stages before the arms in order, and the arms in the order of the tables.

    ``name``: of its folders, with -PROFILE where that is not the default one. ``trained``: the arms that are trained
    unless others are asked for, the longest first (empty: the profile's); ``evaluated``: those that are not, but
    evaluated all the same. ``evaluate``: scripts that make the tables of a replicate; completions for the first are
    collected arm by arm. ``reported``: what else a report reads of each replicate (passk, failure_modes, influence),
    ``compared`` of all (fits, ranks). ``owns``: tasks whose settings in a profile it alone reads. ``variants``: instead
    of one study several, each in a folder of its own, with words STEP:key=value; ``words``: of every replicate.
    """

    title: str
    name: str
    stages: dict[str, Stage]
    arms: dict[str, Arm]
    evaluated: list[str]
    evaluate: list[str]
    base: str = ""
    trained: list[str] = field(default_factory=list)
    owns: list[str] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)
    claims: str = ""
    words: list[str] = field(default_factory=list)
    variants: dict[str, list[str]] = field(default_factory=dict)


class Replicate(NamedTuple):
    """One independent repetition. Split 0 is the paper's."""

    study: str
    seed: int
    split: int = 0

    @property
    def name(self) -> str:
        """``seed20-split61``: its folder below the study's, and its name in tables."""
        return f"seed{self.seed}" + (f"-split{self.split}" if self.split else "")

    def folder(self, root: str) -> str:
        """``data/STUDY/seedN``: below the root data, checkpoints or results."""
        return f"{study_folder(root, self.study)}/{self.name}"

    def filled(self, text: str, names: Mapping[str, str] | None = None) -> str:
        """``text`` with its folders and ``names`` in the place of ``{data}``, ``{ckpt}``, ``{results}``, ``{NAME}``."""
        folders = {"data": self.folder("data"), "ckpt": self.folder("checkpoints"), "results": self.folder("results")}
        for key, value in {**folders, **(names or {})}.items():
            text = text.replace(f"{{{key}}}", value)
        return text

    @property
    def shared(self) -> "Replicate":
        """What the splits of its seed share."""
        return self._replace(split=0)


def study_folder(root: str, study: str) -> str:
    """``results/STUDY``, below $RESULTS_DIR if that is given."""
    return f"{os.environ.get(ROOTS[root]) or root}/{study}"


def study_names(folder: Path = FOLDER) -> list[str]:
    """The studies that there are."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def load_study(name: str, folder: Path = FOLDER) -> Study:
    """The study of this name. UserError naming file and key for what does not fit, and an arm that starts from none."""
    path = folder / f"{name}.yaml"
    if not path.is_file():
        raise UserError(f"no study {name}; there are: {' '.join(study_names(folder))}")
    study = validated(Study, _values(path, folder), str(path))
    for arm_name, arm in study.arms.items():
        for key, other in (("start", arm.start), ("like", arm.like), *(("after", one) for one in arm.after)):
            if other and other not in study.arms:
                raise UserError(f"{path}: arms.{arm_name}.{key}: no arm {other}; there are: {' '.join(study.arms)}")
        for script in filter(None, [arm.script, *(step.script for step in arm.steps.values())]):
            _check_script(f"{path}: arms.{arm_name}.script", script)
    for name, stage in study.stages.items():
        _check_script(f"{path}: stages.{name}.script", stage.script)
    for key, names in (("evaluated", study.evaluated), ("trained", study.trained)):
        for name in names:
            find_arm(study, name, f"{path}: {key}: ")
    return study


def _values(path: Path, folder: Path) -> dict[str, Any]:
    """The keys of a study's file, on top of those of the study that it names as ``base``."""
    values = read_yaml_mapping(path)
    return merge(_values(folder / f"{values['base']}.yaml", folder), values) if values.get("base") else values


def _check_script(where: str, script: str) -> None:
    if not (BASH / f"{script}.sh").is_file():
        raise UserError(f"{where}: bash/{script}.sh: no such file")


def find_arm(study: Study, name: str, where: str = "") -> Arm:
    """The arm of this name; UserError if there is none."""
    if name not in study.arms:
        raise UserError(f"{where}no arm {name}; there are: {' '.join(study.arms)}")
    return study.arms[name]


def all_arms() -> dict[str, Arm]:
    """The arms of every study that has arms of its own by name, for figures and tables that show several."""
    studies = [study for study in map(load_study, study_names()) if not study.base]
    return {name: arm for study in studies for name, arm in study.arms.items()}
