"""Variables without effect: ``variables.py STEP [NAME …]``, which bash/env.sh runs; of the standard library alone.

A script reads what its text and that of bash/env.sh name as ``$NAME``, and what its program reads of the environment. A
variable that other scripts read, or that only resembles one that this script reads, is a line on stderr, as it may be
there for something else; one of the NAMEs, which were given behind the script, is an error.
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
OF_SOME_SCRIPTS = {
    "MODEL_PATH": "give BASE_MODEL to a study",
    "ENGINE": "give PROFILE=NAME/verl, or engine=verl behind a script that trains",
    **dict.fromkeys(("TRAIN_FILES", "VAL_FILES", "N_SAMPLES", "OUTPUT"), "give it to a script that does"),
}
"""Variable → what to do where a script does not read it."""
_READ, _RUNS_A_STUDY = re.compile(r"\$\{?!?([A-Z][A-Z_]{3,})"), re.compile("^run run_study ", re.MULTILINE)
_OF_ENV = {"BASH_SOURCE", "PROBLEMS", "CKPT", "RESULTS"}
"""What bash/env.sh makes, whatever is given."""
_CUTOFF = 0.8


def read_by(step: str) -> set[str]:
    """Return the variables that bash/STEP.sh reads."""
    script = (BASH / f"{step}.sh").read_text()
    own = {*_READ.findall((BASH / "env.sh").read_text() + script)} - _OF_ENV
    return own | OF_A_MACHINE | (OF_A_STUDY if _RUNS_A_STUDY.search(script) else set())


def misspelt(step: str, given: Iterable[str]) -> dict[str, str]:
    """Return for each of the ``given`` variables that resembles one that bash/STEP.sh reads, and is none, that one."""
    known = read_by(step)
    close = {name: get_close_matches(name, known, 1, _CUTOFF) for name in {*given} - known}
    return {name: matches[0] for name, matches in sorted(close.items()) if matches}


def unread(step: str, given: Iterable[str]) -> dict[str, str]:
    """Return for each of the ``given`` variables that only other scripts than bash/STEP.sh read, what to do."""
    read = {*_READ.findall((BASH / f"{step}.sh").read_text())}
    return {name: OF_SOME_SCRIPTS[name] for name in sorted(OF_SOME_SCRIPTS.keys() & {*given} - read)}


def main(step: str, *behind: str) -> int:
    """Say what has no effect. Return 2 if it was given behind the script."""
    given = [name for name, value in os.environ.items() if value]
    found = {name: f"give {meant}" for name, meant in misspelt(step, given).items()} | unread(step, given)
    for name, fix in found.items():
        kind, end = ("error", "") if name in behind else ("note", ", if it was meant for this script")
        print(f"{kind}: {name}: bash/{step}.sh reads no such variable; {fix}{end}", file=sys.stderr)
    return 2 if found.keys() & {*behind} else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
