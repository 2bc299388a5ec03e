"""The problems that a run of RL asks: how their files are read, their order, their seeds, refills of lost groups.

The order is a function of the seed and of positions in an endless stream of prompts, so that a resumed run, or one on
another number of processes, asks the same. Both engines stand on it.
"""

import hashlib
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from compositionality.data.parquet import write_table
from compositionality.data.problems import is_rl_schema, read_problems
from compositionality.data.row_format import RL_SCHEMA, RowFormat, RowSettings
from compositionality.errors import UserError
from compositionality.reward.pool import JudgeInput
from compositionality.rollout.prompts import check_prompt_lengths, prompts_as_tokens, readable
from compositionality.seeds import row_at
from compositionality.train.grpo_settings import GrpoSettings
from compositionality.types import Completion

HEADROOM = 1.25  # a refill asks for a few more prompts than the last share of groups with signal would need


@dataclass(frozen=True)
class TokenizedProblem:
    """What the sampler and the judge need of a problem; ``extra_info`` only for a reward function."""

    prompt_ids: list[int]
    data_source: str
    ground_truth: Any
    extra_info: Any = None

    def judge_input(self, completion: Completion) -> JudgeInput:
        """Return a completion as the pool of judges takes it."""
        reason = completion.finish_reason
        return JudgeInput(self.data_source, completion.text, self.ground_truth, reason, self.extra_info)


def tokenize_problems(
    paths: Sequence[str | Path],
    tokenizer: Any,
    max_tokens: int,
    limit: int | None = None,
    row_format: RowFormat = RL_SCHEMA,
) -> list[TokenizedProblem]:
    """Return all files' problems (``limit`` of each data source); UserError if a prompt has over ``max_tokens``."""
    problems: list[TokenizedProblem] = []
    counts: Counter[str] = Counter()
    columns = ("data_source", "prompt", "reward_model", *(["extra_info"] if row_format.any_source else []))
    for path in map(Path, paths):
        rows = read_problems(path, row_format).select([*columns]).to_pylist()
        prompts = prompts_as_tokens(tokenizer, readable((row["prompt"] for row in rows), tokenizer, str(path)))
        check_prompt_lengths(map(len, prompts), max_tokens, str(path))
        for row, prompt_ids in zip(rows, prompts, strict=True):
            counts[row["data_source"]] += 1
            if limit is None or counts[row["data_source"]] <= limit:
                truth = row["reward_model"]["ground_truth"]
                problems.append(TokenizedProblem(prompt_ids, row["data_source"], truth, row.get("extra_info")))
    return problems


def problem_at(place: int, problems: Sequence[TokenizedProblem], data: Any) -> TokenizedProblem:
    """Return the problem at a place of the endless stream: every pass over them in another order, by ``data.seed``."""
    return problems[row_at(place, len(problems), data.seed, shuffle=data.shuffle)]


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
        """Return the prompts that ``epochs`` passes still hold."""
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


class Refills:
    """How many problems dynamic sampling asks at a time until an update has its groups, with either engine.

    ``wanted``: groups with signal; ``size``: problems asked first, and at most later; ``limit``: problems in all, as a
    multiple of ``size`` (0: no limit).
    """

    def __init__(self, wanted: int, size: int, limit: int) -> None:
        self.wanted, self.size = wanted, size
        self.allowed = limit * size if limit > 0 else sys.maxsize
        self.asked, self.last, self.kept = size, size, 0

    def next(self, kept: int) -> int:
        """Return how many problems to ask next, if ``kept`` groups have signal so far; 0 at the limit.

        Enough if as many have signal as of those asked last, and a few more.
        """
        share = (kept - self.kept) / self.last
        enough = math.ceil(HEADROOM * (self.wanted - kept) / max(share, 1 / self.size))
        self.last, self.kept = min(self.size, enough, self.allowed - self.asked), kept
        self.asked += self.last
        return self.last


def check_problems_last(files: str, problems: int, epochs: int, batch: int, steps: int | None) -> None:
    """Raise UserError if verl, which asks a problem ``epochs`` times, ends before ``steps`` (null: with the data)."""
    if steps is not None and problems * epochs < batch * steps:
        last = problems * epochs // batch
        raise UserError(
            f"{files}: {problems} problems (verl.trainer.total_epochs={epochs}) last for {last} of trainer.steps="
            f"{steps} steps, each of at least {batch} problems; make more problems or take fewer steps"
        )


def too_few_groups(step: int, kept: int, needed: int, prompts: int, limit: str) -> str:
    """Return the message of a run whose problems give no signal; ``limit`` is the setting that ended the search."""
    saved = "; the same command goes on with other problems" if step > 1 else ""  # from its checkpoint
    return (
        f"step {step}: only {kept} of the {needed} groups needed had completions that differ, after {prompts} prompts "
        f"({limit}): the problems are too easy or too hard for this model{saved}. Give others, or train on what signal "
        "there is: algorithm.dynamic_sampling=false"
    )


def row_format(settings: GrpoSettings) -> RowFormat:
    """Return how ``data.train_files`` and ``data.val_files`` are read."""
    return settings.data.row_format(any_source=settings.reward.function is not None)


def run_keys(settings: GrpoSettings) -> dict[str, Any]:
    """Return what ``row_format_of_run`` needs, for the section ``run`` of verl's configuration.

    The template's file and not its text, in which OmegaConf would look for values of its own.
    """
    rows = {entry.name: getattr(settings.data, entry.name) for entry in fields(RowSettings)}
    return {"rows": rows, "apply_chat_template": settings.data.apply_chat_template}


def row_format_of_run(run: Any) -> RowFormat:
    """Return as ``row_format``, out of the section ``run``."""
    return RowSettings(**run.rows).row_format(any_source=run.reward_function is not None)


def files_for_verl(paths: Sequence[str], form: RowFormat, folder: Path) -> list[str]:
    """Return the files as verl reads them: as they are if all have its schema, else written as ``folder``/N.parquet."""
    if all(is_rl_schema(Path(path), form) for path in paths):
        return [str(Path(path).absolute()) for path in paths]
    targets = [folder.absolute() / f"{number}.parquet" for number in range(len(paths))]
    for path, target in zip(paths, targets, strict=True):
        write_table(read_problems(Path(path), form), target)
    return [*map(str, targets)]
