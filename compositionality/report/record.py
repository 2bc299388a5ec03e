"""A record of one study, to be committed: a folder without host names and paths, numbers to five digits."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from compositionality.console import natural_key
from compositionality.data import artefact
from compositionality.data.git import check_ancestor, code_version, hash_at
from compositionality.data.json_files import NUMBER, Shape, read_json_object
from compositionality.errors import UserError
from compositionality.evaluate.claims.run import claims_text, read_claims
from compositionality.evaluate.gold_tables import (
    chain_and_product,
    hand_over_by_function,
    lift_by_decile,
    rank_by_part,
    read_exact,
)
from compositionality.evaluate.naming import named_paths
from compositionality.evaluate.ranks import rank_table, ranks_of, why_no_ranks
from compositionality.evaluate.registration import Frozen, registration_path
from compositionality.evaluate.results import LABELS, ROLLOUTS, SPLIT, TRAINING, read_results
from compositionality.evaluate.seeds import summary_of
from compositionality.evaluate.table import RESULTS, SCHEMA, check_schema
from compositionality.evaluate.tables import markdown_lines, summary_markdown
from compositionality.evaluate.types import Metric
from compositionality.ranges import REQUIRED
from compositionality.report.draw import AGAIN as REFIT
from compositionality.report.draw import SCALING_SHAPE
from compositionality.study.model import all_arms
from compositionality.study.runner import machine, versions
from compositionality.train.log import SAMPLES
from compositionality.train.metrics import read_metrics
from compositionality.yaml_files import read_yaml

RECORD, METRICS, FIGURE = "record.json", "metrics.jsonl", "figure.png"
FILES = (RECORD, "command", "versions", METRICS, RESULTS, FIGURE)
MOST_SAMPLES = 200_000
"""Bytes of a replicate's validation samples, about: of more steps the first, the last and some between are kept."""
MACHINE_SHAPE: Shape = {"cpu": str, "cores": int, "memory_gib": NUMBER, "gpus": list, "python": str}
KEYS = ("evaluation", "replicate", "seed", "split")
PLACE = re.compile(r"(?<![\w./])/(?!/)(?:[^\s/:,\"']+/)*([^\s/:,\"']+)")


@dataclass
class RecordSettings:
    """Settings of ``write_record``; lists hold NAME:PATH."""

    results: list[str] = REQUIRED  # RESULTS/SEED:PATH, as examples/claims.py takes them; first the study's own
    output: Path = REQUIRED  # folder to make
    models: list[str] = field(default_factory=list)  # of the tables: these only, in this order; empty: all
    command: str = ""  # what was run, as it was typed
    config: list[str] = field(default_factory=list)  # NAME:PATH of YAML files
    runs: list[str] = field(default_factory=list)  # NAME:PATH of run folders
    times: str = ""  # times.tsv of the study
    machine: str = ""  # machine.json of the machine that ran the study, if not this one
    notes: list[str] = field(default_factory=list)  # sentences to keep
    figure: str = ""  # PNG to keep
    claims: str = ""  # claims.json
    fits: list[str] = field(default_factory=list)  # NAME:PATH of scaling.json: laws and quantities, without curves
    registration: str = ""  # folder that bash/confirmatory.sh keeps the study's registration in; empty: none
    replicate: bool = False  # of one replicate, from which its results can be restored; runs: folders of runs
    completions: bool = False  # of a replicate: keep its completions, too, and validation samples of its runs
    force: bool = False  # replace a record of another run


def write_record(settings: RecordSettings) -> Path:
    """Write the folder ``output``, whole or not at all, unless it is of these very results and claims.

    UserError if it is of others, unless forced, and for an input that is missing or altered. A registered study's is
    kept if the claims, counted at a later commit, decide what they did.
    """
    recipe = recipe_of(settings)
    is_done = is_counted(settings, recipe) or artefact.is_done(settings.output, recipe, force=settings.force)
    if not is_done:
        with artefact.new_artefact(settings.output, recipe) as partial:
            partial.mkdir()
            fill(partial, settings)
    print(f"{settings.output}{' is already there' if is_done else ''}")
    return settings.output


def check(settings: RecordSettings) -> None:
    """Check the settings and the output for a dry run; read the inputs if all exist and the record is not there yet."""
    files, places = inputs_of(settings), [entry.partition(":")[2] for entry in settings.results]
    places += [place for place in (settings.claims, settings.times, settings.figure, settings.registration) if place]
    for kind in ("config", "runs", "fits"):
        places += map(str, paths(kind, getattr(settings, kind)).values())
    if settings.replicate and not artefact.is_to_be_checked(*files.values(), dry=True):
        artefact.check_maker(settings.output, "write_record", files.values(), force=settings.force)
        return
    recipe = recipe_of(settings)
    counted = artefact.is_to_be_checked(*recipe.inputs.values(), dry=True) and is_counted(settings, recipe)
    is_done = counted or artefact.check_target(settings.output, recipe, force=settings.force)
    if artefact.is_to_be_checked(*places, dry=True) and not is_done:
        recipe.identity()  # refuses an altered table
        contents_of(settings)


