"""The studies of ``config/study/``: arms, the models that these stand for, what an arm's script is started with."""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.ranges import validated
from compositionality.study.replicates import VARIABLE, Replicate, read_replicates
from compositionality.study.types import Arm, Study
from compositionality.yaml_files import read_yaml_mapping

FOLDER = Path(__file__).parents[1] / "config" / "study"
BASH = Path(__file__).parents[2] / "bash"
PLAIN = re.compile("[A-Za-z0-9_./:-]*")


def study_names(folder: Path = FOLDER) -> list[str]:
    """The studies that there are."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def load_study(name: str, folder: Path = FOLDER) -> Study:
    """The study of this name. UserError naming file and key for what does not fit, and an arm that starts from none."""
    path = folder / f"{name}.yaml"
    if not path.is_file():
        raise UserError(f"no study {name}; there are: {' '.join(study_names(folder))}")
    study = validated(Study, read_yaml_mapping(path), str(path))
    for arm_name, arm in study.arms.items():
        for key, other in (("start", arm.start), ("budget_of", arm.budget_of), *(("after", one) for one in arm.after)):
            if other and other not in study.arms:
                raise UserError(f"{path}: arms.{arm_name}.{key}: no arm {other}; there are: {' '.join(study.arms)}")
        if arm.script and not (BASH / f"{arm.script}.sh").is_file():
            raise UserError(f"{path}: arms.{arm_name}.script: bash/{arm.script}.sh: no such file")
    for key, names in (("evaluated", study.evaluated), ("trained", study.trained)):
        for name in names:
            if name not in study.arms:
                raise UserError(f"{path}: {key}: no arm {name}; there are: {' '.join(study.arms)}")
    return study


def find_arm(study: Study, name: str) -> Arm:
    """The arm of this name; UserError if there is none."""
    if name not in study.arms:
        raise UserError(f"no arm {name}; there are: {' '.join(study.arms)}")
    return study.arms[name]


def all_arms() -> dict[str, Arm]:
    """The arms of every study by name, for figures and tables that show several."""
    return {name: arm for study in study_names() for name, arm in load_study(study).arms.items()}


def model_path(arm: Arm, variables: Mapping[str, str]) -> str:
    """The folder of an arm's model in the study that the ``variables`` of bash/env.sh describe."""
    if not arm.model:
        return variables["BASE_MODEL"]
    last = int(variables["RFT_ITERATIONS"]) - 1
    folder = variables["CKPT_DIR" if arm.script else "SEED_CKPT_DIR"]
    return f"{folder}/{arm.model.format(last=last)}"


def find_arms(study: str, names: Iterable[str] = ()) -> dict[str, Arm]:
    """The arms of a study, or those named."""
    loaded = load_study(study)
    return {name: find_arm(loaded, name) for name in (list(names) or loaded.arms)}


def models_made(arms: Mapping[str, Arm], variables: Mapping[str, str]) -> list[str]:
    """``name:path`` of those arms whose model is there; of all with DRY_RUN."""
    paths = {name: model_path(arm, variables) for name, arm in arms.items()}
    return [f"{name}:{path}" for name, path in paths.items() if _is_there(path, variables)]


def _is_there(path: str, variables: Mapping[str, str]) -> bool:
    """A model folder, or the base model if it was given: it may be a Hub id, which the step that reads it resolves."""
    given = path == variables["BASE_MODEL"] != f"{variables['SEED_CKPT_DIR']}/base"
    return given or Path(path).is_dir() or bool(variables.get("DRY_RUN"))


