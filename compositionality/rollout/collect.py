"""Sample ``n_samples`` completions per problem, judge them, store them in shards; resumable after a kill."""

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from compositionality.console import new_console
from compositionality.data.artefact import check_maker, check_target, exclusive, is_done, is_to_be_checked, remove
from compositionality.data.problems import read_problems
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.rollout.engines.base import Chat, Engine, Tick, run_calls
from compositionality.rollout.engines.factory import AUTO, check_engine, choose_engine, open_engine
from compositionality.rollout.engines.vllm import VllmOptions
from compositionality.rollout.model_folder import ModelFolder, check_context, check_model
from compositionality.rollout.prompts import check_prompt_lengths, tokenized
from compositionality.rollout.settings import CollectSettings, check_settings, recipe
from compositionality.rollout.store import (
    STEP,
    RolloutSummary,
    WorkingFolder,
    check_unfinished,
    layout,
    shard_table,
    working_path,
)
from compositionality.seeds import request_seed
from compositionality.types import Completion
from compositionality.validation import check_ranges

MIN_ROWS_PER_CALL = VllmOptions.max_num_seqs // 2  # with several replicas: half a batch of one
SECONDS_BETWEEN_LINES = 15.0  # of progress
Call = tuple[int, range]
"""A shard, and the part of its completions that one call of the engine samples."""


def collect(settings: CollectSettings, engine: Engine | Callable[[], Engine] | None = None) -> Path:
    """Make the rollout folder ``settings.output`` and return it; do nothing if it exists from the same inputs.

    ``engine``: an engine (or a function that opens it) for several problem files with one model; it is not closed.
    No ``artefact.make``, which begins anew after a kill: finished shards are kept in a working folder.
    """
    settings = settle_engine(settings)
    output, console = settings.output, new_console()
    with exclusive(output):
        if is_done(output, recipe(settings), force=settings.force):
            remove(working_path(output))
            console.print(f"{output} is already there")
            return output
        problems = _problems(settings)
        longest_prompt = _check_prompts(settings, problems)
        working = WorkingFolder(output, recipe(settings).identity(), force=settings.force)
        shards = layout(problems.num_rows * settings.n_samples, settings.rows_per_shard)
        if missing := working.missing(shards):
            with contextlib.ExitStack() as stack:
                if engine is None:
                    engine = stack.enter_context(contextlib.closing(open_engine(settings, longest_prompt)))
                opened = engine() if callable(engine) else engine
                _Job(settings, problems, shards, working).run(opened, missing, console)
        summary = RolloutSummary(problems)
        for shard in range(len(shards)):
            summary.add(working.read(shard))
        console.print(summary.table())
        if rule := settings.reward.rule():
            console.print(rule, highlight=False)
        working.publish(summary.facts())
    console.print(f"wrote {output}")
    return output


