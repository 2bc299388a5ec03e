"""Every file of a study that the page is made from, by a name without a path; altered and stale files are refused."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from compositionality.data.artefact import (
    Manifest,
    config_hash,
    file_hash,
    manifest_path,
    read_manifest,
    tree_hash,
    verify,
)
from compositionality.data.json_files import NUMBER, Shape, check_shape, read_json_object, read_text
from compositionality.errors import UserError
from compositionality.evaluate.table import RESULTS
from compositionality.evaluate.tables import plural
from compositionality.ranges import REQUIRED, OneOf, check_ranges
from compositionality.report.draw import SCALING_SHAPE, SUMMARY_SHAPE

COMPOSITION, INJECTION, SCALING = "section41_42", "behavior_injection", "scaling_law"
PAPERS = {
    COMPOSITION: "Yuan, Chen et al., “From f(x) and g(x) to f(g(x))” (arXiv 2509.25123)",
    INJECTION: "Cen et al., “Behavior Injection” (arXiv 2505.18917)",
    SCALING: "“Scaling Behaviors of LLM RL Post-Training” (arXiv 2509.25300)",
}
"""The studies that have a page."""
SEEDS = "study/seeds.json"
COUNTDOWN = "countdown/section43/seeds.json"
CLAIMS = "claims.json"
AUDIT = "data_audit.json"
RANKS = "study/ranks.json"
RESOURCES = ("flops", "flops_paper", "completions")
FITS = "scaling.json"
"""Of each of these resources: study/RESOURCE/scaling.json."""
TIMES = ("study/times.tsv", "countdown/section43/times.tsv")
MACHINE = "study/machine.json"
"""Files of the study's own section are named study/…"""
OTHERS = "others/"
"""Claims of other studies are named others/STUDY/claims.json."""
INFLUENCE = "influence"
PASS_AT_K, FAILURES = "section44", "section45"
OF_EVERY_SEED = {
    PASS_AT_K: (RESULTS,),
    FAILURES: (RESULTS, "labels.parquet"),
}
"""Sections that the page shows over all seeds, each seed's folder read by the page itself."""
SECTIONS = {
    "accuracy": COMPOSITION,
    "countdown": "section43",
    "strings": "section43-strings",
    "passk": PASS_AT_K,
    "failures": FAILURES,
}
"""The folders that claims.json names."""
OF_THE_STUDY = ("accuracy", "igsm")
"""Those of the study's own section."""
OF_FITS = {"scaling": "flops", "completions": "completions"}
"""Folders of fits in the study's own section, by their names in claims.json."""
OF_COUNTDOWN = ("countdown", "strings")
"""Those of section 4.3."""
AGAIN = "run the step that makes it again"
_CLAIM_SHAPE: Shape = {
    "claim": str,
    "text": str,
    "paper": str,
    "decision": str,
    **dict.fromkeys(("reason", "p", "p_holm", "decision_holm")),
    "comparisons": {"comparison": str, "decision": str, "threshold": NUMBER, "base": None, "values": None},
}
SHAPES: Mapping[str, Shape] = {
    "seeds.json": {
        **SUMMARY_SHAPE,
        "seeds": {"name": str},
        "sampling": dict,
        "differences": list,
        "composed_differences": list,
    },
    "claims.json": {"claims": {**_CLAIM_SHAPE, "origin": str}, "controls": _CLAIM_SHAPE, "notes": list},
    FITS: SCALING_SHAPE,
    "ranks.json": {
        "correlations": {"of": str, "predictor": str, "correlation": NUMBER, "p": NUMBER},
        "rows": {"arm": str},
    },
    "machine.json": {"cpu": str, "cores": int, "memory_gib": NUMBER, "gpus": list, "python": str},
    "recipe.json": {"settings": dict},
    "manifest.json": {"settings": dict},
}
"""What the page reads of a JSON file, by the file's name."""
RFT_SHAPE: Shape = {"facts": dict}
RUNS = ("stage*", "sft-*", "rl-*")
"""Folders of training runs."""
_RFT = re.compile(r"/(?:\w+_)?(rft\w*)/iteration(\d+)/rollouts/")


@dataclass
class ReportSettings:
    """Settings of ``report``.

    Folders of a study have one for each replicate, seed0 … or seed20-split61 …, and in the results what is of the whole
    study: ``section``/seeds.json, claims.json. Problem files and their audit are those of the first replicate. Of
    ``others`` claims.json alone is read. ``arms``: title and colour of arms that the report does not know,
    ``arms={my-arm: {title: My arm, colour: "#0072B2"}}``; without, their names and spare colours.
    """

    study: Path = REQUIRED  # results folder of the study
    output: Path = REQUIRED  # folder of the page
    countdown: str = ""  # results folder of the study of section 4.3; empty: not shown
    checkpoints: str = ""  # folder of the checkpoints; empty: not shown
    data: str = ""  # folder of the problems; empty: not shown
    section: Annotated[str, OneOf((COMPOSITION, INJECTION, SCALING))] = COMPOSITION  # whose table and figures
    others: list[str] = field(default_factory=list)  # results folders of other studies: their claims, below this one's
    arms: dict[str, dict[str, str]] = field(default_factory=dict)  # title and colour of arms that no study names
    figures: Annotated[str, OneOf(("png", "svg", "pdf"))] = "png"  # format of the files in figures/
    check: bool = False  # write nothing; refuse a page that is no longer what it shows
    force: bool = False  # replace a result that was made from something else


