"""Tables of exact probabilities, each model beside its start model: by function, problem, part; means over replicates.

The parts of a gold solution, over its steps: *name* of the function, *input* (the problem's string, in the first step),
*handed on* (the string that a later step is applied to), *result*, *end*.
"""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compositionality.console import natural_key
from compositionality.evaluate.results import Results
from compositionality.evaluate.summary import HELDOUT
from compositionality.evaluate.table import RESULTS, SCHEMA, SOLVED, gold_hand_over
from compositionality.tasks.diagnosis import ROLES

LOG_PROBS, RANKS = "gold_log_prob_by_step_role", "gold_rank_by_step_role"
COLUMNS = ["arm", "file", "problem", "level", "cluster", "skills", "gold_log_prob", LOG_PROBS, RANKS]
TIMES = ["before", "after"]
RANKED = ["first", "five"]
ANY = "any"  # in place of a function: the mean over all of them
PARTS = ("name", "input", "handed on", "result", "end")


def read_exact(results: Results, starts: Mapping[str, str]) -> pd.DataFrame:
    """Read the held-out problems with an exact probability, of all replicates: a row for each model and problem.

    ``starts``: the start model of each model; its columns end in ``_before``. ``functions``: the functions that the
    problem applies, the outermost first, with repetitions.
    """
    measured = (pc.field("group") == HELDOUT) & pc.field("gold_log_prob").is_valid()
    parts = [
        pq.read_table(place.tables[RESULTS], schema=SCHEMA, columns=COLUMNS, filters=measured)
        .to_pandas()
        .assign(replicate=place.name)
        for place in results.replicates
        if RESULTS in place.tables
    ]
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*COLUMNS, "replicate"])
    pairs = zip(rows["cluster"], rows["skills"], strict=True)
    functions = [[word for word in re.findall(r"\w+", text) if word in skills] for text, skills in pairs]
    rows["functions"] = pd.Series(functions, rows.index, dtype=object)
    values, is_known = gold_hand_over(rows)
    rows["hand_over"] = np.where(is_known, values, np.nan)
    keys, models = ["replicate", "file", "problem", "start"], rows.rename(columns={"arm": "model"})
    before = rows.rename(columns={"arm": "start"})[[*keys, "gold_log_prob", "hand_over", RANKS]]
    return models.assign(start=rows["arm"].map(starts)).merge(before, on=keys, suffixes=("", "_before"))


def hand_over_by_function(exact: pd.DataFrame) -> pd.DataFrame:
    """Return the mean probability of the hand-over at level 2, by the inner and by the outer function."""
    pairs = hand_overs(exact)
    rows = pd.concat([pairs.assign(place=place, function=pairs[place]) for place in ("inner", "outer")])
    return mean_over_replicates(rows, ["place", "function"], TIMES)


def hand_over_by_pair(exact: pd.DataFrame) -> pd.DataFrame:
    """Return the mean probability of the hand-over at level 2 of each pair; ``ANY`` stands for all functions."""
    pairs = hand_overs(exact)
    rows = pd.concat([pairs, pairs.assign(inner=ANY), pairs.assign(outer=ANY), pairs.assign(inner=ANY, outer=ANY)])
    return mean_over_replicates(rows, ["outer", "inner"], TIMES)


def hand_overs(exact: pd.DataFrame) -> pd.DataFrame:
    """Return the problems that apply one function to the result of another, with the probability of the hand-over."""
    pairs = exact[(exact["level"] == 2) & (exact["functions"].str.len() == 2)].dropna(subset="hand_over")
    pairs = pairs.assign(before=pairs["hand_over_before"], after=pairs["hand_over"])
    return pairs.assign(outer=pairs["functions"].str[0], inner=pairs["functions"].str[1])


