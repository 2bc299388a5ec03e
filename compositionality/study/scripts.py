"""What a script of ``bash/`` runs: its defaults and its one ``run`` line, read without bash.

Scripts are assignments ``NAME=${NAME:-default}`` and one ``run`` line; tests/test_scripts.py holds that this reading
and bash's are the same.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from compositionality.config.makers import BASH
from compositionality.errors import UserError
from compositionality.study.model import check_scripts

STEP_VARIABLES = ("MODEL_PATH", "TRAIN_FILES", "VAL_FILES", "OUTPUT", "DATA", "N_SAMPLES")
"""What a script may be given beside the identity of its run (bash/env.sh)."""
_ASSIGNMENT = re.compile(r"^([A-Z_]+)=(.*)$", re.MULTILINE)
_RUN = re.compile(r"^run (\w+)((?:[^\n]*\\\n)*[^\n]*)$", re.MULTILINE)
_EXPANSION = re.compile(r"\$\{(\w+)(?:(:-|-|:\+|%)((?:[^{}]|\$\{[^{}]*\})*))?\}|\$(\w+)")


@dataclass(frozen=True)
class Script:
    """An entry point, the words of its command and the values of variables, before they are expanded."""

    entry_point: str
    words: tuple[str, ...]
    assignments: tuple[tuple[str, str], ...]


@cache
def read_script(name: str) -> Script | None:
    """Return bash/NAME.sh; None for one that does more than a single step. UserError if there is no such file."""
    path = BASH / f"{name}.sh"
    check_scripts()
    if not path.is_file():
        raise UserError(f"bash/{name}.sh: no such script")
    text = path.read_text()
    runs = _RUN.findall(text)
    if len(runs) != 1 or re.search(r"^\s*(for|if|case|script)\b", text, re.MULTILINE):
        return None
    words = shlex.split(runs[0][1].replace("\\\n", " ").replace("$((SEED + 1))", "$NEXT_SEED"))
    assigned = tuple((key, shlex.split(value)[0] if value else "") for key, value in _ASSIGNMENT.findall(text))
    return Script(runs[0][0], tuple(words), assigned)


def words_of(script: Script, variables: Mapping[str, str], more: tuple[str, ...] = ()) -> list[str]:
    """Return the words of the command that the script runs with these variables, and ``more`` behind it."""
    model = re.sub(r"(/final|/best)?/?\]?$", "", variables.get("MODEL_PATH", ""))
    own = re.sub("^.*[/:]", "", model, flags=re.DOTALL)
    given = {**variables, "PROBLEMS": variables.get("DATA_FILE", ""), "OWN": own and f"-{own}"}
    given["NEXT_SEED"] = str(int(variables["SEED"]) + 1)
    for name, value in script.assignments:
        given[name] = _expanded(value, given)
    words = [word if word == "$@" else _expanded(word, given) for word in script.words]
    return [part for word in words if word for part in (more if word == "$@" else [word])]


def _expanded(text: str, given: Mapping[str, str]) -> str:
    """Return ``text`` with its variables as bash expands them."""

    def value(match: re.Match[str]) -> str:
        name, sign, other = match[1] or match[4], match[2], match[3] or ""
        if sign == "%":  # of /*, all that scripts cut off
            return re.sub("/[^/]*$", "", given.get(name, ""))
        if sign == ":+":
            return _expanded(other, given) if given.get(name) else ""
        is_given = name in given if sign == "-" else bool(given.get(name))
        return given[name] if is_given else _expanded(other, given)

    return _EXPANSION.sub(value, text)
