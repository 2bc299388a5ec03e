"""A study under a registration: what is registered becomes its plan, and nothing else does."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from compositionality.config.problem_sets import read_set
from compositionality.config.profile import load_profile
from compositionality.data.artefact import beside, file_hash, remove, verify, write_text
from compositionality.data.git import CODE, changed_files, check_ancestor, commit_of
from compositionality.data.json_files import read_text
from compositionality.data.test_seeds import REGISTERED, check_test_seed, note_test_seed
from compositionality.errors import UserError
from compositionality.evaluate.claims.model import ClaimsFile, Sensitive, Shown, read_claims_file
from compositionality.evaluate.registration import (
    Registration,
    claims_path,
    freeze,
    read_registration,
    registration_path,
)
from compositionality.ranges import REQUIRED, NonEmptyStr
from compositionality.study.model import ROOTS, Replicate, Request, Study, find_arm, load_study, study_folder
from compositionality.study.plan import in_order, plan
from compositionality.study.scripts import STEP_VARIABLES
from compositionality.study.steps import Step
from compositionality.train.common.run_folder import flatten

ROOT = Path(__file__).parents[2]
MACHINE = re.compile(r"^run\.|workers$|^force$|^dry_run$|ray_address$")
"""Settings that change no result."""
MADE = frozenset({"accuracy", "passk", "failures"})
"""The results that a registered study makes."""
RESULTS = (
    *("section41_42/results.parquet", "section41_42/training.json", "section44/results.parquet"),
    *("section45/results.parquet", "section45/labels.parquet"),
)
"""What a whole study reads of each replicate; the first knows the models that were evaluated."""
LAST = {"claims": ("post_hoc=true",), "page": (), "record": ("force=true",)}
"""Steps that are made again when claims have changed since, with their words."""
FOREIGN = (*STEP_VARIABLES, "BASE_MODEL", "CHAT_TEMPLATE")
POST_HOC = "--post-hoc"
AGAIN = "python examples/register.py registration="


@dataclass
class RegisterSettings:
    """Settings of ``register_study``."""

    registration: NonEmptyStr = REQUIRED  # one of compositionality/config/registrations/ without .yaml, or a path
    check: bool = False  # write nothing; refuse what the study's start would refuse


def register_study(settings: RegisterSettings) -> None:
    """Write the hashes into the registration, or check it. UserError for what does not fit."""
    name = settings.registration
    if not settings.check:
        print(f"{register(name)}: hashes written; commit it, then run bash/confirmatory.sh")
        return
    registration, commit = registered(name)
    registered_study(name, [], {}, dry=True)
    seeds = registration.replicates
    print(f"{name}: {sum(map(len, seeds.values()))} replicates of {len(seeds)} seeds, commit {commit}")


def registered_study(
    name: str, words: Sequence[str], given: Mapping[str, str], *, dry: bool = False
) -> tuple[list[Step], Request]:
    """Return the steps of a registered study; its registration is kept beside its results (but for a dry run).

    Its test seed is entered in the ledger before the first test problem is made. With the one word ``--post-hoc`` the
    last steps alone: claims, which may have changed, page and record. UserError for a registration that may not be run
    (``registered``), a test seed that something else used, and a setting beside the registration.
    """
    post_hoc = list(words) == [POST_HOC]
    if words and not post_hoc:
        raise UserError(f"{words[0]}: a registered study takes no settings; what it runs with is in its registration")
    registration, commit = registered(name, post_hoc=post_hoc)
    request = registered_request(name, registration, given)
    steps = [step for step in plan(request) if step.whole or not is_complete(request, step.place)]
    if post_hoc:
        last = [replace(step, words=(*step.words, *LAST[step.name])) for step in steps if step.name in LAST]
        return in_order(last), request
    path, folder = registration_path(name), Path(request.root("results"), "registration")
    # another hash has other claims, another recipe or another design
    identity = f"{REGISTERED}{path.stem} {file_hash(path)[:16]}"
    if folder.exists():
        keep(name, commit, folder)
    check_test_seed(request.test_seed, identity)
    if not dry:
        keep(name, commit, folder)
        note_test_seed(request.test_seed, identity, request.name)
    return in_order(steps), request


def keep(name: str, commit: str, folder: Path) -> None:
    """Freeze a registration beside the results. UserError if results exist under another one, or it has changed."""
    frozen = freeze(name, commit, folder)
    check_ancestor(registration_path(name).parent, frozen.facts["commit"], name)


def registered_request(name: str, content: Registration, given: Mapping[str, str]) -> Request:
    """Return what the registration asks for. UserError for a variable that says otherwise."""
    if foreign := [key for key in FOREIGN if given.get(key)]:
        raise UserError(f"{foreign[0]}={given[foreign[0]]}: a registered study takes no such variable; leave it out")
    study, profile = Path(name).stem, profile_of(content)
    own = {"PROFILE": profile, "STUDY": study, "ARMS": " ".join(content.arms), "TEST_SEED": str(content.test_seed)}
    for key, value in {**own, "SEED": "", "SPLIT": "", "SEEDS": ""}.items():
        if given.get(key) not in (None, "", value):
            raise UserError(f"{key}={given[key]}: registered is {value or 'none'} ({name}); leave it out")
    return Request(
        content.study,
        profile,
        tuple(Replicate(study, seed, split) for seed, splits in content.replicates.items() for split in splits),
        tuple(content.arms),
        tuple(content.controls),
        report=True,
        registration=name,
        record=True,
        one_lane=True,
        test_seed=content.test_seed,
        gpu=load_profile(profile).device == "gpu",
    )


def profile_of(registration: Registration) -> str:
    """Return NAME or NAME/ENGINE."""
    return "/".join(filter(None, (registration.profile, registration.engine)))


def is_complete(request: Request, place: Replicate) -> bool:
    """True if a replicate's results are there, of all its arms: then its models and completions may lie elsewhere.

    What the splits of a seed share is complete if all of them are. UserError for a result that has been altered.
    """
    first = {other.seed: other for other in reversed(request.replicates)}.values()
    for other in request.replicates:
        if other != place and (place.split or other.seed != place.seed):
            continue
        files = [Path(other.folder("results"), name) for name in RESULTS]
        if not all(file.is_file() for file in files):
            return False
        tables = [verify(file) for file in files]
        controls = request.controls if other in first else ()
        if not {*request.loaded.evaluated, *request.trained, *controls} <= set(tables[0].settings.get("models", [])):
            return False
    return True


def registered(name: str, *, post_hoc: bool = False) -> tuple[Registration, str]:
    """Return a registration that may be run, and the commit that holds it.

    UserError for a registration that does not fit its study or its hashes, or is not committed as it is, and for
    code that is not committed. ``post_hoc``: its claims may have changed.
    """
    path = registration_path(name)
    registration = read_registration(path)
    check_fits(path, registration)
    for key, expected in hashes_of(registration).items():
        if post_hoc and key == "claims_sha256":
            continue
        if not getattr(registration, key):
            raise UserError(f"{path}: {key}: not there yet; run {AGAIN}{name} and commit it")
        if getattr(registration, key) != expected:
            what = "the claims' file is" if key == "claims_sha256" else "the settings of its steps are"
            raise UserError(
                f"{path}: {key}: {what} not what was registered; restore it (its record names the "
                f"commit that ran it), or before any result: {AGAIN}{name}"
            )
    commit = commit_of(path)
    commit_of(claims_path(registration.claims))
    if changed := changed_files(ROOT, CODE):
        raise UserError(f"{ROOT}: code that is not committed ({changed[0]}); commit it before a registered study runs")
    return registration, commit


def register(name: str) -> Path:
    """Write the hashes into the registration's file. UserError if it does not fit its study."""
    path = registration_path(name)
    registration = replace(read_registration(path), claims_sha256="", recipe_sha256="")
    check_fits(path, registration)
    text = read_text(path, "save it as UTF-8")
    claims, recipe = hashes_of(registration).values()
    text = re.sub(r"^(claims|recipe)_sha256:.*\n?", "", text, flags=re.MULTILINE).rstrip()
    new = beside(path, "new")
    write_text(new, f"{text}\nclaims_sha256: {claims}\nrecipe_sha256: {recipe}\n")
    try:
        if read_registration(new) != replace(registration, claims_sha256=claims, recipe_sha256=recipe):
            raise UserError("another registration")
    except UserError:
        remove(new)
        raise UserError(
            f"{path}: no place for hashes at its end; write one key a line, as composition-2.yaml does"
        ) from None
    return new.replace(path)


