"""Sample ``n_samples`` completions per problem, judge them, store them in shards; resumable after a kill."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

from compositionality.console import new_console
from compositionality.data.artefact import check_target, exclusive, is_done, is_to_be_checked, remove
from compositionality.data.problems import read_problems
from compositionality.ranges import check_ranges
from compositionality.reward.pool import JudgeInput, JudgePool
from compositionality.rollout.engines.base import Chat, Engine, Tick, request_seed
from compositionality.rollout.engines.factory import AUTO, check_engine, choose_engine, open_engine
from compositionality.rollout.engines.vllm import VllmOptions
from compositionality.rollout.model_folder import check_context, check_model
from compositionality.rollout.progress import Meter
from compositionality.rollout.prompts import check_prompt_lengths, prompt_tokens, readable
from compositionality.rollout.settings import CollectSettings, check_settings, recipe
from compositionality.rollout.store import (
    ROWS_PER_SHARD,
    ShardPlan,
    WorkingFolder,
    check_unfinished,
    shard_table,
    working_path,
)
from compositionality.rollout.summary import RolloutSummary
from compositionality.types import Completion

MIN_ROWS_PER_SHARD = 1024
MIN_ROWS_BESIDE_OTHERS = VllmOptions.max_num_seqs // 2


def collect(settings: CollectSettings, engine: Engine | Callable[[], Engine] | None = None) -> Path:
    """Make the rollout folder ``settings.output`` and return it; nothing is done if it exists from the same inputs.

    ``engine``: one for many problem files with one model, or what opens it; it is not closed.
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
        with contextlib.ExitStack() as held:
            opened = cache(lambda: held.enter_context(_opened(settings, longest_prompt, engine)))
            rows = problems.num_rows * settings.n_samples
            choose = lambda: settings.rows_per_shard or shard_rows(rows, opened().parallel_calls)  # noqa: E731
            plan = working.plan(problems.num_rows, settings.n_samples, choose)
            if missing := working.missing():
                _Job(settings, problems, plan, working).run(opened(), missing, console)
        working.publish(_summarise(working, plan, problems, console, settings.reward.rule()))
    console.print(f"wrote {output}")
    return output


