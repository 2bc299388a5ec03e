"""The problems of RL as both engines read them: which columns of a file hold what, and files for verl to read."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from compositionality.data.parquet import write_table
from compositionality.data.problems import RowFormat, RowSettings, is_rl_schema, read_problems
from compositionality.train.grpo_settings import GrpoSettings


def row_format(settings: GrpoSettings) -> RowFormat:
    """How ``data.train_files`` and ``data.val_files`` are read."""
    return settings.data.row_format(any_source=settings.reward.function is not None)


def run_keys(settings: GrpoSettings) -> dict[str, Any]:
    """What ``row_format_of_run`` needs, for the section ``run`` of verl's configuration.

    The template's file and not its text, in which OmegaConf would look for values of its own.
    """
    rows = {entry.name: getattr(settings.data, entry.name) for entry in fields(RowSettings)}
    return {"rows": rows, "apply_chat_template": settings.data.apply_chat_template}


def row_format_of_run(run: Any) -> RowFormat:
    """As ``row_format``, out of the section ``run``."""
    return RowSettings(**run.rows).row_format(any_source=run.reward_function is not None)


def files_for_verl(paths: Sequence[str], form: RowFormat, folder: Path) -> list[str]:
    """The files as verl reads them: as they are if all are in its RL schema, else written as ``folder``/N.parquet."""
    if all(is_rl_schema(Path(path), form) for path in paths):
        return [str(Path(path).absolute()) for path in paths]
    written = [folder.absolute() / f"{number}.parquet" for number in range(len(paths))]
    for path, target in zip(paths, written, strict=True):
        write_table(read_problems(Path(path), form), target)
    return [*map(str, written)]
