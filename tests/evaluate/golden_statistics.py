"""Every value, interval, p-value and decision of synthetic studies: what ``tests/golden/statistics.json`` holds.

Studies of the claims of composition and of behaviour injection, with one seed, three seeds on the same problems, and
three seeds with two splits and problems of their own each. Problems share clusters, some completions have no verdict,
and some levels are solved never, hardly ever, or always. ``python golden_statistics.py`` writes the file.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from claim_studies import Design, answers, results_of, study

from compositionality.evaluate.claims.decide import ByName, claim_rows
from compositionality.evaluate.claims.model import ClaimsFile, read_claims_file
from compositionality.evaluate.passk import budget_factors, crossover, curves, levels_and_pools
from compositionality.evaluate.results import ReplicateTables, Results
from compositionality.evaluate.summary import contrast, share
from compositionality.evaluate.table import FAILURE
from compositionality.stats.significance import rank_correlation
from compositionality.types import CHAIN, CORRECT, FAILURES, Metric

GOLDEN = Path(__file__).parents[1] / "golden" / "statistics.json"
DIGITS = 12
DESIGNS = {"one seed": (1, 1), "crossed": (3, 1), "nested": (3, 2)}
"""Seeds, and splits of each."""
ARMS = ("stage1", "rl-level2")
SKILL = {"base": 0.3, "stage1": 0.55, "rl-level1": 0.5, "rl-level2": 0.8, "rft": 0.6, "rft-matched": 0.6}
Numbers = list[Any]


def statistics() -> dict[str, Any]:
    """All figures, by study, design and name."""
    found: dict[str, Any] = {"curves": _curves(), "ranks": _ranks()}
    for name in ("composition", "behavior_injection"):
        catalogue = read_claims_file(name)
        for design, (seeds, splits) in DESIGNS.items():
            results = _results(catalogue, seeds, splits)
            rows = list(claim_rows([*catalogue.claims, *catalogue.controls], results))
            found[f"{name}, {design}"] = {
                "claims": {row["claim"]: [row[key] for key in CLAIM] for row in rows if row["decision"] != "not run"},
                "comparisons": dict(_comparisons(rows)),
                "shares": dict(_shares(catalogue, results)),
            }
    rounded: dict[str, Any] = _rounded(found)
    return rounded


CLAIM = ("decision", "decision_these_seeds", "p", "p_holm", "decision_holm")
PAIR = ("decision", "decision_these_seeds", "difference", "low", "high", "problems_low", "problems_high", "values")


def _comparisons(rows: list[dict[str, Any]]) -> Iterator[tuple[str, Numbers]]:
    for row in rows:
        for number, one in enumerate(row["comparisons"]):
            if one["difference"] is not None:
                yield f"{row['claim']}.{number}", [one[key] for key in PAIR]


def _shares(catalogue: ClaimsFile, results: ByName) -> Iterator[tuple[str, Numbers]]:
    for name, found in results.items():
        metric = catalogue.results[name].metric
        parts = {
            Metric.ACCURACY: (CORRECT, *CHAIN),
            Metric.PASS_AT_K: ("pass@8", "pass@N − pass@1"),
            Metric.FAILURES: (FAILURES[1],),
            Metric.INFLUENCE: ("mixed",),
        }[metric]
        arms = [arm for arm in found.arms if arm in ARMS or metric is Metric.INFLUENCE]
        for problems in found.sets:
            for arm, part in ((arm, part) for arm in arms for part in parts):
                if estimate := share(found, arm, problems, part):
                    ends = [estimate.value, *estimate.interval, *estimate.over_problems]
                    yield f"{name} {problems} {arm} {part}", [*ends, estimate.n_problems]


def _results(catalogue: ClaimsFile, seeds: int, splits: int) -> ByName:
    """The claims' studies, with clusters, missing verdicts, and splits nested in seeds where there are several."""
    drawn = study([*catalogue.claims, *catalogue.controls], _chance, Design(seeds=seeds * splits, n=60, noise=0.03))
    return {name: _spoiled(found, splits) for name, found in drawn.items()}


