"""Variables without effect: ``variables.py STEP [NAME …]``, which bash/env.sh runs; of the standard library alone.

A script reads what its text and that of bash/env.sh name as ``$NAME``, and what its program reads of the environment. A
variable that other scripts read or earlier ones did, or that only resembles one that this script reads, is a line on
stderr, as it may be there for something else; one of the NAMEs, which were given after the script name, is an error.
Any other of the NAMEs is a line, as its program may read it.
"""

import os
import re
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

BASH = Path(__file__).parents[2] / "bash"
OF_A_MACHINE = {"N_GPUS", "NNODES", "RAY_ADDRESS"}
OF_A_STUDY = {"SEEDS", "ARMS", "BACKEND", "BASE_MODEL", "CHAT_TEMPLATE"}
_OF_STEPS = """
    ALGORITHM CLAIMS CONTROL CONTROLS_LR DOMAINS DOMAIN_COUNT DOMAIN_HOLDOUT INFLUENCE_MODELS MODELS PASSK_FILES
    PROBLEM_SEED RESOURCES RFT_BUDGET RFT_FILTER RFT_SAMPLES RFT_STAGE1_SAMPLES RUNS SFT_BUDGET SFT_LIKE SFT_PART
    STRING_LEVELS
"""
_OTHER_ENGINE = "give PROFILE=NAME/verl, or engine=verl after the name of a script that trains"
OF_OTHERS = {
    "MODEL_PATH": "give BASE_MODEL to a study",
    **dict.fromkeys(("TRAIN_FILES", "VAL_FILES", "N_SAMPLES", "OUTPUT"), "give it to a script that does"),
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
    **dict.fromkeys(_OF_STEPS.split(), "give key=value to the script of the step, or STEP:key=value to a study"),
}
"""Variable of other scripts, or of earlier versions → what to do where a script does not read it."""
_READ, _RUNS_A_STUDY = re.compile(r"\$\{?!?([A-Z][A-Z_]{3,})"), re.compile("^run run_study ", re.MULTILINE)
_OF_ENV = {"BASH_SOURCE", "PROBLEMS", "CKPT", "RESULTS"}
"""What bash/env.sh makes, whatever is given."""
_CUTOFF = 0.8


def read_by(step: str) -> set[str]:
    """Return the variables that bash/STEP.sh reads."""
    script = (BASH / f"{step}.sh").read_text()
    names = {*_READ.findall((BASH / "env.sh").read_text() + script)} - _OF_ENV
    return names | OF_A_MACHINE | (OF_A_STUDY if _RUNS_A_STUDY.search(script) else set())


def misspelt(step: str, names: Iterable[str]) -> dict[str, str]:
    """Return the variables that bash/STEP.sh does not read but that resemble one it reads, each with that one."""
    known = read_by(step)
    close = {name: get_close_matches(name, known, 1, _CUTOFF) for name in {*names} - known}
    return {name: matches[0] for name, matches in sorted(close.items()) if matches}


def main(step: str, *behind: str) -> int:
    """Say what has no effect. Return 2 if it was given after the script name."""
    names = [name for name, value in os.environ.items() if value]
    fixes = {name: f"give {meant}" for name, meant in misspelt(step, names).items()}
    unread = OF_OTHERS.keys() & {*names} - {*_READ.findall((BASH / f"{step}.sh").read_text())}
    fixes |= {name: OF_OTHERS[name] for name in sorted(unread)}
    for name, fix in fixes.items():
        kind, end = ("error", "") if name in behind else ("note", ", if it was meant for this script")
        print(f"{kind}: {name}: bash/{step}.sh reads no such variable; {fix}{end}", file=sys.stderr)
    for name in {*behind} - fixes.keys() - read_by(step):
        print(f"note: {name}: bash/{step}.sh reads no such variable; it is handed on to the program", file=sys.stderr)
    return 2 if fixes.keys() & {*behind} else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
