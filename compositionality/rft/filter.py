"""Filters of judged rollouts: rows for SFT (rejection sampling), or problems that a model solves sometimes."""

import hashlib
import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from compositionality.data.artefact import Recipe, check_target, is_to_be_checked, make, name_inputs
from compositionality.data.parquet import write_table
from compositionality.data.problems import problem_of, read_problems, say_what_is_left_out
from compositionality.data.row_format import RowSettings
from compositionality.errors import UserError
from compositionality.ranges import REQUIRED, Fraction
from compositionality.reward.function import INPUT
from compositionality.rft.rows import (
    KEPT,
    SCHEMA,
    Candidate,
    FilterSettings,
    OutcomeCounts,
    decide,
    print_facts,
    prompt_key,
    strip_end_of_turn,
    to_table,
)
from compositionality.rollout.model_folder import load_tokenizer, resolve_model
from compositionality.rollout.prompts import chat_row, lost_characters
from compositionality.rollout.store import check_answers, read_by_problem, rollout_manifest
from compositionality.tasks.registry import known_task
from compositionality.types import Message, Reason
from compositionality.validation import check_once, check_ranges

BATCH = 4096  # rows in memory
REPLACEMENT = "\ufffd"
"""Tokenizers decode an incomplete character to this; encoding it does not give the sampled tokens back."""


# ---- rows for SFT


def filter_rollouts(settings: FilterSettings) -> Path:
    """Filter rollout folders to ``output``/{train,test}.parquet; print the number of dropped responses by reason."""
    check_rollouts(settings, dry=False)
    output = Path(settings.output)
    if facts := make(output, _rollouts_recipe(settings), partial(_filter, settings), force=settings.force):
        print_facts(facts)
        print(f"{output}: {facts['rows']['train']:,} rows to train on, {facts['rows']['test']:,} to test")
    return output


def check_rollouts(settings: FilterSettings, *, dry: bool = True) -> None:
    """Raise UserError for settings out of range, or rollouts of another problem file; ``dry``: skip missing files."""
    if not settings.rollouts:
        raise UserError("rollouts: give at least one folder, as rollouts=[FOLDER,...]")
    check_ranges(settings)
    if settings.max_length is not None and settings.tokenizer is None:
        raise UserError("max_length counts tokens of the whole chat: give tokenizer=MODEL_PATH too")
    check_once("rollouts", settings.rollouts)
    folders = [Path(folder) for folder in settings.rollouts if is_to_be_checked(folder, dry=dry)]
    _check_inputs(settings, Path(settings.problems), folders, dry=dry)
    if settings.tokenizer is None or is_to_be_checked(settings.tokenizer, dry=dry):
        check_target(Path(settings.output), _rollouts_recipe(settings), force=settings.force)
        if dry and settings.tokenizer is not None:
            load_tokenizer(settings.tokenizer)


def _check_inputs(settings: RowSettings, problems: Path, rollouts: Sequence[Path], *, dry: bool) -> None:
    """Raise UserError for rollouts of another problem file, and in a dry run for a damaged file without rollouts."""
    has_problems = is_to_be_checked(problems, dry=dry)
    for folder in rollouts:
        check_answers(folder, problems if has_problems else None)
    if dry and has_problems and not rollouts:  # with rollouts it is the file that they name
        read_problems(problems, settings.row_format(any_source=True))  # what judged them is not known yet


def _rollouts_recipe(settings: FilterSettings) -> Recipe:
    apart = ("rollouts", "problems", "output", "tokenizer", "force", *(entry.name for entry in fields(RowSettings)))
    names = name_inputs("rollouts", settings.rollouts)
    inputs = {**dict(zip(names, map(Path, settings.rollouts), strict=True)), "problems": Path(settings.problems)}
    if settings.tokenizer is not None:
        inputs["tokenizer"] = resolve_model(settings.tokenizer)
    values = {key: value for key, value in asdict(settings).items() if key not in apart} | settings.changed()
    values["rollouts"] = names  # in the order of the rows
    return Recipe("filter_rollouts", values, inputs | settings.inputs())


def _read_problems(settings: RowSettings, problems: Path, rollouts: Iterable[Path]) -> pa.Table:
    """Read the problems; of any data source if a user's reward function judged the rollouts."""
    inputs = (name for folder in rollouts for name in rollout_manifest(folder).inputs)
    return read_problems(problems, settings.row_format(any_source=any(name.startswith(INPUT) for name in inputs)))


