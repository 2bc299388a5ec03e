"""Every file of a study that the page is made from, by a name without a path; altered and stale files are refused."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import pyarrow as pa

from compositionality.config.problem_sets import create_problem_set
from compositionality.console import natural_key
from compositionality.data.artefact import config_hash, file_hash, input_hash, manifest_path, read_manifest
from compositionality.data.git import code_version
from compositionality.data.json_files import NUMBER, Shape, read_json_object
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.evaluate.registration import FROZEN, read_registration
from compositionality.evaluate.results import INFLUENCE as INFLUENCE_TABLE
from compositionality.evaluate.results import (
    LABELS,
    ROLLOUTS,
    TRAINING,
    ReplicateTables,
    Results,
    old_version_hint,
    read_results,
)
from compositionality.evaluate.seeds import summary_of
from compositionality.evaluate.table import RESULTS
from compositionality.evaluate.types import ALL_LEVELS, CHAIN, CORRECT, Metric
from compositionality.ranges import REQUIRED, OneOf
from compositionality.report.draw import SCALING_SHAPE, with_level
from compositionality.report.record import MACHINE_SHAPE, read_times
from compositionality.train.log import SAMPLES
from compositionality.train.metrics import read_metrics
from compositionality.validation import check_ranges

COMPOSITION, INJECTION, SCALING = "section41_42", "behavior_injection", "scaling_law"
PAPERS = {
    COMPOSITION: "Yuan, Chen et al., “From f(x) and g(x) to f(g(x))” (arXiv 2509.25123)",
    INJECTION: "Cen et al., “Behavior Injection” (arXiv 2505.18917)",
    SCALING: "“Scaling Behaviors of LLM RL Post-Training” (arXiv 2509.25300)",
}
"""The studies that have a page."""
QUESTIONS = {
    COMPOSITION: "Does reinforcement learning teach new skills, or only re-rank old ones?",
    INJECTION: "What should a model have learnt before reinforcement learning, so that it gains more?",
    SCALING: "What does reinforcement learning gain from more parameters, compute and data?",
}
"""Above the finding."""
MAIN = {INJECTION: "gains", SCALING: "scaling_flops"}
"""The figure that a section's page begins with, if it was made; else, as of composition, accuracy by level."""
SHOWN = {COMPOSITION: ("base", "stage1", "rl-level1", "rl-level2", "gold-sft")}
"""The models that a study is about: of many, charts by level show these alone."""
OWN = {COMPOSITION: "accuracy", INJECTION: "igsm", SCALING: "accuracy"}
COUNTDOWN, PASS_AT_K, FAILURES, INFLUENCE = "countdown", "passk", "failures", "influence"
"""Kinds of results, as in claims.json, which names its inputs KIND/REPLICATE/FILE; OWN: of the study's own section."""
VALIDATION = "validation"
"""Completions of validation problems that a run of RL writes, a file for each validation."""
METRICS = {PASS_AT_K: Metric.PASS_AT_K, FAILURES: Metric.FAILURES, INFLUENCE: Metric.INFLUENCE}
"""The metric of each kind of result; of other kinds, accuracy."""
FITS = {"flops": "scaling", "flops_paper": "flops_paper", "completions": "completions"}
"""Resource of a fit → its kind."""
FINDING = "finding.txt"
"""The file of a report with the finding for a terminal."""
POINTS = "scaling_points.csv"
"""Every run's losses, of which the dots of the main figure are means."""
CLAIMS, AUDIT, MACHINE, TIMES = "claims.json", "data_audit.json", "machine.json", "times.tsv"
REGISTRATION = f"registration/{FROZEN}"
RUNS = ("stage*", "sft-*", "rl-*")
"""Folders of training runs."""
AGAIN = "run the step that makes it again"
_CLAIM: Shape = {
    **{"claim": str, "text": str, "paper": str, "decision": str},
    **dict.fromkeys(("reason", "p", "p_holm", "decision_holm")),
    "comparisons": {"comparison": str, "decision": str, "threshold": NUMBER, "base": None, "values": None},
}
NOT_EVALUATED: Mapping[str, Any] = {
    **dict.fromkeys(("accuracy", "handed_on", "models", "seeds"), ()),
    **{"training": {}, "sampling": {}},
}
"""The summary of a study of which only training has run."""
SHAPES: Mapping[str, Shape] = {
    CLAIMS: {"claims": {**_CLAIM, "origin": str}, "controls": _CLAIM, "notes": list},
    "scaling.json": SCALING_SHAPE,
    MACHINE: MACHINE_SHAPE,
    "recipe.json": {"settings": dict},
    "manifest.json": {"settings": dict},
}
"""Keys that the page reads from a JSON file, by the file's name."""