def arm_start(study: Study, name: str, variables: Mapping[str, str]) -> str:
    """What bash/section*/arm.sh starts an arm with, as bash: SCRIPT, ARGUMENTS, ``with``, NEW_PROBLEMS and MODEL.

    UserError if the model that it starts from is not there (unless DRY_RUN).
    """
    arm = find_arm(study, name)
    start = model_path(study.arms[arm.start], variables) if arm.start else ""
    if arm.script and start and not _is_there(start, variables):
        raise UserError(f"arm {name} starts from {arm.start}, whose model {start} does not exist; make it first")
    files = [f"{variables['DATA_DIR']}/{file}.parquet" for file in arm.problems]
    created = [f"{key}={_word(value)}" for key, value in arm.new_problems.items()]
    own = {"MODEL_PATH": start, **arm.variables}
    if files:
        own["TRAIN_FILES"] = as_list(files)
    if arm.script and "{last}" not in arm.model:  # a loop of iterations names its folders itself
        own["OUTPUT"] = str(Path(variables["CKPT_DIR"], arm.model).parent)
    if created:
        created.append(f"output={files[0]}")
    lines = {
        "MODEL": shlex.quote(model_path(arm, variables)),
        "SCRIPT": shlex.quote(arm.script),
        "ARGUMENTS": f"({shlex.join(arm.arguments)})",
        "NEW_PROBLEMS": f"({shlex.join(created)})",
        "with": f"({shlex.join(f'{key}={value}' for key, value in own.items())})",
    }
    return "\n".join(f"{key}={value}" for key, value in lines.items())


def as_list(words: Iterable[str]) -> str:
    """The inside of ``key=[a,b]``; a word with more than the letters of a plain path is quoted, as by bash/env.sh."""
    return ",".join(word if PLAIN.fullmatch(word) else "'" + word.replace("'", "''") + "'" for word in words)


def of_seeds(folder: str, path: str, variables: Mapping[str, str], *, made: bool) -> list[str]:
    """``seedN:FOLDER/path`` of the seeds SEED … SEED+SEEDS-1, the first of which has ``folder``, the others -seedN.

    Of a study of replicates, ``seedN-splitM:FOLDER-seedN-splitM/path``. With ``made`` of those where it is there (or
    DRY_RUN).
    """
    paths = {name: f"{folder}{end}/{path}" for name, end in _ends_of_seeds(variables).items()}
    every = not made or bool(variables.get("DRY_RUN"))
    return [f"{name}:{file}" for name, file in paths.items() if every or Path(file).exists()]


def folders_of_seeds(folder: str, variables: Mapping[str, str]) -> list[Path]:
    """The folders of the seeds that are there; of replicates, what their splits share comes first."""
    shared = [f"-{Replicate(one.seed).name}" for one in read_replicates(variables.get(VARIABLE, ""))]
    ends = dict.fromkeys([*shared, *_ends_of_seeds(variables).values()])
    return [path for path in (Path(f"{folder}{end}") for end in ends) if path.is_dir()]


def _ends_of_seeds(variables: Mapping[str, str]) -> dict[str, str]:
    if words := variables.get(VARIABLE):
        return {one.name: f"-{one.name}" for one in read_replicates(words)}
    first = int(variables["SEED"])
    seeds = range(first, first + int(variables["SEEDS"]))
    return {f"seed{seed}": "" if seed == first else f"-seed{seed}" for seed in seeds}


def runs_of_sizes(variables: Mapping[str, str]) -> list[str]:
    """``seedN-ARM:FOLDER`` of the seeds' runs of $ARMS that differ in their model alone, of those that are there."""
    study = load_study(variables["SECTION"])
    arms = {name: find_arm(study, name) for name in variables["ARMS"].split()}
    sizes = [name for name, arm in arms.items() if len(arm.arguments) == 1 and not arm.script.endswith("domain")]
    folders = {
        f"{seed}-{name}": Path(f"{variables['CKPT_DIR']}{end}", study.arms[name].model).parent
        for seed, end in _ends_of_seeds(variables).items()
        for name in sizes
    }
    every = bool(variables.get("DRY_RUN"))
    return [f"{name}:{folder}" for name, folder in folders.items() if every or (folder / "metrics.jsonl").is_file()]


def runs_of_seeds(variables: Mapping[str, str]) -> list[str]:
    """``FOLDER-RUN:PATH`` of every training of the seeds that has metrics."""
    folders = folders_of_seeds(variables["CKPT_DIR"], variables)
    runs = [path.parent for folder in folders for path in sorted(folder.glob("*/metrics.jsonl"))]
    return [f"{run.parent.name}-{run.name}:{run}" for run in runs]


def _word(value: Any) -> str:
    """A value as one word of a command line."""
    return "[" + ",".join(map(str, value)) + "]" if isinstance(value, list) else str(value)
