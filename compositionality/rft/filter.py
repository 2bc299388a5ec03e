"""The rejection filter: judged rollouts in, rows for supervised fine-tuning out. Streams prompt by prompt."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from omegaconf import MISSING

from compositionality.data.artefact import Recipe, exclusive, is_done, new_artefact, tree_hash
from compositionality.data.problems import problem_of, read_problems
from compositionality.errors import UserError
from compositionality.rft import rows as sft
from compositionality.rft.report import Report, print_facts
from compositionality.rft.rules import KEPT, Rules, Sample, decide
from compositionality.rft.split import validation_count, validation_keys
from compositionality.rollout.model_folder import load_tokenizer, resolve_model
from compositionality.rollout.store import read_by_problem, rollout_manifest
from compositionality.tasks.registry import task_of
from compositionality.types import Message, Reason

STEP = "filter_rollouts"
BATCH = 4096
Measure = Callable[[list[Message]], int]


@dataclass
class FilterSettings:
    """Settings of ``filter_rollouts``; null switches a rule off."""

    rollouts: list[str] = MISSING
    problems: str = MISSING
    output: str = MISSING
    hide_definitions: bool = False
    max_correct_ratio: float | None = 1.0
    max_per_prompt: int | None = None
    max_tokens: int | None = None
    max_length: int | None = None
    tokenizer: str | None = None
    deduplicate: bool = True
    val_prompts: int | None = None
    val_fraction: float = 0.02
    seed: int = 42
    force: bool = False

    def rules(self) -> Rules:
        """The part that decides about single responses."""
        return Rules(self.max_correct_ratio, self.max_per_prompt, self.max_tokens, self.max_length, self.deduplicate)


@dataclass
class _Pass:
    """The first pass: kept rows go to a file; the counts and the key of each kept prompt stay in memory."""

    settings: FilterSettings
    measure: Measure | None
    report: Report = field(default_factory=Report)
    keys: dict[int, str] = field(default_factory=dict)


def filter_rollouts(settings: FilterSettings) -> Path:
    """Filter rollout folders to ``output``/{train,test}.parquet; prints and keeps what was dropped and why."""
    _check(settings)
    output, recipe = Path(settings.output), _recipe(settings)
    with exclusive(output):
        if is_done(output, recipe, force=settings.force):
            print(f"{output} is already there")
            return output
        facts: dict[str, Any] = {}
        with new_artefact(output, recipe, facts) as partial:
            partial.mkdir()
            facts.update(_filter(settings, partial))
    print_facts(facts)
    print(f"{output}: {facts['rows']['train']:,} rows to train on, {facts['rows']['test']:,} to test")
    return output


def _check(settings: FilterSettings) -> None:
    if not settings.rollouts:
        raise UserError("rollouts: give at least one folder, as rollouts=[FOLDER,...]")
    if settings.max_correct_ratio is not None and not 0 < settings.max_correct_ratio <= 1:
        raise UserError(f"max_correct_ratio={settings.max_correct_ratio}: give a share above 0 and up to 1, or null")
    if settings.max_per_prompt is not None and settings.max_per_prompt < 1:
        raise UserError(f"max_per_prompt={settings.max_per_prompt}: give 1 or more, or null for no cap")
    if (settings.max_length is None) != (settings.tokenizer is None):
        raise UserError("max_length counts tokens of the whole chat: give it together with tokenizer=MODEL_PATH")
    problems = tree_hash(Path(settings.problems))
    for folder in map(Path, settings.rollouts):
        manifest = rollout_manifest(folder)
        if manifest.inputs.get("problems", problems) != problems:
            raise UserError(f"{folder}: its rollouts answer another problem file than {settings.problems}")


def _recipe(settings: FilterSettings) -> Recipe:
    apart = ("rollouts", "problems", "output", "tokenizer", "force")
    inputs = {f"rollouts/{number}": Path(path) for number, path in enumerate(settings.rollouts)}
    inputs["problems"] = Path(settings.problems)
    if settings.tokenizer is not None:
        inputs["tokenizer"] = resolve_model(settings.tokenizer)
    return Recipe(STEP, {key: value for key, value in asdict(settings).items() if key not in apart}, inputs)


def _filter(settings: FilterSettings, folder: Path) -> dict[str, Any]:
    """Write the data set into ``folder``; returns the figures for its manifest."""
    problems = read_problems(Path(settings.problems))
    state = _Pass(settings, None if settings.tokenizer is None else _measure(settings.tokenizer))
    kept_file = folder / "kept.parquet"
    with pq.ParquetWriter(kept_file, sft.SCHEMA, compression="zstd") as writer:
        for batch in _batches(_kept_rows(problems, state)):
            writer.write_table(sft.to_table(batch))
    facts = state.report.facts()
    if not state.keys:
        print_facts(facts)
        raise UserError(f"{', '.join(settings.rollouts)}: no response passed the filter; loosen it or sample more")
    keys = set(state.keys.values())
    count = validation_count(len(keys), settings.val_prompts, settings.val_fraction)
    validation = validation_keys(keys, count, settings.seed)
    rows = _split(kept_file, {number for number, key in state.keys.items() if key in validation})
    kept_file.unlink()
    return {**facts, "rows": rows, "val_prompts": count}


def _kept_rows(problems: pa.Table, state: _Pass) -> Iterator[dict[str, Any]]:
    """SFT rows of all kept responses, prompt by prompt; counts every fate on the way."""
    settings = state.settings
    for number, answers in _grouped([Path(path) for path in settings.rollouts]):
        if not 0 <= number < problems.num_rows:
            raise UserError(f"{settings.problems}: has no row {number}, which the rollouts answer; give their file")
        problem = problems.slice(number, 1).to_pylist()[0]
        prompt = _prompt(problem, hidden=settings.hide_definitions)
        samples = [_sample(answer, prompt, state.measure) for answer in answers]
        fates = decide(samples, settings.rules())
        functions = list(task_of(problem["data_source"]).skills(problem_of(problem, number)))
        state.report.add(problem["data_source"], functions, fates)
        for index, (sample, fate) in enumerate(zip(samples, fates, strict=True)):
            if fate == KEPT:
                state.keys[number] = sft.prompt_key(prompt)
                yield _row(number, problem, prompt, sample.text, index, functions)


def _grouped(folders: Sequence[Path]) -> Iterator[tuple[int, list[Mapping[str, Any]]]]:
    """(problem, its responses from all folders), in the order of problems."""
    streams = heapq.merge(*(read_by_problem(folder) for folder in folders), key=itemgetter(0))
    for number, tables in groupby(streams, key=itemgetter(0)):
        yield number, [row for _, table in tables for row in table.to_pylist()]


def _prompt(problem: Mapping[str, Any], *, hidden: bool) -> list[Message]:
    """The prompt's turns, user turns without definitions if they are to be hidden."""
    task, turns = task_of(problem["data_source"]), list[Message]()
    for turn in problem["prompt"]:
        content = task.hide_definitions(turn["content"]) if hidden and turn["role"] == "user" else turn["content"]
        turns.append({"role": turn["role"], "content": content})
    return turns