@dataclass
class ReportSettings:
    """Settings of ``report``.

    Folders of a study have one for each replicate, seed0 … or seed20-split61 …, and in the results what is of the whole
    study, such as claims.json. Completions, problem files and settings of runs are those of the first replicate; of
    a registered study the one with the median effect, if its completions are there. ``arms``: title and colour of arms
    that the report does not know, ``arms={my-arm: {title: My arm, colour: "#0072B2"}}``; without, their names and spare
    colours.
    """

    study: Path = REQUIRED  # results folder of the study
    output: Path = REQUIRED  # folder of the page
    countdown: str = ""  # results folder of the study of section 4.3; empty: not shown
    checkpoints: str = ""  # folder of the checkpoints; empty: not shown
    data: str = ""  # folder of the problems; empty: not shown
    section: Annotated[str, OneOf(tuple(PAPERS))] = COMPOSITION  # whose table and figures
    seeds: list[str] = field(default_factory=list)  # replicates, such as seed0; empty: all that were evaluated
    models: list[str] = field(default_factory=list)  # these only, in this order; empty: those of every seed
    arms: dict[str, dict[str, str]] = field(default_factory=dict)  # title and colour of arms that no study names
    figures: Annotated[str, OneOf(("png", "svg", "pdf"))] = "png"  # format of the files in figures/
    check: bool = False  # write nothing; refuse a page that is no longer what it shows
    force: bool = False  # replace a result that was made from something else


