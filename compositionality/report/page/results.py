"""The numbers behind the page's figures, as rows: training runs, and pass@k and failure modes over all seeds."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from compositionality.analysis.influence import summary
from compositionality.data.artefact import read_manifest
from compositionality.data.json_files import check_shape
from compositionality.data.parquet import read_table
from compositionality.data.problems import level_and_group
from compositionality.evaluate.evaluations import Evaluations, ProblemSet, read_evaluations, shared_arms
from compositionality.evaluate.frames import columns_by_seed
from compositionality.evaluate.passk.reranking import powers, reranking_row
from compositionality.report.page.inputs import AGAIN, FAILURES, INFLUENCE, PASS_AT_K, SEEDS, Inputs
from compositionality.stats.estimate import wilson
from compositionality.train.common.metrics import read_metrics
from compositionality.types import Estimate, Metric

POINTS = 40
"""Values of k at most for which pass@k is shown."""
_VALIDATION = re.compile(r"val-core/(.+)/acc/mean@\d+")
_SAMPLES = ("rollout.n", "actor_rollout_ref.rollout.n")
"""Settings that say how many completions a prompt gets: the single-file trainer's, verl's."""
_PROMPTS = ("data.prompts_per_step", "data.train_batch_size")
Row = dict[str, Any]


@dataclass(frozen=True)
class Results:
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


def read_results(inputs: Inputs) -> Results:
    """All of them. UserError if the seeds of a section cannot be compared."""
    rows = curves(inputs), failure_functions(inputs)
    return Results(training(inputs), budget(inputs), *rows[0], failure_shares(inputs), *rows[1], *influence(inputs))


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
    """pass@k of every model and group, and the differences of the pairs in passk.json: lists over k.

    Means over the seeds; intervals over seeds and problems where there are several seeds, else over problems.
    """
    study = _study(inputs, PASS_AT_K, Metric.PASS_AT_K)
    if study is None:
        return [], []
    each = [inputs.json(f"{PASS_AT_K}/{seed}/passk.json") for seed in inputs.seeds_with(PASS_AT_K)]
    pairs = dict.fromkeys((row["model"], row["base"]) for row in each[0]["differences"])
    found, differences = [], []
    for problems in study.sets:
        ks = _ks(study.samples(problems))
        for model in study.models:
            of_k = [study.share(model, problems, f"pass@{k}") for k in ks]
            found.append({"model": model, **_labels(study, problems), "k": ks, **_lists("pass_at_k", of_k)})
        for model, base in pairs:
            if {model, base} <= set(study.models):
                row = {"model": model, "base": base, **_labels(study, problems), "k": ks}
                of_k = [study.contrast(model, base, problems, part=f"pass@{k}") for k in ks]
                differences.append({**row, **_lists("difference", of_k)})
                differences[-1]["reranking"] = list(_reranking(study, model, base, problems))
                differences[-1]["crossovers"] = [_crossover(one, differences[-1]) for one in each]
    return found, differences


def _reranking(study: Evaluations, model: str, base: str, problems: ProblemSet) -> Iterator[Row]:
    """For k of powers of two: at which whole budget factor the base meets the model."""
    n = study.samples(problems)
    for k in powers(n // 2):
        factors = range(1, n // k + 1)
        parts = [(f"pass@{k}", f"pass@{k * factor}") for factor in factors]
        found = [study.contrast(model, base, problems, part=part, base_part=other) for part, other in parts]
        known = np.array([(one.value, one.low, one.high) for one in found if one])
        if len(known) == len(factors):
            yield reranking_row(k, factors, *known.T)


def _ks(n: int) -> list[int]:
    """1, …, n: all of them, or ``POINTS`` evenly spaced on a logarithmic axis."""
    return sorted({round(float(k)) for k in np.geomspace(1, n, POINTS)})


def _lists(value: str, estimates: Sequence[Estimate | None]) -> Row:
    rows = [columns_by_seed(found, value) for found in estimates]
    return {
        **{key: [row[key] for row in rows] for key in (value, "low", "high", "values")},
        "interval": rows[0]["interval"],
    }


def _crossover(of_seed: Row, row: Row) -> Row | None:
    """Where a seed's difference changes its sign, by its own passk.json."""
    labels = ("model", "base", "problems", "group", "level")
    same = (one for one in of_seed["differences"] if all(one[key] == row[key] for key in labels))
    found: Row = next(same, {})
    return found.get("crossover")


def failure_shares(inputs: Inputs) -> list[Row]:
    """Share of every failure class by model, group and level: mean over the seeds, interval, values by seed."""
    study = _study(inputs, FAILURES, Metric.FAILURES)
    if study is None:
        return []
    classes = inputs.json(f"{FAILURES}/{inputs.seeds_with(FAILURES)[0]}/failure_modes.json")["classes"]
    return [
        {
            "model": model,
            **_labels(study, problems),
            "class": name,
            **columns_by_seed(study.share(model, problems, name), "share"),
        }
        for problems in study.sets
        for model in study.models
        for name in classes
    ]


def failure_functions(inputs: Inputs) -> tuple[list[Row], list[Row]]:
    """By function and by pair of functions: means over the seeds of what each seed's failure_modes.json says."""
    functions, pairs = [], []
    for seed in inputs.seeds_with(FAILURES):
        summary = inputs.json(f"{FAILURES}/{seed}/failure_modes.json")
        groups = {row["problems"]: row["group"] for row in summary["shares"]}
        functions += [{**row, "group": groups[row["problems"]]} for row in summary["by_function"]]
        pairs += [{**row, "group": groups[row["problems"]]} for row in summary["by_pair"]]
    labels = ("model", "problems", "group")
    return (
        _means(functions, (*labels, "function"), ("alone", "error_rate"), ("reached", "wrong")),
        _means(pairs, (*labels, "outer", "inner"), ("accuracy",), ("n",)),
    )


def _means(rows: Sequence[Row], labels: Sequence[str], means: Sequence[str], sums: Sequence[str]) -> list[Row]:
    """One row for every set of labels: means over the rows that have a value, sums, and how many rows there were."""
    parts: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        parts[tuple(row[name] for name in labels)].append(row)
    return [
        {
            **dict(zip(labels, key, strict=True)),
            **{name: _mean([row[name] for row in part if row[name] is not None]) for name in means},
            **{name: sum(row[name] for row in part) for name in sums},
            "n_seeds": len(part),
        }
        for key, part in parts.items()
    ]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _study(inputs: Inputs, section: str, metric: Metric) -> Evaluations | None:
    """The seeds of a section with the models that all of them have; None if it was not run."""
    folders = [
        f"{seed}:{inputs.files[f'{section}/{seed}/by_problem.parquet'].parent}" for seed in inputs.seeds_with(section)
    ]
    return read_evaluations(folders, shared_arms(folders, metric)[0], metric) if folders else None


def _labels(study: Evaluations, problems: ProblemSet) -> Row:
    return {**asdict(problems), "n_seeds": study.n_seeds, "n_problems": study.size(problems)}