@dataclass(frozen=True)
class Inputs:
    """Files and folders by name; ``seeds``: names of the study's seeds, in order; ``arms``, ``section``: as in the
    settings."""

    files: Mapping[str, Path]
    seeds: tuple[str, ...]
    arms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    section: str = COMPOSITION

    def __contains__(self, name: str) -> bool:
        return name in self.files

    def json(self, name: str) -> Any:
        """The content of a JSON file. UserError if it is damaged or lacks a key that the page needs."""
        path = self.files[name]
        content = read_json_object(path, AGAIN)
        check_shape(content, RFT_SHAPE if name.startswith("rft/") else SHAPES.get(path.name, {}), path, AGAIN)
        if name == AUDIT:
            for file in content:
                check_shape(content, {file: {}}, path, AGAIN)
        return content

    def lines(self, name: str) -> list[str]:
        """The lines of a text file. UserError if it is not UTF-8."""
        return read_text(self.files[name], AGAIN).splitlines()

    def starting(self, prefix: str) -> list[str]:
        """Names that start with ``prefix``, sorted."""
        return sorted(name for name in self.files if name.startswith(prefix))

    def seeds_with(self, section: str) -> list[str]:
        """The seeds that have every file of a section of ``OF_EVERY_SEED``."""
        return [
            seed for seed in self.seeds if all(f"{section}/{seed}/{file}" in self for file in OF_EVERY_SEED[section])
        ]

    @property
    def n_seeds(self) -> int:
        """How many seeds the study has, not counting their splits."""
        return max(int(row["n_seeds"]) for row in self.json(SEEDS)["accuracy"])

    def counted(self, n: int) -> str:
        """``3 seeds``; ``3 replicates`` of a study whose seeds have several splits."""
        return plural(n, "replicate" if any("-" in name for name in self.seeds) else "seed")

    @property
    def title(self) -> str:
        """The name of the study's results folder."""
        return self.files[SEEDS].resolve().parents[1].name

    @cached_property
    def hashes(self) -> dict[str, str]:
        """sha256 of every input."""
        return {name: tree_hash(path) for name, path in self.files.items()}

    @cached_property
    def settings(self) -> dict[str, dict[str, Any]]:
        """Settings of the inputs that have a manifest."""
        manifests = {name: _manifest(path) for name, path in self.files.items()}
        return {name: manifest.settings for name, manifest in manifests.items() if manifest}

    def data_hash(self, names: Iterable[str]) -> str:
        """Short hash of these inputs' contents."""
        return config_hash({name: self.hashes[name] for name in names})[:12]

    def config_hash(self, names: Iterable[str]) -> str:
        """Short hash of the settings by which these inputs were made, as far as they have manifests."""
        return config_hash({name: self.settings.get(name) for name in names})[:12]


def find_inputs(settings: ReportSettings) -> Inputs:
    """The files that exist. UserError without the study's seeds.json, or if a result is stale or altered."""
    check_ranges(settings)
    summary = summary_of(settings)
    if not summary.is_file():
        raise UserError(f"{summary}: no such file; make it with bash bash/{settings.section}/run_all.sh")
    verify(summary)
    seeds = tuple(seed["name"] for seed in Inputs({SEEDS: summary}, ()).json(SEEDS)["seeds"]) or ("seed0",)
    for name in ("countdown", "checkpoints", "data"):
        folder = getattr(settings, name)
        if folder and not (place := Path(folder) if name == "countdown" else of_seed(folder, seeds[0])).is_dir():
            raise UserError(f"{name}={folder}: no such folder as {place}")
    others = {f"{OTHERS}{Path(folder).name}/{CLAIMS}": Path(folder, CLAIMS) for folder in settings.others}
    for path in others.values():
        if not path.is_file():
            raise UserError(f"{path}: no such file; make it with bash bash/claims.sh, or leave it out of others=")
        verify(path)
    files = dict(_files(settings, seeds))
    found = {name: path for name, path in sorted(files.items()) if path.exists()}
    _check_sources(settings, found)
    return Inputs(found | others, seeds, settings.arms, settings.section)


def summary_of(settings: ReportSettings) -> Path:
    """The study's seeds.json."""
    return settings.study / settings.section / Path(SEEDS).name


def of_seed(folder: str | Path, name: str) -> Path:
    """Return the folder of a replicate, seed0 … or seed20-split61 …, below that of the study."""
    return Path(folder, name)


