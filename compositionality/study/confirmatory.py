"""A study under a registration: what is registered becomes its plan, and nothing else does."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from compositionality.config.profile import load_profile
from compositionality.data.artefact import verify
from compositionality.data.test_seeds import check_test_seed, note_test_seed
from compositionality.errors import UserError
from compositionality.study.model import Replicate, study_folder
from compositionality.study.plan import in_order, plan
from compositionality.study.registration import Registered, registered
from compositionality.study.request import Request
from compositionality.study.scripts import STEP_VARIABLES
from compositionality.study.steps import Step

RESULTS = (
    *("section41_42/results.parquet", "section41_42/training.json", "section44/results.parquet"),
    *("section45/results.parquet", "section45/labels.parquet"),
)
"""What a whole study reads of each replicate."""
LAST = {"claims": ("post_hoc=true",), "page": (), "record": ("force=true",)}
"""Steps that are made again when claims have changed since, with their words."""
FOREIGN = (*STEP_VARIABLES, "BASE_MODEL", "CHAT_TEMPLATE")
POST_HOC = "--post-hoc"


def registered_study(
    name: str, words: Sequence[str], given: Mapping[str, str], *, dry: bool = False
) -> tuple[list[Step], Request]:
    """The steps of a registered study; its registration is kept beside its results (but for a dry run).

    Its test seed is entered in the ledger before the first test problem is made. With the one word ``--post-hoc`` the
    last steps alone: claims, which may have changed, page and record. UserError for a registration that may not be run
    (``registered``), a test seed that something else used, and a setting beside the registration.
    """
    post_hoc = list(words) == [POST_HOC]
    if words and not post_hoc:
        raise UserError(f"{words[0]}: a registered study takes no settings; what it runs with is in its registration")
    found = registered(name, post_hoc=post_hoc)
    if foreign := [key for key in FOREIGN if given.get(key)]:
        raise UserError(f"{foreign[0]}={given[foreign[0]]}: a registered study takes no such variable; leave it out")
    request = registered_request(found, given)
    steps = [step for step in plan(request) if step.whole or not is_complete(request, step.place)]
    if post_hoc:
        last = [step for step in steps if step.name in LAST]
        return in_order([replace(step, words=(*step.words, *LAST[step.name])) for step in last]), request
    content, results = found.content, Path(study_folder("results", request.name))
    if (results / "registration").exists():
        found.freeze(results)
    check_test_seed(content.test_seed, found.identity)
    if not dry:
        found.freeze(results)
        note_test_seed(content.test_seed, found.identity, request.name)
    return in_order(steps), request


def registered_request(found: Registered, given: Mapping[str, str]) -> Request:
    """What the registration asks for. UserError for a variable that says otherwise."""
    content, name = found.content, Path(found.name).stem
    profile = f"{content.profile}/{content.engine}" if content.engine else content.profile
    own = {"PROFILE": profile, "STUDY": name, "ARMS": " ".join(content.arms), "TEST_SEED": str(content.test_seed)}
    for key, value in {**own, "SEED": "", "SPLIT": "", "SEEDS": ""}.items():
        if given.get(key) not in (None, "", value):
            raise UserError(f"{key}={given[key]}: registered is {value or 'none'} ({found.name}); leave it out")
    return Request(
        content.study,
        profile,
        tuple(Replicate(name, seed, split) for seed, splits in content.replicates.items() for split in splits),
        tuple(content.arms),
        tuple(content.controls),
        report=True,
        registration=found.name,
        record=True,
        one_lane=True,
        test_seed=content.test_seed,
        gpu=load_profile(profile).device == "gpu",
    )


def is_complete(request: Request, place: Replicate) -> bool:
    """True if a replicate's results are there, of all its arms: then its models and completions may lie elsewhere.

    What the splits of a seed share is complete if all of them are. UserError for a result that has been altered.
    """
    places = [one for one in request.replicates if one == place or (not place.split and one.seed == place.seed)]
    first = {one.seed: one for one in reversed(request.replicates)}.values()
    for one in places:
        files = [Path(one.folder("results"), name) for name in RESULTS]
        if not all(file.is_file() for file in files):
            return False
        evaluated, *_ = (verify(file).settings.get("models", []) for file in files)
        controls = request.controls if one in first else ()
        if not {*request.loaded.evaluated, *request.trained, *controls} <= set(evaluated):
            return False
    return True
