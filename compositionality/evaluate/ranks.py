"""Does what is known of SFT models predict which of them gain from RL? Arms ranked by both, seed by seed.

An arm NAME is a pair of models, sft-NAME and rl-NAME. Predictors, on queries that no arm is trained on: the mean
influence, the share of queries with right and wrong completions (mixed), the entropy. Predicted: the gain in accuracy
at the hardest level of each group of test problems. p, by permutation of A arms, is at least 2 / A!: 0.33 of three.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compositionality.console import new_console
from compositionality.data.artefact import Recipe, config_hash, exclusive, verify, write_all_derived
from compositionality.data.json_files import check_shape, read_json_object
from compositionality.errors import UserError
from compositionality.evaluate.frames import Row, grid, rich_table, write_between_marks
from compositionality.evaluate.frames import markdown_lines as markdown_of
from compositionality.evaluate.naming import named_paths, with_run_names
from compositionality.evaluate.results import ProblemSet, Results, read_results
from compositionality.evaluate.summary import by_problem, contrast
from compositionality.ranges import REQUIRED
from compositionality.stats.estimate import Floats
from compositionality.stats.significance import rank_correlation
from compositionality.types import DEEPEST, MIXED, QUERY_VALUES, Metric

STEP = "rank_arms"
BEFORE, AFTER = "sft-", "rl-"
PREDICTORS = (QUERY_VALUES[0], MIXED, QUERY_VALUES[1])
LEAST_ARMS = 3
AGAIN = "run bash/behavior_injection/rank.sh again with --force"


@dataclass
class RankSettings:
    """Settings of ``rank_arms``; seeds have the same names in both lists."""

    accuracy: list[str] = REQUIRED  # SEED:PATH of results.parquet
    influence: list[str] = REQUIRED  # SEED:FOLDER with MODEL/influence.parquet
    output: Path = REQUIRED  # ranks.json
    markdown: str = ""  # file for the table, or with a place for it
    place: str = "ranks"  # name of that place
    force: bool = False  # replace a result that was made from something else


def rank_arms(settings: RankSettings) -> Path:
    """Write ``output``; print the rank correlations. UserError for under three arms in all seeds, or other seeds."""
    check(settings)
    accuracy = read_results(settings.accuracy)
    known = read_results(settings.influence, metric=Metric.INFLUENCE)
    names = [[one.name for one in found.replicates] for found in (accuracy, known)]
    if names[0] != names[1]:
        raise UserError(f"influence of {', '.join(names[1])}, accuracy of {', '.join(names[0])}; give the same seeds")
    content = ranks_of(accuracy, known)
    inputs = {
        f"{what}/{one.name}/{file}": path
        for what, found in (("accuracy", accuracy), ("influence", known))  # names of results, as in the claims
        for one in found.replicates
        for file, path in one.tables.items()
    }
    text = json.dumps(content, indent=1) + "\n"
    with exclusive(settings.output):
        body = {settings.output: lambda path: path.write_text(text, encoding="utf-8")}
        write_all_derived(body, Recipe(STEP, {"content": config_hash(content)}, inputs), force=settings.force)
    frame = grid(content["correlations"], lambda row: row["predictor"], correlation_cell, across="of")
    title = f"rank correlation over {len(content['arms'])} arms with the gain from RL"
    new_console().print(rich_table(frame, title))
    if settings.markdown:
        lines = ["", *markdown_of(frame, title), "", f"Arms: {', '.join(content['arms'])}.", ""]
        write_between_marks(Path(settings.markdown), settings.place, "\n".join(lines))
    print(f"{settings.output}" + (f"; {settings.markdown}" if settings.markdown else ""))
    return settings.output


def check(settings: RankSettings) -> None:
    """UserError for an output or names of inputs that cannot be."""
    if settings.output.suffix != ".json":
        raise UserError(f"output={settings.output}: must end in .json")
    for key in ("accuracy", "influence"):
        named_paths(key, with_run_names(getattr(settings, key)))


def ranks_of(accuracy: Results, known: Results) -> dict[str, Any]:
    """The content of ranks.json: the values of every arm and seed, and the correlations."""
    arms = [
        name
        for model in known.arms
        if (name := model.removeprefix(BEFORE)) != model and {model, AFTER + name} <= set(accuracy.arms)
    ]
    if len(arms) < LEAST_ARMS:
        raise UserError(
            f"{', '.join(arms) or 'no arm'}: a ranking needs {LEAST_ARMS} arms with sft-ARM and rl-ARM in every seed; "
            "name more in ARMS"
        )
    if len(known.sets) != 1:
        raise UserError(f"influence: queries of {len(known.sets)} groups; a ranking takes those of one")
    (queries,) = known.sets
    predicted = {name: _by_seed(known, arms, queries, name) for name in PREDICTORS}
    rows, correlations = list[Row](), list[Row]()
    for problems in _hardest(accuracy):
        gains = np.array([_gain(accuracy, arm, problems) for arm in arms]).T
        of = {"group": problems.group, "level": problems.level}
        for name, values in predicted.items():
            found = rank_correlation(values, gains)
            interval = found.interval
            correlations.append(
                {**of, "of": str(problems), "predictor": name, "correlation": found.value,
                 "low": interval and interval.low, "high": interval and interval.high,
                 "values": list(found.by_seed), "p": found.p}
            )  # fmt: skip
        rows += _rows(accuracy, arms, {"gain": gains, **predicted}, of)
    return {
        "arms": arms,
        "seeds": [one.name for one in accuracy.replicates],
        "correlations": correlations,
        "rows": rows,
    }


def read_ranks(path: Path) -> dict[str, Any]:
    """A ranks.json, checked against its manifest."""
    if verify(path).step != STEP:
        raise UserError(f"{path}: was not made by examples/rank_arms.py")
    content = read_json_object(path, AGAIN)
    check_shape(content, {"arms": list, "correlations": list, "rows": list}, path, AGAIN)
    return content


def correlation_cell(row: Row) -> str:
    """``+0.62 [+0.31, +0.93], p 0.04: +0.7 +0.5``."""
    interval = "" if row["low"] is None else f" [{row['low']:+.2f}, {row['high']:+.2f}]"
    values = f": {' '.join(f'{value:+.1f}' for value in row['values'])}" if len(row["values"]) > 1 else ""
    return f"{row['correlation']:+.2f}{interval}, p {row['p']:.2g}{values}".replace("-", "−")


def _hardest(found: Results) -> list[ProblemSet]:
    groups = dict.fromkeys(one.group for one in found.sets)
    return [one for group in groups if (one := found.problem_set(group, DEEPEST))]


def _gain(found: Results, arm: str, problems: ProblemSet) -> tuple[float, ...]:
    estimate = contrast(found, AFTER + arm, BEFORE + arm, problems)
    if estimate is None:
        raise UserError(f"{arm}: not evaluated on {problems} in every seed; run evaluate.sh again")
    return estimate.by_seed


def _by_seed(known: Results, arms: Sequence[str], queries: ProblemSet, part: str) -> Floats:
    """Means over queries, (S, A)."""
    rows = [[known.of_replicate(BEFORE + arm, queries, one.name) for arm in arms] for one in known.replicates]
    values = [[by_problem(of_arm, part) for of_arm in of_seed] for of_seed in rows]
    return np.array([[one.values.sum() / max(one.weights.sum(), 1) for one in of_seed] for of_seed in values])


def _rows(found: Results, arms: Sequence[str], values: dict[str, Floats], of: Row) -> Iterator[Row]:
    for place, seed in enumerate(found.replicates):
        for number, arm in enumerate(arms):
            yield {
                **of,
                "arm": arm,
                "seed": seed.name,
                **{key: float(of_SA[place, number]) for key, of_SA in values.items()},
            }
