"""A study under a registration: what is registered becomes its variables and jobs, and nothing else does."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from compositionality.data.test_seeds import check_test_seed, note_test_seed
from compositionality.errors import UserError
from compositionality.gpus import VISIBLE
from compositionality.study.environment import MARK, environment
from compositionality.study.jobs import OF_A_STEP, Job, Request
from compositionality.study.registration import Registered, registered
from compositionality.study.replicate_jobs import replicate_jobs
from compositionality.study.replicates import Replicate

FOLDERS = ("DATA_DIR", "CKPT_DIR", "RESULTS_DIR")
OF_THE_MACHINE = ("DEVICE", "CORES", "LANES", "N_GPUS", "NNODES", "OMP_NUM_THREADS", "RAY_ADDRESS", "DRY_RUN", VISIBLE)
FREE = {
    *FOLDERS,
    *OF_THE_MACHINE,
    MARK,
    "PROCESSES",
    "PYTHON",
    "REGISTRATION",
    "SEED_CKPT_DIR",
    "COUNTDOWN_RESULTS_DIR",
}
"""Variables that change no result, or that follow from those."""
OF_ONE_SCRIPT = (
    *OF_A_STEP,
    *("ARM_NAME", "RFT", "RFT_BUDGET", "RFT_FILTER", "CONTROL", "EVALUATE_ON"),
    *("ITERATION", "START", "STUDY_ENGINE", "LEFT_OUT", "PROBLEM_SEED", "REPLICATES", "REPLICATE", "PLAN"),
    *("SOURCE_MODEL", "EVALUATION", "LIST_STEPS", "DRY_STEPS", "MARKDOWN"),
)
"""Variables that scripts read and bash/env.sh does not set for all of them."""
POST_HOC = "--post-hoc"


def registered_study(name: str, words: Sequence[str], given: Mapping[str, str]) -> tuple[list[Job], dict[str, str]]:
    """The jobs of a registered study and its variables; its registration is kept beside its results (but for DRY_RUN).

    Its test seed is entered in the ledger before the first test problem is made. With the one word ``--post-hoc`` the
    last jobs alone: claims, which may have changed, page and record. UserError for a registration that may not be run
    (``registered``), a test seed that something else used, and a setting beside the registration.
    """
    post_hoc = list(words) == [POST_HOC]
    if words and not post_hoc:
        raise UserError(f"{words[0]}: a registered study takes no settings; what it runs with is in its registration")
    found = registered(name, post_hoc=post_hoc)
    if foreign := [key for key in OF_ONE_SCRIPT if key in given]:
        raise UserError(f"{foreign[0]}={given[foreign[0]]}: a registered study takes no such variable; leave it out")
    variables = registered_variables(found, given)
    results = Path(variables["RESULTS_DIR"])
    content = found.content
    replicates = [Replicate(seed, split) for seed, splits in content.replicates.items() for split in splits]
    jobs = replicate_jobs(Request(content.study, len(replicates)), variables, replicates, content.controls)
    if post_hoc:
        return _decided_again(jobs), variables
    if (results / "registration").exists():
        found.freeze(results)
    check_test_seed(content.test_seed, found.identity)
    if not variables.get("DRY_RUN"):
        found.freeze(results)
        note_test_seed(content.test_seed, found.identity, f"{variables['STUDY']}.json")
    return jobs, variables


def _decided_again(jobs: Sequence[Job]) -> list[Job]:
    """Claims, page and record, one after the other."""
    words = {"claims": (POST_HOC,), "report": (), "record": ("--force",)}
    last = [job for job in jobs if job.script in words]
    return [replace(job, words=words[job.script], after=tuple(range(n))) for n, job in enumerate(last)]


def registered_variables(found: Registered, given: Mapping[str, str]) -> dict[str, str]:
    """The variables of bash/env.sh. UserError for one that was given and is not as registered."""
    content, name = found.content, Path(found.name).stem
    chosen = {
        "PROFILE": content.profile,
        "ENGINE": content.engine,
        "SECTION": content.study,
        "ARMS": " ".join(content.arms),
        "TEST_SEED": str(content.test_seed),
        "DATA_DIR": f"data/{name}",
        "CKPT_DIR": f"checkpoints/{name}",
        "RESULTS_DIR": f"results/{name}",
        **{key: given[key] for key in (*FOLDERS, *OF_THE_MACHINE) if given.get(key)},
    }
    kept = {key: chosen[key] for key in ("RAY_ADDRESS", "DRY_RUN", "N_GPUS", "NNODES") if chosen.get(key)}
    variables = {**kept, **environment(chosen), "STUDY": name, "REGISTRATION": found.name}
    for key in sorted(variables.keys() - FREE):
        if given.get(key, variables[key]) not in ("", variables[key]):
            raise UserError(
                f"{key}={given[key]}: registered is {variables[key] or 'none'} ({found.name}); leave it out"
            )
    return variables
