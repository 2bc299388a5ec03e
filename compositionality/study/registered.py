"""Registered studies: the plan follows from the registration alone."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compositionality.config.problem_sets import read_set
from compositionality.config.profile import load_profile
from compositionality.data import artefact
from compositionality.data.git import CODE, changed_files, check_ancestor, commit_of, tree_ids
from compositionality.data.json_files import read_text
from compositionality.errors import UserError
from compositionality.evaluate.claims.model import Requires, read_claims_file
from compositionality.evaluate.registration import (
    Registration,
    check_apart,
    claims_path,
    freeze,
    read_registration,
    registration_path,
)
from compositionality.evaluate.results import ROLLOUTS, TRAINING
from compositionality.evaluate.table import RESULTS as TABLE
from compositionality.evaluate.table import SCHEMA
from compositionality.study.model import ROOTS, Replicate, Request, find_arm, load_study, study_folder
from compositionality.study.plan import plan, sort_steps
from compositionality.study.steps import STEP_VARIABLES, Step
from compositionality.train.log import SAMPLES
from compositionality.train.run_folder import flatten
from compositionality.validation import choices
from compositionality.yaml_files import flow_list, read_yaml_mapping

ROOT = Path(__file__).parents[2]
TEST_SEEDS = ROOT / "results" / "records" / "test_seeds.yaml"
REGISTERED = "registration "
"""Prefix of a registered study's name in the ledger."""
MACHINE = re.compile(r"^run\.|workers$|^force$|^dry_run$|ray_address$")
"""Settings that do not change results."""
ROOMS = tuple(
    f"compositionality/{room}" for room in ("tasks", "domains", "reward", "rollout", "rft", "train", "evaluate")
)
"""Folders whose code computes results."""
RESULT_KINDS = frozenset({"accuracy", "passk", "failures"})
"""The results that a registered study makes."""
LAST = {"claims": ("post_hoc=true",), "page": (), "record": ("force=true",)}
"""Steps to repeat after a change of claims, with their words."""
FOREIGN = (*STEP_VARIABLES, "BASE_MODEL", "CHAT_TEMPLATE")
POST_HOC = "--post-hoc"
AGAIN = "REGISTRATION={} bash bash/confirmatory.sh register=true"


def registered_study(
    name: str, words: Sequence[str], environ: Mapping[str, str], *, dry: bool = False, replicates: int | None = None
) -> tuple[list[Step], Request]:
    """Return the steps of a registered study; unless ``dry``, copy its registration beside its results.

    Its test seed is entered in the ledger before the first test problem is made. With the single word ``--post-hoc``
    only the last steps: claims, which may have changed, page and record. ``replicates``: this many of the replicates
    without a record; the last steps only if all have one. UserError for a registration that may not run
    (``registered``), a test seed that something else used, and any further setting.
    """
    post_hoc = list(words) == [POST_HOC]
    if words and not post_hoc:
        raise UserError(f"{words[0]}: a registered study takes no settings; its registration has them, leave it out")
    registration, commit, moved = registered(name, post_hoc=post_hoc)
    request = registered_request(name, registration, environ)
    if not dry:
        restore(request)
    steps = [step for step in plan(request) if step.whole or not is_kept(request, step.place)]
    waiting = [place for place in request.replicates if not request.record_folder(place).is_dir()]
    if replicates == 0 and waiting:
        raise UserError(
            f"{name}: no results of {', '.join(place.name for place in waiting)} yet; REPLICATES=1 runs the next"
        )
    if replicates is not None and waiting:
        waiting = waiting[:replicates]
        places = {*waiting, *(place.shared for place in waiting)}
        steps = [step for step in steps if step.place in places and not step.whole]
    steps += [record_step(request, place, steps) for place in waiting if not post_hoc]
    if missing := dict.fromkeys(step.place.name for step in steps if moved and not step.whole):
        raise UserError(f"{moved} to run {', '.join(missing)}; replicates with results can be counted at any commit")
    if post_hoc:
        final_steps = [replace(step, words=(*step.words, *LAST[step.name])) for step in steps if step.name in LAST]
        return sort_steps(final_steps), request
    path, folder = registration_path(name), Path(request.root("results"), "registration")
    # the hash stands for claims, recipe and design
    identity = f"{REGISTERED}{path.stem} {artefact.file_hash(path)[:16]}"
    if folder.exists():
        keep(name, commit, folder)
    check_test_seed(request.test_seed, identity)
    if dry:
        seeds = registration.replicates
        n = sum(map(len, seeds.values()))  # on stderr: stdout has the plan, for print=json
        print(f"# {name}: {n} replicates of {len(seeds)} seeds, commit {commit}", file=sys.stderr)
    else:
        keep(name, commit, folder)
        note_test_seed(request.test_seed, identity, request.name)
    return sort_steps(steps), request