@dataclass(frozen=True)
class Inputs:
    """Files and folders by name, and the results in them; ``seeds``: names of the study's replicates, in order.

    ``sampled``: the replicate whose completions are inputs, if not the first.
    """

    settings: ReportSettings
    seeds: tuple[str, ...]
    files: Mapping[str, Path]
    sampled: str = ""

    def __contains__(self, name: str) -> bool:
        return name in self.files

    def json(self, name: str) -> Any:
        """Return the content of a JSON file. UserError if it is damaged or lacks a key that the page needs."""
        path = self.files[name]
        return read_json_object(path, AGAIN, SHAPES.get(path.name))

    def starting(self, prefix: str) -> tuple[str, ...]:
        """Return the names that start with ``prefix``, sorted."""
        return tuple(sorted(name for name in self.files if name.startswith(prefix)))

    def folders(self, kind: str) -> dict[str, Path]:
        """Return the folders with results of this kind by replicate, in order."""
        tables = {name: self.files[name] for name in self.starting(f"{kind}/") if not name.endswith(LABELS)}
        folders = {name.split("/")[1]: path.parents[name.count("/") - 2] for name, path in tables.items()}
        return {seed: folders[seed] for seed in self.seeds if seed in folders}

    @cached_property
    def results(self) -> dict[str, Results]:
        """The results of each kind of all replicates that have them; kinds that were not run are left out."""
        results = dict[str, Results]()
        for kind in dict.fromkeys((self.own, COUNTDOWN, *METRICS)):
            models = self.settings.models if kind == self.own else ()
            if folders := [f"{seed}:{folder}" for seed, folder in self.folders(kind).items()]:
                results[kind] = read_results(folders, models, METRICS.get(kind, Metric.ACCURACY))
        return results

    def read(self) -> None:
        """Read every table, log and JSON file that the page shows. UserError for the first that is damaged."""
        _ = self.results
        for name, path in self.files.items():
            if path.suffix == ".json":
                self.json(name)
            elif path.name == "metrics.jsonl":
                read_metrics(path)
            elif name == TIMES:
                read_times(path)

    @property
    def own(self) -> str:
        return OWN[self.settings.section]

    @property
    def evaluated(self) -> Results:
        return self.results[self.own]

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """Accuracy, shares of chains and training reports of the study, as ``summarise_seeds`` prints them."""
        return summary_of(self.evaluated) if self.folders(self.own) else NOT_EVALUATED

    @cached_property
    def accuracy(self) -> list[dict[str, Any]]:
        return with_level(self.summary, "accuracy")

    @property
    def claimed(self) -> dict[str, Any]:
        """The first comparison of a registered study's first primary claim, if it is of two models' shares; else {}."""
        content = self.json(CLAIMS) if CLAIMS in self else {}
        primary = [claim for claim in content.get("claims", ()) if claim["primary"] and "registration" in content]
        if not primary:
            return {}
        row: dict[str, Any] = primary[0]["comparisons"][0]
        plain = row.get("times", 1) == 1 and not row.get("base_measure") and row.get("measure") in (CORRECT, *CHAIN)
        usable = plain and row["base"] and row.get("difference") is not None and row["level"] > ALL_LEVELS
        return row if usable else {}

    @property
    def effects(self) -> dict[str, float]:
        """The difference that ``claimed`` is about, by replicate; {} without it, or if some replicate has none."""
        row = self.claimed
        values = [*chain(*row["splits"])] if row.get("splits") else row.get("values") or []
        names = self.json(CLAIMS)["seeds"] if values else []
        return dict(zip(names, values, strict=True)) if len(names) == len(values) and {*names} <= {*self.seeds} else {}

    @property
    def shown(self) -> str:
        """The replicate shown first: that with the median effect (the lower of two middle ones), else the first."""
        ordered = sorted(self.effects, key=self.effects.__getitem__)
        return ordered[(len(ordered) - 1) // 2] if ordered else self.seeds[0]

    @property
    def kept(self) -> str:
        """The replicate whose completions are inputs: the one shown first, if it has its own; else the first."""
        return self.sampled or self.seeds[0]

    @cached_property
    def problems(self) -> dict[str, dict[str, pa.Table]]:
        """Problem files of this replicate and of that shown first, if known by their hash or made again."""
        return {place.name: self._problems_of(place) for place in self.evaluated.replicates
                if place.name in (self.kept, self.shown)}  # fmt: skip

    def _problems_of(self, place: ReplicateTables) -> dict[str, pa.Table]:
        names = {digest: name for name, digest in place.files.items()}
        files = {names[digest]: path for name, path in self.files.items() if (digest := self.hashes[name]) in names}
        if files or REGISTRATION not in self:
            return {name: read_problems(path) for name, path in files.items()}
        return registered_problems(self.files[REGISTRATION], place)

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Hash of every input. UserError for one that is altered."""
        return {name: input_hash(path) for name, path in self.files.items()}

    @cached_property
    def made_with(self) -> dict[str, dict[str, Any]]:
        """Settings of the inputs that have a manifest."""
        named = {name: path for name, path in self.files.items() if path.suffix != ".jsonl"}
        manifests = {name: read_manifest(path) for name, path in named.items() if path.name != "manifest.json"}
        return {name: manifest.settings for name, manifest in manifests.items() if manifest}

    def stamp(self, names: Sequence[str]) -> str:
        """Return hashes of these inputs' contents and of the settings that made them, and the version of the code."""
        data, made = ({name: known.get(name) for name in names} for known in (self.hashes, self.made_with))
        return f"data {config_hash(data)[:12]} · config {config_hash(made)[:12]} · code {code_version()}"


def find_inputs(settings: ReportSettings) -> Inputs:
    """Return the files that exist. UserError without the study's own results, or if a result is stale or altered.

    Where no replicate has been evaluated, those that have trained are shown.
    """
    check_ranges(settings)
    evaluated = [path.parents[1].name for path in settings.study.glob(f"seed*/{settings.section}/{RESULTS}")]
    runs = Path(settings.checkpoints).glob("seed*/*/metrics.jsonl") if settings.checkpoints and not evaluated else ()
    trained = {path.parents[1].name for path in runs}
    seeds = tuple(settings.seeds or sorted(evaluated or trained, key=natural_key))
    for seed in () if trained.issuperset(seeds or ("seed0",)) else seeds or ("seed0",):
        script = f"bash bash/{settings.section}/run_all.sh"
        if not settings.study.is_dir():
            raise UserError(f"study={settings.study}: no such folder; STUDY={settings.study.name} {script} makes it")
        if not (table := settings.study / seed / settings.section / RESULTS).is_file():
            raise UserError(f"{table}: no such file; make it with {script}{old_version_hint(table.parent)}")
    for name in ("countdown", "checkpoints", "data"):
        folder = getattr(settings, name)
        if folder and not (place := Path(folder, "" if name == "countdown" else seeds[0])).is_dir():
            raise UserError(f"{name}={folder}: no such folder as {place}")
    sampled, claims = seeds[0], settings.study / CLAIMS
    with suppress(UserError):  # of damaged claims, which are refused below
        shown = Inputs(settings, seeds, {CLAIMS: claims} if claims.is_file() else {}).shown
        sampled = shown if (settings.study / shown / settings.section / ROLLOUTS).is_dir() else sampled
    files = [*_of_study(settings, seeds[0], sampled)]
    for seed in seeds:
        files += [*_results(settings, seed), *_training(settings, seed)]
    inputs = Inputs(settings, seeds, {name: path for name, path in sorted(files) if path.exists()}, sampled)
    _check_sources(inputs)
    return inputs


def registered_problems(registration: Path, replicate: ReplicateTables) -> dict[str, pa.Table]:
    """Make the problem files of a registered replicate again, those that get the hash which its table names."""
    study, tables = read_registration(registration), {}
    words = [f"profile={study.profile}", f"test_seed={study.test_seed}", f"seed={replicate.seed}"]
    for name, digest in replicate.files.items():
        if "_task-" not in name:
            continue  # a file of somebody's own
        task, _, file = name.partition("_task-")
        with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()), suppress(UserError):
            own = [f"set={task}", f"files=[{file}]", f"function_split={replicate.split}", f"output={folder}"]
            (path,) = create_problem_set([*words, *own])
            if file_hash(path) == digest:
                tables[name] = read_problems(path)
    return tables


