"""Several evaluations of the same arms, one a seed, read as one study; what cannot be compared is refused."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compositionality.data.artefact import Manifest, file_hash, tree_hash, verify
from compositionality.data.intervals import Counts
from compositionality.errors import UserError
from compositionality.evaluate import by_problem
from compositionality.evaluate.by_problem import Answers, read_answers
from compositionality.evaluate.crossed import Finding, contrast_over_seeds, share_over_seeds
from compositionality.evaluate.naming import named_paths

TABLE = "accuracy"
FUNCTION_SETS = ("trained", "heldout")
"""Of string problems: what the functions are that they compose."""
KINDS = (*FUNCTION_SETS, "countdown")
FREE_SETTINGS = ("seed", "rows_per_shard")
"""Sampling settings in which the seeds of a study may differ."""


@dataclass(frozen=True)
class Group:
    """The problems of one level in one problem file; ``functions``: trained, heldout, countdown, or the file's name."""

    problems: str
    data_source: str

    @property
    def functions(self) -> str:
        """What the problems are made of, as the data source or the file's name tells it."""
        named = f"{self.data_source} {self.problems}"
        return next((name for name in KINDS if name in named), self.problems)

    @property
    def level(self) -> int:
        """The number that the data source ends in; 0 if there is none."""
        found = re.search(r"\d+$", self.data_source)
        return int(found[0]) if found else 0


@dataclass(frozen=True)
class Evaluation:
    """One seed: its checked tables."""

    name: str
    folder: Path
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    answers: Mapping[tuple[str, str], Answers]

    @property
    def files(self) -> dict[str, str]:
        """Hash of every problem file, by name."""
        return {
            name.removeprefix("problems/"): value for name, value in self.inputs.items() if name.startswith("problems/")
        }

    @property
    def sampling(self) -> dict[str, Any]:
        """The settings that must be the same in every seed."""
        return {name: value for name, value in self.settings["sampling"].items() if name not in FREE_SETTINGS}


@dataclass(frozen=True)
class Study:
    """k seeds of the same arms on the same problems."""

    seeds: tuple[Evaluation, ...]
    models: tuple[str, ...]
    groups: tuple[Group, ...]

    def group(self, functions: str, level: int) -> Group | None:
        """The group of a set of functions at a level; None if the study has none."""
        return next((group for group in self.groups if (group.functions, group.level) == (functions, level)), None)

    def size(self, group: Group) -> int:
        """How many problems."""
        levels = self.seeds[0].answers[self.models[0], group.problems].levels
        return levels.count(group.data_source)

    def share(self, model: str, group: Group) -> Finding | None:
        """Accuracy of a model."""
        return share_over_seeds(*self._counts(model, group))

    def contrast(self, model: str, base: str, group: Group, times: float = 1.0) -> Finding | None:
        """Accuracy of a model − ``times`` × that of another one."""
        return contrast_over_seeds(*self._counts(model, group), *self._counts(base, group), times)

    def _counts(self, model: str, group: Group) -> tuple[Counts, Counts]:
        """Correct and judged answers, (seeds, problems)."""
        answers = [seed.answers[model, group.problems] for seed in self.seeds]
        rows = [row for row, level in enumerate(answers[0].levels) if level == group.data_source]
        correct, judged = ([getattr(answer, name)[rows] for answer in answers] for name in ("correct", "judged"))
        return np.stack(correct), np.stack(judged)


def read_study(inputs: Sequence[str], models: Sequence[str] = ()) -> Study:
    """A study from ``NAME:PATH`` or paths of accuracy.json (or its folder); ``models``: these arms only, in order."""
    seeds = tuple(_read(name, Path(path)) for name, path in named_paths("inputs", _named(inputs)).items())
    for seed in seeds[1:]:
        _check_same(seeds[0], seed, models)
    known = dict.fromkeys(model for model, _ in seeds[0].answers)
    unknown = [model for model in models if model not in known]
    if unknown:
        raise UserError(f"models: {', '.join(unknown)} unknown; evaluated are {', '.join(known)}")
    chosen = tuple(models) or tuple(known)
    groups = {Group(file, level): None for (_, file), answers in seeds[0].answers.items() for level in answers.levels}
    return Study(seeds, chosen, tuple(groups))


def _named(entries: Sequence[str]) -> list[str]:
    """A bare path is named after the run's folder, RUN/section41_42/accuracy.json."""
    return [entry if re.fullmatch(r"[\w.-]+[=:].+", entry) else f"{_run_of(Path(entry))}:{entry}" for entry in entries]


def _run_of(path: Path) -> str:
    folder = path.parent if path.suffix else path
    return re.sub(r"[^\w.-]", "-", folder.absolute().parent.name) or "run"


def _read(name: str, path: Path) -> Evaluation:
    """UserError if a table is missing, altered, or older than the answers that it was made from."""
    folder = path if path.is_dir() else path.parent
    json, table, counts = (folder / file for file in (f"{TABLE}.json", f"{TABLE}.parquet", by_problem.FILE))
    for file in (json, table, counts):
        if not file.is_file():
            raise UserError(f"{file}: missing; run examples/evaluate.py again (it keeps the answers that are there)")
    made, copied, counted = verify(table), verify(json), verify(counts)
    if copied.inputs.get("table") != file_hash(table) or _made_from(counted) != _made_from(made):
        raise UserError(f"{folder}: its tables come from different evaluations; run examples/evaluate.py again")
    for rollouts, value in made.inputs.items():
        if (folder / rollouts).is_dir() and tree_hash(folder / rollouts) != value:
            raise UserError(f"{folder / rollouts}: newer than {table.name}; run examples/evaluate.py again")
    return Evaluation(name, folder, made.settings, made.inputs, read_answers(counts))


def _made_from(manifest: Manifest) -> tuple[str, dict[str, Any], dict[str, str]]:
    return manifest.step, manifest.settings, manifest.inputs


def _check_same(first: Evaluation, other: Evaluation, models: Sequence[str]) -> None:
    """UserError unless two seeds differ in nothing but their seed."""
    both = f"{first.name} and {other.name}"
    changed = sorted(
        file for file in first.files.keys() | other.files if first.files.get(file) != other.files.get(file)
    )
    if changed:
        raise UserError(f"{both}: other problems in {', '.join(changed)}; evaluate every seed on the same test files")
    mine, theirs = first.sampling, other.sampling
    for key in sorted(mine.keys() | theirs):
        if mine.get(key) != theirs.get(key):
            raise UserError(f"{both}: sampled differently ({key}: {mine.get(key)} and {theirs.get(key)})")
    arms = [{model for model, _ in seed.answers} for seed in (first, other)]
    lacking = sorted(set(models) - (arms[0] & arms[1]) if models else arms[0] ^ arms[1])
    if lacking:
        raise UserError(f"{both}: {', '.join(lacking)} not evaluated in both; evaluate the rest or choose models=[...]")
    if first.inputs == other.inputs:
        raise UserError(f"{both}: the same answers twice; give each seed once")