def calls_of(shard: range, rows: int, replicas: int) -> list[range]:
    """Split a shard into calls of the engine; ``rows`` is the number of completions in all shards.

    A single replica samples a shard per call. Several get about four calls each, so that none idles long at the end,
    but no call has less than half a batch.
    """
    size = len(shard) if replicas == 1 else max(-(-rows // (4 * replicas)), MIN_ROWS_PER_CALL)
    return [shard[first : first + size] for first in range(0, len(shard), size)]


def settle_engine(settings: CollectSettings, *, dry: bool = False) -> CollectSettings:
    """Check the settings and resolve engine=auto, except in a dry run without the model, which decides it."""
    by_model = settings.engine == AUTO and not settings.base_url
    if by_model and not is_to_be_checked(settings.model, dry=dry):
        check_ranges(settings)
        return settings
    settings = replace(settings, engine=choose_engine(settings.engine, settings.base_url, [settings.model]))
    check_settings(settings)
    return settings


def check(settings: CollectSettings) -> None:
    """Check the settings, and existing model and problems, for a dry run. UserErrors are those of ``collect``."""
    settings = settle_engine(settings, dry=True)
    problems = _problems(settings) if is_to_be_checked(settings.problems, dry=True) else None
    if settings.engine != "openai" and not is_to_be_checked(settings.model, dry=True):
        check_maker(settings.output, STEP, force=settings.force)
        return
    _check_prompts(settings, problems)
    check_target(settings.output, recipe(settings), force=settings.force)
    if not settings.force:
        check_unfinished(settings.output, recipe(settings))


def check_inputs(settings: CollectSettings) -> None:
    """Check model and prompts of a collection that is still to be made, as it does itself before it opens an engine."""
    if not settings.output.exists():
        _check_prompts(settings, _problems(settings))


def _problems(settings: CollectSettings) -> pa.Table:
    problems = read_problems(settings.problems, settings.form())
    return problems.slice(0, settings.limit) if settings.limit else problems


def _check_prompts(settings: CollectSettings, problems: pa.Table | None) -> int:
    """Check model and prompts; return the tokens of the longest prompt (0 for a server, which checks them itself)."""
    if settings.engine == "openai":
        return 0
    batches = [] if problems is None else problems.to_batches(max_chunksize=1024)
    chats = (chat for batch in batches for chat in batch["prompt"].to_pylist())
    return check_chats(settings, check_model(settings.model), chats, str(settings.problems))


def check_chats(settings: CollectSettings, model: ModelFolder, chats: Iterable[Chat], source: str) -> int:
    """Return the tokens of the longest prompt. UserError, naming ``source``, if they do not fit model or machine."""
    lengths = map(len, tokenized(chats, model.tokenizer, source))
    longest = check_prompt_lengths(lengths, settings.max_prompt_tokens, source)
    check_context(model, longest + settings.max_tokens, "the longest prompt + max_tokens")
    check_engine(settings, model.path, longest)
    return longest


@dataclass(frozen=True)
class _Job:
    """The shards of one run: problem rows to completions to verdicts to files."""

    settings: CollectSettings
    problems: pa.Table
    shards: Sequence[range]
    working: WorkingFolder

    def run(self, engine: Engine, missing: Sequence[int], console: Console) -> None:
        settings, replicas = self.settings, engine.parallel_calls
        total = sum(map(len, self.shards))
        rows = sum(len(self.shards[shard]) for shard in missing)
        calls = [(shard, part) for shard in missing for part in calls_of(self.shards[shard], total, replicas)]
        parts: dict[int, dict[int, list[Completion]]] = {shard: {} for shard in missing}
        limits = settings.judge_workers, settings.judge_timeout_s, settings.max_error_rate
        with (
            JudgePool(*limits, function=settings.reward.function) as pool,
            Meter(total, total - rows, console) as meter,
        ):
            generate = partial(self._generate, engine, tick=meter.tick)
            for (shard, part), sampled in run_calls(generate, calls, replicas):
                parts[shard][part.start] = sampled
                if sum(map(len, parts[shard].values())) == len(self.shards[shard]):
                    completions = [*chain.from_iterable(part for _, part in sorted(parts.pop(shard).items()))]
                    self._judge_and_write(shard, completions, pool)
                    meter.tick(0, sum(completion.n_tokens for completion in completions))
        console.print(f"{rows} completions, {meter.tokens} tokens, {meter.tokens_per_second:,.0f} tok/s")

    def _generate(self, engine: Engine, call: Call, tick: Tick) -> list[Completion]:
        _, part = call
        units, rows = self._read_rows(part)
        prompts: list[Chat] = [rows[problem]["prompt"] for problem, _ in units]
        seeds = [request_seed(self.settings.seed, problem, sample) for problem, sample in units]
        return engine.generate(prompts, seeds, self.settings.sampling(), tick)

    def _judge_and_write(self, shard: int, completions: Sequence[Completion], pool: JudgePool) -> None:
        units, rows = self._read_rows(self.shards[shard])
        inputs = []
        for (problem, _), completion in zip(units, completions, strict=True):
            row = rows[problem]
            truth, info = row["reward_model"]["ground_truth"], row.get("extra_info")
            inputs.append(JudgeInput(row["data_source"], completion.text, truth, completion.finish_reason, info))
        groups = [(rows[problem]["level"], rows[problem]["group"]) for problem, _ in units]
        self.working.write(shard, shard_table(units, groups, completions, pool.judge(inputs)))

    def _read_rows(self, numbers: range) -> tuple[list[tuple[int, int]], dict[int, dict[str, Any]]]:
        """Return (problem, sample) of consecutive completions, and their problems by row number."""
        units = [divmod(number, self.settings.n_samples) for number in numbers]
        (first, _), (last, _) = units[0], units[-1]
        extra = ["extra_info"] if self.settings.reward.function else []
        columns = self.problems.select(["data_source", "level", "group", "prompt", "reward_model", *extra])
        return units, dict(enumerate(columns.slice(first, last - first + 1).to_pylist(), start=first))


class Meter:
    """Progress: a bar on a terminal, else a line every 15 seconds. ``done`` of ``total`` completions already exist."""

    def __init__(self, total: int, done: int, console: Console) -> None:
        self._console = console
        self._rows, self._total, self._before = done, total, done
        self.tokens = 0
        self._start = self._last_line = time.monotonic()
        whole = Column(no_wrap=True)  # in a narrow terminal only the bar shrinks
        columns = (
            BarColumn(None, table_column=Column(max_width=40)), MofNCompleteColumn(table_column=whole),
            TextColumn("{task.fields[rate]}", table_column=whole), TimeElapsedColumn(whole),
            TimeRemainingColumn(table_column=whole),
        )  # fmt: skip
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=total, completed=done, rate="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    @property
    def tokens_per_second(self) -> float:
        """Tokens of finished shards per second of this run."""
        return self.tokens / max(time.monotonic() - self._start, 1e-9)

    def tick(self, rows: int, tokens: int = 0) -> None:
        """Count ``rows`` more finished completions, and the ``tokens`` of a finished shard."""
        self._rows += rows
        self.tokens += tokens
        rate = f"{self.tokens_per_second:,.0f} tok/s" if self.tokens else ""
        self._bar.update(self._task, completed=self._rows, rate=rate)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._last_line > SECONDS_BETWEEN_LINES:
            self._last_line = now
            speed = (self._rows - self._before) / (now - self._start)
            left = (self._total - self._rows) / speed if speed else float("inf")
            self._console.print(f"{self._rows}/{self._total} completions {rate}, {left:,.0f} s left")