def record_step(request: Request, place: Replicate, steps: Sequence[Step]) -> Step:
    """Return the step that writes a replicate's record, after its other ``steps``."""
    files = {kind: file for kind, file in request.loaded.claimed.items() if kind in RESULT_KINDS}
    results = [f"{kind}/{place.name}:{place.folder('results')}/{file}" for kind, file in files.items()]
    runs = [f"{location.name}:{location.folder('checkpoints')}" for location in dict.fromkeys((place.shared, place))]
    output = request.record_folder(place)
    words = {"results": flow_list(results), "runs": flow_list(runs), "replicate": "true", "output": output}
    words |= {"completions": "true"} if place == request.replicates[0] else {}  # the page shows them
    after = tuple(step.key for step in steps if step.place in (place, place.shared) and not step.whole)
    key_values = tuple(f"{key}={value}" for key, value in words.items())
    return Step(
        "record-replicate", place, request.profile, "write_record", words=key_values, after=after, one_lane=True,
        test_seed=request.test_seed,
    )  # fmt: skip


def restore(request: Request) -> None:
    """Restore tables from committed records if they are missing. UserError if a record is altered or not committed."""
    # No artefact.make: the tables keep the manifests with which they were measured.
    record = request.record_folder(request.replicates[0]).parent
    changed = changed_files(record, ["study", "page.html", "headline.png"]) if record.is_dir() else []
    if altered := [line for line in changed if not line.startswith("??")]:
        raise UserError(f"{record}: changed since its commit ({altered[0]}); commit it, or restore it")
    for place in request.replicates:
        folder, results = request.record_folder(place), Path(place.folder("results"))
        if not folder.is_dir():
            continue
        commit_of(folder)
        manifest = artefact.verify(folder)
        if results.is_dir():
            continue
        with artefact.exclusive(results, wait=60):  # seconds; replicates may be started at the same moment
            if not results.is_dir():
                artefact.remove(partial := artefact.hidden_sibling(results, "partial"))
                put_back(folder, manifest, partial, request.loaded.claimed)
                partial.replace(results)


def put_back(folder: Path, manifest: artefact.Manifest, results: Path, places: Mapping[str, str]) -> None:
    """Write the tables and completions that are kept in ``folder`` below ``results``; ``places``: files by kind."""
    rows = pq.read_table(folder / TABLE)
    for kind, content in manifest.settings["tables"].items():
        table = results / places[kind]
        table.parent.mkdir(parents=True, exist_ok=True)
        columns = [field for field in SCHEMA if field.name in rows.column_names]  # older tables may lack one
        table_rows = rows.filter(pc.field("evaluation") == kind).select([field.name for field in columns])
        table_rows = table_rows.cast(pa.schema(columns)).combine_chunks()
        pq.write_table(table_rows, table, compression="zstd")
        write_manifest(table, {**content, "facts": {"kept": str(folder)}})
        if kind == "accuracy":
            artefact.write_text(table.with_name(TRAINING), json.dumps(manifest.settings["training"]))
            write_manifest(table.with_name(TRAINING), {**content, "inputs": {"table": artefact.file_hash(table)}})
            for kept in filter(Path.is_dir, (folder / ROLLOUTS, folder / SAMPLES)):
                copytree(kept, table.with_name(kept.name))