def hashes_of(registration: Registration) -> dict[str, str]:
    """Return sha256 of the claims' file and of the recipe, by key."""
    recipe = json.dumps(recipe_of(registration), sort_keys=True)
    claims = claims_path(registration.claims)
    return {"claims_sha256": file_hash(claims), "recipe_sha256": sha256(recipe.encode()).hexdigest()}


def recipe_of(registration: Registration) -> list[dict[str, Any]]:
    """The resolved settings of every step of one replicate with all arms, but for where and how fast it is computed."""
    place, arms, controls = Replicate("study", 0, 1), tuple(registration.arms), tuple(registration.controls)
    request = Request(
        registration.study,
        profile_of(registration),
        (place,),
        arms,
        controls,
        report=True,
        test_seed=registration.test_seed,
    )
    roots = {study_folder(kind, "study"): kind for kind in ROOTS}
    rows = []
    for step in plan(request):
        if not step.whole:
            made = step.settings if isinstance(step.settings, dict) else {"": step.settings}
            flat = {
                f"{name}:{key}": str(value) for name, part in made.items() for key, value in _settings(part).items()
            }
            for root, kind in roots.items():
                flat = {key: value.replace(f"{root}/", f"{kind}/") for key, value in flat.items()}
            rows.append({"step": step.name, "entry_point": step.entry_point, "settings": flat})
    return rows


