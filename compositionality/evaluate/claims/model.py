"""Claims: comparisons against thresholds, with gates; read from ``config/claims/NAME.yaml``."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any

from compositionality.errors import UserError
from compositionality.evaluate.table import CLAIMED, is_claimed, is_paired
from compositionality.evaluate.types import ALL_LEVELS, CORRECT, DEEPEST, Metric
from compositionality.ranges import Fraction, NonEmptyStr, OneOf
from compositionality.validation import choices, validated
from compositionality.yaml_files import named_yaml, read_yaml_mapping

FOLDER = Path(__file__).parents[2] / "config" / "claims"
LEVELS = {"deepest": DEEPEST, "all": ALL_LEVELS}  # words for levels
AXES = ("group", "level", "model", "base")
"""Keys of a comparison that may hold a list: one comparison for each entry, the last key varying fastest."""
EXPLAINED = "config/claims/composition.yaml explains the keys"


class Rule(StrEnum):
    """Comparisons of an estimate with its threshold."""

    ABOVE = ">"
    AT_MOST = "≤"
    WITHIN = "within ±"
    AHEAD = "ahead"  # above 0; as good within ± half of the gain of ``reference``; else undecided

    @classmethod
    def _missing_(cls, value: object) -> "Rule | None":
        return {"<=": cls.AT_MOST, "within": cls.WITHIN}.get(str(value))


EITHER_SIDE = (Rule.WITHIN, Rule.AHEAD)  # rules with thresholds on both sides of 0; their p-values are two-sided


class Origin(StrEnum):
    """The author of a claim."""

    PAPER = "paper"  # the paper states it
    VARIANT = "variant"  # a variant of a claim of the paper: another group, another budget, stronger, weaker
    OWN = "own"  # added by the user; never counted as the paper's


AMetric = Annotated[Metric, OneOf(tuple(Metric))]


@dataclass(frozen=True)
class Comparison:
    """measure(model) − times × measure(base) at one level, against a threshold: the smallest effect that counts.

    Measures are shares, 0.2 = 20 points. ``over``, a model and its base: subtract the difference of that pair. Without
    a ``base`` the model's own figure is compared with the threshold. ``reference``, for the rule ``ahead``: a model and
    its base; half of their difference is the threshold. ``measure``: a name of evaluate/table.py (some are of model and
    base together: ``is_paired``); ``base_measure``: the base's, if it differs. ``results`` names the evaluations.
    """

    group: str
    level: int
    model: str
    base: str = ""
    rule: Annotated[Rule, OneOf(tuple(Rule))] = Rule.ABOVE
    threshold: float = 0.0
    times: float = 1.0
    metric: AMetric = Metric.ACCURACY
    measure: str = CORRECT
    results: str = "accuracy"
    base_measure: str = ""
    over: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    gates: "tuple[Gate, ...]" = ()

    @property
    def arms(self) -> tuple[str, ...]:
        return (*((self.model, self.base) if self.base else (self.model,)), *self.over, *self.reference)

    @property
    def denies(self) -> bool:
        """Return whether the comparison claims the absence of an effect."""
        return self.rule in (Rule.AT_MOST, Rule.WITHIN)

    @property
    def place(self) -> str:
        """Group and level: ``trained L3``; ``igsm, deepest level``."""
        names = {DEEPEST: f"{self.group}, deepest level", ALL_LEVELS: self.group}
        return names.get(self.level, f"{self.group} L{self.level}")

    def __str__(self) -> str:
        """Write as ``trained L3: rl-level2 − rl-level1 > 20``, in points, or ``heldout L3, atomic error: …``."""
        plain = (self.metric, self.measure) == (Metric.ACCURACY, CORRECT) or self.metric is Metric.SCALING
        measure = "" if plain else f", {self.measure.replace('_', ' ')}"
        measure += f" against {self.base_measure}" if self.base_measure else ""
        term = f"{self.place}{measure}: {self.model}"
        base = self.base if self.times == 1 else f"{self.times:g} × {self.base}"
        if self.reference:
            return f"{term} − {base} {self.rule}, or as good within half of {' − '.join(self.reference)}"
        difference = f"{term} − {base}" if base else term
        if self.over:
            difference += f", over {self.over[0]} − {self.over[1]},"
        points = f"{100 * self.threshold:g}".replace("-", "−")
        return f"{difference} {self.rule}{'' if self.rule is Rule.WITHIN else ' '}{points}"


# Gates: conditions for a comparison to be decided; otherwise it is not testable.


@dataclass(frozen=True)
class Headroom:
    """The claim needs less than ``ceiling``, and the interval of one of the arms is above ``floor``."""

    ceiling: Fraction
    floor: Fraction


@dataclass(frozen=True)
class Learnt:
    """Evidence that an arm learnt: on its training level, in the first group that was run, it is above ``base`` or
    above ``mastered``. ``level``: the training level; ``levels``: other training levels by arm."""

    results: str
    group: tuple[str, ...]
    base: str
    level: int
    mastered: Fraction
    levels: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Trained:
    """Every arm except ``starts`` was trained: ``least_updates`` with signal in every seed, and minimal shares of
    ``groups`` and ``updates`` with signal over all seeds. The shares are not required of an arm that has ``learnt``."""

    groups: Fraction
    updates: Fraction
    least_updates: int
    starts: tuple[str, ...]
    learnt: Learnt | None = None


@dataclass(frozen=True)
class Requires:
    """A comparison (above its threshold) that must be supported in the same study; ``text`` describes it.

    Missing keys (None) are taken from the claim. Of several groups the first that was run counts. ``only_for`` "no
    effect": required only of claims that deny an effect, unless one is found. ``decided_by`` the interval, or by the
    value alone.
    """

    text: NonEmptyStr
    only_for: Annotated[str, OneOf(("all", "no effect"))] = "all"
    decided_by: Annotated[str, OneOf(("interval", "value"))] = "interval"
    results: str | None = None
    metric: AMetric | None = None  # the metric of results
    group: tuple[str, ...] = ()
    level: int | None = None
    model: str | None = None
    base: str | None = None
    measure: str | None = None
    threshold: float | None = None

    def comparisons(self, claim: Comparison) -> list[Comparison]:
        """Return the comparisons that must be supported for a comparison of a claim, one for each group."""
        keys = ("results", "metric", "level", "model", "base", "measure", "threshold")
        changes = {key: value for key in keys if (value := getattr(self, key)) is not None}
        if claim.rule is Rule.AHEAD:  # the claim's threshold is the margin of a tie
            changes.setdefault("threshold", 0.0)
        plain = replace(claim, rule=Rule.ABOVE, times=1.0, base_measure="", over=(), reference=(), gates=(), **changes)
        return [replace(plain, group=group) for group in self.group or (claim.group,)]


Gate = Headroom | Trained | Requires
KINDS = {"headroom": Headroom, "trained": Trained, "requires": Requires}


@dataclass(frozen=True)
class Claim:
    """A hypothesis: comparisons that must all hold, the paper's statement (``paper``) and its place (``source``).

    The last three fields are only used to read the file: results and gates (by name) of the comparisons, and the claims
    whose comparisons are included.
    """

    name: NonEmptyStr
    text: str
    paper: str = ""
    source: str = ""
    comparisons: tuple[Comparison, ...] = ()
    origin: Annotated[Origin, OneOf(tuple(Origin))] = Origin.OWN
    primary: bool = False  # a main question of the study, in Holm's family
    results: str = "accuracy"
    gates: tuple[str, ...] = ()
    all_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultSet:
    """A set of evaluations that claims refer to by name: its metric, and the script that makes it."""

    metric: AMetric
    script: str


@dataclass(frozen=True)
class ClaimsFile:
    """The claims of one paper, the negative controls, and the results with their figures."""

    results: Mapping[str, ResultSet]
    claims: tuple[Claim, ...]
    controls: tuple[Claim, ...]

    @property
    def by_name(self) -> dict[str, Claim]:
        return {claim.name: claim for claim in (*self.claims, *self.controls)}

    def with_primary(self, names: Collection[str]) -> "ClaimsFile":
        """Return a copy with exactly these claims as primary ones."""
        marked = [replace(claim, primary=claim.name in names) for claim in self.by_name.values()]
        n = len(self.claims)
        return ClaimsFile(self.results, tuple(marked[:n]), tuple(marked[n:]))


def read_claims_file(name: str) -> ClaimsFile:
    """Read a name of ``config/claims`` or a path. UserError, naming file, claim and key, for invalid entries."""
    path = named_yaml(FOLDER, "claims", name)
    content = read_yaml_mapping(path)
    try:
        return validated(_Reader, content).file()
    except UserError as error:
        words = str(error).replace("--help lists them", EXPLAINED)
        raise UserError(f"{path}: {words}") from error


@dataclass
class _Reader:
    """The keys of a file of claims, with unparsed entries."""

    results: dict[str, ResultSet]
    gates: dict[str, Any] = field(default_factory=dict)
    claims: list[Any] = field(default_factory=list)
    controls: list[Any] = field(default_factory=list)

    def file(self) -> ClaimsFile:
        """Parse the entries in order: each may name earlier ones."""
        gates, by_name = dict[str, tuple[Gate, ...]](), dict[str, Claim]()
        for name, entry in self.gates.items():
            where = f"gates.{name}: "
            gates[name] = _named(where, entry, gates) if isinstance(entry, list) else (self.gate(where, entry),)
        for key, entries in (("claims", self.claims), ("controls", self.controls)):
            for number, entry in enumerate(entries, 1):
                claim = self.claim(f"{key}: entry {number}: ", entry, gates, by_name)
                by_name[claim.name] = claim
        claims, n = tuple(by_name.values()), len(self.claims)
        return ClaimsFile(self.results, claims[:n], claims[n:])

    def gate(self, where: str, entry: Any) -> Gate:
        """Parse an entry of ``gates`` that is not a list of other gates."""
        keys = dict(_mapping(where, entry))
        kind = str(keys.pop("kind", ""))
        if kind not in KINDS:
            raise UserError(f"{where}kind={kind}: must be one of {', '.join(KINDS)}")
        if kind == "requires":
            keys = self.with_metric(where, keys)
            keys |= {"group": [keys["group"]]} if isinstance(keys.get("group"), str) else {}
        gate: Gate = validated(KINDS[kind], keys, prefix=where)
        return gate

    def claim(
        self, where: str, entry: Any, gates: Mapping[str, tuple[Gate, ...]], earlier: Mapping[str, Claim]
    ) -> Claim:
        entry = _mapping(where, entry)
        where = f"claim {entry['name']}: " if "name" in entry else where
        claim = validated(Claim, {**entry, "comparisons": []}, prefix=where)
        if claim.name in earlier:
            raise UserError(f"{where}given twice; give each claim once")
        if "paper" not in entry and claim.origin is not Origin.OWN:
            raise UserError(f"{where}no paper: give what the paper states")
        comparisons, gates_of_claim = list[Comparison](), _named(where, claim.gates, gates)
        for name in claim.all_of:
            if name not in earlier:
                raise UserError(f"{where}all_of: no claim {name} before this one")
            comparisons += earlier[name].comparisons
        listed = entry.get("comparisons", [])
        for item in listed if isinstance(listed, list) else [listed]:
            keys = {"results": claim.results, **_mapping(f"{where}comparisons: ", item)}
            comparisons += self.comparisons(where, keys, gates_of_claim)
        if not comparisons:
            raise UserError(f"{where}nothing is compared; give comparisons: or all_of:")
        return replace(claim, comparisons=tuple(comparisons))

    def comparisons(self, where: str, keys: Mapping[str, Any], gates: tuple[Gate, ...]) -> Iterator[Comparison]:
        """Yield one comparison for each group, level, model and base in ``keys``."""
        keys = self.with_metric(where, keys)
        axes = {key: keys[key] if isinstance(keys[key], list) else [keys[key]] for key in AXES if key in keys}
        for values in product(*axes.values()):
            comparison = validated(Comparison, {**keys, **dict(zip(axes, values, strict=True))}, prefix=where)
            required = [gate.comparisons(comparison) for gate in gates if isinstance(gate, Requires)]
            for part in (comparison, *chain(*required)):
                _check(where, part)
            yield replace(comparison, gates=gates)

    def with_metric(self, where: str, keys: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of a comparison with the metric of its results, and words for levels as numbers."""
        for key in {"metric", "gates"}.intersection(keys):
            raise UserError(f"{where}{key}: not a key of a comparison; leave it out")
        complete = dict(keys)
        if "results" in keys:
            if (name := str(keys["results"])) not in self.results:
                raise UserError(f"{where}results={name}: must be one of {', '.join(self.results)}")
            complete["metric"] = self.results[name].metric
        if isinstance(level := keys.get("level"), str):
            complete["level"] = LEVELS.get(level, level)
        return complete


