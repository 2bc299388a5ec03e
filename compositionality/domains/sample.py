"""A small sample of every domain in guru's columns, generated: what can be had without a download."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from compositionality.data.artefact import Recipe, check_target, make
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonEmptyStr, PositiveInt, Seed, Workers
from compositionality.tasks.registry import OURS, find_task
from compositionality.types import Problem
from compositionality.validation import check_ranges

STEP = "make_domain_sample"
DOMAINS = [name for name in OURS["domains"] if name != "reasoning_gym"]
"""The domains; in reasoning-gym, one data set is named."""


@dataclass
class DomainSampleSettings:
    """Settings of ``make_domain_sample``."""

    output: NonEmptyStr = REQUIRED  # folder: one parquet file for each domain
    count: PositiveInt = 200  # problems of each domain, the same number of each kind and level
    split: NonEmptyStr = "train"  # name of the stream
    seed: Seed = 0  # of the stream
    workers: Workers = 1  # processes; changes the speed only
    force: bool = False  # replace a result that was made from something else


def make_domain_sample(settings: DomainSampleSettings) -> Path:
    """Write the folder ``output``, one file in guru's columns for each domain."""
    output = Path(settings.output)

    def write(folder: Path) -> dict[str, int]:
        folder.mkdir()
        rows = {}
        for domain in DOMAINS:
            task, kinds = find_task(domain), _options(domain)
            share = settings.count // sum(len(options.levels) for options in kinds)  # of each kind and level
            drawn = [(options, settings.split, settings.seed, share * len(options.levels)) for options in kinds]
            problems = [problem for words in drawn for problem in task.problems(*words, settings.workers)]
            name = f"{domain}__generated_{len(problems)}"
            write_table(_table(problems, domain, settings.split), folder / f"{name}.parquet")
            rows[name] = len(problems)
        return rows

    if facts := make(output, check(settings), write, force=settings.force):
        print(f"{output}: {', '.join(f'{name} {rows:,}' for name, rows in facts.items())}")
    return output


def check(settings: DomainSampleSettings) -> Recipe:
    """Return what the sample is made from.

    Raise UserError for an unknown split, or for too few problems to have one of each kind and level.
    """
    check_ranges(settings)
    least = {}
    for domain in DOMAINS:
        kinds = _options(domain)
        least[domain] = sum(len(options.levels) for options in kinds)
        find_task(domain).problem(kinds[0], settings.split, settings.seed, 0)
    largest = max(DOMAINS, key=least.__getitem__)
    if settings.count < least[largest]:
        raise UserError(
            f"count={settings.count}: {largest} has {least[largest]} kinds and levels; give {least[largest]} or more"
        )
    shown = {key: value for key, value in asdict(settings).items() if key in ("count", "split", "seed")}
    check_target(Path(settings.output), Recipe(STEP, shown), force=settings.force)
    return Recipe(STEP, shown)


def _options(domain: str) -> list[Any]:
    """Return the default options of each kind of a domain's problems."""
    task = find_task(domain)
    make_options = next(iter(task.modes.values())).options
    return [make_options(kind=kind) for kind in task.kinds] or [make_options()]


def _table(problems: list[Problem], domain: str, split: str) -> pa.Table:
    """Return guru's columns but its pass rates, which nobody has measured of these problems, and the level."""
    names = dict.fromkeys(name for problem in problems for name in problem.metadata)
    filled = [replace(p, metadata={name: p.metadata.get(name) for name in names}) for p in problems]
    table = to_table(filled, split).drop_columns(["group", "ability"])
    table = table.append_column("ability", pa.array([domain] * table.num_rows))
    return table.append_column("apply_chat_template", pa.array([True] * table.num_rows))
