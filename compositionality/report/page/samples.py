"""A bounded, stratified sample of completions to read: some of every model, file, level and reason, of seed 0."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from compositionality.data.artefact import read_manifest
from compositionality.data.problems import problem_of, read_problems
from compositionality.errors import UserError
from compositionality.report.page.inputs import SEEDS, Inputs
from compositionality.rollout.store import read_rollouts
from compositionality.tasks.registry import task_of

AT_MOST = 600
"""Completions in all; the page stays readable and small."""
OF_A_FOLDER = 12
"""Completions at most of one model, file, level and reason."""
LONGEST = 4000
"""Characters of a prompt or a completion that are shown."""
Row = dict[str, Any]


def samples(inputs: Inputs) -> list[Row]:
    """Rows with model, group, level, reason, prompt, gold, response, answer, tokens; problems in file order."""
    files = problem_files(inputs)
    models = inputs.json(SEEDS)["models"]
    folders = [name for name in inputs.starting("rollouts/") if name.split("/")[1] in models]
    kept = [
        row
        for name in sorted(folders, key=lambda name: models.index(name.split("/")[1]))
        if (problems := name.split("/")[2]) in files
        for row in _of_folder(inputs.files[name], name.split("/")[1], files[problems])
    ]
    each = _share(kept)
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    chosen = []
    for row in kept:
        cell = _cell(row)
        counts[cell] += 1
        if counts[cell] <= each:
            chosen.append(row)
    return chosen[:AT_MOST]


def problem_files(inputs: Inputs) -> dict[str, Path]:
    """The problem files of the study's tables, found by their hash among the inputs."""
    wanted = inputs.json(SEEDS).get("problems") or {}
    there = {}
    for name in inputs.starting("data/"):
        manifest = read_manifest(inputs.files[name])
        for digest in manifest.files.values() if manifest else ():
            there[digest] = inputs.files[name]
    return {name: there[digest] for name, digest in wanted.items() if digest in there}


def _share(rows: list[Row]) -> int:
    """How many of every cell fit, at least one."""
    return max(1, AT_MOST // max(1, len({_cell(row) for row in rows})))


def _cell(row: Row) -> tuple[str, ...]:
    return (row["model"], row["group"], str(row["level"]), row["reason"])


def _of_folder(folder: Path, model: str, path: Path) -> Iterator[Row]:
    """The first completions of every level and reason; each problem once."""
    table = read_problems(path)
    cells = list(zip(table["group"].to_pylist(), table["level"].to_pylist(), strict=True))
    counts: dict[tuple[str, int, str], int] = defaultdict(int)
    for shard in read_rollouts(folder):
        numbers, reasons = shard["problem"].to_pylist(), shard["reason"].to_pylist()
        if max(numbers, default=0) >= len(cells):
            raise UserError(f"{folder}: answers problem {max(numbers)}, {path} has {len(cells)}; evaluate again")
        chosen = []
        for row, (number, sample) in enumerate(zip(numbers, shard["sample"].to_pylist(), strict=True)):
            cell = (*cells[number], reasons[row])
            if sample == 0 and counts[cell] < OF_A_FOLDER:
                counts[cell] += 1
                chosen.append(row)
        for row in shard.take(pa.array(chosen, pa.int64())).to_pylist():
            group, level = cells[row["problem"]]
            labels = {"group": group, "level": level, "problem": row["problem"]}
            yield {
                **completion_row(row, model), **labels,
                **question(table.slice(row["problem"], 1).to_pylist()[0], row["problem"]),
            }  # fmt: skip


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
