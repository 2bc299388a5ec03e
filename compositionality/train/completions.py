"""Completions to read of a run of RL, with either engine: a file in its folder, and in wandb a table that grows."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compositionality.data.artefact import write_text
from compositionality.train.metrics import read_metrics

SAMPLES = "samples"
"""Folder of completions to read; below it in a record and in results one for each run."""
GENERATIONS = f"{SAMPLES}/generations.jsonl"
"""In a run folder: the completions to read of every step so far."""
TABLE = "val/generations"
"""Where wandb and TensorBoard have them."""
GROUPS_TO_READ = 5
"""Of a step."""
Row = Mapping[str, Any]


class Completions:
    """The completions to read of a run in a folder: ``so_far``, its rows of metrics with theirs, and those to come.

    Those after its last row are dropped: the process that wrote them was killed, and they are sampled again.
    """

    def __init__(self, out: Path) -> None:
        self.file, self.so_far = out / GENERATIONS, rows_with_completions(out)
        self.table: Any = None
        if self.file.is_file():
            lines = [{"step": row["step"], **text} for row, completions in self.so_far for text in completions]
            write_text(self.file, "".join(f"{json.dumps(line)}\n" for line in lines))

    def keep(self, step: int, rows: Sequence[Row]) -> None:
        """Write those of a step, all with the same keys, into the file.

        Before the checkpoint of the step, so that a run that is killed between it and the row of metrics has them too.
        """
        if rows:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as stream:
                stream.writelines(f"{json.dumps({'step': step, **row})}\n" for row in rows)

    def grown(self, step: int, rows: Sequence[Row]) -> dict[str, Any]:
        """Return, for ``run.log``, wandb's table with those of a step; nothing of a step without any."""
        if not rows:
            return {}
        import wandb

        if self.table is None:
            self.table = wandb.Table(columns=["step", *rows[0]], log_mode="INCREMENTAL")
        for row in rows:
            self.table.add_data(step, *row.values())
        return {TABLE: self.table}


def to_read(correct: Sequence[Sequence[bool]]) -> list[tuple[int, int]]:
    """Return which completions of a step are to be read: places of groups, and in each of a right and a wrong one.

    The first of each kind, of the first five groups; groups with both come first. ``correct``: of each group, whether
    its completions are right.
    """
    groups = sorted(range(len(correct)), key=lambda group: len(set(correct[group])) == 1)[:GROUPS_TO_READ]
    return [
        (group, correct[group].index(value)) for group in groups for value in (True, False) if value in correct[group]
    ]


def rows_with_completions(out: Path) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return the rows of the run in a folder so far, each with its completions to read."""
    rows = read_metrics(out / "metrics.jsonl")
    last = {row["step"]: place for place, row in enumerate(rows)}
    pairs: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [(row, []) for row in rows]
    for row in read_metrics(out / GENERATIONS):
        if row["step"] in last:
            pairs[last[row["step"]]][1].append({name: value for name, value in row.items() if name != "step"})
    return pairs
