"""What a page is made from: every file of the study that is there, by a name without a place."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from compositionality.data.artefact import (
    Manifest,
    config_hash,
    file_hash,
    manifest_path,
    read_manifest,
    tree_hash,
    verify,
)
from compositionality.errors import UserError
from compositionality.report.page.settings import ReportSettings

SEEDS = "section41_42/seeds.json"
COUNTDOWN = "countdown/section43/seeds.json"
CLAIMS = "claims.json"
PASS_AT_K = "section44/passk.json"
FAILURES = "section45/failure_modes.json"
FAILURE_FIGURES = ("section45/failure_modes.svg", "section45/functions.svg")
AUDIT = "data_audit.json"
TIMES = ("section41_42/times.tsv", "countdown/section43/times.tsv")
MACHINE = "section41_42/machine.json"
OF_THE_STUDY = (
    *(SEEDS, CLAIMS, PASS_AT_K, FAILURES, AUDIT, TIMES[0], MACHINE),
    *(name.replace(".svg", ending) for name in FAILURE_FIGURES for ending in (".svg", ".png", ".pdf")),
)
SECTIONS = {
    "accuracy": "section41_42",
    "countdown": "section43",
    "passk": "section44",
    "failures": "section45",
}
"""The folders that claims.json has its figures from."""
_RFT_ROLLOUTS = re.compile(r"stage2_level2_(rft\w*)/iteration(\d+)/rollouts")


@dataclass(frozen=True)
class Inputs:
    """Files and folders by name; ``seeds``: names of the study's seeds, seed 0's folders first."""

    files: Mapping[str, Path]
    seeds: tuple[str, ...]

    def __contains__(self, name: str) -> bool:
        return name in self.files

    def json(self, name: str) -> Any:
        """The content of a JSON file. UserError if it is damaged."""
        try:
            return json.loads(self.files[name].read_text())
        except ValueError as error:
            raise UserError(f"{self.files[name]}: no JSON ({error}); run the step that makes it again") from error

    def starting(self, prefix: str) -> list[str]:
        """Names that start so, in order."""
        return sorted(name for name in self.files if name.startswith(prefix))

    @cached_property
    def hashes(self) -> dict[str, str]:
        """sha256 of every input."""
        return {name: tree_hash(path) for name, path in self.files.items()}

    def data_hash(self, names: Iterator[str] | tuple[str, ...]) -> str:
        """Short hash of these inputs' contents."""
        return config_hash({name: self.hashes[name] for name in names})[:12]

    def config_hash_of(self, names: Iterator[str] | tuple[str, ...]) -> str:
        """Short hash of the settings by which these inputs were made, as far as their manifests say them."""
        return config_hash({name: self.settings.get(name) for name in names})[:12]

    @cached_property
    def settings(self) -> dict[str, dict[str, Any]]:
        """Settings of the inputs that have a manifest."""
        manifests = {name: _manifest(path) for name, path in self.files.items()}
        return {name: manifest.settings for name, manifest in manifests.items() if manifest}


def find_inputs(settings: ReportSettings) -> Inputs:
    """Everything that is there. UserError without the study's seeds.json, or if a result is stale or altered."""
    summary = settings.study / SEEDS
    if not summary.is_file():
        raise UserError(f"{summary}: no such file; make it with bash bash/section41_42/summarise.sh")
    verify(summary)
    seeds = tuple(seed["name"] for seed in json.loads(summary.read_text())["seeds"]) or ("seed0",)
    files = {name: settings.study / name for name in OF_THE_STUDY}
    if settings.countdown:
        files |= {name: Path(settings.countdown, name.removeprefix("countdown/")) for name in (COUNTDOWN, TIMES[1])}
    files |= dict(_rollouts(settings.study))
    if settings.checkpoints:
        files |= dict(_runs(settings.checkpoints, seeds))
    if settings.data:
        files |= dict(_problems(Path(settings.data)))
    for name, given in (
        ("countdown", settings.countdown),
        ("checkpoints", settings.checkpoints),
        ("data", settings.data),
    ):
        if given and not Path(given).is_dir():
            raise UserError(f"{name}={given}: no such folder")
    found = {name: path for name, path in sorted(files.items()) if path.exists()}
    _check_sources(settings, found)
    return Inputs(found, seeds)


def of_seed(folder: str | Path, name: str) -> Path:
    """The folder of a seed: seed 0's own, or the one beside it whose name ends in -seed1, -seed2 …"""
    number = name.removeprefix("seed")
    return Path(folder) if number == "0" else Path(f"{folder}-seed{number}")


def _rollouts(study: Path) -> Iterator[tuple[str, Path]]:
    for folder in (study / "section41_42" / "rollouts").glob("*/*"):
        if manifest_path(folder).is_file():
            yield f"rollouts/{folder.parent.name}/{folder.name}", folder


def _runs(checkpoints: str, seeds: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Metrics and settings of every training run; how the base model was made."""
    for seed in seeds:
        folder = of_seed(checkpoints, seed)
        yield f"runs/{seed}/base/manifest.json", folder / "base" / "manifest.json"
        for run in sorted(folder.glob("stage*/metrics.jsonl")):
            for name in ("metrics.jsonl", "recipe.json"):
                yield f"runs/{seed}/{run.parent.name}/{name}", run.with_name(name)


def _problems(data: Path) -> Iterator[tuple[str, Path]]:
    """Problem files with a manifest, and the manifests of what iterative RFT sampled (of seed 0)."""
    for manifest in data.glob("*_task/**/*.parquet.manifest.json"):
        path = manifest.with_name(manifest.name.removesuffix(".manifest.json"))
        if "rollouts" not in path.parts:
            yield f"data/{path.relative_to(data).as_posix()}", path
    for manifest in data.glob("string_task/*/iteration*/rollouts/manifest.json"):
        if found := _RFT_ROLLOUTS.search(manifest.as_posix()):
            yield f"rft/{found[1].replace('_', '-')}/{found[2]}", manifest


def _manifest(path: Path) -> Manifest | None:
    """The manifest of an input; a manifest that is itself an input has none."""
    return None if path.suffix == ".jsonl" or path.name.endswith("manifest.json") else read_manifest(path)


def _check_sources(settings: ReportSettings, files: Mapping[str, Path]) -> None:
    """UserError if a result is altered, or a file it was made from (that is still there) has changed since."""
    for path in files.values():
        manifest = _manifest(path) if path.is_file() else None
        if manifest is None:
            continue
        if manifest.files.get(path.name) != file_hash(path):
            raise UserError(f"{path}: altered or truncated since it was made; run the step again with --force")
        for source, expected in manifest.inputs.items():
            for place in _places(source, settings, path):
                if place.is_file() and file_hash(place) != expected:
                    raise UserError(f"{path}: stale, {place} has changed since; run the step that makes it again")


def _places(source: str, settings: ReportSettings, result: Path) -> Iterator[Path]:
    """Where an input of a result may lie: ``seed1/accuracy.json``, ``passk/seed1/by_problem.parquet``, ``labels``."""
    *section, name = source.split("/")
    if not section:
        yield from (result.with_name(name), result.with_name(f"{name}.json"), result.with_name(f"{name}.parquet"))
    elif re.fullmatch(r"seed\d+", section[-1]):
        study, folder = result.parents[1], result.parent.name
        if len(section) > 1:
            study = Path(settings.countdown) if section[0] == "countdown" else settings.study
            folder = SECTIONS.get(section[0], section[0])
        yield of_seed(study, section[-1]) / folder / name