def _mapping(where: str, entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise UserError(f"{where}{entry}: not a mapping of keys to values")
    return entry


def _named(where: str, entries: Sequence[Any], gates: Mapping[str, tuple[Gate, ...]]) -> tuple[Gate, ...]:
    """Return the gates of these names, without repetitions."""
    names = [str(name) for name in entries]
    for name in names:
        if name not in gates:
            raise UserError(f"{where}no gate {name}; {choices(name, gates)}")
    return tuple(dict.fromkeys(gate for name in names for gate in gates[name]))


def _check(where: str, comparison: Comparison) -> None:
    """Raise UserError for a measure that the metric lacks, and for an invalid ``over`` or ``reference``."""
    over, measure, base_measure = comparison.over, comparison.measure, comparison.base_measure
    if over and (len(over) != 2 or not comparison.base or comparison.times != 1 or base_measure):
        raise UserError(
            f"{where}over: give a model and its base, besides model and base, without times or base_measure"
        )
    if comparison.rule is Rule.AHEAD or comparison.reference:
        extra = over or comparison.times != 1 or base_measure or comparison.threshold
        if comparison.rule is not Rule.AHEAD or len(comparison.reference) != 2 or not comparison.base or extra:
            raise UserError(f"{where}rule=ahead: give base and reference: [MODEL, BASE], and no other key of a margin")
    if is_paired(measure):
        plain = comparison.rule in (Rule.ABOVE, Rule.AT_MOST) and comparison.times == 1
        if not plain or not comparison.base or over or base_measure:
            raise UserError(f"{where}measure={measure}: compares model and base; give both, with the rule > or ≤")
    metric = comparison.metric
    for name in (measure, base_measure) if base_measure else (measure,):
        if not is_claimed(metric, name):
            raise UserError(f"{where}measure={name}: for {metric} it must be one of {', '.join(CLAIMED[metric])}")