def _filter(settings: FilterSettings, folder: Path) -> dict[str, Any]:
    """Write the data set into ``folder``; return the figures for its manifest."""
    folder.mkdir()
    problems = _read_problems(settings, Path(settings.problems), map(Path, settings.rollouts))
    counts, keys = OutcomeCounts(), dict[int, str]()
    kept_file = folder / "kept.parquet"
    with pq.ParquetWriter(kept_file, SCHEMA, compression="zstd") as writer:
        rows = _kept_rows(settings, problems, counts, keys)
        while batch := list(islice(rows, BATCH)):
            writer.write_table(to_table(batch))
    facts = counts.facts()
    if not keys:
        print_facts(facts)
        advice = _advice(settings.rollouts, "loosen it or sample more")
        raise UserError(f"{', '.join(settings.rollouts)}: no response passed the filter; {advice}")
    prompts = set(keys.values())
    count = validation_count(len(prompts), settings.val_prompts, settings.val_fraction)
    if count < (settings.val_prompts or 0):
        print(f"val_prompts={settings.val_prompts}: {count}, since only {len(prompts)} prompts have a kept response")
    validation = validation_keys(prompts, count, settings.seed)
    rows_of = _split(kept_file, {number for number, key in keys.items() if key in validation})
    kept_file.unlink()
    return {**facts, "rows": rows_of, "val_prompts": count}


def _advice(rollouts: Sequence[str], otherwise: str) -> str:
    """Print three responses of rollouts without a kept one; return advice: ``otherwise`` if any response is right."""
    folders = [*map(Path, rollouts)]
    for row in islice((row for _, group in _grouped(folders) for row in group), 3):
        print(f"{row['reason']}: {row['response']!r}")
    none_right = all(row["reason"] != Reason.CORRECT for _, group in _grouped(folders) for row in group)
    return "none is right: sample more, or train the model first" if none_right else otherwise


def _kept_rows(
    settings: FilterSettings, problems: pa.Table, counts: OutcomeCounts, keys: dict[int, str]
) -> Iterator[dict[str, Any]]:
    """Yield SFT rows of all kept completions, prompt by prompt; fill ``counts``, and the ``keys`` of kept prompts."""
    tokenizer = None if settings.tokenizer is None else load_tokenizer(settings.tokenizer)
    for number, rollouts in _grouped([Path(path) for path in settings.rollouts]):
        if not 0 <= number < problems.num_rows:
            raise UserError(f"{settings.problems}: has no row {number} of the rollouts; give their problem file")
        problem = problems.slice(number, 1).to_pylist()[0]
        prompt = _prompt(problem, hidden=settings.hide_definitions)
        candidates = [_candidate(row, prompt, tokenizer) for row in rollouts]
        outcomes = decide(candidates, settings)
        skills = list(known_task(problem["data_source"]).skills(problem_of(problem, number)))
        counts.add(problem["group"], problem["level"], skills, outcomes)
        for index, (candidate, outcome) in enumerate(zip(candidates, outcomes, strict=True)):
            if outcome == KEPT:
                keys[number] = prompt_key(prompt)
                extra = {key: (problem["extra_info"] or {}).get(key) for key in ("index", "split")}
                yield {
                    "messages": [*prompt, {"role": "assistant", "content": candidate.text}],
                    **{key: problem[key] for key in ("data_source", "level", "group")},
                    "problem": number,
                    "extra_info": {**extra, "sample": index, "skills": skills},
                }


def _grouped(folders: Sequence[Path]) -> Iterator[tuple[int, list[Mapping[str, Any]]]]:
    """Yield (problem, its rollout rows from all folders), in the order of problems."""
    streams = heapq.merge(*(read_by_problem(folder) for folder in folders), key=itemgetter(0))
    for number, tables in groupby(streams, key=itemgetter(0)):
        yield number, [row for _, table in tables for row in table.to_pylist()]


def _prompt(problem: Mapping[str, Any], *, hidden: bool) -> list[Message]:
    """Return the prompt's turns, if ``hidden`` without definitions in the user turns."""
    task, turns = known_task(problem["data_source"]), list[Message]()
    for turn in problem["prompt"]:
        content = task.hide_definitions(turn["content"]) if hidden and turn["role"] == "user" else turn["content"]
        turns.append({"role": turn["role"], "content": content})
    return turns


def _candidate(row: Mapping[str, Any], prompt: list[Message], tokenizer: Any) -> Candidate:
    """Return a rollout's row as a candidate; ``tokenizer`` (may be None) measures its text."""
    text = strip_end_of_turn(row["response"])
    length, lost = 0, REPLACEMENT in text
    if tokenizer is not None and row["reason"] == Reason.CORRECT:
        try:
            length = len(chat_row([*prompt, Message(role="assistant", content=text)], tokenizer).tokens)
        except UserError:  # the answer contains an EOS
            lost = True
        lost = lost or bool(lost_characters(text, tokenizer))
    return Candidate(text, row["n_tokens"], row["finish_reason"], row["reason"], length, lost)


# ---- the split by prompt


def validation_keys(keys: Collection[str], count: int, seed: int) -> set[str]:
    """Return the ``count`` prompts of ``keys`` for validation: those with the lowest seeded hash, in any order."""
    return set(sorted(set(keys), key=lambda key: hashlib.sha256(f"{seed}/{key}".encode()).hexdigest())[:count])