def _settings(settings: Any) -> dict[str, Any]:
    """Return settings that a result depends on, by dotted keys."""
    return {key: value for key, value in flatten(asdict(settings)).items() if not MACHINE.search(key)}


def check_fits(path: Path, registration: Registration) -> None:
    """UserError for a study, a profile, an arm or a claim that there is not, and a claim that nothing decides."""
    try:
        study = load_study(registration.study)
        for name in (*registration.arms, *registration.controls):
            find_arm(study, name)
        profile = load_profile(profile_of(registration))
        catalogue = read_claims_file(registration.claims)
        splits = [split for splits in registration.replicates.values() for split in splits if split]
        if splits and read_set("string", profile).mode == "paper":
            raise UserError(f"replicates: split {splits[0]}: the paper's problems have one division of the functions")
        for key, names in (("primary", registration.primary), ("secondary", registration.secondary)):
            for name in names:
                _check_claim(f"{key}: ", name, registration, study, catalogue)
        catalogue.with_primary(registration.primary)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _check_claim(where: str, name: str, registration: Registration, study: Study, catalogue: ClaimsFile) -> None:
    """UserError for a claim that there is not, or that needs results or arms which the study does not make."""
    claims = {claim.name: claim for claim in (*catalogue.claims, *catalogue.controls)}
    arms = {*study.evaluated, *registration.arms, *registration.controls}
    if name not in claims:
        raise UserError(f"{where}no claim {name} in {registration.claims}; there are: {', '.join(claims)}")
    for comparison in claims[name].comparisons:
        if comparison.results not in MADE:
            raise UserError(f"{where}{name} needs the results {comparison.results}, which this study does not make")
        needed = [*comparison.arms]
        for gate in comparison.gates:  # without these it fails; of several groups the first that was run counts
            if isinstance(gate, Sensitive):
                needed += filter(None, (gate.model, gate.base))
            elif isinstance(gate, Shown):
                needed += gate.comparisons[0].arms
        if lacking := [arm for arm in needed if arm not in arms]:
            raise UserError(f"{where}{name} compares {lacking[0]}, which is not among arms or controls")