def lift_by_decile(exact: pd.DataFrame) -> pd.DataFrame:
    """Return the mean gain in log10 P of the gold solution and the share solved, by tenths of P before (1: lowest)."""
    levels = exact.groupby(["model", "replicate", "level"])["gold_log_prob_before"]
    decile = (levels.rank(method="first") - 1) * 10 // levels.transform("size") + 1
    before, after = (exact[name] / math.log(10) for name in ("gold_log_prob_before", "gold_log_prob"))
    values = {"log10_before": before, "log10_lift": after - before, "solved": 10**after > SOLVED}
    return mean_over_replicates(exact.assign(decile=decile.astype(int), **values), ["level", "decile"], [*values])


def rank_by_part(exact: pd.DataFrame) -> pd.DataFrame:
    """Return, for gold solutions that the model solves, the rank of their tokens under its start model, by part.

    ``first``: share of places where every token was the most likely one; ``five``: one of the five most likely.
    """
    rows = exact[exact["gold_log_prob"] > math.log(SOLVED)].dropna(subset=f"{RANKS}_before")
    rows = explode_parts(rows, f"{RANKS}_before", "rank")
    rows = rows[rows["rank"] > 0]
    return mean_over_replicates(rows.assign(first=rows["rank"] == 1, five=rows["rank"] <= 5), ["level", "part"], RANKED)


def prob_by_part(exact: pd.DataFrame) -> pd.DataFrame:
    """Return the mean probability of each part of the gold solution over all steps (``prob``), by level."""
    rows = explode_parts(exact.dropna(subset=LOG_PROBS), LOG_PROBS, "log_prob")
    keys = ["model", "start", "replicate", "level", "file", "problem", "part"]
    sums = rows.groupby(keys, sort=False)["log_prob"].sum().reset_index()
    return mean_over_replicates(sums.assign(prob=np.exp(sums["log_prob"] / 100)), ["level", "part"], ["prob"])


def explode_parts(rows: pd.DataFrame, column: str, value: str) -> pd.DataFrame:
    """Return a row for each step and role of the lists in ``column``, with its ``part`` and its ``value``."""
    first, later = PARTS[:2] + PARTS[3:], PARTS[:1] + PARTS[2:]
    lengths = rows[column].str.len().to_numpy() // len(ROLES)
    parts = [[*first, *later * (int(steps) - 1)] for steps in lengths]
    return rows.assign(part=parts, **{value: rows[column]}).explode(["part", value]).astype({value: float})


def chain_and_product(exact: pd.DataFrame) -> pd.DataFrame:
    """Return the mean P of the gold solution by level (``chain``), and the prediction from single functions.

    ``product``: the product of the model's mean P on the level-1 problems of each function. Problems with a function
    without level-1 problems are in neither.
    """
    rows = exact[exact["functions"].str.len() == exact["level"]]
    rows = rows.assign(before=np.exp(rows["gold_log_prob_before"]), after=np.exp(rows["gold_log_prob"]))
    singles, chains = rows[rows["level"] == 1], rows[rows["level"] > 1]
    keys = [singles["replicate"], singles["model"], singles["functions"].str[0]]
    means = singles[TIMES].groupby(keys).mean().T.to_dict("list")
    products = [
        np.prod([means.get((replicate, model, function), [math.nan] * 2) for function in functions], axis=0)
        for replicate, model, functions in chains[["replicate", "model", "functions"]].itertuples(index=False)
    ]
    product = chains.assign(figure="product", **pd.DataFrame(products, chains.index, TIMES))
    parts = [part[product["after"].notna()] for part in (chains.assign(figure="chain"), product)]
    return mean_over_replicates(pd.concat(parts), ["level", "figure"], TIMES)


def mean_over_replicates(rows: pd.DataFrame, keys: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """Average over problems, then over replicates, for each model and key; count the replicates."""
    names = ["model", "start", *keys]
    by_replicate = rows.groupby([*names, "replicate"], sort=False)[[*values]].mean().groupby(names, sort=False)
    means = by_replicate.mean().assign(replicates=by_replicate.size()).reset_index()
    order = sorted(means.index, key=lambda row: [natural_key(str(value)) for value in means.loc[row, [*keys]]])
    return means.loc[order]
