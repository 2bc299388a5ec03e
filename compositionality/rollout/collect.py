"""Ask a model every problem ``n_samples`` times, judge the answers, keep them in shards; killed, it goes on."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from compositionality.console import new_console
from compositionality.data.artefact import exclusive, is_done, remove
from compositionality.data.problems import read_problems
from compositionality.errors import UserError
from compositionality.reward.pool import Item, JudgePool
from compositionality.rollout.engine import Completion, Engine, Request, request_seed
from compositionality.rollout.engines import check_room, open_engine
from compositionality.rollout.model_folder import check_model
from compositionality.rollout.progress import Meter
from compositionality.rollout.prompts import check_prompt_lengths, prompt_tokens
from compositionality.rollout.settings import CollectSettings, check_settings, recipe
from compositionality.rollout.shards import ROWS_PER_SHARD, ShardPlan, shard_table
from compositionality.rollout.summary import RolloutSummary
from compositionality.rollout.working import WorkingFolder, working_path
from compositionality.tasks import Message

FEWEST_ROWS_PER_SHARD = 1024


def collect(settings: CollectSettings, engine: Engine | None = None) -> Path:
    """Make the rollout folder ``settings.output`` and return it; do nothing if it is there from the same inputs.

    ``engine``: one that is open already (it stays open), for many problem files with one model.
    """
    check_settings(settings)
    output, console = settings.output, new_console()
    with exclusive(output):
        if is_done(output, recipe(settings), force=settings.force):
            remove(working_path(output))
            console.print(f"{output} is already there")
            return output
        problems = _problems(settings)
        longest_prompt = _check_prompts(settings, problems)
        plan = shard_plan(settings, problems.num_rows)
        working = WorkingFolder(output, recipe(settings).identity(), plan, force=settings.force)
        missing = working.missing()
        if missing:
            job = _Job(settings, problems, plan, working)
            with _opened(settings, longest_prompt, engine) as opened:
                job.run(opened, missing, console)
        working.publish(_summarise(working, plan, problems, console))
    console.print(f"wrote {output}")
    return output


def shard_plan(settings: CollectSettings, n_problems: int) -> ShardPlan:
    """Shards of 8192 responses; of fewer, down to 1024, where eight would not come together."""
    rows = settings.rows_per_shard or -(-n_problems * settings.n_samples // 8)
    if not settings.rows_per_shard:
        rows = min(max(rows, FEWEST_ROWS_PER_SHARD), ROWS_PER_SHARD)
    return ShardPlan(n_problems, settings.n_samples, rows)


def _problems(settings: CollectSettings) -> pa.Table:
    problems = read_problems(settings.problems)
    turns = pc.fill_null(pc.list_value_length(problems["prompt"]), 0)
    empty = pc.index(turns, 0).as_py()
    if empty >= 0:
        raise UserError(f"{settings.problems}: row {empty} has an empty prompt; make the problem file again")
    return problems.slice(0, settings.limit) if settings.limit else problems


def _check_prompts(settings: CollectSettings, problems: pa.Table) -> int:
    """Longest prompt in tokens, after checking model and prompts; a server checks its own (0)."""
    if settings.engine == "openai":
        return 0
    model = check_model(Path(settings.model))
    chats = (chat for batch in problems.to_batches(max_chunksize=1024) for chat in batch["prompt"].to_pylist())
    lengths = (len(prompt_tokens(model.tokenizer, chat)) for chat in chats)
    longest = check_prompt_lengths(lengths, settings.max_prompt_tokens, str(settings.problems))
    check_room(model, longest, settings.max_tokens)
    return longest


@contextlib.contextmanager
def _opened(settings: CollectSettings, longest_prompt: int, engine: Engine | None) -> Iterator[Engine]:
    """The given engine, or one opened for this run alone."""
    if engine is not None:
        yield engine
        return
    own = open_engine(settings, longest_prompt)
    try:
        yield own
    finally:
        own.close()


@dataclass(frozen=True)
class _Job:
    """The shards of one run: from problem rows to requests, answers, verdicts, files."""

    settings: CollectSettings
    problems: pa.Table
    plan: ShardPlan
    working: WorkingFolder

    def run(self, engine: Engine, missing: Sequence[int], console: Console) -> None:
        """Make the missing shards."""
        rows = sum(len(self.plan.units(shard)) for shard in missing)
        settings = self.settings
        with (
            JudgePool(settings.judge_workers, settings.judge_timeout_s, settings.max_error_rate) as pool,
            Meter(self.plan.n_rows, self.plan.n_rows - rows, console) as meter,
        ):
            ask = self._asker(engine, meter)
            for shard, completions in answered(ask, missing, engine.parallel_calls):
                self._keep(shard, completions, pool)
                meter.add_tokens(sum(completion.tokens for completion in completions))
        console.print(f"{rows} answers, {meter.tokens} tokens, {meter.tokens_per_second:,.0f} tok/s")

    def _asker(self, engine: Engine, meter: Meter) -> "Ask":
        sampling = self.settings.sampling()
        return lambda shard: engine.generate(self._requests(shard), sampling, meter.tick)

    def _requests(self, shard: int) -> list[Request]:
        units = self.plan.units(shard)
        chats = {problem: _chat(row["prompt"]) for problem, row in self._rows(units).items()}
        seed = self.settings.seed
        return [Request(chats[problem], request_seed(seed, problem, sample)) for problem, sample in units]

    def _keep(self, shard: int, completions: Sequence[Completion], pool: JudgePool) -> None:
        units = self.plan.units(shard)
        rows = self._rows(units)
        verdicts = pool.judge(
            [_item(rows[problem], answer) for (problem, _), answer in zip(units, completions, strict=True)]
        )
        self.working.write(shard, shard_table(units, completions, verdicts))

    def _rows(self, units: Sequence[tuple[int, int]]) -> dict[int, dict[str, Any]]:
        """The problems of one shard by row number."""
        first, last = units[0][0], units[-1][0]
        columns = self.problems.select(["data_source", "prompt", "reward_model"])
        return dict(enumerate(columns.slice(first, last - first + 1).to_pylist(), start=first))


Ask = Callable[[int], list[Completion]]


def answered(ask: Ask, shards: Sequence[int], parallel_calls: int) -> Iterator[tuple[int, list[Completion]]]:
    """Pairs (shard, answers) as they come; no more than ``parallel_calls`` shards are asked at a time."""
    if parallel_calls == 1:  # in this very thread: vLLM has bound it to its cores
        yield from ((shard, ask(shard)) for shard in shards)
        return
    waiting = iter(shards)
    with ThreadPoolExecutor(parallel_calls) as threads:
        running: dict[Future[list[Completion]], int] = {}
        while True:
            for shard in islice(waiting, parallel_calls - len(running)):
                running[threads.submit(ask, shard)] = shard
            if not running:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), future.result()


def _chat(messages: Sequence[dict[str, str]]) -> tuple[Message, ...]:
    return tuple(Message(role=message["role"], content=message["content"]) for message in messages)


def _item(problem: dict[str, Any], answer: Completion) -> Item:
    return Item(problem["data_source"], answer.text, problem["reward_model"]["ground_truth"], answer.finish_reason)


def _summarise(working: WorkingFolder, plan: ShardPlan, problems: pa.Table, console: Console) -> dict[str, object]:
    """Print the accuracy table and return the figures for the manifest."""
    summary = RolloutSummary(problems["data_source"])
    for shard in range(plan.n_shards):
        summary.add(working.read(shard))
    console.print(summary.table())
    return summary.facts()