def _of_study(settings: ReportSettings, first: str, kept: str) -> Iterator[tuple[str, Path]]:
    """Yield what is of the whole study; of the replicate ``kept`` completions, settings and problem files."""
    study, section = settings.study, settings.study / settings.section
    yield from ((name, study / name) for name in (CLAIMS, AUDIT, REGISTRATION))
    yield from ((name, section / name) for name in (TIMES, MACHINE))
    for rollouts in (study / kept / settings.section / ROLLOUTS).glob("*/*"):
        if manifest_path(rollouts).is_file():
            yield f"rollouts/{rollouts.parent.name}/{rollouts.name}", rollouts
    for file in (study / kept / settings.section / SAMPLES).glob(f"*/{VALIDATION}_*.jsonl"):  # kept with a replicate
        yield f"{VALIDATION}/{kept}/{file.parent.name}/{file.stem.removeprefix(f'{VALIDATION}_')}", file
    for resource, kind in FITS.items():
        yield f"{kind}/{first}/scaling.json", section / resource / "scaling.json"
    yield POINTS, section / "flops" / POINTS
    by_verl = False
    for name in dict.fromkeys((kept.partition("-")[0], kept)) if settings.checkpoints else ():
        runs = Path(settings.checkpoints, name)
        for kind in ("base/manifest.json", *(f"{kind}/recipe.json" for kind in RUNS)):
            yield from ((f"runs/{kept}/{file.parent.name}/{file.name}", file) for file in runs.glob(kind))
        for kind in (f"*/{SAMPLES}/{VALIDATION}_*.jsonl", f"*/{VALIDATION}/*.jsonl"):  # our engine's, verl's
            for file in runs.glob(kind) if name == kept else ():
                yield f"{VALIDATION}/{kept}/{file.parts[-3]}/{file.stem.removeprefix(f'{VALIDATION}_')}", file
                by_verl |= file.parent.name == VALIDATION
    for name in dict.fromkeys((first, kept)) if settings.data else ():
        table = read_manifest(study / name / settings.section / RESULTS)
        answered, data = {*table.inputs.values()} if table else set(), Path(settings.data, name)
        for manifest in data.glob("*/**/.*.parquet.manifest.json"):
            path = manifest.with_name(manifest.name[1:].removesuffix(".manifest.json"))
            made = read_manifest(path)
            if (made and answered & {*made.files.values()}) or (by_verl and path.stem.startswith(VALIDATION)):
                yield f"data/{name}/{path.relative_to(data).as_posix()}", path