def inputs_of(settings: RecordSettings) -> dict[str, Path]:
    """Return tables and claims by name. UserError for what is not RESULTS/SEED:PATH."""
    files = {"claims": Path(settings.claims)} if settings.claims else {}
    if settings.completions and not settings.replicate:
        raise UserError("completions=true: goes with replicate=true; leave it out")
    if not settings.results:
        raise UserError("results: give at least one table, as results=[RESULTS/SEED:PATH,...]")
    for entry in settings.results:
        match = re.fullmatch(r"([\w-]+/[\w-]+):(.+)", entry)
        if not match:
            raise UserError(f"results: {entry}: is not RESULTS/SEED:PATH")
        if Path(match[2]).name == RESULTS:  # the claims hold the hashes of influence and fits
            files[match[1]] = Path(match[2])
    return files


def recipe_of(settings: RecordSettings) -> artefact.Recipe:
    """Return what a record is kept for: the same tables and claims. UserError as ``inputs_of``."""
    files = inputs_of(settings)
    if not settings.replicate:
        return artefact.Recipe("write_record", {}, files)
    labels = {path: path.with_name(LABELS) for path in files.values()}  # of failures: they know the replicate
    manifests = {path: artefact.verify(named if named.is_file() else path) for path, named in labels.items()}
    tables = {name.partition("/")[0]: manifests[path].model_dump() for name, path in files.items()}
    training = read_json_object(next(iter(files.values())).with_name(TRAINING), "run examples/evaluate.py again")
    return artefact.Recipe("write_record", {"tables": tables, "training": training}, files)


def is_counted(settings: RecordSettings, recipe: artefact.Recipe) -> bool:
    """Return True if a registered study has a record of these tables. UserError if its claims decide otherwise now."""
    counted = bool(settings.registration) and not settings.force and is_of_tables(settings.output, recipe)
    if counted:
        check_decisions(settings.output, Path(settings.claims))
    return counted


def is_of_tables(folder: Path, recipe: artefact.Recipe) -> bool:
    """Return True if a record that is intact was made from these tables, whatever its claims."""
    manifest = artefact.read_manifest(folder)
    if manifest is None or manifest.step != recipe.step or not folder.is_dir():
        return False
    tables = [{**files, "claims": ""} for files in (artefact.verify(folder).inputs, recipe.identity()[2])]
    return tables[0] == tables[1]


def check_decisions(folder: Path, path: Path) -> None:
    """Raise UserError if a claim of the record is decided otherwise in the claims.json at ``path``."""
    record = read_json_object(folder / RECORD, "restore it")
    then, now = (
        {claim["claim"]: (claim["decision"], claim["decision_holm"]) for claim in content["claims"]}
        for content in (record, read_claims(path))
    )
    for name, (decision, corrected) in now.items():
        if then.get(name) != (decision, corrected):
            was = " / ".join(map(str, then.get(name, ("not there",))))
            raise UserError(
                f"{folder / RECORD}: claim {name} was {was} at {record['code']}, and at {code_version()} is {decision} "
                f"/ {corrected} by the same tables; correct the code, or replace the record with --force and say why"
            )


def contents_of(settings: RecordSettings) -> tuple[dict[str, str], pa.Table | None]:
    """Return the record's texts by file name, and its table. UserError if an input is missing, damaged or altered."""
    tables = joined_tables(recipe_of(settings))
    if settings.replicate:
        rollouts = rollouts_of(settings)
        answers = [*rollouts.glob("*/[!.]*")] if settings.completions else []
        if settings.completions and not answers:
            raise UserError(f"{rollouts}: no completions there; evaluate again, or leave out completions=true")
        for place in answers:
            artefact.verify(place)
        return {METRICS: "".join(f"{json.dumps(step)}\n" for step in steps(runs_of(settings)))}, tables
    record = without_places(record_of(settings))
    texts = {
        RECORD: json.dumps(rounded(record), indent=1, ensure_ascii=False),
        "command": record["command"],
        "versions": "\n".join(f"{name}=={version}" for name, version in record["versions"].items()),
        METRICS: "\n".join(map(json.dumps, steps(paths("runs", settings.runs)))),
    }
    texts = {name: f"{text}\n" for name, text in texts.items() if text}
    files = {*texts, *([] if settings.registration else [RESULTS]), *([FIGURE] if settings.figure else [])}
    if settings.figure:
        artefact.verify(Path(settings.figure))
    texts["README.md"] = page_of(settings.output.name, record, files)
    return texts, None if settings.registration else tables  # its replicates are kept one by one


