"""Evaluations of the same arms, one for each replicate of a study; what cannot be compared is refused.

A replicate is a seed, or a seed with one of its function splits. Either all replicates answer the same problems
(crossed), or every replicate has a function split, and so problems, of its own (nested in seeds).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from compositionality.data.artefact import Manifest, file_hash, tree_hash, verify
from compositionality.data.json_files import check_shape, read_json_object
from compositionality.errors import UserError
from compositionality.evaluate.counts import BY_PROBLEM, Counted, Stratum, read_class_counts, read_counts
from compositionality.evaluate.naming import named_paths, with_run_names
from compositionality.evaluate.parts import counted, is_pass_at_k, ks_of, passed
from compositionality.evaluate.query_values import read_query_values, tables_of
from compositionality.stats.estimate import ByProblem, difference, over_problems, over_seeds, over_splits
from compositionality.train.common.training_report import report_from
from compositionality.types import CORRECT, DEEPEST, QUERY_VALUES, Estimate, Metric, TrainingReport

TABLE = "accuracy"
LABELS = "labels.parquet"
EVALUATE = "examples/evaluate.py"
MAKERS = {
    Metric.ACCURACY: EVALUATE,
    Metric.PASS_AT_K: "examples/passk.py",
    Metric.FAILURES: "examples/failure_modes.py",
    Metric.INFLUENCE: "examples/influence.py",
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
    def tables(self) -> dict[str, Path]:
        """The files that hold its counts, by their place in the folder."""
        found = self.folder / BY_PROBLEM
        files = [found] if found.is_file() else list(tables_of(self.folder).values())
        return {path.relative_to(self.folder).as_posix(): path for path in files}

    @property
    def files(self) -> dict[str, str]:
        """Hash of every problem file, by name."""
        return {
            name.removeprefix("problems/"): value for name, value in self.inputs.items() if name.startswith("problems/")
        }

    @property
    def seed(self) -> int:
        """That of the replicate."""
        return int(self.settings.get("replicate", {}).get("seed", 0))

    @property
    def function_split(self) -> int:
        """That of the problems; 0: the paper's."""
        return int(self.settings.get("replicate", {}).get("function_split", 0))

    def answers(self, model: str, problems: ProblemSet, part: str = CORRECT) -> ByProblem:
        """Responses of a kind to the problems of one set, and out of how many."""
        counts = self.counts[model, problems.problems]
        rows = counts.rows(problems.stratum)
        found, judged = counted(counts, part)
        return ByProblem(found[rows], judged[rows], counts.cluster_numbers[rows])

    def size(self, problems: ProblemSet) -> int:
        """The number of problems."""
        counts = next((one for (_, name), one in self.counts.items() if name == problems.problems), None)
        return len(counts.rows(problems.stratum)) if counts else 0

    @property
    def sampling(self) -> dict[str, Any]:
        """The settings that must be the same in every seed."""
        sampling = self.settings.get("sampling", {})
        return {name: value for name, value in sampling.items() if name not in FREE_SETTINGS}


