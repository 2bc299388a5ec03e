"""What a claim is: comparisons against thresholds, and the gates that say whether they could come out otherwise."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from compositionality.types import ALL_LEVELS, CORRECT, DEEPEST, Metric

Share = Annotated[float, Field(ge=0, le=1)]


class Rule(StrEnum):
    """How an estimate is compared with its threshold."""

    ABOVE = ">"
    AT_MOST = "≤"
    WITHIN = "within ±"
    APART = "apart"  # the intervals of model and base do not overlap
    EVERY_SEED = "every seed"  # above the threshold in each seed by itself

    @classmethod
    def _missing_(cls, value: object) -> "Rule | None":
        return {"<=": cls.AT_MOST, "within": cls.WITHIN}.get(str(value))


class Origin(StrEnum):
    """Whose claim it is."""

    PAPER = "paper"  # the paper states it
    VARIANT = "variant"  # another form of one of the paper's: another group, another budget, stronger, weaker
    OWN = "own"  # of who runs the study; never counted as the paper's


@dataclass(frozen=True, slots=True)
class Comparison:
    """metric(model) − times × metric(base) at one level, against a threshold: the smallest effect that counts.

    Shares, 0.2 = 20 points. ``over``, a model and its base: by how much more than that pair differs. Without a ``base``
    the model's own figure is compared with the threshold. ``part``: a measure (evaluate/measures.py); ``base_part``: of
    the base, where it is another one. ``results`` names the evaluations that hold the figures.
    """

    group: str
    level: int
    model: str
    base: str = ""
    rule: Rule = Rule.ABOVE
    threshold: float = 0.0
    times: float = 1.0
    metric: Metric = Metric.ACCURACY
    part: str = CORRECT
    results: str = "accuracy"
    base_part: str = ""
    over: tuple[str, ...] = ()
    gates: "tuple[Gate, ...]" = ()

    @property
    def arms(self) -> tuple[str, ...]:
        """The models that it needs."""
        return (*((self.model, self.base) if self.base else (self.model,)), *self.over)


class Strict:
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


# What must hold for a comparison to be decided; else it is not testable.


@dataclass(frozen=True)
class Headroom(Strict):
    """What the claim asks for lies below ``ceiling``, and not both arms lie below ``floor``."""

    kind: Literal["headroom"]
    ceiling: Share
    floor: Share


@dataclass(frozen=True)
class Trained(Strict):
    """Every arm but ``starts`` was trained: least shares of groups and of updates with signal in all seeds together,
    and the least number of updates with signal in any seed."""

    kind: Literal["trained"]
    groups: Share
    updates: Share
    least_updates: int
    starts: tuple[str, ...]


@dataclass(frozen=True)
class Sensitive(Strict):
    """Of claims that there is no effect: on the very problems ``model`` is ahead of ``base`` (empty: its own figure is)
    by more than the threshold, in ``part`` (empty: the same part)."""

    kind: Literal["sensitive"]
    model: str
    base: str = ""
    part: str = ""


@dataclass(frozen=True)
class Kept(Strict):
    """Of claims that there is no effect: at ``level`` the model lost at most ``loss`` to its base."""

    kind: Literal["kept"]
    level: int
    loss: Share


@dataclass(frozen=True)
class Shown:
    """What must hold in the same study, ``text`` in a phrase: of ``comparisons`` the first that was run."""

    text: str
    comparisons: tuple[Comparison, ...]


Gate = Headroom | Trained | Sensitive | Kept | Shown


@dataclass(frozen=True, slots=True)
class Claim:
    """A hypothesis: comparisons that must all hold, what the paper says (``paper``) and where (``source``)."""

    name: str
    text: str
    paper: str
    source: str
    comparisons: tuple[Comparison, ...]
    origin: Origin = Origin.OWN
    primary: bool = False  # of the few that a study is made for: Holm's family

    @property
    def hypothesis(self) -> str:
        """``H3`` for H3 and its variants, ``control`` for a negative control."""
        return self.name.partition("-")[0]


def where_of(comparison: Comparison) -> str:
    """``trained L3``; ``igsm, deepest level``."""
    names = {DEEPEST: f"{comparison.group}, deepest level", ALL_LEVELS: comparison.group}
    return names.get(comparison.level, f"{comparison.group} L{comparison.level}")


def words(comparison: Comparison) -> str:
    """``trained L3: rl-level2 − rl-level1 > 20``, in points; ``heldout L3, atomic error: …``."""
    plain = (comparison.metric, comparison.part) == (Metric.ACCURACY, CORRECT) or comparison.metric is Metric.SCALING
    part = "" if plain else f", {comparison.part.replace('_', ' ')}"
    part += f" against {comparison.base_part}" if comparison.base_part else ""
    what = f"{where_of(comparison)}{part}: {comparison.model}"
    base = comparison.base if comparison.times == 1 else f"{comparison.times:g} × {comparison.base}"
    rule = comparison.rule
    if rule in (Rule.APART, Rule.EVERY_SEED):
        return f"{what} > {base}, {rule}"
    difference = f"{what} − {base}" if base else what
    if comparison.over:
        difference += f", over {comparison.over[0]} − {comparison.over[1]},"
    return f"{difference} {rule}{'' if rule is Rule.WITHIN else ' '}{100 * comparison.threshold:g}"


WORDING = ("text", "paper", "source", "origin")
"""Fields of a claim on which no decision depends."""


def decides_alike(one: Claim, other: Claim) -> bool:
    """Return whether two claims differ in their wording at most."""
    names = (entry.name for entry in fields(Claim) if entry.name not in WORDING)
    return all(getattr(one, name) == getattr(other, name) for name in names)
