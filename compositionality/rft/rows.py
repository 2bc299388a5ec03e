"""SFT rows: the selection of judged completions, and the form of the rows; the loss is on the assistant turn."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from compositionality.console import natural_key, new_console, new_table
from compositionality.data.problems import MESSAGES
from compositionality.data.row_format import RowSettings
from compositionality.ranges import (
    REQUIRED,
    FractionBelowOne,
    NonEmptyStr,
    NonNegativeInt,
    PositiveFraction,
    PositiveInt,
    Seed,
)
from compositionality.types import LENGTH, Message, Reason

EXTRA_INFO = pa.struct(
    [("index", pa.int64()), ("split", pa.string()), ("sample", pa.int32()), ("skills", pa.list_(pa.string()))]
)
SCHEMA = pa.schema(
    [
        ("messages", MESSAGES),
        ("data_source", pa.string()),
        ("level", pa.int32()),
        ("group", pa.string()),
        ("problem", pa.int64()),
        ("extra_info", EXTRA_INFO),
    ]
)

END_OF_TURN = (
    *("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|im_end|>", "<|endoftext|>", "<|end|>", "<end_of_turn>"),
    *("<eos>", "</s>", "<\uff5cend\u2581of\u2581sentence\uff5c>"),
)
PADDING = ("<|finetune_right_pad_id|>", "<|pad|>", "<pad>")

KEPT, UNFINISHED, TOO_EASY, TOO_LONG = "kept", "unfinished", "too_easy", "too_long"
END_INSIDE, LOST_CHARACTERS, DUPLICATE, OVER_CAP = "end_inside", "lost_characters", "duplicate", "over_cap"
OUTCOMES = (
    *(KEPT, UNFINISHED, *(reason.value for reason in Reason if reason is not Reason.CORRECT)),
    *(TOO_EASY, TOO_LONG, END_INSIDE, LOST_CHARACTERS, DUPLICATE, OVER_CAP),
)
"""Every outcome, in the order in which the rules are applied."""


# ---- selection of completions


@dataclass
class FilterSettings(RowSettings):
    """Settings of ``filter_rollouts``; null switches a rule off."""

    rollouts: list[str] = REQUIRED  # folders of collect_rollouts
    problems: NonEmptyStr = REQUIRED  # the problem file of the rollouts
    output: NonEmptyStr = REQUIRED  # folder for train.parquet and test.parquet
    hide_definitions: bool = False  # remove the definitions from the prompts
    max_correct_ratio: PositiveFraction | None = 1.0  # drop problems with at least this share correct; null: keep all
    max_per_prompt: PositiveInt | None = None  # correct completions to keep per problem; null: all
    max_tokens: PositiveInt | None = None  # drop longer completions; null: keep all
    max_length: PositiveInt | None = None  # drop rows longer than this with prompt; null: keep all; needs tokenizer
    tokenizer: str | None = None  # model folder or Hub id: drop completions that it cannot write back
    deduplicate: bool = True  # keep one of equal completions of a problem
    val_prompts: NonNegativeInt | None = None  # problems in test.parquet, at most all but one; null: by val_fraction
    val_fraction: FractionBelowOne = 0.02  # share of problems in test.parquet, at least one; 0: no such file
    seed: Seed = 42  # seed of the choice
    force: bool = False  # replace a result that was made from something else


@dataclass(frozen=True, slots=True)
class Candidate:
    text: str
    n_tokens: int
    finish_reason: str
    reason: str
    length: int = 0  # tokens of the whole chat; 0: not measured
    lost: bool = False  # has characters that the tokenizer cannot write back, such as incomplete ones


def decide(candidates: Sequence[Candidate], rules: FilterSettings) -> list[str]:
    """Return the outcome of every completion of one prompt, in order. If there are too many, the first are kept."""
    reasons = [candidate.reason for candidate in candidates if candidate.reason != Reason.ERROR]
    correct, ratio = reasons.count(Reason.CORRECT), rules.max_correct_ratio
    easy = ratio is not None and correct > 0 and correct >= ratio * len(reasons)
    texts: set[str] = set()
    outcomes: list[str] = []
    n_kept = 0
    for candidate in candidates:
        outcome = _single_outcome(candidate, rules, easy=easy)
        if outcome == KEPT and rules.deduplicate and candidate.text in texts:
            outcome = DUPLICATE
        elif outcome == KEPT and rules.max_per_prompt is not None and n_kept >= rules.max_per_prompt:
            outcome = OVER_CAP
        if outcome == KEPT:
            texts.add(candidate.text)
            n_kept += 1
        outcomes.append(outcome)
    return outcomes


def _single_outcome(candidate: Candidate, rules: FilterSettings, *, easy: bool) -> str:
    """Return the outcome by the rules that do not depend on the other completions' texts."""
    if candidate.finish_reason == LENGTH:
        return UNFINISHED
    if candidate.reason != Reason.CORRECT:
        return candidate.reason
    if easy:
        return TOO_EASY
    for size, limit in ((candidate.n_tokens, rules.max_tokens), (candidate.length, rules.max_length)):
        if limit is not None and size > limit:
            return TOO_LONG
    if any(marker in candidate.text for marker in END_OF_TURN):  # the tokenizer would read it as the end
        return END_INSIDE
    return LOST_CHARACTERS if candidate.lost else KEPT


