"""Completions to read, of the first replicate: the worked problem, and a bounded sample of every kind of completion."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from compositionality.data.problems import problem_of
from compositionality.errors import UserError
from compositionality.report.page.content import HeadlineComparison
from compositionality.report.page.figure import styles_of
from compositionality.report.page.inputs import Inputs
from compositionality.rollout.store import read_rollouts
from compositionality.tasks.registry import task_of
from compositionality.types import ROLES

AT_MOST = 600
"""Completions in all; the page stays readable and small."""
OF_A_FOLDER = 12
"""Completions at most of one model, file, level and reason."""
LONGEST = 4000
"""Characters of a prompt or a completion that are shown."""
MOST_MODELS = 8
"""Of more, the worked problem has the answers of the two that are compared."""
CELL = ["group", "level", "reason"]
OUTCOMES = {
    "right_chain": "right, every step right",
    "right": "right",
    "handed_on": "wrong, but every result handed on",
    "names_in_order": "wrong, but the names in order",
}
"""What holds of a single answer: the first column that is 1."""
SHOWN = ["problem", "reason", "answer", "response", "n_tokens", "finish_reason"]
Row = dict[str, Any]


def samples(inputs: Inputs) -> list[Row]:
    """Return rows with model, group, level, reason, prompt, gold, response, answer, tokens; problems in file order."""
    if not inputs.summary["models"]:
        return []
    rows = [
        first_of_each_cell(folder, table).assign(model=model, file=name)
        for model in inputs.summary["models"]
        for name, table in inputs.problems.items()
        if (folder := rollouts_of(inputs, model, name))
    ]
    if not rows:
        return []
    cells = pd.concat(rows, ignore_index=True).groupby(["model", *CELL], sort=False)
    chosen = cells.head(max(1, AT_MOST // cells.ngroups)).head(AT_MOST)
    return [
        {
            **completion_row(row, row["model"]), **{name: row[name] for name in ("group", "level", "problem")},
            **question(inputs.problems[row["file"]].slice(row["problem"], 1).to_pylist()[0], row["problem"]),
        }
        for row in chosen.to_dict("records")
    ]  # fmt: skip


def worked_problem(inputs: Inputs, subject: HeadlineComparison) -> Row:
    """Return a problem of the compared level with every model's outcome, first completion and exact steps, if kept.

    The first that the arm solves and its base does not; without such a problem the first of the level. Empty where the
    problems are not known.
    """
    models = inputs.summary["models"]
    everybody = len(models) <= MOST_MODELS
    asked = models if everybody else [model for model in models if model in (subject.model, subject.base)]
    known = inputs.evaluated.rows
    known = known[(known["replicate"] == inputs.seeds[0]) & known["arm"].isin(asked)]
    for name, table in inputs.problems.items():
        rows = known[(known["file"] == name) & (known["group"] == subject.group) & (known["level"] == subject.level)]
        if rows.empty:
            continue
        exact = rows.dropna(subset="gold_log_prob")
        numbers = (rows if exact.empty else exact)["problem"]
        solved = {*rows.loc[(rows["arm"] == subject.model) & (rows["right"] == rows["n"]), "problem"]}
        unsolved = {*rows.loc[(rows["arm"] == subject.base) & (rows["right"] == 0), "problem"]}
        told_apart = solved & unsolved & {*numbers}
        number = int(min(told_apart or numbers))
        asked_for = question(table.slice(number, 1).to_pylist()[0], number)
        rows = rows[rows["problem"] == number].set_index("arm").loc[asked]
        styles = styles_of(inputs, [*asked, subject.base])
        return {
            **asked_for, "level": subject.level, "number": number, "chosen": bool(told_apart), "everybody": everybody,
            "model": styles[subject.model].title, "base": styles[subject.base].title,
            "answers": [
                {**completion_row(said, model), "title": styles[model].title}
                for model in asked
                for folder in [rollouts_of(inputs, model, name)]
                for _, said in (first_completions(folder, [number]) if folder else ())
            ],
            "steps": {
                "titles": ["", *(styles[model].title for model in asked)],
                "rows": [["its answer", *outcomes(rows)], *step_rows(rows, asked_for["gold"])],
            },
        }  # fmt: skip
    return {}


def step_rows(rows: pd.DataFrame, gold: str) -> list[list[str]]:
    """Return each step of the gold solution, then all of it, with the probability that every model gives it."""
    if rows["gold_log_prob_by_step_role"].isna().any():
        return []
    by_step = [np.reshape(cells, (-1, len(ROLES))).sum(axis=1) / 100 for cells in rows["gold_log_prob_by_step_role"]]
    logs, lines = [*zip(*by_step, strict=True), rows["gold_log_prob"]], gold.strip().split("\n")
    names = lines if len(lines) == len(logs) - 1 else [f"step {place}" for place in range(1, len(logs))]
    probabilities = [[f"{np.exp(log):.2g}" for log in step] for step in logs]
    return [[name, *step] for name, step in zip([*names, "all steps"], probabilities, strict=True)]


def outcomes(rows: pd.DataFrame) -> "pd.Series[str]":
    """Return in words what a model's answers are: of a single one what holds of it, of several how many are right."""
    several = rows["right"].astype(int).astype(str) + " of " + rows["judged"].astype(int).astype(str) + " right"
    single = np.select([rows[name] == 1 for name in OUTCOMES], [*OUTCOMES.values()], "wrong")
    return several.where(rows["n"] > 1, pd.Series(single, rows.index).where(rows["judged"] > 0, "not judged"))


