"""Rows of several domains (guru's columns, or verl's) made ready for RL: checked, filtered, mixed, ordered, cut.

Source of the columns and of the order by pass rate: guru-RL-92k (arXiv 2506.14965) and its study of scaling laws.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from compositionality.data.artefact import Recipe, check_maker, check_target, is_to_be_checked, make, name_inputs
from compositionality.data.parquet import read_table, write_table
from compositionality.data.problems import MESSAGES, level_and_group, to_table
from compositionality.domains.guru_rows import GuruRow, Refused, print_parts, print_sources
from compositionality.errors import UserError
from compositionality.ranges import (
    REQUIRED,
    Fraction,
    NonEmptyStr,
    NonNegativeInt,
    PositiveFraction,
    PositiveInt,
    Seed,
    Workers,
)
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.tasks.draws import Draws
from compositionality.tasks.registry import all_tasks, task_of
from compositionality.tasks.task import row_info
from compositionality.types import Message, Problem, Reason
from compositionality.validation import check_ranges, choices

STEP = "prepare_guru"
COLUMNS = ("data_source", "prompt", "reward_model")
OF_GOLD = ("program", "reference", "answer")  # of extra_info: what gold answers are made of, if not of the ground truth
BOX = " Give the final answer in \\boxed{}."


class Order(StrEnum):
    """Order of the rows of a file; ``easy_to_hard``: by pass rate, then by level, unknown ones last."""

    AS_READ = "as_read"
    SHUFFLED = "shuffled"
    EASY_TO_HARD = "easy_to_hard"


@dataclass
class PrepareGuruSettings:
    """Settings of ``prepare_guru``."""

    files: list[str] = REQUIRED  # parquet files with guru's columns, or verl's, or folders of such files
    output: str = ""  # folder: train.parquet, holdout.parquet, subset-N.parquet, refused.csv
    pass_rate: NonEmptyStr = "qwen2.5_7b_pass_rate"  # column with the share of samples that a model solves
    min_pass_rate: Fraction = 0.0  # keep rows with at least this pass rate …
    max_pass_rate: Fraction = 1.0  # … and at most this one
    check_gold: bool = True  # judge the gold answer, or reference program, of each row that has one
    max_refused: Fraction = 0.01  # share of rows that may be unreadable; more is an error
    max_prompt_characters: NonNegativeInt = 0  # leave longer prompts out; 0: keep all
    domains: list[str] = field(default_factory=list)  # rows of these alone: math, code, logic …; empty: all
    train_domains: list[str] = field(default_factory=list)  # of these alone what is not held out; empty: all
    rows_per_domain: NonNegativeInt = 0  # as many rows of each domain; 0: all rows
    holdout: NonNegativeInt = 0  # rows set aside, with the domains and difficulties of the rest
    balance: bool = False  # half of the holdout easy, half of it hard instead
    easy_from: PositiveFraction = 0.3  # pass rate from which a row is easy, for balance
    order: NonEmptyStr = Order.AS_READ  # of the rows: as_read, shuffled, easy_to_hard
    subsets: list[PositiveInt] = field(default_factory=list)  # sizes of subsets; the last may hold fewer rows
    nested: bool = True  # a subset holds the smaller ones; false: subsets share no row
    first_share: Fraction = 0.0  # of the training rows, drawn at random, in first.parquet, the others in rest.parquet
    report_only: bool = False  # say what the files hold, whatever it is, and write nothing
    seed: Seed = 0  # of the choice of rows
    workers: Workers = 1  # processes that judge; changes the speed only
    force: bool = False  # replace a result that was made from something else


def prepare_guru(settings: PrepareGuruSettings) -> Path:
    """Write the folder ``output`` and print what it holds.

    Raise UserError for too many unreadable or too few good rows.
    """
    check(settings, dry=False)
    files, output, counts = named_files(settings.files), Path(settings.output), Counter[str]()
    if settings.report_only:
        print_sources(*read_rows(files, replace(settings, max_refused=1.0), counts))
        return output

    def write(folder: Path) -> dict[str, Any]:
        rows, refused = read_rows(files, settings, counts)
        parts = _parts(_good(rows, settings, counts), settings)
        folder.mkdir()
        for name, part in parts.items():
            write_table(_table(part, name), folder / f"{name}.parquet")
        pd.DataFrame(refused, columns=Refused._fields).to_csv(folder / "refused.csv", index=False)
        print_parts(output, parts, counts, refused)
        return {"rows": {name: len(part) for name, part in parts.items()}, **counts}

    make(output, _recipe(settings), write, force=settings.force)
    return output


def check(settings: PrepareGuruSettings, *, dry: bool = True) -> None:
    """Raise UserError for settings that fit nothing; in a dry run also for what is wrong with files that exist."""
    check_ranges(settings)
    tasks = list(all_tasks())
    for key, names, known in (
        ("domains", settings.domains, tasks),
        ("train_domains", settings.train_domains, settings.domains or tasks),
    ):
        if unknown := [name for name in names if name not in known]:
            raise UserError(f"{key}: no domain {unknown[0]!r}; {choices(unknown[0], known)}")
    if not settings.files:
        raise UserError("files: give one file or more, as files=[A.parquet,B.parquet]")
    if settings.report_only:
        is_to_be_checked(*settings.files, dry=dry)
        return
    if not settings.output:
        raise UserError("no value for output; give output=FOLDER, or report_only=true")
    if settings.min_pass_rate > settings.max_pass_rate:
        raise UserError(f"min_pass_rate={settings.min_pass_rate:g} is above max_pass_rate={settings.max_pass_rate:g}")
    if settings.order not in list(Order):
        raise UserError(f"order={settings.order}: choose {', '.join(Order)}")
    if len(set(settings.subsets)) < len(settings.subsets):
        raise UserError(f"subsets={settings.subsets}: give different whole numbers")
    check_maker(Path(settings.output), STEP, force=settings.force)
    present = [place for place in settings.files if is_to_be_checked(place, dry=dry)]
    if len(present) < len(settings.files):
        for path in named_files(present):
            read_table(path, COLUMNS)
        return
    check_target(Path(settings.output), _recipe(settings), force=settings.force)
    if dry:
        counts = Counter[str]()
        rows, _ = read_rows(named_files(settings.files), replace(settings, check_gold=False), counts)
        _parts(_good(rows, settings, counts), settings)


def _recipe(settings: PrepareGuruSettings) -> Recipe:
    left_out, files = ("files", "output", "workers", "force"), named_files(settings.files)
    shown = {key: value for key, value in asdict(settings).items() if key not in left_out}
    names = name_inputs("files", files)
    return Recipe(STEP, {**shown, "files": names}, dict(zip(names, files, strict=True)))


def named_files(places: Sequence[str]) -> list[Path]:
    """Return the files, and those of the folders by name. Raise UserError for a folder without any."""
    files: list[Path] = []
    for place in map(Path, places):
        found_files = sorted(place.glob("*.parquet")) if place.is_dir() else [place]
        if place.suffix == ".parquet" and not place.exists():
            raise UserError(f"{place}: no such file; run the step that makes it or correct the path")
        if not found_files:
            raise UserError(f"{place}: no parquet file in it; correct the path or download the files")
        files += found_files
    return files


# ---- reading rows


def read_rows(
    files: Sequence[Path], settings: PrepareGuruSettings, counts: Counter[str]
) -> tuple[list[GuruRow], list[Refused]]:
    """Return all rows that can be asked and judged, and the others with what is wrong with them.

    Raise UserError if more than ``max_refused`` of them cannot, or for a file without a column.
    """
    rows: list[GuruRow] = []
    refused: list[Refused] = []
    for path in files:
        table = read_table(path, COLUMNS, optional=("ability", "extra_info", "level", "group", settings.pass_rate))
        for number, cells in enumerate(table.to_pylist()):
            counts["read"] += 1
            try:
                row = _row(cells, number, path, settings.pass_rate)
            except UserError as error:
                refused.append(Refused(str(path), number, str(error), str(cells["data_source"])))
                continue
            if not settings.domains or row.domain in settings.domains:
                rows.append(row)
            else:
                counts["other_domain"] += 1
    for domain in settings.domains:
        if not any(row.domain == domain for row in rows):
            why = f" ({len(refused):,} rows cannot be used; the first: {refused[0].reason})" if refused else ""
            raise UserError(f"domains: no row of {domain} in {', '.join(map(str, files))}{why}; leave it out")
    if settings.check_gold:
        rows = _with_right_gold(rows, refused, settings.workers, counts)
    counts["refused"] = len(refused)
    if len(refused) > settings.max_refused * counts["read"]:
        first = refused[0]
        raise UserError(
            f"{first.file}: row {first.row}: {first.reason} ({len(refused):,} of {counts['read']:,} rows cannot be "
            f"used, more than max_refused={settings.max_refused:g}; correct them or raise it)"
        )
    return rows, refused


def _row(cells: dict[str, Any], number: int, path: Path, pass_rate: str) -> GuruRow:
    """Read a row. Raise UserError for what cannot be asked or judged."""
    if not cells["data_source"]:
        raise UserError("no data_source, which says of what domain a row is; give it one")
    task = task_of(str(cells["data_source"]))
    info = row_info(cells.get("extra_info"))
    reward_model = cells["reward_model"]
    if not isinstance(reward_model, dict) or reward_model.get("ground_truth") is None:
        raise UserError("reward_model has no ground_truth")
    truth = task.row_truth(reward_model["ground_truth"], info)
    task.parse_truth(truth)
    prompt = _turns(cells["prompt"])
    if task.name == "math" and not any(form in prompt[-1]["content"] for form in ("\\boxed", "Answer:", "####")):
        prompt[-1]["content"] += BOX
    rate = cells.get(pass_rate)
    rate = None if rate != rate else rate  # NaN: pandas has no other gap in a column of floats
    if rate is not None and not (isinstance(rate, int | float) and 0 <= rate <= 1):
        raise UserError(f"{pass_rate} {rate!r} is not a share from 0 to 1")
    level = cells.get("level")
    level, _ = level_and_group("", info if level is None or level != level else {"level": level})
    gold = {name: str(info[name]) if info.get(name) else None for name in OF_GOLD}
    origin = {"file": path.name, "row": number, "pass_rate": rate, **gold}
    problem = Problem(cells["data_source"], level, task.name, prompt[-1]["content"], truth, number, origin)
    return GuruRow(problem, prompt, rate if rate is None else float(rate), info)


def _turns(prompt: Any) -> list[Message]:
    """Return the turns of a prompt, which may be one text. Raise UserError if there is none."""
    turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    good = isinstance(turns, list) and all(
        isinstance(turn, dict) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)
        for turn in turns
    )
    if not good or not turns or not turns[-1]["content"].strip():
        raise UserError("the prompt is no text and no list of turns with a role and a content")
    return [Message(role=turn["role"], content=turn["content"]) for turn in turns]


def _with_right_gold(
    rows: Sequence[GuruRow], refused: list[Refused], workers: int, counts: Counter[str]
) -> list[GuruRow]:
    """Return the rows without those whose own gold answer is judged wrong; one that has none is kept and counted."""
    golds: dict[int, JudgeInput] = {}
    for place, row in enumerate(rows):
        try:
            gold = task_of(row.problem.data_source).gold(replace(row.problem, metadata=row.info))
        except UserError:
            counts["without_gold"] += 1
            continue
        golds[place] = JudgeInput(row.problem.data_source, gold, row.problem.ground_truth)
    with JudgePool(workers, max_error_rate=1.0) as pool:
        verdicts = dict(zip(golds, pool.judge(list(golds.values())), strict=True))
    right = []
    for place, row in enumerate(rows):
        verdict = verdicts.get(place)
        if verdict is None or verdict.reason is Reason.CORRECT:
            right.append(row._replace(score=verdict.score if verdict else None))
        else:
            reason, origin = f"its own gold answer is judged {verdict.reason}", row.problem.metadata
            refused.append(Refused(origin["file"], origin["row"], reason, row.problem.data_source, verdict.score))
    return right


# ---- dividing rows among files


def _good(rows: Sequence[GuruRow], settings: PrepareGuruSettings, counts: Counter[str]) -> list[GuruRow]:
    """Return the rows without repeated or too long prompts, and without pass rates out of bounds.

    A prompt is repeated whatever its blanks and its system turns are; of copies with other truths the first counts.
    """
    bounded = settings.min_pass_rate > 0 or settings.max_pass_rate < 1
    truths, good = dict[bytes, str](), list[GuruRow]()
    for row in rows:
        turns = [turn["content"].split() for turn in row.prompt if turn["role"] != "system"]
        key, truth = blake2b(repr(turns).encode(), digest_size=16).digest(), row.problem.ground_truth
        if key in truths:
            counts["twice" if truths[key] == truth else "twice_with_another_truth"] += 1
        elif settings.max_prompt_characters and row.length > settings.max_prompt_characters:
            counts["prompt_too_long"] += 1
        elif bounded and row.pass_rate is None:
            counts["without_pass_rate"] += 1
        elif row.pass_rate is not None and not settings.min_pass_rate <= row.pass_rate <= settings.max_pass_rate:
            counts["pass_rate_out_of_bounds"] += 1
        else:
            good.append(row)
            truths[key] = truth
    if not good:
        raise UserError(
            f"no row is left of {counts['read']:,}; widen min_pass_rate and max_pass_rate, raise max_prompt_characters"
        )
    return good


def _parts(rows: list[GuruRow], settings: PrepareGuruSettings) -> dict[str, list[GuruRow]]:
    """Return the files by name. Raise UserError where there are too few rows."""
    drawn = Draws(f"{STEP}/{settings.seed}".encode()).shuffled(range(len(rows)))
    held = _held_out(rows, drawn, settings)
    if settings.holdout >= len(rows):
        raise UserError(f"holdout={settings.holdout}: there are {len(rows):,} rows in all; leave some to train on")
    domains = settings.train_domains or {row.domain for row in rows}
    places = [place for place in drawn if place not in held and rows[place].domain in domains]
    if not places:
        raise UserError(f"train_domains: no row of {', '.join(domains)} is left to train on; lower holdout")
    if settings.rows_per_domain:
        places = _mixed(rows, places, settings.rows_per_domain)
    parts = {"train": places, **({"holdout": sorted(held)} if held else {})}
    start = 0
    for size in settings.subsets:
        parts[f"subset-{size}"] = part = places[start : start + size]
        if not part:
            raise UserError(f"subsets={settings.subsets}: of {len(places):,} rows none is left for {size:,}")
        if len(part) < size:
            print(f"subset-{size}: the {len(part):,} rows that there are")
        start += 0 if settings.nested else size
    if settings.first_share:
        cut = round(settings.first_share * len(places))
        if not 0 < cut < len(places):
            raise UserError(f"first_share={settings.first_share:g} of {len(places):,} rows leaves a part empty")
        parts |= {"first": places[:cut], "rest": places[cut:]}

    def hardness(place: int) -> tuple[float, int, int]:
        row = rows[place]
        return (2.0 if row.pass_rate is None else 1 - row.pass_rate), row.problem.level, place

    for name, part in parts.items():
        if settings.order != Order.SHUFFLED and name != "holdout":
            part.sort(key=hardness if settings.order == Order.EASY_TO_HARD else None)
    return {name: [rows[place] for place in part] for name, part in parts.items()}


def _held_out(rows: Sequence[GuruRow], drawn: Sequence[int], settings: PrepareGuruSettings) -> set[int]:
    """Return ``holdout`` places with the shares of domains and difficulties of all rows (largest remainders).

    With ``balance`` half of them are easy, half hard, as is a row without a pass rate; raise UserError for too few.
    """
    size, strata = settings.holdout, dict[Any, list[int]]()
    for place in drawn:
        row = rows[place]
        easy = (row.pass_rate or 0.0) >= settings.easy_from
        strata.setdefault(easy if settings.balance else row.stratum, []).append(place)
    if settings.balance:
        sizes = {True: size // 2, False: size - size // 2}
        for easy, needed in sizes.items():
            places = strata.get(easy, [])
            if len(places) < needed:
                kind = "easy" if easy else "hard"
                raise UserError(f"holdout={size} balance=true: only {len(places):,} rows are {kind}; lower it")
    else:
        exact = {name: size * len(places) / len(rows) for name, places in strata.items()}
        sizes = {name: int(share) for name, share in exact.items()}
        by_remainder = sorted(strata, key=lambda name: (sizes[name] - exact[name], name))
        for name in by_remainder[: size - sum(sizes.values())]:
            sizes[name] += 1
    return {place for name, places in strata.items() for place in places[: sizes[name]]}


def _mixed(rows: Sequence[GuruRow], places: Sequence[int], size: int) -> list[int]:
    """Return the first ``size`` places of each domain, in the order given. Raise UserError for a domain with fewer."""
    counts, chosen = Counter[str](), list[int]()
    for place in places:
        counts[rows[place].domain] += 1
        if counts[rows[place].domain] <= size:
            chosen.append(place)
    domain, fewest = min(counts.items(), key=lambda item: item[1])
    if fewest < size:
        raise UserError(f"rows_per_domain={size}: {domain} has {fewest:,} rows; lower it or leave that domain out")
    return chosen


def _table(rows: Sequence[GuruRow], split: str) -> pa.Table:
    """Return verl's schema with level and group; the group is the domain."""
    problems = [replace(row.problem, index=number) for number, row in enumerate(rows)]
    table = to_table(problems, split)
    prompts = pa.array([row.prompt for row in rows], MESSAGES)
    return table.set_column(table.column_names.index("prompt"), "prompt", prompts)