def validation_count(n_prompts: int, val_prompts: int | None, val_fraction: float) -> int:
    """Return how many of ``n_prompts`` to hold out: ``val_prompts``, or if None a share (at least one), never all."""
    if val_prompts is None:
        val_prompts = max(1, round(val_fraction * n_prompts)) if val_fraction else 0
    return min(val_prompts, n_prompts - 1)


def _split(kept_file: Path, validation: set[int]) -> dict[str, int]:
    """Write the kept rows to train.parquet and, if wanted, test.parquet; return their row counts."""
    rows = {"train": 0, "test": 0}
    held_out = pa.array(sorted(validation), pa.int64())
    for name in ("train", "test") if validation else ("train",):
        path = kept_file.with_name(f"{name}.parquet")
        with pq.ParquetFile(kept_file) as kept, pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
            for batch in kept.iter_batches(BATCH):
                table = pa.Table.from_batches([batch], schema=SCHEMA)
                in_test = pc.is_in(table["problem"], held_out)
                part = table.filter(in_test if name == "test" else pc.invert(in_test))
                rows[name] += part.num_rows
                writer.write_table(part)
    return rows


# ---- problems


@dataclass
class FilterProblemsSettings(RowSettings):
    """Settings of ``filter_problems``."""

    rollouts: Path = REQUIRED  # folder of collect_rollouts, several completions per problem
    problems: Path = REQUIRED  # the problem file of the rollouts
    output: Path = REQUIRED  # file for the kept problems (parquet)
    min_correct_ratio: Fraction = 0.0  # keep problems with a share of right completions above this …
    max_correct_ratio: Fraction = 1.0  # … and below this
    force: bool = False  # replace a result that was made from something else


def filter_problems(settings: FilterProblemsSettings) -> Path:
    """Write the kept rows of ``problems``, unchanged, to ``output``; print their number. UserError if none is left."""
    check_problems(settings, dry=False)
    output = settings.output
    recipe = _problems_recipe(settings)
    if facts := make(output, recipe, partial(_keep_mixed, settings), force=settings.force):
        counts = f"{pq.read_metadata(output).num_rows:,} of {facts['asked']:,} problems"
        print(f"{output}: {counts}; never solved {facts['never']:,}, always {facts['always']:,}")
    return output


def check_problems(settings: FilterProblemsSettings, *, dry: bool = True) -> None:
    """Raise UserError for limits that exclude everything, or other rollouts; ``dry``: skip missing files."""
    check_ranges(settings)
    if settings.output.suffix != ".parquet":
        raise UserError(f"output={settings.output}: must end in .parquet")
    if settings.min_correct_ratio >= settings.max_correct_ratio:
        raise UserError(
            f"min_correct_ratio={settings.min_correct_ratio:g} max_correct_ratio={settings.max_correct_ratio:g}: "
            "the first must be below the second"
        )
    folders = [settings.rollouts] if is_to_be_checked(settings.rollouts, dry=dry) else []
    _check_inputs(settings, settings.problems, folders, dry=dry)
    check_target(settings.output, _problems_recipe(settings), force=settings.force)


def _problems_recipe(settings: FilterProblemsSettings) -> Recipe:
    limits = {key: value for key, value in asdict(settings).items() if key.endswith("_ratio")}
    inputs = {"rollouts": settings.rollouts, "problems": settings.problems} | settings.inputs()
    return Recipe("filter_problems", limits | settings.changed(), inputs)


def _keep_mixed(settings: FilterProblemsSettings, path: Path) -> dict[str, Any]:
    """Write the problems to ``path``, return counts. Completions on which the judge failed are ignored."""
    problems, numbers = _read_problems(settings, settings.problems, [settings.rollouts]), list[int]()
    facts = {"asked": 0, "never": 0, "always": 0}
    for number, table in read_by_problem(settings.rollouts):
        if number >= problems.num_rows:
            raise UserError(f"{settings.problems}: has no row {number} of the rollouts; give their problem file")
        judged = table.filter(pc.not_equal(table["reason"], Reason.ERROR))
        correct = pc.sum(pc.equal(judged["reason"], Reason.CORRECT)).as_py() or 0
        facts["asked"] += 1
        facts["never"] += correct == 0
        facts["always"] += correct == judged.num_rows > 0
        share = correct / judged.num_rows if judged.num_rows else 0.0
        if settings.min_correct_ratio < share < settings.max_correct_ratio:
            numbers.append(number)
    if not numbers:
        advice = _advice([str(settings.rollouts)], "sample more, or loosen the limits")
        raise UserError(
            f"{settings.rollouts}: no problem has a share of right completions above {settings.min_correct_ratio:g} "
            f"and below {settings.max_correct_ratio:g}; {advice}"
        )
    say_what_is_left_out(settings.problems, settings.row_format())
    write_table(problems.take(pa.array(numbers)), path)
    return facts
