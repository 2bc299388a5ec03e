"""The numbers behind the page's figures, as rows: training runs, and pass@k and failure modes over all seeds."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from compositionality.analysis.influence import summary
from compositionality.data.artefact import read_manifest
from compositionality.data.json_files import check_shape
from compositionality.data.parquet import read_table
from compositionality.data.problems import level_and_group
from compositionality.evaluate.failures import by_function, by_pair, class_shares, read_labels
from compositionality.evaluate.passk import curves as passk
from compositionality.evaluate.results import Results, read_results
from compositionality.evaluate.table import RESULTS
from compositionality.report.page.inputs import AGAIN, FAILURES, INFLUENCE, PASS_AT_K, SEEDS, Inputs
from compositionality.stats.estimate import wilson
from compositionality.train.common.metrics import read_metrics
from compositionality.types import Metric

_VALIDATION = re.compile(r"val-core/(.+)/acc/mean@\d+")
_SAMPLES = ("rollout.n", "actor_rollout_ref.rollout.n")
"""Settings that say how many completions a prompt gets: the single-file trainer's, verl's."""
_PROMPTS = ("data.prompts_per_step", "data.train_batch_size")
Row = dict[str, Any]


@dataclass(frozen=True)
class FigureRows:
    """Rows of every figure that the page draws from several files; empty where a section was not run."""

    training: list[Row]
    budget: list[Row]
    curves: list[Row]
    differences: list[Row]
    failure_shares: list[Row]
    by_function: list[Row]
    by_pair: list[Row]
    influence: list[Row]
    influence_pairs: list[Row]


def figure_rows(inputs: Inputs) -> FigureRows:
    """All of them. UserError if the seeds of a section cannot be compared."""
    rows = curves(inputs), failure_functions(inputs)
    return FigureRows(training(inputs), budget(inputs), *rows[0], failure_shares(inputs), *rows[1], *influence(inputs))


def influence(inputs: Inputs) -> tuple[list[Row], list[Row]]:
    """Per-step influence of every seed's models by the number of correct completions, and between groups of queries."""
    by_accuracy, pairs = [], []
    for name in inputs.starting(f"{INFLUENCE}/"):
        _, seed, model = name.split("/")
        whose = {"model": model, "seed": seed}
        by_accuracy += [{**whose, **row} for row in summary(read_table(inputs.files[name]).to_pylist())["by_accuracy"]]
        manifest = read_manifest(inputs.files[name])
        found = manifest.facts["co_influence"] if manifest else {"labels": [], "means": []}
        for teacher, line in zip(found["labels"], found["means"], strict=True):
            for learner, value in zip(found["labels"], line, strict=True):
                pairs.append({**whose, "teacher": teacher, "learner": learner, "influence": value})
    return by_accuracy, pairs


def metric_files(inputs: Inputs) -> list[str]:
    """Names of the metrics of RL runs."""
    return [name for name in inputs.starting("runs/") if _is_rl(name) and name.endswith("metrics.jsonl")]


def _is_rl(name: str) -> bool:
    return "/stage2-rl-" in name or "/rl-" in name


def training(inputs: Inputs) -> list[Row]:
    """Validation during RL: arm, seed, step, group, level, accuracy.

    A data source that several groups of the evaluation have is of the first, as the hold-out is.
    """
    return [row for name in metric_files(inputs) for row in _validation(inputs, name)]


def budget(inputs: Inputs) -> list[Row]:
    """Share correct among the training completions, by completions so far: RL's steps, RFT's iterations."""
    rows = [row for name in metric_files(inputs) for row in _rl_steps(inputs, name)]
    return [*rows, *_rft_iterations(inputs)]


def _validation(inputs: Inputs, name: str) -> Iterator[Row]:
    seed, arm = _whose(name)
    known: dict[str, tuple[int, str]] = {}
    for row in inputs.json(SEEDS)["accuracy"]:
        known.setdefault(row["data_source"], (row["level"], row["group"]))
    for row in read_metrics(inputs.files[name]):
        for key, value in row.items():
            found = _VALIDATION.fullmatch(key)
            if found and value is not None:
                level, group = known.get(found[1]) or level_and_group(found[1])
                labels = {"arm": arm, "seed": seed, "step": row["step"], "group": group, "level": level}
                yield {**labels, "accuracy": value}


def _rl_steps(inputs: Inputs, name: str) -> Iterator[Row]:
    """Nothing if the run's settings do not say how many completions a step samples."""
    seed, arm = _whose(name)
    recipe = name.replace("metrics.jsonl", "recipe.json")
    settings = inputs.json(recipe).get("settings", {}) if recipe in inputs else {}
    n = next((settings[key] for key in _SAMPLES if key in settings), None)
    prompts = next((settings[key] for key in _PROMPTS if key in settings), None)
    completions = 0
    for row in read_metrics(inputs.files[name]):
        sampled = row.get("training/filter_groups/generated_prompts", prompts)
        value = row.get("critic/acc/mean", row.get("critic/score/mean"))
        if n is None or sampled is None or value is None:
            continue
        completions += int(sampled * n)
        yield {"arm": arm, "seed": seed, "step": row["step"], "completions": completions, "correct": value}


