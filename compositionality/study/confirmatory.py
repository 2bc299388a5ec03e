"""A study under a registration: what is registered becomes its variables and jobs, and nothing else does."""

from collections.abc import Mapping, Sequence
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
    *("RFT", "RFT_BUDGET", "RFT_FILTER", "CONTROL", "EVALUATE_ON", "ONLY"),
    *("ITERATION", "START", "STUDY_ENGINE", "LEFT_OUT", "PROBLEM_SEED", "REPLICATES", "PLAN", "SOURCE_MODEL"),
)
"""Variables that scripts read and bash/env.sh does not set for all of them."""


def registered_study(name: str, words: Sequence[str], given: Mapping[str, str]) -> tuple[list[Job], dict[str, str]]:
    """The jobs of a registered study and its variables; its registration is kept beside its results (but for DRY_RUN).

    Its test seed is entered in the ledger before the first test problem is made. UserError for a registration that may
    not be run (``registered``), a test seed that another recipe used, and a setting beside the registration.
    """
    if words:
        raise UserError(f"{words[0]}: a registered study takes no settings; what it runs with is in its registration")
    found = registered(name)
    if foreign := [key for key in OF_ONE_SCRIPT if given.get(key)]:
        raise UserError(f"{foreign[0]}={given[foreign[0]]}: a registered study takes no such variable; leave it out")
    variables = variables_of(found, given)
    results = Path(variables["RESULTS_DIR"])
    if (results / "registration").is_dir():
        found.freeze(results)
    check_test_seed(found.content.test_seed, found.identity)
    if not variables.get("DRY_RUN"):
        found.freeze(results)
        note_test_seed(found.content.test_seed, found.identity, f"{variables['STUDY']}.json")
    content = found.content
    replicates = [Replicate(seed, split) for seed, splits in content.replicates.items() for split in splits]
    return replicate_jobs(Request(content.study, len(replicates)), variables, replicates, content.controls), variables


def variables_of(found: Registered, given: Mapping[str, str]) -> dict[str, str]:
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
