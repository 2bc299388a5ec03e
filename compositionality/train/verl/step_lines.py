"""One short line for each of verl's long ones: the step, what it learns from, accuracy by level, time left."""

import re
import time

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
ACCURACY = re.compile(r"val-core/(\S+)/acc/mean@\d+")


class StepLines:
    """Reads a trainer's output line by line; ``steps`` is how many updates there will be, if that is known."""

    def __init__(self, steps: int | None):
        self.steps = steps
        self._first: tuple[int, float] | None = None

    def read(self, line: str) -> str | None:
        """What to show for ``line``: nothing unless it reports a step."""
        found = STEP.search(line)
        if found is None:
            return None
        step, values = int(found[1]), dict(VALUE.findall(found[2]))
        parts = [f"{name} {float(values[key]):.3g}" for name, key in SHOWN if key in values]
        accuracy = {ACCURACY.fullmatch(key): value for key, value in values.items()}
        parts += [f"{match[1]} {100 * float(value):.0f} %" for match, value in accuracy.items() if match]
        if not parts:
            return None
        return "  ".join([f"step {step}" + (f"/{self.steps}" if self.steps else ""), *parts, *self._time_left(step)])

    def _time_left(self, step: int) -> list[str]:
        now = time.monotonic()
        if self._first is None or step < self._first[0]:
            self._first = (step, now)
        done = step - self._first[0]
        if not self.steps or done < 1:
            return []
        return [f"{(now - self._first[1]) / done * (self.steps - step):.0f} s left"]
