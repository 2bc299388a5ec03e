"""Simulated scaling studies with known constants."""

import numpy as np

from compositionality.analysis.scaling.fit import Frame, frame_for
from compositionality.analysis.scaling.laws import Law
from compositionality.analysis.scaling.points import Points
from compositionality.stats.estimate import Floats

SIZES = (1e4, 3e4, 1e5, 3e5, 1e6)
STEPS = range(1, 13)
PROMPTS = 512.0
K_MAX, N0, E_MAX, N1 = 0.4, 1e5, 1.2, 3e5


def empty_points(n_runs: int = 3, sizes: tuple[float, ...] = SIZES) -> Points:
    """Every run's evaluations, all of loss 1."""
    names = [f"{size:g}-{number}" for size in sizes for number in range(n_runs)]
    run = np.repeat(np.arange(len(names)), len(STEPS))
    size = np.repeat(np.repeat(sizes, n_runs), len(STEPS))
    step = np.tile(np.array(STEPS), len(names))
    return Points(tuple(names), run, size, step, PROMPTS * step, np.ones(len(run)))


def study_of(law: Law, theta: Floats | None = None, *, seed: int = 0, n_runs: int = 3) -> tuple[Points, Frame, Floats]:
    """Losses exactly by ``law``, at parameters within the middle of their bounds where none are given."""
    points = empty_points(n_runs)
    frame = frame_for(law, points)
    if theta is None:
        shares = np.random.default_rng(seed).uniform(0.4, 0.6, len(frame.low))
        theta = frame.low + shares * (frame.high - frame.low)
    loss = np.exp(frame.log_loss(theta, points.size, points.resource))
    return with_losses(points, loss), frame, theta


def noisy_study(seed: int, *, n_runs: int = 4, between: float = 0.02, noise: float = 0.02) -> Points:
    """By log L = −E_max / (1 + N1/N) − K_max / (1 + N0/N) log(X / 3,000); runs differ in level and slope."""
    random = np.random.default_rng(seed)
    points = empty_points(n_runs)
    level, slope = random.normal(0, between, (2, len(points.runs)))
    falling = K_MAX / (1 + N0 / points.size) * (1 + slope[points.run]) * np.log(points.resource / 3000)
    mean = -E_MAX / (1 + N1 / points.size) - falling + level[points.run]
    return with_losses(points, np.exp(mean + random.normal(0, noise, len(points))))


def with_losses(points: Points, loss: Floats) -> Points:
    """The same evaluations with other losses."""
    return Points(points.runs, points.run, points.size, points.step, points.resource, loss)