def write_manifest(target: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a restored file: the recorded content, with the file's present hash."""
    manifest = artefact.Manifest(**{**content, "files": {target.name: artefact.file_hash(target)}})
    artefact.write_text(artefact.manifest_path(target), manifest.model_dump_json(indent=1) + "\n")


def keep(name: str, commit: str, folder: Path) -> None:
    """Freeze a registration beside the results. UserError if it has changed, or results are of another one."""
    frozen = freeze(name, commit, folder)
    check_ancestor(registration_path(name).parent, frozen.facts["commit"], name)


def registered_request(name: str, content: Registration, environ: Mapping[str, str]) -> Request:
    """Return the request of a registration. UserError for a variable that contradicts it."""
    if foreign := [key for key in FOREIGN if environ.get(key)]:
        raise UserError(f"{foreign[0]}={environ[foreign[0]]}: a registered study takes no such variable; leave it out")
    study, profile = Path(name).stem, profile_of(content)
    values = {"PROFILE": profile, "STUDY": study, "ARMS": " ".join(content.arms), "TEST_SEED": str(content.test_seed)}
    for key, value in {**values, "SEED": "", "SPLIT": "", "SEEDS": ""}.items():
        if environ.get(key) not in (None, "", value):
            raise UserError(f"{key}={environ[key]}: registered is {value or 'none'} ({name}); leave it out")
    return Request(
        content.study, profile,
        tuple(Replicate(study, seed, split) for seed, splits in content.replicates.items() for split in splits),
        tuple(content.arms), tuple(content.controls), report=True, registration=name, record=True,
        test_seed=content.test_seed, gpu=load_profile(profile).device == "gpu",
    )  # fmt: skip


def profile_of(registration: Registration) -> str:
    """Return the profile, NAME or NAME/ENGINE."""
    return "/".join(filter(None, (registration.profile, registration.engine)))


def is_kept(request: Request, place: Replicate) -> bool:
    """Return whether a replicate has a record, so that its files are not needed; split 0 needs all of its seed's."""
    splits = [other for other in request.replicates if other.seed == place.seed and place.split in (0, other.split)]
    return all(request.record_folder(other).is_dir() for other in splits)


def registered(name: str, *, post_hoc: bool = False) -> tuple[Registration, str, str]:
    """Return a registration, its commit, and the reason why no replicate may run at HEAD (empty if it may).

    UserError for a registration that does not fit its study, has another's seeds, or is not committed or changed since;
    for code that is not committed; and, unless ``post_hoc``, for claims that changed.
    """
    path = registration_path(name)
    registration = read_registration(path)
    check_fits(path, registration)
    check_apart(path, registration)
    hashes = hashes_of(registration)
    if missing := [key for key in hashes if not getattr(registration, key)]:
        raise UserError(f"{path}: {missing[0]}: missing; run {AGAIN.format(name)} and commit it")
    commit = commit_of(path)
    changed = [key for key, now in hashes.items() if getattr(registration, key) != now]
    ids = tree_ids(ROOT, ROOMS)
    changed += [room for room, tree in registration.trees.items() if ids[room] != tree]
    changes = " and ".join(key.removesuffix("_sha256") for key in changed)
    moved = f"{path}: its {changes} changed since its commit {commit[:12]}; check that commit out" if changed else ""
    refused = changed if not registration.trees else {"claims_sha256"}.intersection(changed)
    if refused and not (post_hoc and set(refused) == {"claims_sha256"}):
        raise UserError(f"{moved} to run it again, or before any result: {AGAIN.format(name)}")
    commit_of(claims_path(registration.claims))
    if loose := changed_files(ROOT, CODE):
        raise UserError(f"{ROOT}: has code that is not committed ({loose[0]}); commit it before a registered study")
    return registration, commit, "" if changed == ["claims_sha256"] else moved


def register(name: str, *, dry: bool = False) -> Path:
    """Write hashes and trees into the registration's file, unless ``dry``. UserErrors are those of ``registered``."""
    path = registration_path(name)
    registration = read_registration(path)
    check_fits(path, registration)
    check_apart(path, registration)
    if dry:
        return path
    text = read_text(path, "save it as UTF-8")
    values: dict[str, Any] = {**hashes_of(registration), "trees": tree_ids(ROOT, ROOMS)}
    text = re.sub(r"^((claims|recipe)_sha256|trees):.*\n?", "", text, flags=re.MULTILINE).rstrip()
    new = artefact.hidden_sibling(path, "new")
    artefact.write_text(new, "\n".join([text, *(f"{key}: {json.dumps(value)}" for key, value in values.items()), ""]))
    try:
        if read_registration(new) != replace(registration, **values):
            raise UserError("another registration")
    except UserError:
        artefact.remove(new)
        raise UserError(
            f"{path}: hashes cannot be added at its end; write one key per line, as in composition-2.yaml"
        ) from None
    return new.replace(path)


def hashes_of(registration: Registration) -> dict[str, str]:
    """Return the sha256 of the claims' file and of the recipe, by key."""
    recipe = sha256(recipe_of(registration).encode()).hexdigest()
    return {"claims_sha256": artefact.file_hash(claims_path(registration.claims)), "recipe_sha256": recipe}


def recipe_of(registration: Registration) -> str:
    """Return, as JSON, the resolved settings of every step of one replicate with all arms.

    Settings of machine and speed are left out.
    """
    request = replace(registered_request("", registration, {}), replicates=(Replicate("study", 0, 1),))
    rows = []
    for step in plan(request):
        if not step.whole:
            parts = step.settings if isinstance(step.settings, dict) else {"": step.settings}
            settings = {
                f"{name}:{key}": str(value)
                for name, part in parts.items()
                for key, value in flatten(asdict(part)).items()
                if not MACHINE.search(key)
            }
            rows.append({"step": step.name, "entry_point": step.entry_point, "settings": settings})
    text = json.dumps(rows, sort_keys=True)
    for kind in ROOTS:
        text = text.replace(f"{study_folder(kind, 'study')}/", f"{kind}/")
    return text


def check_fits(path: Path, registration: Registration) -> None:
    """Raise UserError for an unknown study, profile, arm or claim, and for a claim that the study cannot decide."""
    try:
        study = load_study(registration.study)
        for name in (*registration.arms, *registration.controls):
            find_arm(study, name)
        profile = load_profile(profile_of(registration))
        claims = read_claims_file(registration.claims).by_name
        splits = [split for splits in registration.replicates.values() for split in splits if split]
        if splits and read_set("string", profile).mode == "paper":
            raise UserError(f"replicates: split {splits[0]}: the paper's problems have one division of the functions")
        arms = {*study.evaluated, *registration.arms, *registration.controls}
        for key, name in [(part, claim) for part in ("primary", "secondary") for claim in getattr(registration, part)]:
            if name not in claims:
                raise UserError(f"{key}: no claim {name} in {registration.claims}; {choices(name, claims)}")
            for comparison in claims[name].comparisons:
                if (kind := comparison.results) not in RESULT_KINDS:
                    raise UserError(f"{key}: {name} needs the results {kind}, which this study does not make")
                gates = [gate for gate in comparison.gates if isinstance(gate, Requires)]
                gate_arms = [gate.comparisons(comparison)[0].arms for gate in gates]  # the first group that was run
                if lacking := [arm for arm in chain(comparison.arms, *gate_arms) if arm not in arms]:
                    raise UserError(f"{key}: {name} compares {lacking[0]}, which is not in arms or controls; add it")
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


# ---- the ledger of test seeds: the problems of one study are known, so no other study may be tested on them


def check_test_seed(seed: int, by: str, path: Path = TEST_SEEDS) -> None:
    """Raise UserError if another user than ``by`` used the test seed first, or the ledger is damaged.

    ``by``: ``registration NAME HASH``, or a version of the code if nothing was registered. A missing ledger is empty.
    """
    user, record = _user(seed, path)
    if user not in ("", by):
        raise UserError(
            f"{path}: test seed {seed} was used by {user} ({record}), not by {by}: its problems are known; set "
            "TEST_SEED (test_seed of a registration) to a number that is not in this file"
        )


def check_not_registered(seed: int, path: Path = TEST_SEEDS) -> None:
    """Raise UserError if the test seed belongs to a registered study: nothing else may be measured on its problems."""
    user, record = _user(seed, path)
    if user.startswith(REGISTERED):
        raise UserError(f"TEST_SEED={seed}: reserved for {user} ({record}); choose a number that is not in {path}")


def _user(seed: int, path: Path) -> tuple[str, str]:
    """Return who used the seed, and the first record; both are empty if it is unused."""
    ledger = read_yaml_mapping(path) if path.exists() else {}
    if str(seed) not in ledger:
        return "", ""
    entry = ledger[str(seed)]
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("by", "record")):
        raise UserError(f"{path}: {seed}: give {{by: NAME, record: NAME}}")
    return entry["by"], entry["record"]


def note_test_seed(seed: int, by: str, record: str, path: Path = TEST_SEEDS) -> None:
    """Add a seed with its user and first record, unless the ledger has it. UserError as in ``check_test_seed``."""
    check_test_seed(seed, by, path=path)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if not text or str(seed) not in read_yaml_mapping(path):
        line = f"{seed}: {{by: {json.dumps(by)}, record: {json.dumps(record)}}}\n"
        artefact.write_text(path, f"{text.rstrip()}\n{line}".lstrip())
