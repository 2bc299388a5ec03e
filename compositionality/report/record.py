"""A record of one study, to be committed: command, settings, machine, times, results; no host names, no paths."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from compositionality.data.artefact import code_version, file_hash, read_manifest, write_text
from compositionality.data.git import check_ancestor, hash_at
from compositionality.data.json_files import check_shape, read_json_object, read_text
from compositionality.errors import UserError
from compositionality.evaluate.claims.run import read_claims
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.ranks import read_ranks
from compositionality.evaluate.registration import Frozen, registration_path
from compositionality.ranges import REQUIRED
from compositionality.report.draw import read_summary
from compositionality.study.machine import MACHINE, machine, versions
from compositionality.train.common.metrics import read_metrics
from compositionality.yaml_files import read_yaml

MEANS = ("timing_s/", "perf/")
"""Metrics of which a record keeps the mean over the steps; of ``FIRST_LAST`` it keeps the first and the last value."""
FIRST_LAST = (
    "critic/score/mean",
    "val-core/",
    "train/loss",
    "val/loss",
    "actor/entropy",
    "actor/rollout_gap",
    "response_length/mean",
)
_PLACE = re.compile(r"(?<![\w./])/(?!/)(?:[^\s/:,\"']+/)*([^\s/:,\"']+)")


@dataclass
class RecordSettings:
    """Settings of ``write_record``; lists hold NAME:PATH. ``times``: a JSON object, or lines ``stage seconds``."""

    seeds: Path = REQUIRED  # seeds.json
    output: Path = REQUIRED  # JSON
    command: str = ""  # what was run
    config: list[str] = field(default_factory=list)  # NAME:PATH of YAML files
    runs: list[str] = field(default_factory=list)  # NAME:PATH of run folders
    times: list[str] = field(default_factory=list)  # NAME:PATH of seconds: a JSON object, or lines "stage seconds"
    notes: list[str] = field(default_factory=list)  # sentences to keep
    claims: str = ""  # claims.json
    ranks: str = ""  # ranks.json: of behaviour injection, what is known of the SFT models and the gains from RL
    fits: list[str] = field(default_factory=list)  # NAME:PATH of scaling.json: laws and quantities, without curves
    registration: str = ""  # folder that bash/confirmatory.sh keeps the study's registration in; empty: none
    force: bool = False  # replace a result that was made from something else


def write_record(settings: RecordSettings) -> Path:
    """Write ``output``, unless it is of this very summary. UserError if it is of another one, unless forced."""
    if is_there(settings):
        print(f"{settings.output} is already there")
        return settings.output
    content = without_places(record_of(settings))
    settings.output.parent.mkdir(parents=True, exist_ok=True)
    write_text(settings.output, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    print(settings.output)
    return settings.output


def is_there(settings: RecordSettings) -> bool:
    """Whether the record is there, of these very files. UserError if it is of others, unless forced."""
    if not settings.output.exists() or settings.force:
        return False
    old = read_json_object(settings.output, "choose another name or pass --force")
    files = (("summary_sha256", str(settings.seeds)), ("claims_sha256", settings.claims))
    if all(Path(path).is_file() and old.get(key) == file_hash(Path(path)) for key, path in files if path):
        return True
    raise UserError(f"{settings.output}: there already, of another run; choose another name or pass --force")


def record_of(settings: RecordSettings) -> dict[str, Any]:
    """The record's content. UserError if an input is missing or altered."""
    summary = read_summary(settings.seeds)
    return {
        "command": settings.command,
        "code": code_version(),
        "runs_by_code": codes_of([Path(path) for _, path in _named("runs", settings.runs)]),
        **machine_of(settings.seeds),
        "notes": settings.notes,
        "config": {name: read_config(Path(path)) for name, path in _named("config", settings.config)},
        "times_s": {name: read_times(Path(path)) for name, path in _named("times", settings.times)},
        "runs": {name: run_figures(Path(path)) for name, path in _named("runs", settings.runs)},
        "summary_sha256": file_hash(settings.seeds),
        **{key: _rounded(value) for key, value in summary.items() if not key.endswith("differences")},
        **(_claims(Path(settings.claims)) if settings.claims else {}),
        **({"ranks": _rounded(read_ranks(Path(settings.ranks)))} if settings.ranks else {}),
        **(
            {"fits": {name: _fits(Path(path)) for name, path in _named("fits", settings.fits)}} if settings.fits else {}
        ),
        **({"registration": _registration(Frozen(Path(settings.registration)))} if settings.registration else {}),
    }


