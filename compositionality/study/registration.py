"""A registration held against the study that it names: what must be true before a study runs under it."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from compositionality.config.problem_sets import read_set
from compositionality.config.profile import load_profile
from compositionality.data.artefact import beside, file_hash, remove, write_text
from compositionality.data.git import CODE, changed_files, check_ancestor, commit_of
from compositionality.data.json_files import read_text
from compositionality.data.test_seeds import REGISTERED
from compositionality.errors import UserError
from compositionality.evaluate.claims.model import ClaimsFile, Gate, Sensitive, Shown, read_claims_file
from compositionality.evaluate.registration import (
    Frozen,
    Registration,
    claims_path,
    freeze,
    read_registration,
    registration_path,
)
from compositionality.study.model import ROOTS, Replicate, Study, find_arm, load_study, study_folder
from compositionality.study.plan import plan
from compositionality.study.request import Request
from compositionality.train.common.run_folder import flatten

ROOT = Path(__file__).parents[2]
MACHINE = re.compile(r"^run\.|workers$|^force$|^dry_run$|ray_address$")
"""Settings that change no result."""
MADE = frozenset({"accuracy", "passk", "failures"})
"""The results that a registered study makes."""
AGAIN = "python examples/register.py registration="


@dataclass(frozen=True)
class Registered:
    """A registration that may be run: it fits its study and its hashes, and ``commit`` holds it."""

    name: str
    content: Registration
    commit: str

    @property
    def identity(self) -> str:
        """``registration NAME HASH``, of the file: another one has other claims, another recipe or another design."""
        path = registration_path(self.name)
        return f"{REGISTERED}{path.stem} {file_hash(path)[:16]}"

    def freeze(self, results: Path) -> Frozen:
        """Keep it beside the study's results. UserError if results exist under another one, or it has changed."""
        frozen = freeze(self.name, self.commit, results / "registration")
        check_ancestor(registration_path(self.name).parent, frozen.facts["commit"], self.name)
        return frozen


def registered(name: str, *, post_hoc: bool = False) -> Registered:
    """UserError for a registration that does not fit its study or its hashes, or is not committed as it is, and for
    code that is not committed. ``post_hoc``: its claims may have changed."""
    path = registration_path(name)
    found = read_registration(path)
    check_fits(path, found)
    for key, expected in hashes_of(found).items():
        if post_hoc and key.startswith("claims"):
            continue
        if not getattr(found, key):
            raise UserError(f"{path}: {key}: not there yet; run {AGAIN}{name} and commit it")
        if getattr(found, key) != expected:
            what = "the claims' file is" if key.startswith("claims") else "the settings of its steps are"
            raise UserError(
                f"{path}: {key}: {what} not what was registered; restore it (its record names the "
                f"commit that ran it), or before any result: {AGAIN}{name}"
            )
    commit = commit_of(path)
    commit_of(claims_path(found.claims))
    if changed := changed_files(ROOT, CODE):
        raise UserError(f"{ROOT}: code that is not committed ({changed[0]}); commit it before a registered study runs")
    return Registered(name, found, commit)


def register(name: str) -> Path:
    """Write the hashes into the registration's file. UserError if it does not fit its study."""
    path = registration_path(name)
    found = replace(read_registration(path), claims_sha256="", recipe_sha256="")
    check_fits(path, found)
    text = re.sub(r"^(claims|recipe)_sha256:.*\n?", "", read_text(path, "save it as UTF-8"), flags=re.MULTILINE)
    claims, recipe = hashes_of(found).values()
    text = f"{text.rstrip()}\nclaims_sha256: {claims}\nrecipe_sha256: {recipe}\n"
    if not _reads_back(beside(path, "new"), text, replace(found, claims_sha256=claims, recipe_sha256=recipe)):
        raise UserError(f"{path}: no place for hashes at its end; write one key a line, as composition-2.yaml does")
    write_text(path, text)
    return path


def _reads_back(place: Path, text: str, wanted: Registration) -> bool:
    """True if ``text``, in a file at ``place`` for a moment, is the registration ``wanted``."""
    try:
        write_text(place, text)
        return read_registration(place) == wanted
    except UserError:
        return False
    finally:
        remove(place)


def hashes_of(found: Registration) -> dict[str, str]:
    """sha256 of the claims' file and of the recipe, by key."""
    recipe = json.dumps(recipe_of(found), sort_keys=True)
    claims = claims_path(found.claims)
    return {"claims_sha256": file_hash(claims), "recipe_sha256": sha256(recipe.encode()).hexdigest()}


def recipe_of(found: Registration) -> list[dict[str, Any]]:
    """The resolved settings of every step of one replicate with all arms, but for where and how fast it is computed."""
    profile = f"{found.profile}/{found.engine}" if found.engine else found.profile
    arms, controls = tuple(found.arms), tuple(found.controls)
    place = Replicate("study", 0, 1)
    request = Request(found.study, profile, (place,), arms, controls, report=True, test_seed=found.test_seed)
    roots = {study_folder(kind, "study"): kind for kind in ROOTS}
    rows = []
    for step in plan(request):
        if not step.whole:
            made = step.settings if isinstance(step.settings, dict) else {"": step.settings}
            values = {f"{name}:{key}": str(value) for name, one in made.items() for key, value in _settings(one)}
            for root, kind in roots.items():
                values = {key: value.replace(f"{root}/", f"{kind}/") for key, value in values.items()}
            rows.append({"step": step.name, "entry_point": step.entry_point, "settings": values})
    return rows


def _settings(settings: Any) -> Iterator[tuple[str, Any]]:
    """Dotted keys and values that a result depends on."""
    return ((key, value) for key, value in flatten(asdict(settings)).items() if not MACHINE.search(key))


def check_fits(path: Path, found: Registration) -> None:
    """UserError for a study, a profile, an arm or a claim that there is not, and a claim that nothing decides."""
    try:
        study = load_study(found.study)
        for name in (*found.arms, *found.controls):
            find_arm(study, name)
        profile = load_profile(found.profile, found.engine)
        catalogue = read_claims_file(found.claims)
        splits = [split for of in found.replicates.values() for split in of if split]
        if splits and read_set("string", profile).mode == "paper":
            raise UserError(f"replicates: split {splits[0]}: the paper's problems have one division of the functions")
        for fault in _claim_faults(found, study, catalogue):
            raise UserError(fault)
        catalogue.with_primary(found.primary)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _claim_faults(found: Registration, study: Study, catalogue: ClaimsFile) -> Iterator[str]:
    claims = {claim.name: claim for claim in (*catalogue.claims, *catalogue.controls)}
    arms = {*study.evaluated, *found.arms, *found.controls}
    for key, names in (("primary", found.primary), ("secondary", found.secondary)):
        for name in names:
            if name not in claims:
                yield f"{key}: no claim {name} in {found.claims}; there are: {', '.join(claims)}"
            for one in claims[name].comparisons:
                if one.results not in MADE:
                    yield f"{key}: {name} needs the results {one.results}, which this study does not make"
                needed = [*one.arms, *(arm for gate in one.gates for arm in _arms_of_gate(gate))]
                if lacking := [arm for arm in needed if arm not in arms]:
                    yield f"{key}: {name} compares {lacking[0]}, which is not among arms or controls"


def _arms_of_gate(gate: Gate) -> Iterator[str]:
    """Those without which it fails. A positive control may name several groups; the first that was run counts."""
    if isinstance(gate, Sensitive):
        yield from filter(None, (gate.model, gate.base))
    elif isinstance(gate, Shown):
        yield from gate.comparisons[0].arms
