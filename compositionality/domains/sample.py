"""A small sample of every domain in guru's columns, generated: what can be had without a download."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pyarrow as pa

from compositionality.data.artefact import Recipe, check_target, make
from compositionality.data.parquet import write_table
from compositionality.data.problems import to_table
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, NonEmptyStr, PositiveInt, Seed, Workers
from compositionality.tasks.registry import BUILT_IN, find_task
from compositionality.types import Problem
from compositionality.validation import check_ranges

STEP = "make_domain_sample"
DOMAINS = [name for name, place in BUILT_IN.items() if "domains" in place and name != "reasoning_gym"]
"""Of reasoning-gym one names the data set first."""


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
            problems = list(_problems(domain, settings))
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
        task = find_task(domain)
        options = next(iter(task.modes.values())).options()
        least[domain] = len(task.kinds or ("",)) * len(options.levels)
        task.problem(options, settings.split, settings.seed, 0)
    largest = max(DOMAINS, key=least.__getitem__)
    if settings.count < least[largest]:
        raise UserError(
            f"count={settings.count}: {largest} has {least[largest]} kinds and levels; give {least[largest]} or more"
        )
    shown = {key: value for key, value in asdict(settings).items() if key in ("count", "split", "seed")}
    check_target(Path(settings.output), Recipe(STEP, shown), force=settings.force)
    return Recipe(STEP, shown)


def _problems(domain: str, settings: DomainSampleSettings) -> Iterator[Problem]:
    """Draw of each kind the same number, at each of its levels the same number."""
    task = find_task(domain)
    mode = next(iter(task.modes.values()))
    for kind in task.kinds or (None,):
        options = mode.options(kind=kind) if kind else mode.options()
        levels = len(options.levels)
        count = settings.count // (len(task.kinds or ("",)) * levels) * levels
        yield from task.problems(options, settings.split, settings.seed, count, settings.workers)


def _table(problems: list[Problem], domain: str, split: str) -> pa.Table:
    """Return guru's columns but its pass rates, which nobody has measured of these problems, and the level."""
    names = dict.fromkeys(name for problem in problems for name in problem.metadata)
    filled = [replace(p, metadata={name: p.metadata.get(name) for name in names}) for p in problems]
    table = to_table(filled, split).drop_columns(["group", "ability"])
    table = table.append_column("ability", pa.array([domain] * table.num_rows))
    return table.append_column("apply_chat_template", pa.array([True] * table.num_rows))
