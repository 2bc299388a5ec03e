"""Rank correlations: do measures of SFT models predict which of them gain from RL? Arms are ranked seed by seed.

An arm NAME is a pair of models, sft-NAME and rl-NAME. Predictors, on queries that no arm is trained on: the mean
influence, the share of queries with right and wrong completions (mixed), the entropy. Predicted: the gain in accuracy
at the hardest level of each group of test problems. p, by permutation of A arms, is at least 2 / A!: 0.33 for three.
"""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from compositionality.errors import UserError
from compositionality.evaluate.results import Results
from compositionality.evaluate.summary import by_problem, contrast
from compositionality.evaluate.tables import Row
from compositionality.evaluate.types import DEEPEST, MIXED, QUERY_VALUES
from compositionality.stats.significance import rank_correlation

BEFORE, AFTER = "sft-", "rl-"
PREDICTORS = (QUERY_VALUES[0], MIXED, QUERY_VALUES[1])
LEAST_ARMS = 3


def rank_table(ranks: Row) -> tuple[pd.DataFrame, str]:
    """Return the correlations as a table, one row per predictor, and its title."""
    cells = [(row["predictor"], row["of"], correlation_cell(row)) for row in ranks["correlations"]]
    frame = pd.DataFrame(cells, columns=["predictor", "of", "cell"]).pivot(index="predictor", columns="of")["cell"]
    return frame.reindex(PREDICTORS), f"rank correlation over {len(ranks['arms'])} arms with the gain from RL"


def ranks_of(accuracy: Results, influence: Results) -> dict[str, Any]:
    """Return the values of every arm and seed (``rows``), and the correlations. UserError for ``why_no_ranks``."""
    if reason := why_no_ranks(accuracy, influence):
        raise UserError(reason)
    arms, seeds = arms_of(accuracy, influence), [replicate.name for replicate in influence.replicates]
    (queries,) = influence.sets
    measured = {name: np.empty((len(seeds), len(arms))) for name in ("gain", *PREDICTORS)}
    for name, (row, seed), (column, arm) in product(PREDICTORS, enumerate(seeds), enumerate(arms)):
        values, weights, _ = by_problem(influence.select(BEFORE + arm, queries, seed), name)
        measured[name][row, column] = values.sum() / max(weights.sum(), 1)
    rows, correlations = list[Row](), list[Row]()
    for group in dict.fromkeys(problems.group for problems in accuracy.sets):
        problems = accuracy.problem_set(group, DEEPEST)
        assert problems is not None
        gains = [contrast(accuracy, AFTER + arm, BEFORE + arm, problems) for arm in arms]
        if None in gains:
            raise UserError(
                f"{arms[gains.index(None)]}: not evaluated on {problems} in every seed; run evaluate.sh again"
            )
        measured["gain"] = np.array([gain.by_seed for gain in gains if gain]).T
        about = {"group": problems.group, "level": problems.level}
        for name in PREDICTORS:
            rank = rank_correlation(measured[name], measured["gain"])
            low, high = rank.interval or (None, None)
            figures = {"correlation": rank.value, "low": low, "high": high, "values": list(rank.by_seed), "p": rank.p}
            correlations.append({**about, "of": str(problems), "predictor": name, **figures})
        for (row, seed), (column, arm) in product(enumerate(seeds), enumerate(arms)):
            figures = {name: float(values_SA[row, column]) for name, values_SA in measured.items()}
            rows.append({**about, "arm": arm, "seed": seed, **figures})
    return {"arms": arms, "seeds": seeds, "correlations": correlations, "rows": rows}


def arms_of(accuracy: Results, influence: Results) -> list[str]:
    """Return the arms whose models both results have in every seed."""
    names = [model.removeprefix(BEFORE) for model in influence.arms if model.startswith(BEFORE)]
    return [name for name in names if {BEFORE + name, AFTER + name} <= set(accuracy.arms)]


def why_no_ranks(accuracy: Results, influence: Results) -> str:
    """Return the reason why arms cannot be ranked, in one line; empty if they can."""
    measured, ranked = (", ".join(place.name for place in results.replicates) for results in (accuracy, influence))
    if measured != ranked:
        return f"influence of {ranked}, accuracy of {measured}; give the same seeds"
    if len(arms := arms_of(accuracy, influence)) < LEAST_ARMS:
        least = f"a ranking needs {LEAST_ARMS} arms with sft-ARM and rl-ARM in every seed; name more in ARMS"
        return f"{', '.join(arms) or 'no arm'}: {least}"
    groups = len(influence.sets)
    return "" if groups == 1 else f"influence: queries of {groups} groups; a ranking takes one"


def correlation_cell(row: Row) -> str:
    """Return a cell, ``+0.62 [+0.31, +0.93], p 0.04: +0.7 +0.5``."""
    interval = "" if row["low"] is None else f" [{row['low']:+.2f}, {row['high']:+.2f}]"
    values = f": {' '.join(f'{value:+.1f}' for value in row['values'])}" if len(row["values"]) > 1 else ""
    return f"{row['correlation']:+.2f}{interval}, p {row['p']:.2g}{values}".replace("-", "−")
