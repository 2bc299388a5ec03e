"""Simulated scaling studies with known constants."""

from pathlib import Path

import numpy as np
import pandas as pd

from compositionality.analysis.laws import Law, LawFit, initial

SIZES = (1e4, 3e4, 1e5, 3e5, 1e6)
STEPS = range(1, 13)
PROMPTS = 512.0
K_MAX, N0, E_MAX, N1 = 0.4, 1e5, 1.2, 3e5


def empty_points(n_runs: int = 3, sizes: tuple[float, ...] = SIZES) -> pd.DataFrame:
    """Every run's evaluations, all of loss 1."""
    rows = [
        (f"{size:g}-{run}", size, step, PROMPTS * step, 1.0)
        for size in sizes
        for run in range(n_runs)
        for step in STEPS
    ]
    return pd.DataFrame(rows, columns=["run", "size", "step", "resource", "loss"])


def study_of(law: Law, *, seed: int = 0, n_runs: int = 3) -> tuple[pd.DataFrame, LawFit]:
    """Losses exactly by ``law`` and its fit, at parameters within the middle of their bounds."""
    points = empty_points(n_runs)
    fit = initial(law, points)
    shares = np.random.default_rng(seed).uniform(0.4, 0.6, len(fit.low))
    fit.theta[:] = fit.low + shares * (fit.high - fit.low)
    return points.assign(loss=np.exp(fit.log_loss(points))), fit


def noisy_study(seed: int, *, n_runs: int = 4, between: float = 0.02, noise: float = 0.02) -> pd.DataFrame:
    """By log L = −E_max / (1 + N1/N) − K_max / (1 + N0/N) log(X / 3,000); runs differ in level and slope."""
    random = np.random.default_rng(seed)
    points = empty_points(n_runs)
    run, size = pd.factorize(points["run"])[0], points["size"]
    level, slope = random.normal(0, between, (2, run.max() + 1))
    falling = K_MAX / (1 + N0 / size) * (1 + slope[run]) * np.log(points["resource"] / 3000)
    mean = -E_MAX / (1 + N1 / size) - falling + level[run]
    return points.assign(loss=np.exp(mean + random.normal(0, noise, len(points))))


def write(points: pd.DataFrame, path: Path) -> Path:
    """Return a CSV file of evaluations, their resource FLOPs."""
    points.rename(columns={"resource": "flops"}).to_csv(path, index=False)
    return path
