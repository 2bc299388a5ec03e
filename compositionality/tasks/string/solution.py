"""Right completions of the compact style with behaviours injected.

- *analysis*: the functions that are left and the string so far are written before the step (``func_3func_1:CBH``), the
  more often the more are left;
- *reflection*: a later function is tried although the string that it takes is not known (``func_3?func_1``).

A step is one call of a function: it has no subgoals.
"""

from compositionality.errors import UserError
from compositionality.tasks.behaviours import BRIDGE, Behaviours
from compositionality.tasks.draws import Draws
from compositionality.tasks.string.diagnosis.program import Program

_RESOLUTION = 1 << 30
FILLER = "~"


def write_solution(program: Program, behaviours: Behaviours, key: bytes) -> str:
    """The trace of a problem, all choices drawn from ``key``. UserError for what these traces cannot hold."""
    if behaviours.subgoals or behaviours.reordered:
        raise UserError("the steps of string problems have no subgoals and no other order; leave both out")
    draws, lines, names = Draws(key), list[str](), program.names
    for number, line in enumerate(program.gold_trace().split("\n")):
        left = names[number:]
        if len(left) > 1 and _happens(draws, behaviours.reflection):
            later = draws.between(1, len(left) - 1)
            lines.append(f"{left[later]}?{left[later - 1]}")
        if _happens(draws, behaviours.analysis_chance(len(left))):
            given = line.rpartition("=")[0].rpartition(":")[2]
            lines.append(f"{''.join(reversed(left))}:{given}")
        lines.append(line)
    text = "\n".join(lines)
    if not behaviours.padded:
        return text
    whole = Behaviours(analysis=BRIDGE.analysis, reflection=BRIDGE.reflection)
    missing = len(write_solution(program, whole, key)) - len(text)
    return f"{FILLER * (missing - 1)}\n{text}" if missing > 1 else text


def _happens(draws: Draws, chance: float) -> bool:
    return chance > 0 and draws.below(_RESOLUTION) < chance * _RESOLUTION
