"""The problems of a run of RL as verl takes them: files in its schema, an endless stream of rows, seeds."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from compositionality.data.parquet import write_table
from compositionality.data.problems import is_rl_schema, read_problems
from compositionality.data.row_format import RowFormat, RowSettings
from compositionality.errors import UserError
from compositionality.seeds import row_at
from compositionality.train.grpo_settings import GrpoSettings


class PromptStream:
    """Endless passes over a data set, each in an order of its own. Takes the place of verl's training data loader,
    whose state cannot tell where in a partly used pass it stands when an epoch ends.
    """

    def __init__(self, rows: Sequence[dict[str, Any]], *, seed: int, shuffle: bool = True) -> None:
        self.rows = rows
        self.seed = seed
        self.shuffle = shuffle
        self.position = 0
        self.last_step: int | None = None  # of the run, once it is known

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, count: int) -> list[dict[str, Any]]:
        """Return the next ``count`` rows. Each gets the key ``uid``: digits alone, of equal length, since verl splits
        names at ``_`` and we sort them.
        """
        rows = []
        for _ in range(count):
            row = self.rows[row_at(self.position, len(self.rows), self.seed, shuffle=self.shuffle)]
            rows.append({**row, "uid": f"{self.position:012d}"})
            self.position += 1
        return rows

    def left(self, epochs: int) -> int:
        return epochs * len(self.rows) - self.position

    def state_dict(self) -> dict[str, int | None]:
        return {"position": self.position, "last_step": self.last_step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.position = state["position"]
        self.last_step = state["last_step"]


def verl_seed(run_seed: int, uid: str, chat: Sequence[Mapping[str, str]], sample: int) -> int:
    """Return the seed of a completion under verl, 63 bits (the single-file trainer's is ``request_seed``).

    A training prompt is named by its position in the stream (digits); a validation prompt, whose uid verl draws at
    random, by its text: every validation then uses the same random numbers.
    """
    name = uid if uid.isdigit() else repr([(turn["role"], turn["content"]) for turn in chat])
    digest = hashlib.sha256(f"{run_seed}\t{name}\t{sample}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def check_problems_last(files: str, problems: int, epochs: int, batch: int, steps: int | None) -> None:
    """Raise UserError if verl, which asks a problem ``epochs`` times, ends before ``steps`` (null: with the data)."""
    if steps is not None and problems * epochs < batch * steps:
        last = problems * epochs // batch
        raise UserError(
            f"{files}: {problems} problems (verl.trainer.total_epochs={epochs}) last for {last} of trainer.steps="
            f"{steps} steps, each of at least {batch} problems; give trainer.epochs=N to go over them N times, "
            "more problems, or fewer trainer.steps"
        )


def run_keys(settings: GrpoSettings) -> dict[str, Any]:
    """Return what ``row_format_of_run`` needs, for the section ``run`` of verl's configuration.

    The template's file and not its text, in which OmegaConf would look for values of its own.
    """
    rows = {entry.name: getattr(settings.data, entry.name) for entry in fields(RowSettings)}
    return {"rows": rows, "apply_chat_template": settings.data.apply_chat_template}


def row_format_of_run(run: Any) -> RowFormat:
    """Return what the columns of a run's files hold, out of the section ``run`` of its configuration."""
    return RowSettings(**run.rows).row_format(any_source=run.reward_function is not None)


def problem_files(run: Any) -> dict[str, list[str]]:
    """Return the files of a run by verl's keys: verl reads one to validate on even where it never validates."""
    return {"train_files": [*run.train_files], "val_files": [*(run.val_files or run.train_files[:1])]}


def files_for_verl(paths: Sequence[str], form: RowFormat, folder: Path) -> list[str]:
    """Return the files that verl reads: these if all have its schema, else ``folder``/N.parquet (``write_rows``)."""
    if all(is_rl_schema(Path(path), form) for path in paths):
        return [str(Path(path).absolute()) for path in paths]
    return [str(folder.absolute() / f"{number}.parquet") for number in range(len(paths))]


def write_rows(paths: Sequence[str], form: RowFormat, targets: Sequence[str]) -> None:
    """Write the rows of ``paths`` in verl's schema as ``targets``, where these are other files."""
    for path, target in zip(paths, targets, strict=True):
        if target != str(Path(path).absolute()):
            write_table(read_problems(Path(path), form), Path(target))