def _rft_iterations(inputs: Inputs) -> Iterator[Row]:
    """Each iteration's completions, sampled from the model that the iteration starts from."""
    completions: dict[tuple[str, str], int] = defaultdict(int)
    for name in inputs.starting("rft/"):
        _, seed, arm, iteration = name.split("/")
        facts = inputs.json(name)["facts"]
        check_shape(facts, {"levels": {"n": int, "correct": int}}, f"{inputs.files[name]}: facts", AGAIN)
        counts = facts["levels"]
        n, right = (sum(count[key] for count in counts) for key in ("n", "correct"))
        completions[seed, arm] += n
        if n:
            low, high = map(float, wilson(right / n, n))
            yield {
                "arm": arm, "seed": seed, "step": int(iteration), "completions": completions[seed, arm],
                "correct": right / n, "low": low, "high": high,
            }  # fmt: skip


def _whose(name: str) -> tuple[str, str]:
    _, seed, run, _ = name.split("/")
    return seed, run.removeprefix("stage2-")


def curves(inputs: Inputs) -> tuple[list[Row], list[Row]]:
    """pass@k of every model and group, and the differences of the pairs that were asked for: lists over k.

    Means over the seeds; intervals over seeds and problems where there are several seeds, else over problems.
    """
    results = _results(inputs, PASS_AT_K, Metric.PASS_AT_K)
    if results is None:
        return [], []
    first = inputs.settings[f"{PASS_AT_K}/{inputs.seeds_with(PASS_AT_K)[0]}/{RESULTS}"]
    pairs = [(arm, base) for arm, base in first["pairs"] if {arm, base} <= set(results.arms)]
    largest = {one.file: results.samples(one) for one in results.sets}
    table = passk.curves(results, pairs, lambda file: passk.spaced(largest[file]))
    has_levels = set(table[table["level"] != passk.POOLED]["group"])
    table = table[(table["level"] != passk.POOLED) | ~table["group"].isin(has_levels)]
    each = [results.only(names) for names in results.seeds] if len(results.replicates) > 1 else [results]
    alone = [passk.curves(one, pairs, lambda file: passk.spaced(largest[file])) for one in each]
    sets = {name[:3]: parts for name, parts in passk.slices(results)}
    shares, differences = [], []
    for key, curve in table.groupby(["model", "base", "problems", "group", "level"], sort=False):
        row = _lists(curve)
        if not row["base"]:
            shares.append({**row, "pass_at_k": row.pop("value")})
            continue
        row["difference"] = row.pop("value")
        row["reranking"] = passk.budget_factors(results, row["model"], row["base"], sets[key[2:]])
        row["crossovers"] = [passk.crossover(_same(one, row)) for one in alone]
        differences.append(row)
    return shares, differences


def _lists(curve: pd.DataFrame) -> Row:
    """One row with lists over k."""
    lists = ("k", "value", "low", "high", "values")
    about = curve.iloc[0].drop([*lists, "problems_low", "problems_high", "splits"]).to_dict()
    return {**about, **{name: curve[name].tolist() for name in lists}}


def _same(table: pd.DataFrame, row: Row) -> pd.DataFrame:
    labels = ["model", "base", "problems", "group", "level"]
    return table[(table[labels] == [row[name] for name in labels]).all(axis=1)]


def failure_shares(inputs: Inputs) -> list[Row]:
    """Share of every failure class by model, group and level: mean over the seeds, interval, values by seed."""
    results = _results(inputs, FAILURES, Metric.FAILURES)
    return class_shares(results) if results else []


def failure_functions(inputs: Inputs) -> tuple[list[Row], list[Row]]:
    """By function and by pair of functions: means over the seeds of what each seed's labels say."""
    seeds = inputs.seeds_with(FAILURES)
    tables = [read_labels(inputs.files[f"{FAILURES}/{seed}/labels.parquet"]) for seed in seeds]
    if not tables:
        return [], []
    functions, pairs = (pd.concat(map(of, tables), ignore_index=True) for of in (by_function, by_pair))
    names = ["model", "problems", "group"]
    return (
        _means(functions, [*names, "function"], ["alone", "error_rate"], ["reached", "wrong"]),
        _means(pairs, [*names, "outer", "inner"], ["accuracy"], ["n"]),
    )


def _means(table: pd.DataFrame, names: list[str], means: list[str], sums: list[str]) -> list[Row]:
    """One row for every set of labels: means over the rows that have a value, sums, and how many rows there were."""
    if table.empty:
        return []
    parts = table.groupby(names, sort=False)
    joined = parts[means].mean().join(parts[sums].sum()).assign(n_seeds=parts.size()).reset_index()
    rows = joined.astype(object).where(joined.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _results(inputs: Inputs, section: str, metric: Metric) -> Results | None:
    """The seeds of a section with the models that all of them have; None if it was not run."""
    folders = [f"{seed}:{inputs.files[f'{section}/{seed}/{RESULTS}'].parent}" for seed in inputs.seeds_with(section)]
    return read_results(folders, metric=metric) if folders else None
