"""Variables that look misspelt: ``variables.py STEP [NAME …]``, which bash/env.sh runs; of the standard library alone.

A script reads what its text and that of bash/env.sh name as ``$NAME``, and what its program reads of the environment. A
variable that only resembles one of these is a line on stderr, as it may be there for something else; one of the NAMEs,
which were given behind the script, is an error.
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


def main(step: str, *behind: str) -> int:
    """Say what looks misspelt. Return 2 if it was given behind the script."""
    found = misspelt(step, os.environ)
    for name, meant in found.items():
        kind, end = ("error", "") if name in behind else ("note", ", if it was meant for this script")
        print(f"{kind}: {name}: bash/{step}.sh reads no such variable; give {meant}{end}", file=sys.stderr)
    return 2 if found.keys() & {*behind} else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
