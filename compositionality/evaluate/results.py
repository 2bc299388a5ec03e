"""The results of a study: the combined tables of its replicates; incomparable ones are refused.

A replicate is a seed, or a seed with one of its divisions of the functions. Either all replicates answer the same
problems (crossed), or every replicate has its own division, and so its own problems (nested in seeds).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from compositionality.data.artefact import Manifest, file_hash, is_to_be_checked, read_manifest, tree_hash, verify
from compositionality.data.json_files import read_json_object
from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.evaluate.naming import add_run_names, named_paths
from compositionality.evaluate.table import RESULTS, concatenate, read
from compositionality.evaluate.types import ALL_LEVELS, DEEPEST, QUERY_VALUES, Metric
from compositionality.rollout.store import rollout_manifest
from compositionality.stats.estimate import ByProblem
from compositionality.train.training_report import TrainingReport, report_from

TRAINING = "training.json"  # beside the table: the training report of each model that has one
ROLLOUTS = "rollouts"  # beside the table: the completions that it counts, MODEL/FILE
LABELS = "labels.parquet"
SPLIT = "function_split"  # the option of a task that divides its functions, in the manifest of a problem file
MAKERS = {
    Metric.ACCURACY: ("examples/evaluate.py", "evaluate_accuracy"),
    Metric.PASS_AT_K: ("examples/passk.py", "passk"),
    Metric.FAILURES: ("examples/failure_modes.py", "find_failures"),
    Metric.INFLUENCE: ("bash/behavior_injection/influence.sh", "influence"),
}
"""The program that makes the table of a metric, and its step."""
FREE_SETTINGS = ("seed", "rows_per_shard")  # sampling settings that may differ between the replicates of a study
INFLUENCE = "influence.parquet"
QUERIES, SCALING = "queries", "scaling"  # names of groups in claims
FIT = "examples/fit_scaling.py"


class ProblemSet(NamedTuple):
    """The problems of one group and level in one problem file, from one data source: reported together."""

    file: str
    group: str
    level: int
    data_source: str = ""

    def __str__(self) -> str:
        return f"{self.group} L{self.level}" if self.level else self.group


@dataclass(frozen=True)
class ReplicateTables:
    """The paths of the tables of one replicate, and their metadata."""

    name: str
    tables: Mapping[str, Path] = field(default_factory=dict)
    seed: int = 0
    split: int = 0
    sampling: Mapping[str, Any] = field(default_factory=dict)  # settings of the sampling
    inputs: Mapping[str, str] = field(default_factory=dict)  # hashes of all inputs, by name
    training: Mapping[str, TrainingReport] = field(default_factory=dict)

    @property
    def files(self) -> dict[str, str]:
        """Hash of every problem file, by name."""
        return {
            name.removeprefix("problems/"): value for name, value in self.inputs.items() if name.startswith("problems/")
        }


@dataclass(frozen=True)
class Results:
    """Rows of all replicates, with their name in the column ``replicate``."""

    rows: pd.DataFrame
    replicates: tuple[ReplicateTables, ...]
    arms: tuple[str, ...]  # the compared arms, which every replicate has, in order
    figures: pd.DataFrame | None = None  # instead of rows, by name: value, low, high, or the reason for no value
    runs: int = 0  # number of runs behind the figures

    @classmethod
    def of(cls, tables: Sequence[pd.DataFrame], replicates: Sequence[ReplicateTables]) -> "Results":
        """Combine the tables of the replicates, with a column for their names."""
        names = [place.name for place, table in zip(replicates, tables, strict=True) for _ in range(len(table))]
        rows = concatenate(tables).assign(replicate=names)
        rows["cluster"] = pd.factorize(rows["cluster"])[0]  # numbers compare faster than names
        evaluated = [set(table["arm"].unique()) for table in tables]
        arms = [arm for arm in rows["arm"].unique().tolist() if all(arm in names for names in evaluated)]
        return cls(rows, tuple(replicates), tuple(arms))

    @property
    def nested(self) -> bool:
        """True if replicates answer different problems."""
        return len({replicate.split for replicate in self.replicates}) > 1

    @cached_property
    def seeds(self) -> list[list[str]]:
        """Names of the replicates of each seed."""
        seeds: dict[int, list[str]] = {}
        for number, replicate in enumerate(self.replicates):
            seeds.setdefault(replicate.seed if self.nested else number, []).append(replicate.name)
        return list(seeds.values())

    @property
    def n_seeds(self) -> int:
        """Number of seeds (not of their splits); for figures the number of runs."""
        return self.runs or len(self.seeds)

    @cached_property
    def sets(self) -> list[ProblemSet]:
        if self.figures is not None:
            return [ProblemSet(SCALING, SCALING, ALL_LEVELS)]
        return list(map(ProblemSet._make, self.rows[[*ProblemSet._fields]].drop_duplicates().to_numpy().tolist()))

    @cached_property
    def pools(self) -> dict[ProblemSet, list[ProblemSet]]:
        """The sets of every file and group, by the pool that stands for all of them (level ``ALL_LEVELS``)."""
        pools: dict[ProblemSet, list[ProblemSet]] = {}
        for problems in sorted(self.sets):
            pools.setdefault(ProblemSet(problems.file, problems.group, ALL_LEVELS), []).append(problems)
        return pools

    def parts(self, problems: ProblemSet) -> list[ProblemSet]:
        """Return the sets of a pool; for a set, the set itself."""
        return [problems] if problems in self.sets else self.pools.get(problems, [problems])

    @cached_property
    def measured(self) -> dict[tuple[str, ProblemSet, str], list[list[ByProblem]]]:
        """Cache of values by model, problems and measure: tables of all pairs need each of them many times."""
        return {}

    @cached_property
    def _by_arm(self) -> dict[Any, pd.DataFrame]:
        return dict(iter(self.rows.groupby([*ProblemSet._fields, "arm", "replicate"], sort=False)))

    @cached_property
    def files(self) -> dict[str, str]:
        """Hash of every problem file, by name; for nested replicates by REPLICATE/NAME."""
        if not self.nested:
            return self.replicates[0].files
        return {f"{place.name}/{file}": value for place in self.replicates for file, value in place.files.items()}

    def select(self, arm: str, problems: ProblemSet, replicate: str) -> pd.DataFrame:
        """Return the rows of one model, set of problems and replicate, (P,); may be empty."""
        rows = self._by_arm.get((*problems, arm, replicate))
        return self.rows.iloc[:0] if rows is None else rows

    def problem_set(self, group: str, level: int) -> ProblemSet | None:
        """Return the first set of this group and level (``DEEPEST``: its highest), or None.

        ``ALL_LEVELS``: the pool of all levels of the group in its first file.
        """
        if level == ALL_LEVELS:
            first = next((problems for problems in self.sets if problems.group == group), None)
            return first and first._replace(level=ALL_LEVELS, data_source="" if first.level else first.data_source)
        if level == DEEPEST:
            level = max((problems.level for problems in self.sets if problems.group == group), default=DEEPEST)
        return next((problems for problems in self.sets if problems[1:3] == (group, level)), None)

    def size(self, problems: ProblemSet) -> int:
        """Return the number of problems in each replicate."""
        first = self.replicates[0].name
        sizes = [[len(self.select(arm, part, first)) for arm in self.arms] for part in self.parts(problems)]
        return sum(max(by_arm, default=0) for by_arm in sizes)

    @cached_property
    def _samples(self) -> dict[Any, int]:
        judged = self.rows[self.rows["arm"].isin(self.arms) & (self.rows["judged"] > 0)]
        return dict(judged.groupby([*ProblemSet._fields], sort=False)["judged"].min().astype(int).items())

    def samples(self, problems: ProblemSet) -> int:
        """Return N, the number of samples that every model and replicate has of every judged problem."""
        return min(self._samples.get(tuple(part), 0) for part in self.parts(problems))

    def only(self, replicates: Sequence[str]) -> "Results":
        chosen = tuple(replicate for replicate in self.replicates if replicate.name in replicates)
        return replace(self, rows=self.rows[self.rows["replicate"].isin(replicates)], replicates=chosen)

    def join_base(self, base: str) -> "Results":
        """Return the results with ``base_log_prob``, the ``gold_log_prob`` of ``base`` on the same problem."""
        keys = [*ProblemSet._fields, "replicate", "problem"]
        log_probs = self.rows[self.rows["arm"] == base].set_index(keys)["gold_log_prob"].rename("base_log_prob")
        return replace(self, rows=self.rows.join(log_probs, on=keys))

    def choose(self, arms: Sequence[str]) -> "Results":
        """Return the results of these arms, in this order. UserError for an arm that is not in every replicate."""
        if lacking := [arm for arm in arms if arm not in self.arms]:
            evaluated = ", ".join(self.rows["arm"].unique())
            raise UserError(f"models: {', '.join(lacking)} not evaluated in every seed; evaluated are {evaluated}")
        return replace(self, rows=self.rows[self.rows["arm"].isin(arms)], arms=tuple(arms))

    @cached_property
    def partial_arms(self) -> list[str]:
        """The arms that only some replicates have, in order."""
        return [arm for arm in self.rows["arm"].unique().tolist() if arm not in self.arms]

    def with_arms(self, arms: set[str]) -> "Results":
        """Return only the replicates with all these arms, if some of the arms are in some replicates only."""
        missing = arms - set(self.arms)
        if not missing or not missing <= set(self.partial_arms):
            return self
        counts = self.rows[self.rows["arm"].isin(missing)].groupby("replicate")["arm"].nunique()
        names = [replicate.name for replicate in self.replicates if counts.get(replicate.name, 0) == len(missing)]
        return replace(self.only(names), arms=(*self.arms, *sorted(missing))) if names else self


def existing(inputs: Sequence[str]) -> list[str]:
    """Return, for a dry run, the inputs of ``read_results`` that exist, as NAME:PATH."""
    places = named_paths("inputs", add_run_names(inputs))
    return [f"{name}:{path}" for name, path in places.items() if is_to_be_checked(path, dry=True)]


def read_results(inputs: Sequence[str], arms: Sequence[str] = (), metric: Metric = Metric.ACCURACY) -> Results:
    """Read evaluations, ``NAME:PATH`` or paths of folders (or a file in them); only ``arms``, in order (empty: all)."""
    places = named_paths("inputs", add_run_names(inputs))
    results = Results.of(*zip(*(_read(name, Path(path), metric) for name, path in places.items()), strict=True))
    _check_comparable(results)
    return results.choose(arms) if arms else results


def read_figures(inputs: Sequence[str]) -> Results:
    """Read one ``NAME:PATH`` of a scaling.json. UserError for several, and for a damaged or altered file."""
    named = named_paths("inputs", add_run_names(inputs))
    if len(named) != 1:
        raise UserError(f"{', '.join(inputs)}: a fit has the runs of all seeds; give one scaling.json")
    ((name, place),) = named.items()
    path, again = Path(place), f"run {FIT} again"
    if not path.is_file():
        raise UserError(f"{path}: missing; run {FIT}")
    if verify(path).step != "fit_scaling":
        raise UserError(f"{path}: was not made by {FIT}; give its scaling.json")
    shape = {"runs_of_a_size": int, "quantities": {"name": str, "reason": str}}
    content = read_json_object(path, again, shape)
    figures = pd.DataFrame(content["quantities"]).set_index("name")
    rows, replicate = concatenate([]).assign(replicate=""), ReplicateTables(name, {path.name: path})
    return Results(rows, (replicate,), tuple(figures.index), figures, content["runs_of_a_size"])


def _read(name: str, path: Path, metric: Metric) -> tuple[pd.DataFrame, ReplicateTables]:
    """Read the table of a replicate. UserError if it is missing, altered, or older than its inputs."""
    (maker, step), folder = MAKERS[metric], path if path.is_dir() else path.parent
    if not path.exists():
        raise UserError(f"{path}: missing; run {maker}{old_version_hint(folder)}")
    if metric is Metric.INFLUENCE:
        return _read_influence(name, folder, maker)
    if path.is_file() and path.name != RESULTS:
        raise UserError(f"{path}: not a {RESULTS}; give the folder that {maker} made")
    places = {file: folder / file for file in (RESULTS, *([TRAINING] if metric is Metric.ACCURACY else []))}
    for table in places.values():
        if not table.is_file():
            again = f"run {maker} again (it keeps existing answers)"
            raise UserError(f"{table}: missing; {again}{old_version_hint(folder)}")
    table, training = places[RESULTS], dict[str, TrainingReport]()
    manifest = _verified(table, maker)
    if manifest.step != step:
        raise UserError(f"{table}: made by step {manifest.step}; {metric} is measured by {maker}, give its folder")
    if metric is Metric.FAILURES and "kept" not in manifest.facts:  # committed tables come without labels
        counted, manifest = manifest.inputs.get("labels"), _verified(folder / LABELS, maker)
        if counted != file_hash(folder / LABELS):
            raise UserError(f"{table}: not made from the {LABELS} beside it; run {maker} again")
    elif metric is Metric.ACCURACY:
        path = places[TRAINING]
        if verify(path).inputs.get("table") != file_hash(table):
            raise UserError(f"{path}: comes from another evaluation than {table.name} beside it; run {maker} again")
        reports = read_json_object(path, f"run {maker} again")
        training = {arm: report_from(report, f"{path}: {arm}") for arm, report in reports.items()}
    replicate = manifest.settings.get("replicate", {})
    sampling = {key: value for key, value in manifest.settings.get("sampling", {}).items() if key not in FREE_SETTINGS}
    seed, split = int(replicate.get("seed", 0)), int(replicate.get(SPLIT, 0))
    return read(table), ReplicateTables(name, places, seed, split, sampling, manifest.inputs, training)


def _verified(table: Path, maker: str) -> Manifest:
    """Return the manifest of a table. UserError if the table was altered, or rollouts beside it changed since."""
    manifest = verify(table)
    for rollouts, value in manifest.inputs.items():
        if (table.parent / rollouts).is_dir() and tree_hash(table.parent / rollouts) != value:
            raise UserError(f"{table.parent / rollouts}: newer than {table.name}; run {maker} again")
    return manifest


def replicate_of(rollouts: Iterable[Path], problems: Iterable[Path]) -> dict[str, int]:
    """Return ``seed`` (of sampling) and ``function_split`` of an evaluation, 0 if unknown."""
    seeds = [rollout_manifest(folder).settings.get("seed", 0) for folder in rollouts]
    manifests = {path: read_manifest(path) for path in problems}
    splits = {path: manifest.settings.get(SPLIT, 0) for path, manifest in manifests.items() if manifest}
    (first, split), *others = [item for item in splits.items() if item[1]] or [(Path(), 0)]
    for path, other in others:
        if other != split:
            raise UserError(
                f"{first} and {path}: have function splits {split} and {other}; evaluate files of one split"
            )
    return {"seed": seeds[0] if seeds else 0, SPLIT: split}


def _check_comparable(results: Results) -> None:
    """Raise UserError unless the replicates differ only in their seed and their division of functions."""
    first, *others = results.replicates
    keys = [*ProblemSet._fields, "replicate"]
    sizes = results.rows.groupby(keys, sort=False)["problem"].nunique().unstack(fill_value=0)
    for other in others:
        pair = f"{first.name} and {other.name}"
        changed = sorted(name for name in first.files | other.files if first.files.get(name) != other.files.get(name))
        if changed and first.split == other.split:
            raise UserError(f"{pair}: other problems in {', '.join(changed)}; evaluate every seed on the same files")
        for key, *n in sizes[sizes[first.name] != sizes[other.name]][[first.name, other.name]].itertuples():
            problems = ProblemSet(*key)
            raise UserError(
                f"{pair}: {n[0]} and {n[1]} problems of {problems} in {problems.file}; make equally many for all splits"
            )
        for key in sorted(first.sampling.keys() | other.sampling):
            value, other_value = first.sampling.get(key), other.sampling.get(key)
            if value != other_value:
                raise UserError(f"{pair}: sampled differently ({key}: {value} and {other_value}); sample both alike")
    for left, right in combinations(results.replicates, 2):
        if left.inputs == right.inputs:
            raise UserError(f"{left.name} and {right.name}: the same answers twice; give each seed once")
    owners: dict[int, str] = {}
    for replicate in results.replicates if results.nested else ():
        if (owner := owners.setdefault(replicate.split, replicate.name)) != replicate.name:
            raise UserError(
                f"{owner} and {replicate.name}: both have function split {replicate.split}, others differ; give every "
                "replicate its own split (SPLIT), or all the same one"
            )


_INFLUENCE_TYPES = pa.schema(
    [("problem", pa.int64()), ("group", pa.string()), ("correct", pa.int64()), ("samples", pa.int64())]
    + [(name, pa.float64()) for name in QUERY_VALUES]
)  # fmt: skip


def old_version_hint(folder: Path) -> str:
    """Return a hint for an error if an earlier version wrote to ``folder`` (with or without a seed)."""
    places = (folder, folder.parents[1] / folder.name) if len(folder.parents) > 1 else (folder,)
    for path in (place / name for place in places for name in ("accuracy.json", "by_problem.parquet")):
        if path.is_file():
            return f"; {path} is of an earlier version: git checkout dca9a2b5^ reads it"
    return ""


def _read_influence(name: str, folder: Path, maker: str) -> tuple[pd.DataFrame, ReplicateTables]:
    """Read MODEL/influence.parquet of every model: values of each query, all levels together."""
    paths = {path.parent.name: path for path in sorted(folder.glob(f"*/{INFLUENCE}"))}
    if not paths:
        raise UserError(f"{folder}: no MODEL/{INFLUENCE}; run {maker}")
    tables, inputs, first = [], dict[str, str](), dict[str, Any]()
    for model, path in paths.items():
        manifest = _verified(path, maker)
        rows = read_table(path, _INFLUENCE_TYPES.names, types=_INFLUENCE_TYPES, gaps=["entropy"]).to_pandas()
        measured = {"problems": manifest.inputs["problems"], "settings": manifest.settings}
        measured["queries"] = rows["problem"].tolist()
        first = first or measured
        if changed := [name for name in first if measured[name] != first[name]]:
            raise UserError(f"{path}: measured with other {changed[0]} than the models beside it; run {maker} again")
        inputs |= {f"problems/{QUERIES}": manifest.inputs["problems"], model: manifest.inputs["rollouts"]}
        # A query without completions does not count.
        keys = {"file": QUERIES, "level": 0, "data_source": "", "judged": rows["entropy"].notna().astype(int)}
        rows = rows.rename(columns={"correct": "right", "samples": "n"}).assign(arm=model, **keys)
        tables.append(rows.assign(cluster=rows["problem"].astype(str)))
    places = {f"{model}/{INFLUENCE}": path for model, path in paths.items()}
    return concatenate(tables), ReplicateTables(name, places, inputs=inputs)
