"""The results of a study: the tables of its replicates together; what cannot be compared is refused.

A replicate is a seed, or a seed with one of its divisions of the functions. Either all replicates answer the same
problems (crossed), or every replicate has a division, and so problems, of its own (nested in seeds).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from compositionality.data.artefact import Manifest, file_hash, read_manifest, tree_hash, verify
from compositionality.data.json_files import check_shape, read_json_object
from compositionality.data.parquet import read_table
from compositionality.errors import UserError
from compositionality.evaluate.naming import named_paths, with_run_names
from compositionality.evaluate.table import RESULTS, joined, read
from compositionality.evaluate.types import ALL_LEVELS, DEEPEST, QUERY_VALUES, Metric
from compositionality.rollout.store import rollout_manifest
from compositionality.stats.estimate import ByProblem
from compositionality.train.metrics import TrainingReport
from compositionality.train.training_report import report_from

TRAINING = "training.json"  # beside the table: the training report of each model that has one
ROLLOUTS = "rollouts"  # beside the table: the completions that it counts, MODEL/FILE
LABELS = "labels.parquet"
SPLIT = "function_split"  # the option of a task that divides its functions, as the manifest of a problem file holds it
MAKERS = {
    Metric.ACCURACY: ("examples/evaluate.py", "evaluate_accuracy"),
    Metric.PASS_AT_K: ("examples/passk.py", "passk"),
    Metric.FAILURES: ("examples/failure_modes.py", "find_failures"),
    Metric.INFLUENCE: ("bash/behavior_injection/influence.sh", "influence"),
}
"""What a table of this metric is made by, and under which step."""
FREE_SETTINGS = ("seed", "rows_per_shard")  # sampling settings in which the replicates of a study may differ
INFLUENCE = "influence.parquet"
QUERIES, SCALING = "queries", "scaling"  # groups of problems under which claims find them
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
    """Where the tables of one replicate lie, and what is known of them beside their rows."""

    name: str
    tables: Mapping[str, Path] = field(default_factory=dict)
    seed: int = 0
    split: int = 0
    sampling: Mapping[str, Any] = field(default_factory=dict)  # its settings
    inputs: Mapping[str, str] = field(default_factory=dict)  # hash of everything that they were made from, by name
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
    arms: tuple[str, ...]  # those that every replicate has and that are compared, in order
    figures: pd.DataFrame | None = None  # in place of rows, by name: value, low, high, and why it is none (reason)
    runs: int = 0  # how many the figures come from

    @classmethod
    def of(cls, tables: Sequence[pd.DataFrame], replicates: Sequence[ReplicateTables]) -> "Results":
        """Put the tables of the replicates together, each under its name."""
        names = [place.name for place, table in zip(replicates, tables, strict=True) for _ in range(len(table))]
        rows = joined(tables).assign(replicate=names)
        rows["cluster"] = pd.factorize(rows["cluster"])[0]  # numbers are compared faster than names
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
        """How many seeds, not counting their splits; of figures, how many runs."""
        return self.runs or len(self.seeds)

    @cached_property
    def sets(self) -> list[ProblemSet]:
        """All sets of problems, in order."""
        if self.figures is not None:
            return [ProblemSet(SCALING, SCALING, ALL_LEVELS)]
        return list(map(ProblemSet._make, self.rows[list(ProblemSet._fields)].drop_duplicates().to_numpy().tolist()))

    @cached_property
    def pools(self) -> dict[ProblemSet, list[ProblemSet]]:
        """The sets of every file and group, by what stands for all of them together (level ``ALL_LEVELS``)."""
        pools: dict[ProblemSet, list[ProblemSet]] = {}
        for problems in sorted(self.sets):
            pools.setdefault(ProblemSet(problems.file, problems.group, ALL_LEVELS), []).append(problems)
        return pools

    def parts(self, problems: ProblemSet) -> list[ProblemSet]:
        """Return the sets that a pool stands for; of a set itself."""
        return [problems] if problems in self.sets else self.pools.get(problems, [problems])

    @cached_property
    def measured(self) -> dict[tuple[str, ProblemSet, str], list[list[ByProblem]]]:
        """Values by model, problems and measure, as they are asked for: tables of all pairs ask for each many times."""
        return {}

    @cached_property
    def _by_arm(self) -> dict[Any, pd.DataFrame]:
        return dict(iter(self.rows.groupby([*ProblemSet._fields, "arm", "replicate"], sort=False)))

    @cached_property
    def files(self) -> dict[str, str]:
        """Hash of every problem file, by name; of nested replicates by REPLICATE/NAME."""
        if not self.nested:
            return self.replicates[0].files
        return {f"{place.name}/{file}": value for place in self.replicates for file, value in place.files.items()}

    def of_replicate(self, arm: str, problems: ProblemSet, replicate: str) -> pd.DataFrame:
        """Return the rows of one model's answers to one set of problems, (P,); none: no rows."""
        rows = self._by_arm.get((*problems, arm, replicate))
        return self.rows.iloc[:0] if rows is None else rows

    def problem_set(self, group: str, level: int) -> ProblemSet | None:
        """Return the first set of this group and level (``DEEPEST``: its highest); None if there is none.

        ``ALL_LEVELS``: what stands for all levels of the group in its first file.
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
        sizes = [[len(self.of_replicate(arm, part, first)) for arm in self.arms] for part in self.parts(problems)]
        return sum(max(by_arm, default=0) for by_arm in sizes)

    @cached_property
    def _samples(self) -> dict[Any, int]:
        judged = self.rows[self.rows["arm"].isin(self.arms) & (self.rows["judged"] > 0)]
        return {key: int(n) for key, n in judged.groupby([*ProblemSet._fields], sort=False)["judged"].min().items()}

    def samples(self, problems: ProblemSet) -> int:
        """Return N, the samples that every model and replicate has of every problem that was judged at all."""
        return min(self._samples.get(tuple(part), 0) for part in self.parts(problems))

    def only(self, replicates: Sequence[str]) -> "Results":
        """Return the results of some replicates."""
        chosen = tuple(replicate for replicate in self.replicates if replicate.name in replicates)
        return replace(self, rows=self.rows[self.rows["replicate"].isin(replicates)], replicates=chosen)

    def beside(self, base: str) -> "Results":
        """Return the results with ``base_log_prob``, the ``gold_log_prob`` of this arm on the same problem."""
        keys = [*ProblemSet._fields, "replicate", "problem"]
        of_base = self.rows[self.rows["arm"] == base].set_index(keys)["gold_log_prob"].rename("base_log_prob")
        return replace(self, rows=self.rows.join(of_base, on=keys))

    def choose(self, arms: Sequence[str]) -> "Results":
        """Return the results of these arms, in this order. UserError for one that is not in every replicate."""
        if lacking := [arm for arm in arms if arm not in self.arms]:
            known = ", ".join(self.rows["arm"].unique())
            raise UserError(f"models: {', '.join(lacking)} not evaluated in every seed; evaluated are {known}")
        return replace(self, rows=self.rows[self.rows["arm"].isin(arms)], arms=tuple(arms))

    @cached_property
    def in_some(self) -> list[str]:
        """The arms that only some replicates have, in order."""
        return [arm for arm in self.rows["arm"].unique().tolist() if arm not in self.arms]

    def with_arms(self, arms: set[str]) -> "Results":
        """Return the replicates that have all these arms, if some have arms of them that others have not; else self."""
        missing = arms - set(self.arms)
        if not missing or not missing <= set(self.in_some):
            return self
        having = self.rows[self.rows["arm"].isin(missing)].groupby("replicate")["arm"].nunique()
        names = [replicate.name for replicate in self.replicates if having.get(replicate.name, 0) == len(missing)]
        return replace(self.only(names), arms=(*self.arms, *sorted(missing))) if names else self


def read_results(inputs: Sequence[str], arms: Sequence[str] = (), metric: Metric = Metric.ACCURACY) -> Results:
    """Read ``NAME:PATH`` or paths of an evaluation's folder or a file in it; ``arms``: these, in order; empty: all."""
    places = named_paths("inputs", with_run_names(inputs))
    results = Results.of(*zip(*(_read(name, Path(path), metric) for name, path in places.items()), strict=True))
    _check_comparable(results)
    return results.choose(arms) if arms else results


