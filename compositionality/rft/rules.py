"""Which responses to one prompt are kept, and why the others are not. Pure functions, no files."""

from collections.abc import Sequence
from dataclasses import dataclass

from compositionality.rft.rows import has_end_of_turn
from compositionality.types import LENGTH, Reason

KEPT = "kept"
UNFINISHED = "unfinished"
TOO_EASY = "too_easy"
TOO_LONG = "too_long"
END_INSIDE = "end_inside"
DUPLICATE = "duplicate"
OVER_CAP = "over_cap"

# Every fate that a response can meet, in the order in which the rules are applied.
FATES = (
    KEPT,
    UNFINISHED,
    *(reason.value for reason in Reason if reason is not Reason.CORRECT),
    TOO_EASY,
    TOO_LONG,
    END_INSIDE,
    DUPLICATE,
    OVER_CAP,
)


@dataclass(frozen=True)
class Rules:
    """The filter's settings; None switches a rule off."""

    max_correct_ratio: float | None = 1.0
    max_per_prompt: int | None = None
    max_tokens: int | None = None
    max_length: int | None = None
    deduplicate: bool = True


@dataclass(frozen=True, slots=True)
class Sample:
    """One judged response: ``tokens`` of the response, ``length`` in tokens of the whole chat (0: not measured)."""

    text: str
    tokens: int
    finish_reason: str
    reason: str
    length: int = 0


def decide(samples: Sequence[Sample], rules: Rules) -> list[str]:
    """The fate of every response to one prompt, in order. Of those above the cap, the first samples stay."""
    easy = is_too_easy(samples, rules.max_correct_ratio)
    seen: set[str] = set()
    fates: list[str] = []
    kept = 0
    for sample in samples:
        fate = _own_fate(sample, rules, easy=easy)
        if fate == KEPT and rules.deduplicate and sample.text in seen:
            fate = DUPLICATE
        elif fate == KEPT and rules.max_per_prompt is not None and kept >= rules.max_per_prompt:
            fate = OVER_CAP
        if fate == KEPT:
            seen.add(sample.text)
            kept += 1
        fates.append(fate)
    return fates


def is_too_easy(samples: Sequence[Sample], max_correct_ratio: float | None) -> bool:
    """True if the share of correct responses reaches the limit. A verifier's failure counts neither way."""
    judged = [sample for sample in samples if sample.reason != Reason.ERROR]
    correct = sum(sample.reason == Reason.CORRECT for sample in judged)
    return max_correct_ratio is not None and correct > 0 and correct >= max_correct_ratio * len(judged)


def _own_fate(sample: Sample, rules: Rules, *, easy: bool) -> str:
    """The fate of a response as far as it does not depend on its siblings' texts."""
    if sample.finish_reason == LENGTH:
        return UNFINISHED
    if sample.reason != Reason.CORRECT:
        return sample.reason
    if easy:
        return TOO_EASY
    if _above(sample.tokens, rules.max_tokens) or _above(sample.length, rules.max_length):
        return TOO_LONG
    return END_INSIDE if has_end_of_turn(sample.text) else KEPT


def _above(value: int, limit: int | None) -> bool:
    return limit is not None and value > limit