def _chance(name: str, group: str, level: int, arm: str) -> float:
    skill = SKILL.get(arm, 0.35 + 0.05 * (sum(map(ord, arm)) % 10))
    if (arm, level) in (("stage1", 5), ("base", 3)):
        return 0.0
    return float(0.02 if level > 3 and arm == "base" else 0.99 if level == 1 else skill**level)


def _spoiled(drawn: Results, splits: int) -> Results:
    tables, replicates = {}, []
    for number, one in enumerate(drawn.replicates):
        rows = drawn.rows[drawn.rows["replicate"] == one.name].reset_index(drop=True)
        parts = rows.groupby(["arm", "file"], sort=False)
        tables[one.name] = pd.concat(
            _failed(part, [number, *f"{arm}/{file}".encode()]) for (arm, file), part in parts
        ).drop(columns="replicate")
        split = number + 1 if splits > 1 else 0
        replicates.append(ReplicateTables(one.name, seed=number // splits, split=split, training=one.training))
    return Results.of(tables, replicates)


def _failed(rows: pd.DataFrame, start: list[int]) -> pd.DataFrame:
    rng = np.random.default_rng(start)
    n, samples = len(rows), int(rows["judged"].max())
    classified = rows[[FAILURE + kind for kind in FAILURES]].notna().any(axis=None) or rows["entropy"].notna().any()
    failed = 0 if classified else np.minimum(rng.binomial(samples, 0.03, n), samples - rows["right"])
    clusters = [f"c{row % 17}" for row in range(n)] if rows["level"].iloc[0] == 2 else rows["cluster"]
    return rows.assign(judged=rows["judged"] - failed, cluster=clusters)


def _curves() -> dict[str, Numbers]:
    """pass@k, pass^k and differences at k = 1, 4, 16, where curves cross, and budget factors; no intervals."""
    rng, n = np.random.default_rng(5), 40
    chances = {"sure": np.where(np.arange(n) % 4, 0.01, 0.95), "rare": np.full(n, 0.15), "none": np.zeros(n)}
    counts = {name: rng.binomial(16, chance) for name, chance in chances.items()}
    rows = [
        answers(name, "heldout", level, counts[name][20 * (level - 1) : 20 * level], 16, file="f")
        for name in chances
        for level in (1, 2)
    ]
    results, pairs = results_of([rows]), [("rare", "sure"), ("sure", "none")]
    table = curves(results, pairs, lambda _: range(1, 17))
    pools = {problems.level: problems for problems in levels_and_pools(results)}
    ks, found = (1, 4, 16), dict[str, Numbers]()
    for (level, model, base), curve in table.groupby(["level", "model", "base"], sort=False):
        values = list(curve.set_index("k")["value"][list(ks)])
        if base:
            found[f"{model} − {base} L{level}"] = [*values, crossover(curve)]
        else:
            always = [share(results, model, pools[level], f"pass^{k}").value for k in ks]
            found[f"{model} L{level}"] = [*values, *always, values[-1]]
    for level, problems in pools.items():
        for model, base in pairs:
            for row in budget_factors(results, model, base, problems):
                k = row["k"]
                differences = [
                    contrast(results, model, base, problems, f"pass@{k}", f"pass@{k * m}").value
                    for m in (1 << power for power in range((16 // k).bit_length()))
                ]
                found[f"{model} / {base} L{level} k={k}"] = [row["factor"], *map(float, differences)]
    return found


def _ranks() -> dict[str, Numbers]:
    found = {}
    for arms, seeds in ((3, 1), (5, 3), (6, 2)):
        rng = np.random.default_rng(arms)
        one = rng.normal(size=(seeds, arms))
        correlation = rank_correlation(one, np.round(one + rng.normal(size=(seeds, arms)), 1))
        ends = list(correlation.interval or ())
        found[f"{arms} arms, {seeds} seeds"] = [correlation.value, *correlation.by_seed, *ends, correlation.p]
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


if __name__ == "__main__":
    text = json.dumps(statistics(), ensure_ascii=False, separators=(",", ":"))
    GOLDEN.write_text(text.replace('],"', '],\n"') + "\n", encoding="utf-8")
