"""Find variables without effect: ``variables.py STEP [NAME …]``, run by bash/env.sh; standard library only.

A script reads the variables in its text and in bash/env.sh (``$NAME``), and its program may read others. NAMEs are
variables given after the script name. A variable of another or an earlier script, or one with a name similar to a
variable of this script, is a note on stderr, and an error if it is one of the NAMEs. Any other unread NAME is a note,
because the program may read it.
"""

import os
import re
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

BASH = Path(__file__).parents[2] / "bash"
MACHINE_VARIABLES = {"N_GPUS", "NNODES", "RAY_ADDRESS"}
STUDY_VARIABLES = {"SEEDS", "ARMS", "BACKEND", "BASE_MODEL", "CHAT_TEMPLATE"}
_STEP_KEYS = """
    ALGORITHM CLAIMS CONTROL CONTROLS_LR DOMAINS DOMAIN_COUNT DOMAIN_HOLDOUT INFLUENCE_MODELS MODELS PASSK_FILES
    PROBLEM_SEED RESOURCES RFT_BUDGET RFT_FILTER RFT_SAMPLES RFT_STAGE1_SAMPLES RUNS SFT_BUDGET SFT_LIKE SFT_PART
    STRING_LEVELS
"""
_OTHER_ENGINE = "give PROFILE=NAME/verl, or engine=verl after the name of a script that trains"
FIXES = {
    "MODEL_PATH": "give BASE_MODEL to a study",
    **dict.fromkeys(("TRAIN_FILES", "VAL_FILES", "N_SAMPLES", "OUTPUT"), "give it to a script that reads it"),
    **dict.fromkeys(("ENGINE", "ENGINES", "STUDY_ENGINE"), _OTHER_ENGINE),
    "ROLLOUT_ENGINE": "give rollout.engine=NAME",
    "FUNCTION_SPLIT": "give SPLIT",
    "EVALUATE_ON": "give DATA",
    "SEED_CKPT_DIR": "give CKPT_DIR",
    "LANES": "give lanes=N to a study",
    "LEFT_OUT": "ARMS names what is trained",
    **dict.fromkeys(("LIST_STEPS", "DRY_STEPS"), "give print=list to a study, or DRY_RUN=1"),
    "ONLY": "give only=[STEP] to a study",
    "VARIANTS": "give variants=[NAME] to a study",
    "PASSK_MODELS": "give passk=[NAME] to a study",
    **dict.fromkeys(("OTHER_RESULTS_DIR", "STRING_RESULTS_DIR"), "give countdown=STUDY to a study"),
    **dict.fromkeys(("RATES", "TUNING_SEEDS"), "tune_lr.sh has an arm for each rate, and takes SEED"),
    **dict.fromkeys(_STEP_KEYS.split(), "give key=value to the script of the step, or STEP:key=value to a study"),
}
"""Variable of other scripts, or of earlier versions → what to do if a script does not read it."""
_READ, _RUNS_A_STUDY = re.compile(r"\$\{?!?([A-Z][A-Z_]{3,})"), re.compile("^run run_study ", re.MULTILINE)
_SET_BY_ENV = {"BASH_SOURCE", "PROBLEMS", "CKPT", "RESULTS"}
"""Variables that bash/env.sh always sets itself."""
_CUTOFF = 0.8


def variables_of(step: str) -> set[str]:
    """Return the variables that bash/STEP.sh reads."""
    script = (BASH / f"{step}.sh").read_text()
    names = {*_READ.findall((BASH / "env.sh").read_text() + script)} - _SET_BY_ENV
    return names | MACHINE_VARIABLES | (STUDY_VARIABLES if _RUNS_A_STUDY.search(script) else set())


def misspelt(step: str, names: Iterable[str]) -> dict[str, str]:
    """Return unread variables with a name similar to a variable of bash/STEP.sh: name → that variable."""
    variables = variables_of(step)
    close = {name: get_close_matches(name, variables, 1, _CUTOFF) for name in {*names} - variables}
    return {name: matches[0] for name, matches in sorted(close.items()) if matches}


def main(step: str, *arguments: str) -> int:
    """Print the variables without effect. Return 2 if one of them was given after the script name."""
    names = [name for name, value in os.environ.items() if value]
    fixes = {name: f"give {right}" for name, right in misspelt(step, names).items()}
    unread = FIXES.keys() & {*names} - {*_READ.findall((BASH / f"{step}.sh").read_text())}
    fixes |= {name: FIXES[name] for name in sorted(unread)}
    for name, fix in fixes.items():
        kind, end = ("error", "") if name in arguments else ("note", ", if it was meant for this script")
        print(f"{kind}: {name}: bash/{step}.sh reads no such variable; {fix}{end}", file=sys.stderr)
    for name in {*arguments} - fixes.keys() - variables_of(step):
        print(f"note: {name}: bash/{step}.sh reads no such variable; it is passed on to the program", file=sys.stderr)
    return 2 if fixes.keys() & {*arguments} else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
