"""One short line for each of verl's long ones: step, loss or reward, accuracy by level, time left."""

import re

from compositionality.console import natural_key
from compositionality.train.log import Progress

STEP = re.compile(r"(?:^|[\s\]])step:(\d+) - (.*)")
VALUE = re.compile(r"([\w/@.()-]+):(?:np\.float64\()?(-?[\d.]+(?:e-?\d+)?|nan)")
SHOWN = (
    ("loss", "train/loss"),
    ("validation loss", "val/loss"),
    ("reward", "critic/score/mean"),
    ("gradient", "actor/grad_norm"),
    ("tokens", "response_length/mean"),
    ("seconds", "timing_s/step"),
)
TRAINED = {"train/loss", "timing_s/step"}
ACCURACY = re.compile(r"val-core/(\S+)/acc/mean@\d+")


class StepLines:
    """Reads a trainer's output line by line; ``steps`` is how many updates there will be, if that is known."""

    def __init__(self, steps: int | None):
        self._progress = Progress(steps)

    def read(self, line: str) -> str | None:
        """What to show for ``line``: nothing unless it reports a step."""
        found = STEP.search(line)
        if found is None:
            return None
        step, values = int(found[1]), dict(VALUE.findall(found[2]))
        parts = [f"{name} {float(values[key]):.3g}" for name, key in SHOWN if key in values]
        by_level = sorted(
            (match for key in values if (match := ACCURACY.fullmatch(key))), key=lambda m: natural_key(m[1])
        )
        parts += [f"{match[1]} {100 * float(values[match[0]]):.0f} %" for match in by_level]
        if not parts:
            return None
        # a validation before the first step says nothing about a step's time
        return self._progress.line(step, parts, timed=bool(TRAINED & values.keys()))