def rollouts_of(inputs: Inputs, model: str, file: str) -> Path | None:
    """Return the completions of one model to one problem file, in the first replicate."""
    return inputs.files.get(f"rollouts/{model}/{file}")


def first_completions(folder: Path, numbers: Sequence[int]) -> Iterator[tuple[int, Row]]:
    """Yield the first completion of each of these problems."""
    problems = pa.array(numbers, pa.int64())
    for shard in read_rollouts(folder):
        rows = shard.filter(pc.and_(pc.equal(shard["sample"], 0), pc.is_in(shard["problem"], problems)))
        yield from ((row["problem"], row) for row in rows.to_pylist())


def first_of_each_cell(folder: Path, problems: pa.Table) -> pd.DataFrame:
    """Return the first completions of every group, level and reason, at most one of each problem."""
    cells = problems.select(["group", "level"]).to_pandas()
    parts = [pd.DataFrame(columns=[*SHOWN, "group", "level"])]
    for shard in read_rollouts(folder):
        if (last := max(shard["problem"].to_pylist(), default=0)) >= len(cells):
            raise UserError(f"{folder}: answers problem {last}, its file has {len(cells)}; evaluate again")
        first = shard.filter(pc.equal(shard["sample"], 0)).select(SHOWN)
        labelled = first.select(["problem", "reason"]).to_pandas().join(cells, on="problem")
        places = labelled.groupby(CELL, sort=False).head(OF_A_FOLDER).index
        parts.append(first.take(pa.array(places, pa.int64())).to_pandas().join(cells, on="problem"))
    rows = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return rows.groupby(CELL, sort=False).head(OF_A_FOLDER).fillna({"answer": ""})


def completion_row(row: Mapping[str, Any], model: str) -> Row:
    """Return what is shown of one completion."""
    return {
        "model": model, "reason": row["reason"], "tokens": row["n_tokens"], "finish": row["finish_reason"],
        "answer": cut(row["answer"] or ""), "response": cut(row["response"]),
    }  # fmt: skip


def question(row: Mapping[str, Any], number: int) -> Row:
    """Return the prompt's last message and the task's gold completion; the ground truth itself where it makes none."""
    problem = problem_of(row, number)
    try:
        gold = task_of(problem.data_source).gold(problem)
    except UserError:
        gold = problem.ground_truth
    return {"prompt": cut(row["prompt"][-1]["content"]), "gold": cut(gold)}


def cut(text: str) -> str:
    """The text, its middle left out where it is long."""
    left_out = len(text) - LONGEST
    if left_out <= 0:
        return text
    return f"{text[: LONGEST // 2]}\n[… {left_out:,} characters left out …]\n{text[-LONGEST // 2 :]}"
