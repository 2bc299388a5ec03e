"""What a script of ``bash/`` runs: its defaults and its one ``run`` line, read without bash.

Scripts are assignments ``NAME=${NAME:-default}`` and one ``run`` line; tests/test_scripts.py holds that this reading
and bash's are the same.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compositionality.errors import UserError
from compositionality.study.model import BASH

STEP_VARIABLES = ("MODEL_PATH", "TRAIN_FILES", "VAL_FILES", "OUTPUT", "DATA", "N_SAMPLES")
"""What a script may be given beside the identity of its run (bash/env.sh)."""
_ASSIGNMENT = re.compile(r"^([A-Z_]+)=(.*)$", re.MULTILINE)
_RUN = re.compile(r"^run (\w+)((?:[^\n]*\\\n)*[^\n]*)$", re.MULTILINE)
_SEED = "$((SEED + 1))"
_EXPANSION = re.compile(r"\$\{(\w+)(?:(:-|-|:\+|%)((?:[^{}]|\$\{[^{}]*\})*))?\}|\$(\w+)")


@dataclass(frozen=True)
class Script:
    """An entry point, the words of its command and the values of variables, before they are expanded."""

    entry_point: str
    words: tuple[str, ...]
    assignments: tuple[tuple[str, str], ...]


@cache
def read_script(name: str) -> Script | None:
    """bash/NAME.sh; None for one that does more than a single step. UserError if there is no such file."""
    path = BASH / f"{name}.sh"
    if not path.is_file():
        raise UserError(f"bash/{name}.sh: no such script")
    text = path.read_text()
    runs = _RUN.findall(text)
    if len(runs) != 1 or re.search(r"^\s*(for|if|case|script)\b", text, re.MULTILINE):
        return None
    words = tuple(shlex.split(runs[0][1].replace("\\\n", " ").replace(_SEED, "\0")))
    assigned = tuple((key, shlex.split(value)[0] if value else "") for key, value in _ASSIGNMENT.findall(text))
    return Script(runs[0][0], words, assigned)


def words_of(script: Script, variables: Mapping[str, str], more: tuple[str, ...] = ()) -> list[str]:
    """The words of the command that the script runs with these variables, and ``more`` behind it."""
    own = re.sub(r"(/final|/best)?/?\]?$", "", variables.get("MODEL_PATH", ""))
    own = re.sub("^.*[/:]", "", own, flags=re.DOTALL)
    given = {**variables, "PROBLEMS": variables.get("DATA_FILE", ""), "OWN": own and f"-{own}"}
    for name, value in script.assignments:
        given[name] = expanded(value, given)
    words: list[str] = []
    for word in script.words:
        if word == "$@":
            words += more
        elif text := expanded(word, given):
            words.append(text)
    return words


def expanded(text: str, given: Mapping[str, str]) -> str:
    """``text`` with its variables as bash expands them."""

    def value(match: re.Match[str]) -> str:
        name, sign, other = match[1] or match[4], match[2], match[3] or ""
        found = given.get(name)
        if sign == ":-":
            return found or expanded(other, given)
        if sign == "-":
            return expanded(other, given) if found is None else found
        if sign == ":+":
            return expanded(other, given) if found else ""
        if sign == "%":  # of /*, all that scripts cut off
            return (found or "").rpartition("/")[0] or found or ""
        return found or ""

    return _EXPANSION.sub(value, text).replace("\0", str(int(given["SEED"]) + 1) if "\0" in text else "")


def script_names() -> list[str]:
    """Every script of bash/."""
    return sorted(path.relative_to(BASH).with_suffix("").as_posix() for path in Path(BASH).glob("**/*.sh"))