def read_figures(inputs: Sequence[str]) -> Results:
    """Read one ``NAME:PATH`` of a scaling.json. UserError for several, and for a file that is damaged or altered."""
    named = named_paths("inputs", with_run_names(inputs))
    if len(named) != 1:
        raise UserError(f"{', '.join(inputs)}: one fit has the runs of all seeds; give one scaling.json")
    ((name, place),) = named.items()
    path, again = Path(place), f"run {FIT} again"
    if not path.is_file():
        raise UserError(f"{path}: missing; run {FIT}")
    if verify(path).step != "fit_scaling":
        raise UserError(f"{path}: was not made by {FIT}")
    content = read_json_object(path, again)
    check_shape(content, {"runs_of_a_size": int, "quantities": {"name": str, "reason": str}}, path, again)
    figures = pd.DataFrame(content["quantities"]).set_index("name")
    rows, replicate = joined([]).assign(replicate=""), ReplicateTables(name, {path.name: path})
    return Results(rows, (replicate,), tuple(figures.index), figures, content["runs_of_a_size"])


def _read(name: str, path: Path, metric: Metric) -> tuple[pd.DataFrame, ReplicateTables]:
    """Read the table of a replicate. UserError if one is missing, altered, or older than what it was made from."""
    (maker, step), folder = MAKERS[metric], path if path.is_dir() else path.parent
    if not path.exists():
        raise UserError(f"{path}: missing; run {maker}{of_before(folder)}")
    if metric is Metric.INFLUENCE:
        return _read_influence(name, folder, maker)
    if path.is_file() and path.name != RESULTS:
        raise UserError(f"{path}: is no {RESULTS}; give the folder that {maker} has made")
    places = {file: folder / file for file in (RESULTS, *([TRAINING] if metric is Metric.ACCURACY else []))}
    for table in places.values():
        if not table.is_file():
            again = f"run {maker} again (it keeps the answers that are there)"
            raise UserError(f"{table}: missing; {again}{of_before(folder)}")
    table, training = places[RESULTS], dict[str, TrainingReport]()
    manifest = _verified(table, maker)
    if manifest.step != step:
        raise UserError(f"{table}: of the step {manifest.step}; {metric} is measured by {maker}, give its folder")
    if metric is Metric.FAILURES and "kept" not in manifest.facts:  # of a committed table labels are not kept
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
    """Return the manifest of a table. UserError if it is altered, or rollouts beside it have changed since."""
    manifest = verify(table)
    for rollouts, value in manifest.inputs.items():
        if (table.parent / rollouts).is_dir() and tree_hash(table.parent / rollouts) != value:
            raise UserError(f"{table.parent / rollouts}: newer than {table.name}; run {maker} again")
    return manifest


