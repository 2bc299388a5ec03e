"""Does what is known of SFT models predict which of them gain from RL? Arms ranked by both, seed by seed.

An arm NAME is a pair of models, sft-NAME and rl-NAME. Predictors, on queries that no arm is trained on: the mean
influence, the share of queries with right and wrong completions (mixed), the entropy. Predicted: the gain in accuracy
at the hardest level of each group of test problems. p, by permutation of A arms, is at least 2 / A!: 0.33 of three.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, config_hash, exclusive, write_derived
from compositionality.errors import UserError
from compositionality.evaluate.naming import named_paths, with_run_names
from compositionality.evaluate.results import ProblemSet, Results, read_results
from compositionality.evaluate.seeds import table_files
from compositionality.evaluate.summary import by_problem, contrast
from compositionality.evaluate.tables import Row, csv_text, rich_table
from compositionality.ranges import REQUIRED
from compositionality.stats.estimate import Floats
from compositionality.stats.significance import rank_correlation
from compositionality.types import DEEPEST, MIXED, QUERY_VALUES, Metric

BEFORE, AFTER = "sft-", "rl-"
PREDICTORS = (QUERY_VALUES[0], MIXED, QUERY_VALUES[1])
LEAST_ARMS = 3


@dataclass
class RankSettings:
    """Settings of ``rank_arms``; seeds have the same names in both lists."""

    accuracy: list[str] = REQUIRED  # SEED:PATH of results.parquet
    influence: list[str] = REQUIRED  # SEED:FOLDER with MODEL/influence.parquet
    output: Path = REQUIRED  # ranks.csv
    force: bool = False  # replace a result that was made from something else


def rank_arms(settings: RankSettings) -> Path:
    """Write ``output``; print the rank correlations. UserError for under three arms in all seeds, or other seeds."""
    check(settings)
    accuracy = read_results(settings.accuracy)
    known = read_results(settings.influence, metric=Metric.INFLUENCE)
    ranks = ranks_of(accuracy, known)
    text = csv_text(ranks["correlations"])
    tables = {"accuracy": table_files(accuracy), "influence": table_files(known)}
    inputs = {f"{kind}/{name}": path for kind, files in tables.items() for name, path in files.items()}
    with exclusive(settings.output):
        recipe = Recipe("rank_arms", {"content": config_hash(ranks)}, inputs)
        write_derived(
            settings.output, recipe, lambda path: path.write_text(text, encoding="utf-8"), force=settings.force
        )
    new_console().print(rich_table(*rank_table(ranks)))
    print(settings.output)
    return settings.output


def check(settings: RankSettings) -> None:
    """UserError for an output or names of inputs that cannot be."""
    if settings.output.suffix != ".csv":
        raise UserError(f"output={settings.output}: must end in .csv")
    for key in ("accuracy", "influence"):
        named_paths(key, with_run_names(getattr(settings, key)))


def rank_table(ranks: Row) -> tuple[pd.DataFrame, str]:
    """Return the correlations as a table, a line for each predictor, and its title."""
    cells = [(row["predictor"], row["of"], correlation_cell(row)) for row in ranks["correlations"]]
    frame = pd.DataFrame(cells, columns=["predictor", "of", "cell"]).pivot(index="predictor", columns="of")["cell"]
    return frame.reindex(PREDICTORS), f"rank correlation over {len(ranks['arms'])} arms with the gain from RL"


def ranks_of(accuracy: Results, known: Results) -> dict[str, Any]:
    """Return the values of every arm and seed (``rows``), and the correlations.

    UserError for under three arms in every seed, queries of several groups, or other seeds in the two.
    """
    seeds, others = ([one.name for one in results.replicates] for results in (accuracy, known))
    if seeds != others:
        raise UserError(f"influence of {', '.join(others)}, accuracy of {', '.join(seeds)}; give the same seeds")
    arms = arms_of(accuracy, known)
    if len(arms) < LEAST_ARMS:
        raise UserError(
            f"{', '.join(arms) or 'no arm'}: a ranking needs {LEAST_ARMS} arms with sft-ARM and rl-ARM in every seed; "
            "name more in ARMS"
        )
    if len(known.sets) != 1:
        raise UserError(f"influence: queries of {len(known.sets)} groups; a ranking takes those of one")
    predicted = {name: predictor(known, arms, name) for name in PREDICTORS}
    rows, correlations = list[Row](), list[Row]()
    for group in dict.fromkeys(one.group for one in accuracy.sets):
        problems, gains = gains_of(accuracy, arms, group)
        of = {"group": problems.group, "level": problems.level}
        for name, values in predicted.items():
            found = rank_correlation(values, gains)
            low, high = found.interval or (None, None)
            figures = {
                "correlation": found.value,
                "low": low,
                "high": high,
                "values": list(found.by_seed),
                "p": found.p,
            }
            correlations.append({**of, "of": str(problems), "predictor": name, **figures})
        measured = {"gain": gains, **predicted}
        for (number, seed), (place, arm) in product(enumerate(seeds), enumerate(arms)):
            figures = {name: float(values[number, place]) for name, values in measured.items()}
            rows.append({**of, "arm": arm, "seed": seed, **figures})
    return {"arms": arms, "seeds": seeds, "correlations": correlations, "rows": rows}


def gains_of(accuracy: Results, arms: Sequence[str], group: str) -> tuple[ProblemSet, Floats]:
    """Return the hardest problems of a group, and what RL adds there, (S, A)."""
    problems = accuracy.problem_set(group, DEEPEST)
    assert problems is not None
    estimates = {arm: contrast(accuracy, AFTER + arm, BEFORE + arm, problems) for arm in arms}
    for arm, estimate in estimates.items():
        if estimate is None:
            raise UserError(f"{arm}: not evaluated on {problems} in every seed; run evaluate.sh again")
    return problems, np.array([estimate.by_seed for estimate in estimates.values() if estimate]).T


def predictor(known: Results, arms: Sequence[str], measure: str) -> Floats:
    """Return means of a measure over the queries, (S, A)."""
    (queries,), seeds = known.sets, [one.name for one in known.replicates]
    rows = [[known.of_replicate(BEFORE + arm, queries, seed) for arm in arms] for seed in seeds]
    values = [[by_problem(of_arm, measure) for of_arm in of_seed] for of_seed in rows]
    return np.array([[one.values.sum() / max(one.weights.sum(), 1) for one in of_seed] for of_seed in values])


def arms_of(accuracy: Results, known: Results) -> list[str]:
    """Return the names of the pairs of models that both results have in every seed."""
    names = [model.removeprefix(BEFORE) for model in known.arms if model.startswith(BEFORE)]
    return [name for name in names if {BEFORE + name, AFTER + name} <= set(accuracy.arms)]


def can_be_ranked(accuracy: Results, known: Results) -> bool:
    """Return whether both results have the same seeds and enough arms, with queries of one group."""
    seeds, others = ([one.name for one in results.replicates] for results in (accuracy, known))
    return seeds == others and len(known.sets) == 1 and len(arms_of(accuracy, known)) >= LEAST_ARMS


def correlation_cell(row: Row) -> str:
    """``+0.62 [+0.31, +0.93], p 0.04: +0.7 +0.5``."""
    interval = "" if row["low"] is None else f" [{row['low']:+.2f}, {row['high']:+.2f}]"
    values = f": {' '.join(f'{value:+.1f}' for value in row['values'])}" if len(row["values"]) > 1 else ""
    return f"{row['correlation']:+.2f}{interval}, p {row['p']:.2g}{values}".replace("-", "−")