def _sample(answer: Mapping[str, Any], prompt: list[Message], measure: Measure | None) -> Sample:
    text = sft.strip_end_of_turn(answer["response"])
    length = 0
    if measure is not None and answer["reason"] == Reason.CORRECT:
        length = measure([*prompt, {"role": "assistant", "content": text}])
    return Sample(text, answer["n_tokens"], answer["finish_reason"], answer["reason"], length)


def _measure(tokenizer_path: str) -> Measure:
    """A function that counts the tokens of a chat as the tokenizer's template renders it."""
    tokenizer = load_tokenizer(tokenizer_path)

    def measure(messages: list[Message]) -> int:
        text = tokenizer.apply_chat_template(messages, tokenize=False)
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    return measure


def _row(
    number: int, problem: Mapping[str, Any], prompt: list[Message], text: str, sample: int, functions: list[str]
) -> dict[str, Any]:
    extra = problem["extra_info"] or {}
    return {
        "messages": [*prompt, {"role": "assistant", "content": text}],
        **{key: problem[key] for key in ("data_source", "level", "group")},
        "problem": number,
        "extra_info": {
            **{key: extra.get(key) for key in ("index", "split")},
            "sample": sample,
            "functions": functions,
        },
    }


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _split(kept_file: Path, validation: set[int]) -> dict[str, int]:
    """Second pass: deal the kept rows out to train.parquet and, if wanted, test.parquet; returns their row counts."""
    rows = {"train": 0, "test": 0}
    names = ("train", "test") if validation else ("train",)
    held_out = pa.array(sorted(validation), pa.int64())
    with ExitStack() as stack:
        kept = stack.enter_context(pq.ParquetFile(kept_file))
        paths = {name: kept_file.with_name(f"{name}.parquet") for name in names}
        writers = {
            name: stack.enter_context(pq.ParquetWriter(path, sft.SCHEMA, compression="zstd"))
            for name, path in paths.items()
        }
        for batch in kept.iter_batches(BATCH):
            table = pa.Table.from_batches([batch], schema=sft.SCHEMA)
            in_test = pc.is_in(table["problem"], held_out)
            for name, writer in writers.items():
                part = table.filter(in_test if name == "test" else pc.invert(in_test))
                rows[name] += part.num_rows
                writer.write_table(part)
    return rows