def _results(settings: ReportSettings, seed: str) -> Iterator[tuple[str, Path]]:
    """Yield the tables of one replicate."""
    folder = settings.study / seed
    places = {settings.section: OWN[settings.section], "section44": PASS_AT_K, "section45": FAILURES}
    sections = {kind: folder / section for section, kind in places.items()}
    if settings.countdown:
        sections[COUNTDOWN] = Path(settings.countdown, seed, "section43")
    for kind, section in sections.items():
        if (section / RESULTS).is_file():
            yield from ((f"{kind}/{seed}/{name}", section / name) for name in (RESULTS, TRAINING, LABELS))
    for table in folder.glob(f"{INFLUENCE}/*/{INFLUENCE_TABLE}"):
        yield f"{INFLUENCE}/{seed}/{table.parent.name}/{table.name}", table


def _training(settings: ReportSettings, seed: str) -> Iterator[tuple[str, Path]]:
    """Yield the metrics of every training run of a replicate, and its iterations of RFT."""
    for name in dict.fromkeys((seed.partition("-")[0], seed)) if settings.checkpoints else ():
        checkpoints = Path(settings.checkpoints, name)
        for run in sorted(path for kind in RUNS for path in checkpoints.glob(f"{kind}/metrics.jsonl")):
            yield f"runs/{seed}/{run.parent.name}/metrics.jsonl", run
    rollouts = "*/*rft*/iteration*/rollouts/manifest.json"
    for manifest in Path(settings.data, seed).glob(rollouts) if settings.data else ():
        arm, iteration = manifest.parts[-4:-2]
        name = arm[arm.rindex("rft") :].replace("_", "-")
        yield f"rft/{seed}/{name}/{iteration.removeprefix('iteration')}", manifest


def _check_sources(inputs: Inputs) -> None:
    """UserError if a result is altered, or claims or labels were made from results that have changed since.

    Whether the other tables are as old as their rollouts, ``read_results`` checks.
    """
    for name, path in inputs.files.items():
        made, hashes = read_manifest(path) if name == CLAIMS or name.endswith(LABELS) else None, inputs.hashes
        if name.endswith(LABELS):  # of the rollouts that the replicate's own table counts
            table = inputs.files.get(f"{inputs.own}/{name.split('/')[1]}/{RESULTS}")
            counted = read_manifest(table) if table else None
            hashes = counted.inputs if counted else {}
        for source, expected in made.inputs.items() if made else ():
            if hashes.get(source, expected) != expected:
                stale = f"stale, {inputs.files.get(source, source)} has changed since"
                raise UserError(f"{path}: {stale}; {AGAIN}")