def shard_rows(rows: int, replicas: int) -> int:
    """Rows of a shard, of ``rows`` in all, where ``replicas`` work on shards side by side; at most ROWS_PER_SHARD.

    Four shards for each replica, so that none idles long at the end, and eight at least; but a shard fills the batch of
    a replica by half or more (of one alone twice, as its batch runs empty at the end of every shard).
    """
    least = MIN_ROWS_PER_SHARD if replicas == 1 else MIN_ROWS_BESIDE_OTHERS
    return min(max(-(-rows // max(8, 4 * replicas)), least), ROWS_PER_SHARD)


def settle_engine(settings: CollectSettings, *, dry: bool = False) -> CollectSettings:
    """With the engine that ``auto`` stands for, checked; in a dry run without the model that decides it as they are."""
    unknown = settings.engine == AUTO and not settings.base_url
    if unknown and not is_to_be_checked(settings.model, dry=dry):
        check_ranges(settings)
        return settings
    settings = replace(settings, engine=choose_engine(settings.engine, settings.base_url, [settings.model]))
    check_settings(settings)
    return settings


def check(settings: CollectSettings) -> None:
    """A dry run's: settings, and of model and problems what is there. UserError as ``collect`` has it."""
    settings = settle_engine(settings, dry=True)
    problems = _problems(settings) if is_to_be_checked(settings.problems, dry=True) else None
    if settings.engine != "openai" and not is_to_be_checked(settings.model, dry=True):
        return
    _check_prompts(settings, problems)
    check_target(settings.output, recipe(settings), force=settings.force)
    if not settings.force:
        check_unfinished(settings.output, recipe(settings))


def _problems(settings: CollectSettings) -> pa.Table:
    problems = read_problems(settings.problems, settings.form())
    return problems.slice(0, settings.limit) if settings.limit else problems


def _check_prompts(settings: CollectSettings, problems: pa.Table | None) -> int:
    """Longest prompt in tokens, after checking the model and, if given, prompts; a server checks its own (0)."""
    if settings.engine == "openai":
        return 0
    model = check_model(settings.model)
    if problems is None:
        check_engine(settings, model.path, 0)
        check_context(model, settings.max_tokens, "max_tokens")
        return 0
    chats = (chat for batch in problems.to_batches(max_chunksize=1024) for chat in batch["prompt"].to_pylist())
    known = readable(chats, model.tokenizer, str(settings.problems))
    lengths = (len(prompt_tokens(model.tokenizer, chat)) for chat in known)
    longest = check_prompt_lengths(lengths, settings.max_prompt_tokens, str(settings.problems))
    check_context(model, longest + settings.max_tokens, "the longest prompt + max_tokens")
    check_engine(settings, model.path, longest)
    return longest


@contextlib.contextmanager
def _opened(
    settings: CollectSettings, longest_prompt: int, engine: Engine | Callable[[], Engine] | None
) -> Iterator[Engine]:
    """The given engine, or one opened for this run alone."""
    if engine is not None:
        yield engine() if callable(engine) else engine
        return
    with contextlib.closing(open_engine(settings, longest_prompt)) as own:
        yield own


@dataclass(frozen=True)
class _Job:
    """The shards of one run: problem rows to completions to verdicts to files."""

    settings: CollectSettings
    problems: pa.Table
    plan: ShardPlan
    working: WorkingFolder

    def run(self, engine: Engine, missing: Sequence[int], console: Console) -> None:
        """Make the missing shards."""
        rows = sum(len(self.plan.units(shard)) for shard in missing)
        settings = self.settings
        limits = settings.judge_workers, settings.judge_timeout_s, settings.max_error_rate
        with (
            JudgePool(*limits, function=settings.reward.function) as pool,
            Meter(self.plan.n_rows, self.plan.n_rows - rows, console) as meter,
        ):
            generate = partial(self._generate, engine, tick=meter.tick)
            for shard, completions in generated(generate, missing, engine.parallel_calls):
                self._judge_and_write(shard, completions, pool)
                meter.add_tokens(sum(completion.n_tokens for completion in completions))
        console.print(f"{rows} completions, {meter.tokens} tokens, {meter.tokens_per_second:,.0f} tok/s")

    def _generate(self, engine: Engine, shard: int, tick: Tick) -> list[Completion]:
        units = self.plan.units(shard)
        chats: dict[int, Chat] = {problem: row["prompt"] for problem, row in self._rows(units).items()}
        prompts = [chats[problem] for problem, _ in units]
        seeds = [request_seed(self.settings.seed, problem, sample) for problem, sample in units]
        return engine.generate(prompts, seeds, self.settings.sampling(), tick)

    def _judge_and_write(self, shard: int, completions: Sequence[Completion], pool: JudgePool) -> None:
        units = self.plan.units(shard)
        rows = self._rows(units)
        verdicts = pool.judge([_item(rows[problem], one) for (problem, _), one in zip(units, completions, strict=True)])
        groups = [(rows[problem]["level"], rows[problem]["group"]) for problem, _ in units]
        self.working.write(shard, shard_table(units, groups, completions, verdicts))

    def _rows(self, units: Sequence[tuple[int, int]]) -> dict[int, dict[str, Any]]:
        """The problems of one shard by row number."""
        first, last = units[0][0], units[-1][0]
        own = ["extra_info"] if self.settings.reward.function else []
        columns = self.problems.select(["data_source", "level", "group", "prompt", "reward_model", *own])
        return dict(enumerate(columns.slice(first, last - first + 1).to_pylist(), start=first))


def generated(
    generate: Callable[[int], list[Completion]], shards: Sequence[int], parallel_calls: int
) -> Iterator[tuple[int, list[Completion]]]:
    """Pairs (shard, completions) in the order in which they finish, at most ``parallel_calls`` shards at a time."""
    if parallel_calls == 1:  # in this very thread: vLLM has bound it to its cores
        yield from ((shard, generate(shard)) for shard in shards)
        return
    waiting = iter(shards)
    with ThreadPoolExecutor(parallel_calls) as threads:
        running: dict[Future[list[Completion]], int] = {}
        while True:
            for shard in islice(waiting, parallel_calls - len(running)):
                running[threads.submit(generate, shard)] = shard
            if not running:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), future.result()


def _item(problem: dict[str, Any], completion: Completion) -> JudgeInput:
    truth = problem["reward_model"]["ground_truth"]
    reason, info = completion.finish_reason, problem.get("extra_info")
    return JudgeInput(problem["data_source"], completion.text, truth, reason, info)


def _summarise(
    working: WorkingFolder, plan: ShardPlan, problems: pa.Table, console: Console, rule: str | None
) -> dict[str, object]:
    """Print the accuracy table and return the figures for the manifest."""
    summary = RolloutSummary(problems)
    for shard in range(plan.n_shards):
        summary.add(working.read(shard))
    console.print(summary.table())
    if rule:
        console.print(rule, highlight=False)
    return summary.facts()
