"""Coverage of the interval over seeds where seeds are not normal: the table of ``compositionality/stats/README.md``.

``python tests/stats/coverage_table.py`` writes the table into the README; a test holds that it is there.

Legend: R simulated studies, S seeds.
"""
# ruff: noqa: N806

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from compositionality.stats.estimate import Floats, student

README = Path(__file__).parents[2] / "compositionality" / "stats" / "README.md"
STUDIES, SEEDS = 40_000, (4, 6, 10, 16)
BEGIN, END = "<!-- coverage: tests/stats/coverage_table.py -->", "<!-- end -->"
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]


def failing(spread: float) -> Draw:
    """One seed in four gains nothing, the others 25 points; all ± ``spread``."""
    return lambda rng, shape: np.where(rng.random(shape) < 0.25, 0.0, 0.25) + spread * rng.standard_normal(shape)


EFFECTS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, shape: rng.standard_normal(shape), 0.0),
    "one seed in four fails: 0, else 25 points, both ± 6": (failing(0.06), 0.1875),
    "one seed in four fails: 0, else 25 points, both ± 3": (failing(0.03), 0.1875),
    "two splits a seed, one in four fails, both ± 6": (
        lambda rng, shape: (failing(0.06)(rng, shape) + failing(0.06)(rng, shape)) / 2,
        0.1875,
    ),
    "exponential": (lambda rng, shape: rng.standard_exponential(shape), 1.0),
    "log-normal (σ 1)": (lambda rng, shape: rng.lognormal(size=shape), math.exp(0.5)),
}
"""How effects of seeds are drawn, and their mean."""


def misses(draw: Draw, mean: float, seeds: int, start: int = 0) -> tuple[float, float]:
    """Return the shares of studies whose interval lies wholly below the mean, and wholly above it."""
    gains_RS = draw(np.random.default_rng([start, seeds]), (STUDIES, seeds))
    half_R = student(seeds - 1) * gains_RS.std(axis=1, ddof=1) / math.sqrt(seeds)
    away_R = gains_RS.mean(axis=1) - mean
    return float((away_R + half_R < 0).mean()), float((away_R - half_R > 0).mean())


def table() -> str:
    """Return the table: of each effect and number of seeds the coverage, and on which side the others miss."""
    lines = [f"| effect of a seed | {' | '.join(f'{n} seeds' for n in SEEDS)} |", f"|---|{'---|' * len(SEEDS)}"]
    for name, (draw, mean) in EFFECTS.items():
        cells = []
        for seeds in SEEDS:
            below, above = misses(draw, mean, seeds)
            cells.append(f"{100 * (1 - below - above):.1f} ({100 * below:.1f} / {100 * above:.1f})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def with_table(text: str) -> str:
    """Return the README with the table between its marks."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