@dataclass
class OutcomeCounts:
    """Counts of outcomes. A completion with two skills counts under both, so skills do not add up to the total."""

    by_level: dict[tuple[str, int], Counter[str]] = field(default_factory=dict)
    by_skill: dict[str, Counter[str]] = field(default_factory=dict)
    prompts: int = 0
    prompts_kept: int = 0

    def add(self, group: str, level: int, skills: Iterable[str], outcomes: Sequence[str]) -> None:
        counts = Counter(outcomes)
        self.by_level.setdefault((group, level), Counter()).update(counts)
        for skill in skills:
            self.by_skill.setdefault(skill, Counter()).update(counts)
        self.prompts += 1
        self.prompts_kept += KEPT in counts

    def facts(self) -> dict[str, Any]:
        """Return the counts as JSON types, for the manifest."""
        total = sum(self.by_level.values(), Counter[str]())
        levels = {f"{group} level {level}": counts for (group, level), counts in sorted(self.by_level.items())}
        skills = sorted(self.by_skill, key=natural_key)
        return {
            "responses": total.total(),
            "prompts": self.prompts,
            "prompts_kept": self.prompts_kept,
            "outcomes": _ordered(total),
            "outcomes_by_level": {name: _ordered(counts) for name, counts in levels.items()},
            "outcomes_by_skill": {name: _ordered(self.by_skill[name]) for name in skills},
        }


def print_facts(facts: dict[str, Any]) -> None:
    console, total = new_console(), facts["outcomes"]
    shown = [outcome for outcome in OUTCOMES if total.get(outcome)]
    by_level = facts["outcomes_by_level"]
    for title, rows in (("level", by_level and {**by_level, "all": total}), ("skill", facts["outcomes_by_skill"])):
        table = new_table()
        for header in (title, "responses", *shown):
            table.add_column(header.replace("_", " "), justify="left" if header == title else "right", overflow="fold")
        for name, counts in rows.items():
            table.add_row(name, f"{sum(counts.values()):,}", *(f"{counts.get(outcome, 0):,}" for outcome in shown))
        if rows:
            console.print(table)
    console.print(
        f"{facts['outcomes'].get(KEPT, 0):,} of {facts['responses']:,} responses kept, "
        f"from {facts['prompts_kept']:,} of {facts['prompts']:,} prompts",
        highlight=False,
    )


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return {outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]}


# ---- rows


def strip_end_of_turn(response: str) -> str:
    """Remove end-of-turn and padding text, and blanks, at the end of ``response``.

    The chat template writes one end of turn; another one in the text would teach the model to end twice.
    """
    text = response.rstrip()
    while marker := next((marker for marker in END_OF_TURN + PADDING if text.endswith(marker)), None):
        text = text.removesuffix(marker).rstrip()
    return text


def prompt_key(messages: Sequence[Message]) -> str:
    """Return the sha256 over a prompt's turns: equal for equal prompts of any source."""
    turns = [[message["role"], message["content"]] for message in messages]
    return hashlib.sha256(json.dumps(turns).encode("utf-8", "surrogatepass")).hexdigest()


def to_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)