def runs_of(settings: RecordSettings) -> dict[str, Path]:
    """Return the folder of each training of a replicate."""
    folders = paths("runs", settings.runs).values()
    return {path.parent.name: path.parent for place in folders for path in sorted(place.glob(f"*/{METRICS}"))}


def rollouts_of(settings: RecordSettings) -> Path:
    """Return the folder of a replicate's completions, those of its table of accuracy."""
    return next(iter(inputs_of(settings).values())).with_name(ROLLOUTS)


def fill(folder: Path, settings: RecordSettings) -> None:
    """Write every file of the record but its manifest."""
    texts, tables = contents_of(settings)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    if tables is not None:
        pq.write_table(tables, folder / RESULTS, compression="zstd")
    if settings.figure:
        shutil.copyfile(settings.figure, folder / FIGURE)
    if settings.completions:
        shutil.copytree(rollouts_of(settings), folder / ROLLOUTS, ignore=shutil.ignore_patterns(".*"))  # locks
        keep_samples(folder / SAMPLES, runs_of(settings))


def keep_samples(folder: Path, runs: Mapping[str, Path]) -> None:
    """Copy what the runs answered to the first validation problems, at as many steps as ``MOST_SAMPLES`` lets."""
    samples = {name: [*path.glob(f"{SAMPLES}/validation_*.jsonl")] for name, path in runs.items()}
    samples = {name: sorted(files, key=lambda file: natural_key(file.name)) for name, files in samples.items() if files}
    for name, files in samples.items():
        largest = max(1, *(file.stat().st_size for file in files))
        most = max(2, MOST_SAMPLES // len(samples) // largest)
        (folder / name).mkdir(parents=True)
        for place in sorted({round(part * (len(files) - 1) / (most - 1)) for part in range(most)}):
            shutil.copyfile(files[place], folder / name / files[place].name)


def record_of(settings: RecordSettings) -> dict[str, Any]:
    """Return the content of record.json. UserError if an input is missing or altered."""
    runs = paths("runs", settings.runs).values()
    made = [artefact.read_manifest(folder) for run in runs for folder in (run, run / "final") if folder.is_dir()]
    where = Path(settings.machine) if settings.machine else None
    fix = "copy it from the machine of the study"
    measured_on = read_json_object(where, fix, MACHINE_SHAPE) if where and where.is_file() else {}
    entries = [entry.partition("/") for entry in settings.results]
    evaluated = read_results([entry for kind, _, entry in entries if kind == entries[0][0]], settings.models)
    if not made:  # the models are elsewhere, or gone: what was kept of their replicates
        table_files = [path for replicate in evaluated.replicates for path in replicate.tables.values()]
        made = list(map(artefact.read_manifest, table_files))
    record = {
        "command": settings.command,
        "code": code_version(),
        "runs_by_code": sorted({manifest.code for manifest in made if manifest}),
        "versions": measured_on.pop("versions", None) or versions(),
        "machine": measured_on or machine(),
        "notes": settings.notes,
        "config": {name: read_yaml(path) for name, path in paths("config", settings.config).items()},
        "times_s": {"/".join(step): seconds for step, seconds in read_times(settings.times)} if settings.times else {},
        **summary_of(evaluated),
    }
    exact = read_exact(evaluated, {name: arm.start for name, arm in all_arms().items()})
    if len(exact):
        tables = (hand_over_by_function, lift_by_decile, chain_and_product, rank_by_part)
        record["exact"] = {table.__name__: table(exact).to_dict("records") for table in tables}
    if settings.claims:
        claims = read_claims(Path(settings.claims))
        record |= {"claims_notes": claims["notes"], **{key: claims[key] for key in ("claims", "controls", "n_seeds")}}
    if influence := [entry for kind, _, entry in entries if kind == "influence"]:
        queries = read_results(influence, metric=Metric.INFLUENCE)
        record |= {} if why_no_ranks(evaluated, queries) else {"ranks": ranks_of(evaluated, queries)}
    if fits := paths("fits", settings.fits):
        record["fits"] = {name: read_json_object(path, REFIT, SCALING_SHAPE) for name, path in fits.items()}
    if settings.registration:
        record["registration"] = registered(Frozen(Path(settings.registration)))
    return record


def page_of(name: str, record: Mapping[str, Any], files: Set[str]) -> str:
    """Return the page of a record: what was run, what is not in the folder, then the tables."""
    where, registered = record["machine"], record.get("registration")
    rows = {
        "command": f"`{record['command']}`" if record["command"] else "not given",
        "commit": f"models by `{', '.join(record['runs_by_code']) or 'unknown'}`; record by `{record['code']}`",
        "registered": f"{registered['registration']}, commit {registered['commit'][:12]}" if registered else "no",
        "replicates": ", ".join(seed["name"] for seed in record["seeds"]),
        "machine": f"{', '.join([*where['gpus'], where['cpu']])}, {where['cores']} cores, {where['memory_gib']} GiB",
    }
    lines = [f"# {name}", "", "| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items()), ""]
    lines += [f"![Accuracy by level]({FIGURE})", ""] if FIGURE in files else []
    missing = [*(file for file in FILES if file not in files), "completions", "logs"]
    lines += [*(f"- {note}" for note in record["notes"]), "", f"Not in this folder: {', '.join(missing)}.", ""]
    lines += [summary_markdown(record), ""]
    lines += markdown_lines(*rank_table(record["ranks"])) if "ranks" in record else []
    if "claims" in record:
        lines += ["", "## Claims", "", "```text", claims_text({**record, "notes": record["claims_notes"]}), "```"]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def joined_tables(recipe: artefact.Recipe) -> pa.Table:
    """Return the tables of all replicates, with evaluation, replicate, seed and split in front.

    UserError unless they are those that the claims come from.
    """
    tables, hashes = [], dict[str, str]()
    for name, path in recipe.inputs.items():
        if name == "claims":
            continue
        made = artefact.verify(path)
        check_schema(path)
        table = pq.read_table(path, schema=SCHEMA)
        replicate = made.settings.get("replicate", {})
        keys = [*name.split("/"), int(replicate.get("seed", 0)), int(replicate.get(SPLIT, 0))]
        columns = [pa.array([key] * len(table)) for key in keys]
        tables.append(pa.table([*columns, *table.columns], names=[*KEYS, *table.column_names]))
        hashes[f"{name}/{RESULTS}"] = made.files[RESULTS]
    claimed = artefact.verify(recipe.inputs["claims"]).inputs if "claims" in recipe.inputs else hashes
    if hashes != {name: value for name, value in claimed.items() if name.endswith(f"/{RESULTS}")}:
        raise UserError("results: not the tables that the claims come from; give those, and no others")
    return pa.concat_tables(tables)


def steps(runs: Mapping[str, Path]) -> Iterator[dict[str, Any]]:
    """Yield the steps of all runs, numbers to five digits. UserError for one that has none."""
    for name, folder in runs.items():
        rows = read_metrics(folder / METRICS)
        if not rows:
            raise UserError(f"{folder}: has no {METRICS} with a line in it; a run's folder is needed")
        yield from ({"run": name, **rounded(without_places(row))} for row in rows)


def registered(frozen: Frozen) -> dict[str, Any]:
    """Return what was registered. UserError unless the commit that is named holds it, and is older."""
    facts, path = frozen.facts, registration_path(frozen.facts["registration"])
    check_ancestor(path.parent, facts["commit"], str(frozen.folder))
    if hash_at(path, facts["commit"]) != facts["sha256"]:
        raise UserError(f"{frozen.folder}: commit {facts['commit'][:12]} holds another {path.name}")
    return {**facts, **asdict(frozen.registration)}


def read_times(path: str | Path) -> list[tuple[tuple[str, str], int]]:
    """Return seed, step and seconds of the steps of all seeds in times.tsv; of several runs of a step the longest."""
    names = ["began", "seed", "depth", "step", "seconds"]
    try:
        times = pd.read_csv(path, sep="\t", names=names, dtype={"seed": str, "depth": int, "seconds": int})
    except (ValueError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path}: not lines of {', '.join(names)} ({reason}); delete the bad ones") from error
    longest = times[times["depth"] == 3].groupby(["seed", "step"], sort=False)["seconds"].max()
    return [((str(seed), str(step)), int(seconds)) for (seed, step), seconds in longest.items()]


def without_places(node: Any) -> Any:
    """Return the same data with every absolute path cut to its last part."""
    if isinstance(node, dict):
        return {key: without_places(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [without_places(value) for value in node]
    return PLACE.sub(r"\1", node) if isinstance(node, str) else node


def paths(kind: str, entries: Sequence[str]) -> dict[str, Path]:
    """Return the paths of NAME:PATH by name."""
    return {name: Path(path) for name, path in named_paths(kind, entries).items()} if entries else {}


def rounded(node: Any) -> Any:
    """Return numbers to five digits, without the points of curves and the formulas of laws."""
    if isinstance(node, float):
        return float(f"{node:.5g}")
    if isinstance(node, dict):
        return {key: rounded(value) for key, value in node.items() if key not in ("curves", "formula")}
    return [rounded(value) for value in node] if isinstance(node, list) else node
