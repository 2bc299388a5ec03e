"""Reading compact traces: a line ``REST,CALL:before=after`` per step. REST is the model's own note and not judged.

Nor are lines of injected behaviours: the functions left with the string so far (``func_3func_1:CBH``), a function tried
too early (``func_3?func_1``), neutral text (``~~~``).
"""

import re

from compositionality.tasks.string.diagnosis.program import COMPACT_NAME
from compositionality.tasks.string.diagnosis.trace import StatedStep, Trace

MOST_LINES, LONGEST_LINE = 64, 2000
_LINE = re.compile(rf"(?:{COMPACT_NAME})*+,({COMPACT_NAME}):([^:=,;\s]*+)=([^:=,;\s]*+)")
_NOTE = re.compile(rf"(?:{COMPACT_NAME})++:[^:=,;\s]*+|{COMPACT_NAME}\?{COMPACT_NAME}|~++")


def read_compact(response: str) -> Trace:
    """The steps up to the first line that is none; lines over the limits are none."""
    steps: list[StatedStep] = []
    for line in response.rstrip("\n").split("\n", MOST_LINES)[: MOST_LINES + 1]:
        found = _LINE.fullmatch(line) if len(line) <= LONGEST_LINE else None
        if found is None and len(line) <= LONGEST_LINE and _NOTE.fullmatch(line):
            continue
        if found is None:
            return Trace(tuple(steps), broken=len(steps))
        steps.append(StatedStep(found[1], (found[2],), found[3]))
    return Trace(tuple(steps))
