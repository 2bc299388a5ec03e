"""What a claim is made of: figures of two models on the same problems, and the threshold that decides."""

from dataclasses import dataclass
from enum import StrEnum


class Metric(StrEnum):
    """What is measured of a model; ``Comparison.part`` says which part of it."""

    ACCURACY = "accuracy"
    PASS_AT_K = "pass@k"
    FAILURES = "failure share"


class Source(StrEnum):
    """Whose results hold a comparison's figures: a section's, every seed a folder."""

    ACCURACY = "accuracy"
    COUNTDOWN = "countdown"
    PASS_AT_K = "passk"
    FAILURES = "failures"


class Rule(StrEnum):
    """How a figure is held against its threshold."""

    ABOVE = ">"
    AT_MOST = "≤"
    WITHIN = "within ±"
    APART = "apart"
    EVERY_SEED = "every seed"


ALL_SAMPLES, GROWTH = "pass@N", "pass@N − pass@1"
"""Parts of pass@k: with all N samples of a problem; what samples after the first add."""


@dataclass(frozen=True)
class Comparison:
    """metric(model) − times × metric(base) at one level, against a threshold: the least effect that counts.

    Shares, 0.2 = 20 points. Without a ``base`` the model's own figure is held against the threshold. ``part``: of
    pass@k, one of the above; of failure shares, the class.
    """

    functions: str
    level: int
    model: str
    base: str = ""
    rule: Rule = Rule.ABOVE
    threshold: float = 0.0
    times: float = 1.0
    metric: Metric = Metric.ACCURACY
    part: str = "correct"

    @property
    def source(self) -> Source:
        """Where its figures are."""
        if self.metric is Metric.ACCURACY:
            return Source.COUNTDOWN if self.functions == "countdown" else Source.ACCURACY
        return Source.PASS_AT_K if self.metric is Metric.PASS_AT_K else Source.FAILURES

    @property
    def arms(self) -> tuple[str, ...]:
        """The models that it needs."""
        return (self.model, self.base) if self.base else (self.model,)

    @property
    def words(self) -> str:
        """``trained L3: rl-level2 − rl-level1 > 20``, in points; ``heldout L3, atomic error: …``."""
        part = "" if self.metric is Metric.ACCURACY else f", {self.part.replace('_', ' ')}"
        what = f"{self.functions} L{self.level}{part}: {self.model}"
        base = self.base if self.times == 1 else f"{self.times:g} × {self.base}"
        if self.rule in (Rule.APART, Rule.EVERY_SEED):
            return f"{what} > {base}, {self.rule}"
        difference = f"{what} − {base}" if base else what
        return f"{difference} {self.rule}{'' if self.rule is Rule.WITHIN else ' '}{100 * self.threshold:g}"


@dataclass(frozen=True)
class Claim:
    """A statement, what the paper says of it and where, and the comparisons that must all hold."""

    name: str
    text: str
    paper: str
    source: str
    comparisons: tuple[Comparison, ...]

    @property
    def hypothesis(self) -> str:
        """``H3`` for H3 and its variants, ``control`` for a negative control."""
        return self.name.partition("-")[0]