def machine_of(seeds: Path) -> dict[str, Any]:
    """Machine and versions of the study: what its run wrote beside its summary; without that, this machine's."""
    path = seeds.with_name(MACHINE)
    there = read_json_object(path, "copy it anew from the machine that ran the study") if path.is_file() else machine()
    return {"versions": there.pop("versions", None) or versions(), "machine": there}


def codes_of(runs: Sequence[Path]) -> list[str]:
    """The versions of the code that made the models of these run folders, each once: one, unless it changed between."""
    folders = [folder for run in runs for folder in (run, run / "final") if folder.is_dir()]
    return sorted({made.code for folder in folders if (made := read_manifest(folder))})


def _registration(frozen: Frozen) -> dict[str, Any]:
    """What was registered, where and when. UserError unless the commit that is named holds it, and is older."""
    facts, path = frozen.facts, registration_path(frozen.facts["registration"])
    check_ancestor(path.parent, facts["commit"], str(frozen.folder))
    if hash_at(path, facts["commit"]) != facts["sha256"]:
        raise UserError(f"{frozen.folder}: commit {facts['commit'][:12]} holds another {path.name}")
    return {**facts, **asdict(frozen.registration)}


def _fits(path: Path) -> dict[str, Any]:
    """Laws with their parameters and errors, and the quantities that claims are about."""
    content = read_json_object(path, "run examples/fit_scaling.py again")
    check_shape(content, {"laws": {"law": str, "held_out": list}, "quantities": {"name": str}}, path, "fit it again")
    rest = ("curves", "formula")
    laws = [
        {
            **{key: value for key, value in law.items() if key not in rest},
            "held_out": [{key: value for key, value in one.items() if key not in rest} for one in law["held_out"]],
        }
        for law in content["laws"]
    ]
    found: dict[str, Any] = _rounded({**content, "laws": laws})
    return found


def _claims(path: Path) -> dict[str, Any]:
    """The decisions, with the comparisons behind them."""
    content = read_claims(path)
    return {
        **{key: _rounded(content[key]) for key in ("claims", "controls")},
        "claims_notes": content["notes"],
        "claims_sha256": file_hash(path),
    }


def read_config(path: Path) -> Any:
    """A YAML or JSON file as data, any other text as its lines. UserError if it cannot be read."""
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    if path.suffix not in (".yaml", ".yml", ".json"):
        return read_text(path, "save it as UTF-8").splitlines()
    return read_yaml(path)


def read_times(path: Path) -> dict[str, float]:
    """Seconds by stage, in the file's order; a stage named twice has its times added."""
    if path.suffix == ".json":
        rows = read_config(path)
        pairs = list(rows.items()) if isinstance(rows, dict) else [(str(path), rows)]
    else:
        pairs = [tuple(line.rsplit(maxsplit=1)) for line in read_config(path) if line.strip()]
    times: dict[str, float] = {}
    for number, pair in enumerate(pairs, 1):
        try:
            stage, seconds = pair
            times[stage] = round(times.get(stage, 0.0) + float(seconds), 3)
        except (ValueError, TypeError) as error:
            raise UserError(f"{path}: line {number} is no 'stage seconds'") from error
    return times


def run_figures(folder: Path) -> dict[str, Any]:
    """Figures of a run: steps, means of times and speeds, first and last values of scores and losses."""
    rows = read_metrics(folder / "metrics.jsonl")
    if not rows:
        raise UserError(f"{folder}: has no metrics.jsonl with a line in it; a run's folder is needed")
    series: dict[str, list[float]] = {}
    for row in rows:
        for key, value in row.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                series.setdefault(key, []).append(value)
    figures: dict[str, Any] = {"steps": rows[-1].get("step")}
    for key in sorted(series):
        values = series[key]
        if key.startswith(MEANS):
            figures[f"{key} mean"] = _rounded(sum(values) / len(values))
        elif key.startswith(FIRST_LAST):
            figures[f"{key} first, last"] = _rounded([values[0], values[-1]])
    return figures


def without_places(node: Any) -> Any:
    """The same data with every absolute path cut to its last part."""
    if isinstance(node, dict):
        return {key: without_places(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [without_places(value) for value in node]
    return _PLACE.sub(r"\1", node) if isinstance(node, str) else node


def _named(kind: str, entries: Sequence[str]) -> list[tuple[str, str]]:
    return list(named_paths(kind, entries).items()) if entries else []


def _rounded(node: Any) -> Any:
    """Shares to four places, other numbers to four digits: a record is read by people."""
    if isinstance(node, float):
        return round(node, 4) if abs(node) < 1 else float(f"{node:.5g}")
    if isinstance(node, dict):
        return {key: _rounded(value) for key, value in node.items()}
    return [_rounded(value) for value in node] if isinstance(node, list) else node