def replicate_of(rollouts: Iterable[Path], problems: Iterable[Path]) -> dict[str, int]:
    """Return ``seed`` (of sampling) and ``function_split`` of an evaluation, 0 where nothing says one."""
    seeds = [rollout_manifest(folder).settings.get("seed", 0) for folder in rollouts]
    manifests = {path: read_manifest(path) for path in problems}
    splits = {path: split for path, made in manifests.items() if made and (split := made.settings.get(SPLIT, 0))}
    (first, split), *others = splits.items() or [(Path(), 0)]
    for path, other in others:
        if other != split:
            raise UserError(f"{first} and {path}: of function splits {split} and {other}; evaluate those of one split")
    return {"seed": seeds[0] if seeds else 0, SPLIT: split}


def _check_comparable(results: Results) -> None:
    """Raise UserError unless the replicates differ in nothing but their seed and their division of functions."""
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
                f"{pair}: {n[0]} and {n[1]} problems of {problems} in {problems.file}; make as many for every split"
            )
        for key in sorted(first.sampling.keys() | other.sampling):
            value, other_value = first.sampling.get(key), other.sampling.get(key)
            if value != other_value:
                raise UserError(f"{pair}: sampled differently ({key}: {value} and {other_value})")
    for one, other in combinations(results.replicates, 2):
        if one.inputs == other.inputs:
            raise UserError(f"{one.name} and {other.name}: the same answers twice; give each seed once")
    owners: dict[int, str] = {}
    for replicate in results.replicates if results.nested else ():
        if (owner := owners.setdefault(replicate.split, replicate.name)) != replicate.name:
            raise UserError(
                f"{owner} and {replicate.name}: both of function split {replicate.split}, beside others; give every "
                "replicate a split of its own (SPLIT), or all the same one"
            )


_INFLUENCE_TYPES = pa.schema(
    [("problem", pa.int64()), ("group", pa.string()), ("correct", pa.int64()), ("samples", pa.int64())]
    + [(name, pa.float64()) for name in QUERY_VALUES]
)  # fmt: skip


def of_before(folder: Path) -> str:
    """Return, for an error, which commit reads what an earlier version left in ``folder``, or in it without a seed."""
    places = (folder, folder.parents[1] / folder.name) if len(folder.parents) > 1 else (folder,)
    for path in (place / name for place in places for name in ("accuracy.json", "by_problem.parquet")):
        if path.is_file():
            return f"; {path} is of an earlier version: git checkout dca9a2b5^ reads it"
    return ""


def _read_influence(name: str, folder: Path, maker: str) -> tuple[pd.DataFrame, ReplicateTables]:
    """Read MODEL/influence.parquet of every model: values of each query; levels are put together."""
    paths = {path.parent.name: path for path in sorted(folder.glob(f"*/{INFLUENCE}"))}
    if not paths:
        raise UserError(f"{folder}: no MODEL/{INFLUENCE}; run {maker}")
    tables, inputs, first = [], dict[str, str](), dict[str, Any]()
    for model, path in paths.items():
        made = _verified(path, maker)
        rows = read_table(path, _INFLUENCE_TYPES.names, types=_INFLUENCE_TYPES, gaps=["entropy"]).to_pandas()
        measured = {
            "problems": made.inputs["problems"],
            "settings": made.settings,
            "queries": rows["problem"].tolist(),
        }
        first = first or measured
        if changed := [what for what in first if measured[what] != first[what]]:
            raise UserError(f"{path}: measured with other {changed[0]} than the models beside it; run {maker} again")
        inputs |= {f"problems/{QUERIES}": made.inputs["problems"], model: made.inputs["rollouts"]}
        # A query without completions is no measurement.
        known = {"file": QUERIES, "level": 0, "data_source": "", "judged": rows["entropy"].notna().astype(int)}
        rows = rows.rename(columns={"correct": "right", "samples": "n"}).assign(arm=model, **known)
        tables.append(rows.assign(cluster=rows["problem"].astype(str)))
    places = {f"{model}/{INFLUENCE}": path for model, path in paths.items()}
    return joined(tables), ReplicateTables(name, places, inputs=inputs)
