"""Several evaluations of the same arms, one a seed, read as one study; what cannot be compared is refused."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compositionality.data.artefact import Manifest, file_hash, tree_hash, verify
from compositionality.errors import UserError
from compositionality.evaluate.claims.claim import ALL_SAMPLES, GROWTH, Source
from compositionality.evaluate.counts import BY_PROBLEM, Answers, read_answers, read_classes
from compositionality.evaluate.naming import named_paths
from compositionality.stats.intervals import Counts, Values
from compositionality.stats.pass_at_k import pass_at_k
from compositionality.stats.random_effects import Finding, contrast_over_seeds, share_over_seeds

TABLE = "accuracy"
FUNCTION_SETS = ("trained", "heldout")
"""Of string problems: what the functions are that they compose."""
KINDS = (*FUNCTION_SETS, "countdown")
LABELS = "labels.parquet"
EVALUATE = "examples/evaluate.py"
MAKERS = {
    Source.ACCURACY: EVALUATE,
    Source.COUNTDOWN: EVALUATE,
    Source.PASS_AT_K: "examples/passk.py",
    Source.FAILURES: "examples/failure_modes.py",
}
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
        sampling = self.settings.get("sampling", {})
        return {name: value for name, value in sampling.items() if name not in FREE_SETTINGS}


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

    def samples(self, group: Group) -> int:
        """N, the samples that every model and seed has of every problem that was judged at all."""
        judged = [self._counts(model, group)[1] for model in self.models]
        return int(min(counts[counts > 0].min() for counts in judged))

    def share(self, model: str, group: Group, part: str = "correct") -> Finding | None:
        """Accuracy of a model, or another part of its answers (``comparison.Comparison.part``)."""
        return share_over_seeds(*self._values(model, group, part))

    def contrast(
        self, model: str, base: str, group: Group, times: float = 1.0, part: str = "correct"
    ) -> Finding | None:
        """Accuracy (or another part) of a model − ``times`` × that of another one."""
        return contrast_over_seeds(*self._values(model, group, part), *self._values(base, group, part), times)

    def _values(self, model: str, group: Group, part: str) -> tuple[Values, Values]:
        """What is counted and out of how many, (seeds, problems); of pass@k, its value out of one."""
        if part not in (ALL_SAMPLES, GROWTH):
            return self._counts(model, group, part)
        correct, judged = self._counts(model, group)
        n = self.samples(group)
        enough = np.maximum(judged, n)  # where nothing was judged; left out by what is returned beside it
        by_k = pass_at_k(correct.ravel(), enough.ravel(), n)
        value = by_k[:, -1] - (by_k[:, 0] if part == GROWTH else 0.0)
        return value.reshape(judged.shape), (judged > 0).astype(np.int64)

    def _counts(self, model: str, group: Group, part: str = "correct") -> tuple[Counts, Counts]:
        """Answers of a kind and judged answers, (seeds, problems)."""
        answers = [seed.answers[model, group.problems] for seed in self.seeds]
        rows = [row for row, level in enumerate(answers[0].levels) if level == group.data_source]
        counted = [(answer.correct if part == "correct" else answer.classes[part])[rows] for answer in answers]
        return np.stack(counted), np.stack([answer.judged[rows] for answer in answers])


def read_study(inputs: Sequence[str], models: Sequence[str] = (), source: Source = Source.ACCURACY) -> Study:
    """A study from ``NAME:PATH`` or paths of a section's folder or a file in it; ``models``: these arms, in order."""
    named = named_paths("inputs", _named(inputs)).items()
    seeds = tuple(_read(name, Path(path), source) for name, path in named)
    for seed in seeds[1:]:
        _check_same(seeds[0], seed, models)
    known = arms_of(seeds[:1])
    unknown = [model for model in models if model not in known]
    if unknown:
        raise UserError(f"models: {', '.join(unknown)} unknown; evaluated are {', '.join(known)}")
    chosen = tuple(models) or tuple(known)
    groups = {Group(file, level): None for (_, file), answers in seeds[0].answers.items() for level in answers.levels}
    return Study(seeds, chosen, tuple(groups))


def shared_arms(inputs: Sequence[str], source: Source) -> tuple[list[str], list[str]]:
    """The arms that every seed has, and those that only some have."""
    seeds = [_read(name, Path(path), source) for name, path in named_paths("inputs", _named(inputs)).items()]
    in_all = set.intersection(*(set(arms_of([seed])) for seed in seeds))
    arms = arms_of(seeds)
    return [arm for arm in arms if arm in in_all], [arm for arm in arms if arm not in in_all]


def arms_of(seeds: Sequence[Evaluation]) -> list[str]:
    """All arms of the seeds, in order."""
    return list(dict.fromkeys(model for seed in seeds for model, _ in seed.answers))


def _named(entries: Sequence[str]) -> list[str]:
    """A bare path is named after the run's folder, RUN/section41_42/accuracy.json."""
    return [entry if re.fullmatch(r"[\w.-]+[=:].+", entry) else f"{_run_of(Path(entry))}:{entry}" for entry in entries]


def _run_of(path: Path) -> str:
    folder = path.parent if path.suffix else path
    return re.sub(r"[^\w.-]", "-", folder.absolute().parent.name) or "run"


def _read(name: str, path: Path, source: Source) -> Evaluation:
    """UserError if a table is missing, altered, or older than the answers that it was made from."""
    folder = path if path.is_dir() else path.parent
    maker = MAKERS[source]
    counts = folder / BY_PROBLEM
    accuracy = [folder / f"{TABLE}{ending}" for ending in (".json", ".parquet")] if maker == EVALUATE else []
    for file in (*accuracy, counts):
        if not file.is_file():
            raise UserError(f"{file}: missing; run {maker} again (it keeps the answers that are there)")
    checked = [verify(file) for file in accuracy]
    made = verify(counts)
    if accuracy and (checked[0].inputs.get("table") != file_hash(accuracy[1]) or _from(checked[1]) != _from(made)):
        raise UserError(f"{folder}: its tables come from different evaluations; run {maker} again")
    for rollouts, value in made.inputs.items():
        if (folder / rollouts).is_dir() and tree_hash(folder / rollouts) != value:
            raise UserError(f"{folder / rollouts}: newer than {(accuracy or [counts])[-1].name}; run {maker} again")
    if source is not Source.FAILURES:
        return Evaluation(name, folder, made.settings, made.inputs, read_answers(counts))
    labels = verify(folder / LABELS)
    if made.inputs.get("labels") != file_hash(folder / LABELS):
        raise UserError(f"{counts}: not made from the {LABELS} beside it; run {maker} again")
    return Evaluation(name, folder, labels.settings, labels.inputs, read_classes(counts))


def _from(manifest: Manifest) -> tuple[str, dict[str, Any], dict[str, str]]:
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