@dataclass(frozen=True)
class Evaluations:
    """The replicates of a study with the same arms, on the same problems unless they are ``nested``."""

    seeds: tuple[Evaluation, ...]
    models: tuple[str, ...]
    sets: tuple[ProblemSet, ...]
    of_some: "Evaluations | None" = None
    """Those replicates that have more arms than all have (controls)."""

    def with_arms(self, arms: set[str]) -> "Evaluations":
        """All replicates; only those of ``of_some`` if not all have these arms, but they do."""
        some = self.of_some
        return some if some and not arms.issubset(self.models) and arms.issubset(some.models) else self

    @property
    def nested(self) -> bool:
        """True if replicates answer different problems."""
        return len({one.function_split for one in self.seeds}) > 1

    @property
    def n_seeds(self) -> int:
        """How many seeds, not counting their splits."""
        return len(self.each_seed())

    @property
    def files(self) -> dict[str, str]:
        """Hash of every problem file, by name; of ``nested`` replicates by REPLICATE/NAME."""
        if not self.nested:
            return self.seeds[0].files
        return {f"{one.name}/{file}": value for one in self.seeds for file, value in one.files.items()}

    def each_seed(self) -> list["Evaluations"]:
        """Seed by seed, each with its splits."""
        groups: dict[int, list[Evaluation]] = {}
        for number, one in enumerate(self.seeds):
            groups.setdefault(one.seed if self.nested else number, []).append(one)
        return [replace(self, seeds=tuple(group)) for group in groups.values()]

    def problem_set(self, group: str, level: int) -> ProblemSet | None:
        """The first set of this group and level (``DEEPEST``: its highest); None if there is none."""
        if level == DEEPEST:
            level = max((one.level for one in self.sets if one.group == group), default=DEEPEST)
        return next((one for one in self.sets if (one.group, one.level) == (group, level)), None)

    def size(self, problems: ProblemSet) -> int:
        """The number of problems, in each replicate."""
        return self.seeds[0].size(problems)

    def samples(self, problems: ProblemSet) -> int:
        """N, the samples that every model and replicate has of every problem that was judged at all."""
        judged = [one.answers(model, problems).weights for model in self.models for one in self.seeds]
        return int(min((counts[counts > 0].min() for counts in judged if counts.any()), default=0))

    def why_not(self, model: str) -> str:  # noqa: ARG002
        """Why a figure of this name is no result; of a model never."""
        return ""

    def share(self, model: str, problems: ProblemSet, part: str = CORRECT) -> Estimate | None:
        """Accuracy of a model, or another part of its responses (``Comparison.part``).

        None if nothing was judged, or a k is above the number of samples.
        """
        answers = self._answers(model, problems, part)
        if answers is None or part in QUERY_VALUES:  # these are no shares
            return None
        return self._estimate(answers)

    def contrast(
        self,
        model: str,
        base: str,
        problems: ProblemSet,
        times: float = 1.0,
        part: str = CORRECT,
        base_part: str = "",
        over: Sequence[str] = (),
    ) -> Estimate | None:
        """Accuracy (or another part) of a model − ``times`` × that of another one (or its ``base_part``).

        ``over``, a model and its base: less their difference (without ``times`` and ``base_part``).
        """
        names = [(1.0, model, part), (-times, base, base_part or part)]
        if over:
            names = [(1.0, model, part), (-1.0, base, part), (-1.0, over[0], part), (1.0, over[1], part)]
        answers = [self._answers(name, problems, measure) for _, name, measure in names]
        models = [one for one in answers if one is not None]
        if len(models) < len(names):
            return None
        factors = [factor for factor, *_ in names]
        largest = self._largest(part)
        low, high = (largest * sum(factor for factor in factors if factor * sign > 0) for sign in (-1, 1))
        seeds = zip(*models, strict=True)
        differences = [[difference(factors, each) for each in zip(*splits, strict=True)] for splits in seeds]
        return self._estimate(differences, low, high)

    def _estimate(self, seeds: Sequence[Sequence[ByProblem]], low: float = 0.0, high: float = 1.0) -> Estimate | None:
        if self.nested:
            return over_splits([[over_problems(*one, low, high) for one in splits] for splits in seeds], low, high)
        values, weights, clusters = zip(*(one for splits in seeds for one in splits), strict=True)
        return over_seeds(np.stack(values), np.stack(weights), clusters[0], low, high)

    def _largest(self, part: str) -> float:
        """The largest difference: 1 of shares, twice the largest value of others."""
        if part not in QUERY_VALUES:
            return 1.0
        values = [one.classes[part] for seed in self.seeds for one in seed.counts.values()]
        return 2 * max((float(np.abs(one).max(initial=0.0)) for one in values), default=0.0) or 1.0

    def _answers(self, model: str, problems: ProblemSet, part: str) -> list[list[ByProblem]] | None:
        """By seed and split; of pass@k its value out of one."""
        seeds = [group.seeds for group in self.each_seed()]
        if not is_pass_at_k(part):
            return [[one.answers(model, problems, part) for one in splits] for splits in seeds]
        ks = ks_of(part, self.samples(problems))
        found = [[one.answers(model, problems) for one in splits] for splits in seeds]
        if not all((one.weights >= max(ks)).any() for splits in found for one in splits):
            return None
        return [[passed(one, ks) for one in splits] for splits in found]


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
    _check_splits(seeds)
    known = arms_of(seeds[:1])
    unknown = [model for model in models if model not in known]
    if unknown:
        raise UserError(f"models: {', '.join(unknown)} unknown; evaluated are {', '.join(known)}")
    chosen = tuple(models) or tuple(known)
    return Evaluations(seeds, chosen, tuple(_sets(seeds[0])))


def _sets(*replicates: Evaluation) -> list[ProblemSet]:
    """All sets of problems, in order."""
    counts = [(file, one) for replicate in replicates for (_, file), one in replicate.counts.items()]
    return list({ProblemSet(file, *stratum): None for file, one in counts for stratum in one.strata})


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
    maker = MAKERS[metric]
    if not path.exists():
        raise UserError(f"{path}: missing; run {maker}")
    folder = path if path.is_dir() else path.parent
    if metric is Metric.INFLUENCE:
        found, inputs = read_query_values(tables_of(folder))
        return Evaluation(name, folder, {}, inputs, found)
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
    """UserError unless two replicates differ in nothing but their seed and function split."""
    both = f"{first.name} and {other.name}"
    changed = sorted(
        file for file in first.files.keys() | other.files if first.files.get(file) != other.files.get(file)
    )
    if changed and first.function_split == other.function_split:
        raise UserError(f"{both}: other problems in {', '.join(changed)}; evaluate every seed on the same test files")
    for problems in _sets(first, other):
        if first.size(problems) != other.size(problems):
            sizes = f"{first.size(problems)} and {other.size(problems)} problems"
            raise UserError(
                f"{both}: {sizes} of {problems.stratum} in {problems.problems}; make as many for every split"
            )
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


def _check_splits(seeds: Sequence[Evaluation]) -> None:
    """UserError if replicates differ in their function split and two of them share one."""
    owners: dict[int, Evaluation] = {}
    for one in seeds if len({one.function_split for one in seeds}) > 1 else ():
        other = owners.setdefault(one.function_split, one)
        if other is not one:
            raise UserError(
                f"{other.name} and {one.name}: both of function split {one.function_split}, beside others; give every "
                "replicate a split of its own (FUNCTION_SPLIT), or all the same one"
            )
