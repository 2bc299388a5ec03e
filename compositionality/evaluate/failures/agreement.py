"""How far the judge and the program agree: Cohen's kappa, with an interval over problems."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compositionality.data.artefact import verify
from compositionality.data.parquet import read_table
from compositionality.evaluate.failures.judge import COLUMNS, MALFORMED
from compositionality.stats.intervals import CONFIDENCE, Counts
from compositionality.types import FAILURES

DRAWS = 2000


def agreement(judged: Path) -> dict[str, Any]:
    """Figures of judge.parquet; malformed answers are counted and left out of the rest. None: undefined."""
    made = verify(judged)
    rows = read_table(judged, COLUMNS.names).to_pandas()
    valid = rows[rows["judge"] != MALFORMED]
    clusters = valid.groupby(["problems", "problem"], sort=True).ngroup().to_numpy(np.int64)
    numbers = [valid[name].map(FAILURES.index).to_numpy(np.int64) for name in ("program", "judge")]
    tables = np.zeros((int(clusters.max(initial=-1)) + 1, len(FAILURES), len(FAILURES)), np.int64)
    np.add.at(tables, (clusters, *numbers), 1)
    whole = tables.sum(0)
    same = float(np.trace(whole) / len(valid)) if len(valid) else None
    found = {"model": made.settings["judge"], "n": len(valid), "malformed": len(rows) - len(valid), "agreement": same}
    return {**found, **dict(zip(("kappa", "low", "high"), kappa_with_interval(tables), strict=True))}


def kappa(tables: NDArray[Any]) -> NDArray[np.float64]:
    """Cohen's kappa of contingency tables (…, K, K), (…): agreement beyond chance; nan where chance alone agrees."""
    n = tables.sum((-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = np.trace(tables, axis1=-2, axis2=-1) / n
        chance = (tables.sum(-1) * tables.sum(-2)).sum(-1) / n**2
        found: NDArray[np.float64] = (observed - chance) / (1 - chance)
    return np.where(np.isfinite(found), found, np.nan)


def kappa_with_interval(tables: Counts) -> tuple[float | None, float | None, float | None]:
    """Kappa of the summed tables of C problems (C, K, K), and the 95 % interval of a bootstrap over problems."""
    n = len(tables)
    value = float(kappa(tables.sum(0))) if n else np.nan
    if np.isnan(value):
        return None, None, None
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)  # (D, C)
    drawn = kappa((weights @ tables.reshape(n, -1)).reshape(-1, *tables.shape[1:]))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail])
    return value, float(low), float(high)
