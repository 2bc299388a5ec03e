"""The numbers behind the page's figures: training runs, and pass@k, failure modes, influence over all seeds."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pandas as pd

from compositionality.analysis.influence import summary
from compositionality.data.artefact import read_manifest
from compositionality.data.json_files import check_shape
from compositionality.data.parquet import read_table
from compositionality.data.problems import level_and_group
from compositionality.evaluate import passk
from compositionality.evaluate.failures import by_function, by_pair, class_shares, read_labels
from compositionality.evaluate.ranks import ranks_of, why_no_ranks
from compositionality.evaluate.results import LABELS, Results
from compositionality.evaluate.table import RESULTS
from compositionality.report.page.claims import points
from compositionality.report.page.inputs import AGAIN, FAILURES, INFLUENCE, PASS_AT_K, Inputs
from compositionality.stats.estimate import wilson
from compositionality.train.common.metrics import read_metrics

_VALIDATION = re.compile(r"val-core/(.+)/acc/mean@\d+")
_SAMPLES = ("rollout.n", "actor_rollout_ref.rollout.n")
"""Settings that say how many completions a prompt gets: the single-file trainer's, verl's."""
_PROMPTS = ("data.prompts_per_step", "data.train_batch_size")
CURVE = ["model", "base", "problems", "group", "level"]
"""Columns of the curves of pass@k that are the same for all k."""
Row = dict[str, Any]


class FigureRows:
    """What the page draws and tabulates, read when it is asked for; empty where a section was not run."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs

    @cached_property
    def runs(self) -> list[tuple[str, str, str]]:
        """Name of the metrics, replicate and arm of every run of RL."""
        names = [name for name in self.inputs.starting("runs/") if name.endswith("metrics.jsonl")]
        split = [(name, *name.split("/")[1:3]) for name in names]
        return [
            (name, seed, run.removeprefix("stage2-"))
            for name, seed, run in split
            if run.startswith(("rl-", "stage2-rl-"))
        ]

    @cached_property
    def training(self) -> list[Row]:
        """Validation during RL: arm, seed, step, group, level, accuracy.

        A data source that several groups of the evaluation have is of the first, as the hold-out is.
        """
        known: dict[str, tuple[int, str]] = {}
        for row in self.inputs.summary["accuracy"]:
            known.setdefault(row["data_source"], (row["level"], row["group"]))
        rows = []
        for name, seed, arm in self.runs:
            for step in read_metrics(self.inputs.files[name]):
                for key, value in step.items():
                    found = _VALIDATION.fullmatch(key)
                    if found and value is not None:
                        level, group = known.get(found[1]) or level_and_group(found[1])
                        labels = {"arm": arm, "seed": seed, "step": step["step"], "group": group, "level": level}
                        rows.append({**labels, "accuracy": value})
        return rows

    @cached_property
    def budget(self) -> list[Row]:
        """Share correct among the training completions, by completions so far: RL's steps, RFT's iterations."""
        return [*(row for run in self.runs for row in self._rl_steps(*run)), *self._rft_iterations()]

    def _rl_steps(self, name: str, seed: str, arm: str) -> Iterator[Row]:
        """Nothing if the run's settings do not say how many completions a step samples."""
        recipe = name.replace("metrics.jsonl", "recipe.json")
        settings = self.inputs.json(recipe)["settings"] if recipe in self.inputs else {}
        n, prompts = (next((settings[key] for key in keys if key in settings), None) for keys in (_SAMPLES, _PROMPTS))
        completions = 0
        for row in read_metrics(self.inputs.files[name]):
            sampled = row.get("training/filter_groups/generated_prompts", prompts)
            value = row.get("critic/acc/mean", row.get("critic/score/mean"))
            if n is None or sampled is None or value is None:
                continue
            completions += int(sampled * n)
            yield {"arm": arm, "seed": seed, "step": row["step"], "completions": completions, "correct": value}

    def _rft_iterations(self) -> Iterator[Row]:
        """Each iteration's completions, sampled from the model that the iteration starts from."""
        completions: dict[tuple[str, str], int] = defaultdict(int)
        for name in self.inputs.starting("rft/"):
            _, seed, arm, iteration = name.split("/")
            manifest = self.inputs.json(name)
            check_shape(manifest.get("facts"), {"levels": {"n": int, "correct": int}}, self.inputs.files[name], AGAIN)
            n, right = (sum(count[key] for count in manifest["facts"]["levels"]) for key in ("n", "correct"))
            completions[seed, arm] += n
            if n:
                low, high = map(float, wilson(right / n, n))
                labels = {"arm": arm, "seed": seed, "step": int(iteration), "completions": completions[seed, arm]}
                yield {**labels, "correct": right / n, "low": low, "high": high}

    @cached_property
    def _sampled(self) -> Results | None:
        return self.inputs.results(PASS_AT_K)

    @cached_property
    def passk(self) -> pd.DataFrame:
        """pass@k by model, group, level and k, then the differences of the pairs that were asked for (``base``)."""
        results = self._sampled
        if results is None:
            return pd.DataFrame(columns=[*CURVE, "k", "value"])
        first = next(iter(self.inputs.folders(PASS_AT_K)))
        pairs = self.inputs.made_with[f"{PASS_AT_K}/{first}/{RESULTS}"]["pairs"]
        pairs = [(arm, base) for arm, base in pairs if {arm, base} <= set(results.arms)]
        largest = {one.file: results.samples(one) for one in results.sets}
        table = passk.curves(results, pairs, lambda file: passk.spaced(largest[file]))
        has_levels = set(table.loc[table["level"] != passk.POOLED, "group"])
        return table[(table["level"] != passk.POOLED) | ~table["group"].isin(has_levels)]

    @cached_property
    def crossovers(self) -> list[Row]:
        """Differences of pass@k at k = 1 and the largest k, where the sign changes, and the base's budget factors."""
        rows = list[Row]()
        results = self._sampled
        if results is None:
            return rows
        problems = {name[:3]: name for name in passk.levels_and_pools(results)}
        for key, curve in self.passk[self.passk["base"] != ""].groupby(CURVE, sort=False):
            factors = passk.budget_factors(results, key[0], key[1], problems[key[2:]])
            first, last = (_with_interval(curve.iloc[place]) for place in (0, -1))
            changed = passk.crossover(curve)
            rows.append(
                {**dict(zip(CURVE, key, strict=True)), "n_problems": curve["n_problems"].iloc[0],
                 "first": first, "last": last, "largest": curve["k"].iloc[-1],
                 "changes": f"k = {changed}" if changed else "–",
                 "met": "; ".join(f"k = {row['k']}: {passk.factor_text(row)}" for row in factors[:4])
                 .replace("\n", ", ")}
            )  # fmt: skip
        return rows

    @cached_property
    def failure_shares(self) -> list[Row]:
        """Share of every failure class by model, group and level: mean over the seeds, interval, values by seed."""
        results = self.inputs.results(FAILURES)
        return [row for row in class_shares(results) if row["share"] is not None] if results else []

    @cached_property
    def _labels(self) -> list[pd.DataFrame]:
        return [read_labels(folder / LABELS) for folder in self.inputs.folders(FAILURES).values()]

    @cached_property
    def by_function(self) -> list[Row]:
        """Accuracy by function: means over the seeds of what each seed's labels say."""
        functions = [by_function(labels) for labels in self._labels]
        return _means(
            functions, ["model", "problems", "group", "function"], ["alone", "error_rate"], ["reached", "wrong"]
        )

    @cached_property
    def by_pair(self) -> list[Row]:
        """Accuracy by pair of functions, as ``by_function``."""
        pairs = [by_pair(labels) for labels in self._labels]
        return _means(pairs, ["model", "problems", "group", "outer", "inner"], ["accuracy"], ["n"])

    @cached_property
    def influence(self) -> list[Row]:
        """Per-step influence of every seed's models by the number of correct completions."""
        tables = [(name.split("/"), self.inputs.files[name]) for name in self.inputs.starting(f"{INFLUENCE}/")]
        return [
            {"model": words[2], "seed": words[1], **row}
            for words, path in tables
            for row in summary(read_table(path).to_pylist())["by_accuracy"]
        ]

    @cached_property
    def influence_pairs(self) -> list[Row]:
        """Influence of a step on a query of one group (teacher) on those of another (learner)."""
        rows = []
        for name in self.inputs.starting(f"{INFLUENCE}/"):
            _, seed, model, _ = name.split("/")
            manifest = read_manifest(self.inputs.files[name])
            found = manifest.facts["co_influence"] if manifest else {"labels": [], "means": []}
            for teacher, line in zip(found["labels"], found["means"], strict=True):
                for learner, value in zip(found["labels"], line, strict=True):
                    rows.append(
                        {"model": model, "seed": seed, "teacher": teacher, "learner": learner, "influence": value}
                    )
        return rows

    @cached_property
    def ranks(self) -> dict[str, Any]:
        """Rank correlations of influence with the gain from RL; empty for too few arms."""
        accuracy, known = self.inputs.evaluated, self.inputs.results(INFLUENCE)
        return {} if known is None or why_no_ranks(accuracy, known) else ranks_of(accuracy, known)


def _with_interval(row: Any) -> str:
    if pd.isna(row["value"]):
        return "–"
    return f"{points(row['value'])} [{points(row['low'])}, {points(row['high'])}]"


def _means(tables: list[pd.DataFrame], names: list[str], means: list[str], sums: list[str]) -> list[Row]:
    """Return a row for every set of labels: means over the rows that have a value, sums, how many rows there were."""
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    if table.empty:
        return []
    parts = table.groupby(names, sort=False)
    joined = parts[means].mean().join(parts[sums].sum()).assign(n_seeds=parts.size()).reset_index()
    rows = joined.astype(object).where(joined.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]
