"""What training runs left behind, as rows: accuracy by level over the steps, and correct answers by answers sampled."""

import re
from collections.abc import Iterator
from typing import Any

from compositionality.evaluate.evaluations import Group
from compositionality.report.page.inputs import Inputs
from compositionality.stats.intervals import wilson
from compositionality.train.common.metrics import read_metrics

_VALIDATION = re.compile(r"val-core/(.+)/acc/mean@\d+")
_ANSWERS = ("rollout.n", "actor_rollout_ref.rollout.n")
"""Settings that say how many answers a prompt gets: the single-file trainer's, verl's."""
_PROMPTS = ("data.prompts_per_step", "data.train_batch_size")
Row = dict[str, Any]


def metric_files(inputs: Inputs) -> list[str]:
    """Names of the metrics of RL runs."""
    return [name for name in inputs.starting("runs/") if "/stage2-rl-" in name and name.endswith("metrics.jsonl")]


def training_rows(inputs: Inputs) -> list[Row]:
    """Validation during RL: arm, seed, step, functions, level, accuracy."""
    return [row for name in metric_files(inputs) for row in _validation(inputs, name)]


def budget_rows(inputs: Inputs) -> list[Row]:
    """Share correct among the answers sampled to learn from, by answers so far: RL's steps, RFT's iterations."""
    rows = [row for name in metric_files(inputs) for row in _rl_answers(inputs, name)]
    return [*rows, *_rft_answers(inputs)]


def _validation(inputs: Inputs, name: str) -> Iterator[Row]:
    seed, arm = _whose(name)
    for row in read_metrics(inputs.files[name]):
        for key, value in row.items():
            found = _VALIDATION.fullmatch(key)
            if found and value is not None:
                group = Group("", found[1])
                yield {
                    "arm": arm, "seed": seed, "step": row["step"], "functions": group.functions, "level": group.level,
                    "accuracy": value,
                }  # fmt: skip


def _rl_answers(inputs: Inputs, name: str) -> Iterator[Row]:
    """Nothing if the run's settings do not say how many answers a step samples."""
    seed, arm = _whose(name)
    recipe = name.replace("metrics.jsonl", "recipe.json")
    settings = inputs.json(recipe).get("settings", {}) if recipe in inputs else {}
    n = next((settings[key] for key in _ANSWERS if key in settings), None)
    prompts = next((settings[key] for key in _PROMPTS if key in settings), None)
    answers = 0
    for row in read_metrics(inputs.files[name]):
        asked = row.get("training/filter_groups/generated_prompts", prompts)
        value = row.get("critic/acc/mean", row.get("critic/score/mean"))
        if n is None or asked is None or value is None:
            continue
        answers += int(asked * n)
        yield {"arm": arm, "seed": seed, "step": row["step"], "answers": answers, "correct": value}


def _rft_answers(inputs: Inputs) -> Iterator[Row]:
    """Each iteration's answers, by the model that the iteration starts from (seed 0)."""
    answers: dict[str, int] = {}
    for name in inputs.starting("rft/"):
        _, arm, iteration = name.split("/")
        counts = inputs.json(name)["facts"]["levels"].values()
        n, right = (sum(count[key] for count in counts) for key in ("n", "correct"))
        answers[arm] = answers.get(arm, 0) + n
        if n:
            low, high = wilson(right / n, n)
            yield {
                "arm": arm, "seed": inputs.seeds[0], "step": int(iteration), "answers": answers[arm],
                "correct": right / n, "low": low, "high": high,
            }  # fmt: skip


def _whose(name: str) -> tuple[str, str]:
    _, seed, run, _ = name.split("/")
    return seed, run.removeprefix("stage2-")
