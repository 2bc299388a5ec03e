"""Accuracy of any models on any problem files: by level, by group, by skill, and of all problems."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from compositionality.console import natural_key, new_console
from compositionality.data.artefact import Recipe, config_hash, exclusive, write_derived
from compositionality.evaluate.collect import EvaluationSettings, open_evaluation, sample, write_results
from compositionality.evaluate.results import TRAINING
from compositionality.evaluate.summary import by_problem
from compositionality.evaluate.table import REASON, REASONS, read
from compositionality.evaluate.tables import ALL, GROUP, LEVEL, SKILL, print_results
from compositionality.evaluate.training import print_training
from compositionality.stats.estimate import difference, over_problems
from compositionality.train.common.training_report import report_of
from compositionality.types import COMPOSED, CORRECT, Estimate

STEP = "evaluate_accuracy"
Row = dict[str, Any]


@dataclass
class EvaluateSettings(EvaluationSettings):
    """Settings of ``evaluate``."""

    by_skill: bool = False  # print accuracy by skill too; the table says which skills a problem asks for


def evaluate(settings: EvaluateSettings) -> Path:
    """Write ``output``/results.parquet, training.json and the rollouts behind them; print the table."""
    evaluation = open_evaluation(settings)
    if settings.answers_only:
        sample(evaluation)
        return settings.output
    with exclusive(settings.output):
        table = write_results(evaluation, sample(evaluation), STEP, {}, hands_on=True)
        training = _write_training(evaluation.models, table, force=settings.force)
    rows = read(table)
    skills = pd.Series(pq.read_table(table, columns=["skills"])["skills"].to_pylist()) if settings.by_skill else None
    labels = {"n_samples": settings.n_samples, "temperature": settings.temperature, "seed": settings.seed}
    shown = [{**row, **labels} for row in accuracy_rows(rows, skills)]
    print_results(shown, new_console(), by_skill=settings.by_skill, reports=[training])
    if rule := settings.reward.rule():
        print(rule)
    print_training({"": training}, new_console())
    print(table)
    return settings.output


def _write_training(models: Mapping[str, str], table: Path, *, force: bool) -> dict[str, Row]:
    """Write the training report of each model whose folder has one; it follows them without asking."""
    found = {model: report_of(Path(folder)) for model, folder in models.items()}
    reports = {model: asdict(report) for model, report in found.items() if report}
    recipe, text = Recipe(STEP, {"training": config_hash(reports)}, {"table": table}), json.dumps(reports, indent=1)
    write_derived(table.with_name(TRAINING), recipe, lambda path: path.write_text(text + "\n"), force=force)
    return reports


def accuracy_rows(rows: pd.DataFrame, skills: "pd.Series[Any] | None" = None) -> list[Row]:
    """Return rows by model; differences are to the first one, paired by problem. ``skills``: of each row's problem."""
    found = []
    for file, of_file in rows.groupby("file", sort=False):
        first = of_file["arm"].iloc[0]
        problems = of_file[of_file["arm"] == first]
        parts = list(_parts(problems, None if skills is None else skills.loc[problems.index]))
        base = problems.set_index("problem")
        for arm, of_arm in of_file.groupby("arm", sort=False):
            answers = of_arm.set_index("problem")
            for labels, numbers in parts:
                compared = None if arm == first else base.loc[numbers]
                found.append({"model": arm, "problems": file, **labels, **_figures(answers.loc[numbers], compared)})
    return found


def _parts(problems: pd.DataFrame, skills: "pd.Series[Any] | None") -> Iterator[tuple[Row, list[int]]]:
    """What rows are about, and the problems: all, each group and level, each of several groups, each skill."""
    names = dict.fromkeys(("group", "level", "data_source", "skill"))
    yield {"by": ALL, **names}, problems["problem"].tolist()
    for (group, level, source), part in problems.groupby(["group", "level", "data_source"]):
        yield {**names, "by": LEVEL, "group": group, "level": level, "data_source": source}, part["problem"].tolist()
    if problems["group"].nunique() > 1:
        for group, part in problems.groupby("group"):
            yield {**names, "by": GROUP, "group": group}, part["problem"].tolist()
    if skills is not None:
        each = problems.assign(skill=skills).explode("skill").dropna(subset=["skill"])
        for skill, part in sorted(each.groupby("skill"), key=lambda pair: natural_key(str(pair[0]))):
            yield {**names, "by": SKILL, "skill": skill}, part["problem"].tolist()


def _figures(answers: pd.DataFrame, base: pd.DataFrame | None) -> Row:
    values = {part: by_problem(answers, part) for part in (CORRECT, COMPOSED)}
    n = answers["n"].sum()
    found = {
        "accuracy": over_problems(*values[CORRECT]),
        "composed": over_problems(*values[COMPOSED]),
        "difference": None
        if base is None
        else over_problems(*difference((1, -1), [values[CORRECT], by_problem(base, CORRECT)]), low=-1),
    }
    return {
        **{key: value for name, estimate in found.items() for key, value in _columns(name, estimate).items()},
        "n_problems": len(answers),
        "n_responses": int(n),
        "mean_tokens": answers["tokens"].sum() / max(n, 1),
        **{f"share_{reason}": answers[REASON + reason].sum() / max(n, 1) for reason in REASONS},
    }


def _columns(name: str, estimate: Estimate | None) -> Row:
    prefix = "" if name == "accuracy" else f"{name}_"
    names = (name, f"{prefix}low", f"{prefix}high")
    return dict(zip(names, (estimate.value, *estimate.over_problems) if estimate else (None,) * 3, strict=True))