def _files(settings: ReportSettings, seeds: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    study = settings.study
    section = study / settings.section
    yield from ((name, study / name) for name in (CLAIMS, AUDIT))
    yield from ((name, section / Path(name).name) for name in (SEEDS, RANKS, TIMES[0], MACHINE))
    yield from ((f"study/{one}/{FITS}", section / one / FITS) for one in RESOURCES)
    yield from _rollouts(of_seed(study, seeds[0]) / settings.section, "rollouts")
    if settings.countdown:
        yield from ((name, Path(settings.countdown, name.removeprefix("countdown/"))) for name in (COUNTDOWN, TIMES[1]))
    for seed in seeds:
        folder = of_seed(study, seed)
        for part, names in OF_EVERY_SEED.items():
            yield from ((f"{part}/{seed}/{name}", folder / part / name) for name in names)
        for table in folder.glob(f"{INFLUENCE}/*/influence.parquet"):
            yield f"{INFLUENCE}/{seed}/{table.parent.name}", table
        yield from _rollouts(folder / PASS_AT_K, f"{PASS_AT_K}/{seed}/rollouts")
        if settings.checkpoints:
            yield from _runs(of_seed(settings.checkpoints, seed.partition("-")[0]), seed)
            yield from _runs(of_seed(settings.checkpoints, seed), seed)
        if settings.data:
            yield from _rft(of_seed(settings.data, seed), seed)
    if settings.data:
        yield from _problems(of_seed(settings.data, seeds[0]))


def _rollouts(section: Path, name: str) -> Iterator[tuple[str, Path]]:
    for folder in (section / "rollouts").glob("*/*"):
        if manifest_path(folder).is_file():
            yield f"{name}/{folder.parent.name}/{folder.name}", folder


def _runs(checkpoints: Path, seed: str) -> Iterator[tuple[str, Path]]:
    """Metrics and settings of every training run; how the base model was made."""
    yield f"runs/{seed}/base/manifest.json", checkpoints / "base" / "manifest.json"
    for run in sorted(path for kind in RUNS for path in checkpoints.glob(f"{kind}/metrics.jsonl")):
        for name in ("metrics.jsonl", "recipe.json"):
            yield f"runs/{seed}/{run.parent.name}/{name}", run.with_name(name)


def _rft(data: Path, seed: str) -> Iterator[tuple[str, Path]]:
    """The manifests of the rollouts of iterative RFT."""
    for manifest in data.glob("*/*/iteration*/rollouts/manifest.json"):
        if found := _RFT.search(manifest.as_posix()):
            yield f"rft/{seed}/{found[1].replace('_', '-')}/{found[2]}", manifest


def _problems(data: Path) -> Iterator[tuple[str, Path]]:
    """Parquet files with a manifest, not those of rollouts and of ablations."""
    for manifest in data.glob("*/**/.*.parquet.manifest.json"):
        path = manifest.with_name(manifest.name[1:].removesuffix(".manifest.json"))
        name = path.relative_to(data)
        if "rollouts" not in name.parts and name.parts[0] != "ablation":
            yield f"data/{name.as_posix()}", path


def _manifest(path: Path) -> Manifest | None:
    """The manifest of an input; a manifest that is itself an input has none."""
    return None if path.suffix == ".jsonl" or path.name.endswith("manifest.json") else read_manifest(path)


def _check_sources(settings: ReportSettings, files: Mapping[str, Path]) -> None:
    """UserError if a result is altered, or a file it was made from (that still exists) has changed since."""
    for path in files.values():
        manifest = _manifest(path) if path.is_file() else None
        if manifest is None:
            continue
        if manifest.files.get(path.name) != file_hash(path):
            raise UserError(f"{path}: altered or truncated since it was made; run the step again with --force")
        for source, expected in manifest.inputs.items():
            for place in _places(source, settings, path):
                if place.exists() and tree_hash(place) != expected:
                    raise UserError(f"{path}: stale, {place} has changed since; run the step that makes it again")


def _places(source: str, settings: ReportSettings, result: Path) -> Iterator[Path]:
    """Where an input of a result may lie.

    ``labels``; ``seed1/results.parquet``; ``passk/seed1/results.parquet``; ``rollouts/MODEL/PROBLEMS``.
    """
    *section, name = source.split("/")
    if not section:
        yield from (result.with_name(name), result.with_name(f"{name}.json"), result.with_name(f"{name}.parquet"))
    elif section[0] == "rollouts":
        evaluated = result.parents[1] / SECTIONS["accuracy"] if result.parent.name == FAILURES else result.parent
        yield evaluated / source
    elif len(section) == 3 and section[0] == INFLUENCE:  # influence/seed1/MODEL/influence.parquet
        yield of_seed(settings.study, section[1]) / INFLUENCE / section[2] / name
    elif re.fullmatch(r"seed\d+(-split\d+)?", section[-1]):
        study, folder = result.parents[1], result.parent.name
        if len(section) > 1:
            study = Path(settings.countdown) if section[0] in OF_COUNTDOWN else settings.study
            folder = settings.section if section[0] in OF_THE_STUDY else SECTIONS.get(section[0], section[0])
            if section[0] in OF_FITS:  # of all seeds together
                yield study / settings.section / OF_FITS[section[0]] / name
                return
        yield of_seed(study, section[-1]) / folder / name
