"""Evaluations of the same arms on the same problems, one for each seed; what cannot be compared is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from compositionality.data.artefact import Manifest, file_hash, tree_hash, verify
from compositionality.data.json_files import check_shape, read_json_object
from compositionality.errors import UserError
from compositionality.evaluate.counts import (
    BY_PROBLEM,
    Counted,
    ProblemCounts,
    Stratum,
    known_composed,
    read_class_counts,
    read_counts,
)
from compositionality.evaluate.naming import named_paths, with_run_names
from compositionality.stats.intervals import Counts, Values
from compositionality.stats.pass_at_k import pass_at_k
from compositionality.stats.random_effects import contrast_over_seeds, share_over_seeds
from compositionality.train.common.training_report import report_from
from compositionality.types import ALL_SAMPLES, COMPOSED, CORRECT, GROWTH, Estimate, Metric, TrainingReport

TABLE = "accuracy"
LABELS = "labels.parquet"
EVALUATE = "examples/evaluate.py"
MAKERS = {
    Metric.ACCURACY: EVALUATE,
    Metric.PASS_AT_K: "examples/passk.py",
    Metric.FAILURES: "examples/failure_modes.py",
}
FREE_SETTINGS = ("seed", "rows_per_shard")
"""Sampling settings in which the seeds of a study may differ."""


@dataclass(frozen=True)
class ProblemSet:
    """The problems of one stratum in one problem file."""

    problems: str
    group: str
    level: int
    data_source: str = ""

    @property
    def stratum(self) -> Stratum:
        return Stratum(self.group, self.level, self.data_source)


@dataclass(frozen=True)
class Evaluation:
    """One seed: its checked tables, and the training report of each arm that has one."""

    name: str
    folder: Path
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    counts: Counted
    training: Mapping[str, TrainingReport] = field(default_factory=dict)

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
class Evaluations:
    """k seeds of the same arms on the same problems."""

    seeds: tuple[Evaluation, ...]
    models: tuple[str, ...]
    sets: tuple[ProblemSet, ...]
    of_some: "Evaluations | None" = None
    """Those replicates that have more arms than all have (controls)."""

    def with_arms(self, arms: set[str]) -> "Evaluations":
        """All replicates; only those of ``of_some`` if not all have these arms, but they do."""
        some = self.of_some
        return some if some and not arms.issubset(self.models) and arms.issubset(some.models) else self

    def problem_set(self, group: str, level: int) -> ProblemSet | None:
        """The first set of this group and level; None if there is none."""
        return next((one for one in self.sets if (one.group, one.level) == (group, level)), None)

    def size(self, problems: ProblemSet) -> int:
        """The number of problems."""
        return len(self.seeds[0].counts[self.models[0], problems.problems].rows(problems.stratum))

    def samples(self, problems: ProblemSet) -> int:
        """N, the samples that every model and seed has of every problem that was judged at all."""
        judged = [self._counts(model, problems)[1] for model in self.models]
        return int(min(counts[counts > 0].min() for counts in judged))

    def share(self, model: str, problems: ProblemSet, part: str = CORRECT) -> Estimate | None:
        """Accuracy of a model, or another part of its responses (``Comparison.part``)."""
        return share_over_seeds(*self._values(model, problems, part))

    def contrast(
        self, model: str, base: str, problems: ProblemSet, times: float = 1.0, part: str = CORRECT
    ) -> Estimate | None:
        """Accuracy (or another part) of a model − ``times`` × that of another one."""
        return contrast_over_seeds(*self._values(model, problems, part), *self._values(base, problems, part), times)

    def _values(self, model: str, problems: ProblemSet, part: str) -> tuple[Values, Values]:
        """What is counted and out of how many, (seeds, problems); of pass@k, its value out of one."""
        if part not in (ALL_SAMPLES, GROWTH):
            return self._counts(model, problems, part)
        correct, judged = self._counts(model, problems)
        n = self.samples(problems)
        enough = np.maximum(judged, n)  # where nothing was judged; the second value leaves these problems out
        by_k = pass_at_k(correct.ravel(), enough.ravel(), n)
        value = by_k[:, -1] - (by_k[:, 0] if part == GROWTH else 0.0)
        return value.reshape(judged.shape), (judged > 0).astype(np.int64)

    def _counts(self, model: str, problems: ProblemSet, part: str = CORRECT) -> tuple[Counts, Counts]:
        """Responses of a kind and judged responses, (seeds, problems)."""
        counts = [seed.counts[model, problems.problems] for seed in self.seeds]
        rows = counts[0].rows(problems.stratum)
        pairs = [_counted(one, part) for one in counts]
        return np.stack([counted[rows] for counted, _ in pairs]), np.stack([of[rows] for _, of in pairs])


def _counted(counts: ProblemCounts, part: str) -> tuple[Counts, Counts]:
    """Responses of a kind (``Comparison.part``), and out of how many, (P,)."""
    if part == COMPOSED:
        return known_composed(counts)
    return counts.correct if part == CORRECT else counts.classes[part], counts.judged


def read_evaluations(
    inputs: Sequence[str], models: Sequence[str] = (), metric: Metric = Metric.ACCURACY
) -> Evaluations:
    """From ``NAME:PATH`` or paths of a section's folder or a file in it; ``models``: these arms, in order.

    UserError if the evaluations cannot be compared, or a table is missing, altered or stale.
    """
    named = named_paths("inputs", with_run_names(inputs)).items()
    seeds = tuple(_read(name, Path(path), metric) for name, path in named)
    for seed in seeds[1:]:
        _check_same(seeds[0], seed, models)
    known = arms_of(seeds[:1])
    unknown = [model for model in models if model not in known]
    if unknown:
        raise UserError(f"models: {', '.join(unknown)} unknown; evaluated are {', '.join(known)}")
    chosen = tuple(models) or tuple(known)
    sets = {ProblemSet(file, *one): None for (_, file), counts in seeds[0].counts.items() for one in counts.strata}
    return Evaluations(seeds, chosen, tuple(sets))


def shared_arms(inputs: Sequence[str], metric: Metric) -> tuple[list[str], list[str]]:
    """The arms that every seed has, and those that only some have."""
    seeds = [_read(name, Path(path), metric) for name, path in named_paths("inputs", with_run_names(inputs)).items()]
    in_all = set.intersection(*(set(arms_of([seed])) for seed in seeds))
    arms = arms_of(seeds)
    return [arm for arm in arms if arm in in_all], [arm for arm in arms if arm not in in_all]


def arms_of(seeds: Sequence[Evaluation]) -> list[str]:
    """All arms of the seeds, in order."""
    return list(dict.fromkeys(model for seed in seeds for model, _ in seed.counts))


def _read(name: str, path: Path, metric: Metric) -> Evaluation:
    """UserError if a table is missing, altered, or older than the answers that it was made from."""
    folder = path if path.is_dir() else path.parent
    maker = MAKERS[metric]
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
    if metric is not Metric.FAILURES:
        training = _training(accuracy[0]) if accuracy else {}
        return Evaluation(name, folder, made.settings, made.inputs, read_counts(counts), training)
    labels = verify(folder / LABELS)
    if made.inputs.get("labels") != file_hash(folder / LABELS):
        raise UserError(f"{counts}: not made from the {LABELS} beside it; run {maker} again")
    return Evaluation(name, folder, labels.settings, labels.inputs, read_class_counts(counts))


def _training(path: Path) -> dict[str, TrainingReport]:
    """The training report of each arm that has one, from accuracy.json."""
    again = f"run {EVALUATE} again"
    content = read_json_object(path, again)
    check_shape(content, {"training": dict}, path, again)
    return {arm: report_from(report, f"{path}: training: {arm}") for arm, report in content["training"].items()}


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
    arms = [{model for model, _ in seed.counts} for seed in (first, other)]
    lacking = sorted(set(models) - (arms[0] & arms[1]) if models else arms[0] ^ arms[1])
    if lacking:
        raise UserError(f"{both}: {', '.join(lacking)} not evaluated in both; evaluate the rest or choose models=[...]")
    if first.inputs == other.inputs:
        raise UserError(f"{both}: the same answers twice; give each seed once")
