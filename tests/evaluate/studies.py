"""Evaluations made by hand: counts in, the folder that ``evaluate`` would have written out."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compositionality.data.artefact import Recipe, new_artefact
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import level_and_group, to_table
from compositionality.evaluate.collect import EvaluationSettings, evaluate
from compositionality.rollout.settings import CollectSettings, recipe
from compositionality.rollout.store import shard_table
from compositionality.types import Completion, Problem, Reason, Verdict

Outcomes = Mapping[str, Mapping[str, Sequence[str]]]
"""Reasons by model and data source, one answer a problem; every model has the same problems."""
HANDS_ON = ",func_17:ab=no"
"""Handed on, to every problem with a program; the string is wrong."""


def task_of(source: str) -> str:
    return source.partition("-")[0]


def problem_file(
    path: Path, sizes: Mapping[str, int], tag: str = "", split: int = 0, *, programs: bool = False
) -> Path:
    """So many problems of every data source, of a function split; ``programs``: those of strings hold theirs."""
    names = [source for source, size in sizes.items() for _ in range(size)]
    string = {"ref_output": "a"}
    if programs:
        code = "def main_solution(x):\n    return func_17(x)"
        string = {"ref_output": "ba", "ref_code": code, "ref_input": {"x": "ab"}, "style": "compact"}
    truths = {"string": json.dumps(string), "countdown": json.dumps({"target": 3, "numbers": [1, 2]})}
    made = [
        Problem(
            source, *_level_and_group(source), f"func_17:{index}{tag}", truths[task_of(source)], index,
            {"functions": []},
        )
        for index, source in enumerate(names)
    ]  # fmt: skip
    with new_artefact(path, Recipe("create_problems", {"function_split": split})) as partial:
        write_table(to_table(made, "test"), partial)
    return path


def _level_and_group(source: str) -> tuple[int, str]:
    """As the tasks give them."""
    level, group = level_and_group(source)
    return level, "countdown" if task_of(source) == "countdown" else group


def evaluation(
    folder: Path,
    problems: Mapping[str, Path],
    outcomes: Outcomes,
    seed: int = 0,
    handing_on: Mapping[str, int] | None = None,
    paths: Mapping[str, str] | None = None,
    **changes: Any,
) -> Path:
    """The tables of one seed, through the code that evaluates; ``outcomes`` hold the data sources of every file.

    ``handing_on``: of each model so many answers to a file, the first ones, are HANDS_ON. ``paths``: of models that are
    not just names.
    """
    folders = {model: (paths or {}).get(model, model) for model in outcomes}
    settings = EvaluationSettings(
        models=[f"{model}:{path}" for model, path in folders.items()],
        problems=[f"{name}:{path}" for name, path in problems.items()],
        output=folder, engine="openai", base_url="http://x", seed=seed, **changes,
    )  # fmt: skip
    for model, by_source in outcomes.items():
        for name, path in problems.items():
            reasons = [reason for source, found in by_source.items() if name in source for reason in found]
            _rollouts(
                settings.collection(folders[model], str(path), folder / "rollouts" / model / name),
                reasons,
                (handing_on or {}).get(model, 0),
            )
    return evaluate(settings)


def _rollouts(job: CollectSettings, reasons: Sequence[str], n_handed_on: int) -> None:
    """The folder that ``collect`` would make for ``job``; every completion differs from that of another seed."""
    table = read_table(job.problems, ["level", "group"])
    groups = list(zip(table["level"].to_pylist(), table["group"].to_pylist(), strict=True))
    texts = [HANDS_ON] * n_handed_on + [f"seed {job.seed}"] * (len(reasons) - n_handed_on)
    units = [(number, sample) for number in range(len(reasons)) for sample in range(job.n_samples)]
    verdicts = [Verdict(float(reasons[number] == "correct"), Reason(reasons[number])) for number, _ in units]
    done = [Completion(texts[number], 3, "stop") for number, _ in units]
    with new_artefact(job.output, recipe(job)) as partial:
        partial.mkdir()
        shard = shard_table(units, [groups[number] for number, _ in units], done, verdicts)
        write_table(shard, partial / "shard-00000.parquet")


def right(n_correct: int, n: int) -> list[str]:
    """The first ``n_correct`` of ``n`` answers are right."""
    return ["correct"] * n_correct + ["wrong"] * (n - n_correct)
