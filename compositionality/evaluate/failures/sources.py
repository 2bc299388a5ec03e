"""Settings of the classification, and the rollouts and problem files that they name."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from compositionality.data.artefact import file_hash, is_to_be_checked, read_manifest
from compositionality.data.problems import problem_of, read_problems
from compositionality.errors import UserError
from compositionality.evaluate.naming import check_name, named_paths
from compositionality.evaluate.table import RESULTS
from compositionality.ranges import REQUIRED, NonNegativeInt, PositiveInt, check_ranges
from compositionality.rollout.engines.server import address_of
from compositionality.rollout.store import rollout_manifest
from compositionality.types import Problem

URL_VARIABLE, MODEL_VARIABLE = "JUDGE_BASE_URL", "JUDGE_MODEL"


@dataclass
class FailureSettings:
    """Settings of ``find_failures``: give ``evaluation`` (a folder of examples/evaluate.py) or ``rollouts``."""

    problems: list[str] = REQUIRED  # problem files, PATH or NAME:PATH
    output: Path = REQUIRED  # folder of the results
    evaluation: str = ""  # folder of examples/evaluate.py
    rollouts: list[str] = field(default_factory=list)  # instead: NAME:FOLDER of collect_rollouts
    models: list[str] = field(default_factory=list)  # of the evaluation, in this order; empty: all
    levels: list[NonNegativeInt] = field(default_factory=list)  # these only; empty: all
    level: NonNegativeInt = 3  # the one that is printed, and judged
    judge: bool = False  # let a language model judge too
    judge_base_url: str = ""  # http://HOST:PORT/v1; default: $JUDGE_BASE_URL
    judge_model: str = ""  # the name that the server knows; default: $JUDGE_MODEL
    judge_responses: NonNegativeInt = 100  # of every model and problem file; 0: all of that level
    judge_max_tokens: PositiveInt = 256  # of the judging model's answer
    judge_concurrency: PositiveInt = 16  # requests at a time
    force: bool = False  # replace a result that was made from something else


@dataclass(frozen=True)
class Source:
    """The answers of one model to one problem file."""

    model: str
    file: str  # name of the problem file
    rollouts: Path
    path: Path


class Problems:
    """The rows of one problem file."""

    def __init__(self, path: Path) -> None:
        self.path, self._table = path, read_problems(path)
        self.levels: list[int] = self._table["level"].to_pylist()

    def __len__(self) -> int:
        return len(self.levels)

    def problem(self, number: int) -> Problem:
        """The problem in a row of the file."""
        return problem_of(self._table.slice(number, 1).to_pylist()[0], number)


def find_sources(settings: FailureSettings) -> list[Source]:
    """The rollouts, model by model; UserError if one is missing or answers another problem file."""
    files = check_settings(settings)
    if settings.rollouts:
        sources = _of_rollouts(settings, files)
    else:
        folder = Path(settings.evaluation)
        models = settings.models or _models_in(folder)
        sources = [
            _checked(model, name, folder / "rollouts" / model / name, files) for model in models for name in files
        ]
    _check_levels(settings, {source.path for source in sources})
    return sources


def _check_levels(settings: FailureSettings, files: Iterable[Path]) -> None:
    wanted = {*settings.levels, *([settings.level] if settings.judge else [])}
    if not wanted:
        return
    there = {level for path in files for level in Problems(path).levels}
    if settings.levels and not there.intersection(settings.levels):
        raise UserError(f"levels={settings.levels}: the problems have levels {sorted(there)}; leave levels out for all")
    if settings.judge and settings.level not in there:
        raise UserError(f"level={settings.level}: the problems have levels {sorted(there)}; choose one to be judged")


def check(settings: FailureSettings) -> None:
    """A dry run's: the settings, and the rollouts and problem files if all are there."""
    files = check_settings(settings)
    folders = named_paths("rollouts", settings.rollouts) if settings.rollouts else {"": settings.evaluation}
    if is_to_be_checked(*files.values(), *folders.values(), dry=True):
        find_sources(settings)


def check_settings(settings: FailureSettings) -> dict[str, Path]:
    """The problem files by name. UserError for settings that mean nothing."""
    files = {name: Path(path) for name, path in named_paths("problems", settings.problems).items()}
    if bool(settings.evaluation) == bool(settings.rollouts):
        raise UserError("give one of the two: evaluation=FOLDER, or rollouts=[NAME:FOLDER,...]")
    for name in settings.models:
        check_name("models", name)
    check_ranges(settings)
    if settings.judge:
        judge_server(settings)
    return files


def judge_server(settings: FailureSettings) -> tuple[str, str]:
    """Address and name of the judge, from the settings or the environment. UserError if one is missing."""
    base_url = settings.judge_base_url or os.environ.get(URL_VARIABLE, "")
    model = settings.judge_model or os.environ.get(MODEL_VARIABLE, "")
    if not base_url or not model:
        raise UserError(f"judge=true: set {URL_VARIABLE}=http://HOST:PORT/v1 and {MODEL_VARIABLE}=NAME")
    address_of(base_url)
    return base_url, model


def _of_rollouts(settings: FailureSettings, files: dict[str, Path]) -> list[Source]:
    """A folder of rollouts belongs to the problem file that it was made from."""
    hashes = {file_hash(path): name for name, path in files.items() if path.is_file()}
    found: dict[tuple[str, str], Source] = {}
    for entry in settings.rollouts:
        ((model, path),) = named_paths("rollouts", [entry]).items()
        if settings.models and model not in settings.models:
            continue
        name = hashes.get(rollout_manifest(Path(path)).inputs.get("problems", ""))
        if name is None:
            raise UserError(f"{path}: answers none of the files in problems; add the one that it was made from")
        if (model, name) in found:
            raise UserError(f"rollouts: {model} answers {name} twice; write another NAME:FOLDER for {path}")
        found[model, name] = Source(model, name, Path(path), files[name])
    if not found:
        raise UserError(f"models: {', '.join(settings.models)} unknown among the rollouts; write NAME:FOLDER")
    return list(found.values())


def _models_in(folder: Path) -> list[str]:
    """In the order of the evaluation's table, where it has one."""
    rollouts = folder / "rollouts"
    there = sorted(path.name for path in rollouts.glob("[!.]*") if path.is_dir())
    if not there:
        raise UserError(f"{rollouts}: no rollouts; run examples/evaluate.py, or give rollouts=[NAME:FOLDER,...]")
    table = read_manifest(folder / RESULTS)
    known = table.settings.get("models", []) if table else []
    return sorted(there, key=lambda model: known.index(model) if model in known else len(known))


def _checked(model: str, name: str, folder: Path, files: dict[str, Path]) -> Source:
    if not folder.is_dir():
        raise UserError(f"{folder}: no answers of {model} to {name}; evaluate it, or narrow models and problems")
    path = files[name]
    if not path.is_file():
        raise UserError(f"{path}: no such file; run the step that makes it or correct the path")
    if rollout_manifest(folder).inputs.get("problems") != file_hash(path):
        raise UserError(f"{folder}: answers other problems than {path}; give the file that it was made from")
    return Source(model, name, folder, path)
