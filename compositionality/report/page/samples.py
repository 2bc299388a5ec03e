"""Completions to read, of the first replicate: the worked problem, and a bounded sample of every kind of completion."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from compositionality.data.artefact import read_manifest
from compositionality.data.problems import problem_of, read_problems
from compositionality.errors import UserError
from compositionality.report.page.content import HeadlineComparison
from compositionality.report.page.figure import styles_of
from compositionality.report.page.inputs import Inputs
from compositionality.rollout.store import read_rollouts
from compositionality.tasks.registry import task_of

AT_MOST = 600
"""Completions in all; the page stays readable and small."""
OF_A_FOLDER = 12
"""Completions at most of one model, file, level and reason."""
LONGEST = 4000
"""Characters of a prompt or a completion that are shown."""
MOST_MODELS = 8
"""Of more, the worked problem has the answers of the two that are compared."""
CELL = ["group", "level", "reason"]
SHOWN = ["problem", "reason", "answer", "response", "n_tokens", "finish_reason"]
Row = dict[str, Any]


def samples(inputs: Inputs) -> list[Row]:
    """Return rows with model, group, level, reason, prompt, gold, response, answer, tokens; problems in file order."""
    if not inputs.summary["models"]:
        return []
    problems = {name: read_problems(path) for name, path in problem_files(inputs).items()}
    rows = [
        first_of_each_cell(folder, table).assign(model=model, file=name)
        for model in inputs.summary["models"]
        for name, table in problems.items()
        if (folder := rollouts_of(inputs, model, name))
    ]
    if not rows:
        return []
    cells = pd.concat(rows, ignore_index=True).groupby(["model", *CELL], sort=False)
    chosen = cells.head(max(1, AT_MOST // cells.ngroups)).head(AT_MOST)
    return [
        {
            **completion_row(row, row["model"]), **{name: row[name] for name in ("group", "level", "problem")},
            **question(problems[row["file"]].slice(row["problem"], 1).to_pylist()[0], row["problem"]),
        }
        for row in chosen.to_dict("records")
    ]  # fmt: skip


def worked_problem(inputs: Inputs, what: HeadlineComparison) -> Row:
    """Return a problem with the models' completions: the first of its level that the arm solves and its base does not.

    Without such a problem the first of the level; empty where no rollouts are among the inputs.
    """
    for name, path in problem_files(inputs).items():
        models = inputs.summary["models"]
        everybody = len(models) <= MOST_MODELS
        asked = models if everybody else [model for model in models if model in (what.model, what.base)]
        folders = {model: rollouts_of(inputs, model, name) for model in asked}
        table = read_problems(path)
        cells = zip(table["group"].to_pylist(), table["level"].to_pylist(), strict=True)
        numbers = [number for number, cell in enumerate(cells) if cell == (what.group, what.level)]
        if not numbers or not folders[what.model]:
            continue
        first = {model: dict(first_completions(folder, numbers)) for model, folder in folders.items() if folder}
        right = {model: {n for n, row in rows.items() if row["reason"] == "correct"} for model, rows in first.items()}
        told_apart = sorted(right[what.model] - right.get(what.base, set()))
        number = (told_apart or numbers)[0]
        styles = styles_of(inputs, [*first, what.base])
        answers = [
            {**completion_row(rows[number], model), "title": styles[model].title}
            for model, rows in first.items()
            if number in rows
        ]
        about = {
            "level": what.level,
            "number": number,
            "answers": answers,
            "chosen": bool(told_apart),
            "everybody": everybody,
        }
        about |= {"model": styles[what.model].title, "base": styles[what.base].title}
        return {**question(table.slice(number, 1).to_pylist()[0], number), **about}
    return {}


def problem_files(inputs: Inputs) -> dict[str, Path]:
    """Return the problem files of the first replicate, found by their hash among the inputs."""
    paths = {}
    for name in inputs.starting("data/"):
        manifest = read_manifest(inputs.files[name])
        for digest in manifest.files.values() if manifest else ():
            paths[digest] = inputs.files[name]
    digests = inputs.evaluated.replicates[0].files
    return {name: paths[digest] for name, digest in digests.items() if digest in paths}


def rollouts_of(inputs: Inputs, model: str, file: str) -> Path | None:
    """Return the completions of one model to one problem file, in the first replicate."""
    return inputs.files.get(f"rollouts/{inputs.own}/{inputs.seeds[0]}/{model}/{file}")


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
