"""What a claim is: comparisons against thresholds, with gates; read from ``config/claims/NAME.yaml``."""

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
from compositionality.validation import validated
from compositionality.yaml_files import named_yaml, read_yaml_mapping

FOLDER = Path(__file__).parents[2] / "config" / "claims"
LEVELS = {"deepest": DEEPEST, "all": ALL_LEVELS}  # words for levels
AXES = ("group", "level", "model", "base")
"""Keys of a comparison that may hold a list: one comparison for each entry, the last key varying fastest."""
EXPLAINED = "config/claims/composition.yaml explains the keys"


class Rule(StrEnum):
    """How an estimate is compared with its threshold."""

    ABOVE = ">"
    AT_MOST = "≤"
    WITHIN = "within ±"
    AHEAD = "ahead"  # above 0; as good within ± half of the gain of ``reference``; else undecided

    @classmethod
    def _missing_(cls, value: object) -> "Rule | None":
        return {"<=": cls.AT_MOST, "within": cls.WITHIN}.get(str(value))


EITHER_SIDE = (Rule.WITHIN, Rule.AHEAD)  # rules whose threshold lies on both sides of 0; their p-values are two-sided


class Origin(StrEnum):
    """Whose claim it is."""

    PAPER = "paper"  # the paper states it
    VARIANT = "variant"  # another form of one of the paper's: another group, another budget, stronger, weaker
    OWN = "own"  # of who runs the study; never counted as the paper's


AMetric = Annotated[Metric, OneOf(tuple(Metric))]


@dataclass(frozen=True)
class Comparison:
    """measure(model) − times × measure(base) at one level, against a threshold: the smallest effect that counts.

    Shares, 0.2 = 20 points. ``over``, a model and its base: by how much more than that pair differs. Without a ``base``
    the model's own figure is compared with the threshold. ``reference``, of the rule ``ahead``: a model and its base,
    half of whose difference is the threshold. ``measure``: a name of evaluate/table.py
    (``is_paired``: of both); ``base_measure``: of the base, where it is another one. ``results`` names the evaluations.
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
        """The models that it needs."""
        return (*((self.model, self.base) if self.base else (self.model,)), *self.over, *self.reference)

    @property
    def denies(self) -> bool:
        """True if it says that there is no effect."""
        return self.rule in (Rule.AT_MOST, Rule.WITHIN)

    @property
    def place(self) -> str:
        """``trained L3``; ``igsm, deepest level``."""
        names = {DEEPEST: f"{self.group}, deepest level", ALL_LEVELS: self.group}
        return names.get(self.level, f"{self.group} L{self.level}")

    def __str__(self) -> str:
        """``trained L3: rl-level2 − rl-level1 > 20``, in points; ``heldout L3, atomic error: …``."""
        plain = (self.metric, self.measure) == (Metric.ACCURACY, CORRECT) or self.metric is Metric.SCALING
        measure = "" if plain else f", {self.measure.replace('_', ' ')}"
        measure += f" against {self.base_measure}" if self.base_measure else ""
        what = f"{self.place}{measure}: {self.model}"
        base = self.base if self.times == 1 else f"{self.times:g} × {self.base}"
        if self.reference:
            return f"{what} − {base} {self.rule}, or as good within half of {' − '.join(self.reference)}"
        difference = f"{what} − {base}" if base else what
        if self.over:
            difference += f", over {self.over[0]} − {self.over[1]},"
        points = f"{100 * self.threshold:g}".replace("-", "−")
        return f"{difference} {self.rule}{'' if self.rule is Rule.WITHIN else ' '}{points}"


# Gates: what must hold for a comparison to be decided; else it is not testable.


@dataclass(frozen=True)
class Headroom:
    """What the claim asks for lies below ``ceiling``, and the interval of one of the arms lies above ``floor``."""

    ceiling: Fraction
    floor: Fraction


@dataclass(frozen=True)
class Learnt:
    """What shows that an arm learnt, on the first group that was run: more than ``base`` on the level that it trained
    on, or more than ``mastered``. ``levels``: by arm, where it is another than ``level``."""

    results: str
    group: tuple[str, ...]
    base: str
    level: int
    mastered: Fraction
    levels: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Trained:
    """Every arm but ``starts`` was trained: the least number of updates with signal in any seed, and the least shares
    of groups and of updates with signal in all seeds together, these two only where it is not shown to have
    ``learnt``."""

    groups: Fraction
    updates: Fraction
    least_updates: int
    starts: tuple[str, ...]
    learnt: Learnt | None = None


@dataclass(frozen=True)
class Requires:
    """A comparison, above its threshold, that must be supported in the same study: ``text`` says in a phrase what.

    Keys that are left out (None) are those of the claim. Of several groups the first that was run counts. ``only_for``
    claims of ``no effect``: not asked of others, nor where an effect is found. ``decided_by`` the interval, or by the
    value alone.
    """

    text: NonEmptyStr
    only_for: Annotated[str, OneOf(("all", "no effect"))] = "all"
    decided_by: Annotated[str, OneOf(("interval", "value"))] = "interval"
    results: str | None = None
    metric: AMetric | None = None  # of results
    group: tuple[str, ...] = ()
    level: int | None = None
    model: str | None = None
    base: str | None = None
    measure: str | None = None
    threshold: float | None = None

    def comparisons(self, claim: Comparison) -> list[Comparison]:
        """Return what must be supported for a comparison of a claim, for each of the groups."""
        keys = ("results", "metric", "level", "model", "base", "measure", "threshold")
        given = {key: value for key in keys if (value := getattr(self, key)) is not None}
        if claim.rule is Rule.AHEAD:  # whose margin is that of being as good
            given.setdefault("threshold", 0.0)
        plain = replace(claim, rule=Rule.ABOVE, times=1.0, base_measure="", over=(), reference=(), gates=(), **given)
        return [replace(plain, group=group) for group in self.group or (claim.group,)]


Gate = Headroom | Trained | Requires
KINDS = {"headroom": Headroom, "trained": Trained, "requires": Requires}


@dataclass(frozen=True)
class Claim:
    """A hypothesis: comparisons that must all hold, what the paper says (``paper``) and where (``source``).

    The last three are keys of the file alone, for the comparisons: their results, their gates by name, and the claims
    whose comparisons come first.
    """

    name: NonEmptyStr
    text: str
    paper: str = ""
    source: str = ""
    comparisons: tuple[Comparison, ...] = ()
    origin: Annotated[Origin, OneOf(tuple(Origin))] = Origin.OWN
    primary: bool = False  # of the few that a study is made for: Holm's family
    results: str = "accuracy"
    gates: tuple[str, ...] = ()
    all_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultSet:
    """A set of evaluations that claims refer to by name: what it measures, and the script that makes it."""

    metric: AMetric
    script: str


@dataclass(frozen=True)
class ClaimsFile:
    """The claims of one paper, the negative controls, and the results that hold their figures."""

    results: Mapping[str, ResultSet]
    claims: tuple[Claim, ...]
    controls: tuple[Claim, ...]

    @property
    def by_name(self) -> dict[str, Claim]:
        """Claims and controls."""
        return {claim.name: claim for claim in (*self.claims, *self.controls)}

    def with_primary(self, names: Collection[str]) -> "ClaimsFile":
        """Return the same with the claims of these names as the primary ones."""
        marked = [replace(claim, primary=claim.name in names) for claim in self.by_name.values()]
        n = len(self.claims)
        return ClaimsFile(self.results, tuple(marked[:n]), tuple(marked[n:]))


def read_claims_file(name: str) -> ClaimsFile:
    """Read a name of ``config/claims`` or a path. UserError that names file, claim and key for what cannot be read."""
    path = named_yaml(FOLDER, "claims", name)
    content = read_yaml_mapping(path)
    try:
        return validated(_Reader, content).file()
    except UserError as error:
        words = str(error).replace("--help lists them", EXPLAINED)
        raise UserError(f"{path}: {words}") from error


@dataclass
class _Reader:
    """The keys of a file of claims, entries as they are written."""

    results: dict[str, ResultSet]
    gates: dict[str, Any] = field(default_factory=dict)
    claims: list[Any] = field(default_factory=list)
    controls: list[Any] = field(default_factory=list)

    def file(self) -> ClaimsFile:
        """Read the entries one after another: each may name those before it."""
        gates, known = dict[str, tuple[Gate, ...]](), dict[str, Claim]()
        for name, entry in self.gates.items():
            where = f"gates.{name}: "
            gates[name] = _named(where, entry, gates) if isinstance(entry, list) else (self.gate(where, entry),)
        for key, entries in (("claims", self.claims), ("controls", self.controls)):
            for number, entry in enumerate(entries, 1):
                claim = self.claim(f"{key}: entry {number}: ", entry, gates, known)
                known[claim.name] = claim
        claims, n = tuple(known.values()), len(self.claims)
        return ClaimsFile(self.results, claims[:n], claims[n:])

    def gate(self, where: str, entry: Any) -> Gate:
        """Return an entry of ``gates`` that is no list of other gates."""
        keys = dict(_mapping(where, entry))
        kind = str(keys.pop("kind", ""))
        if kind not in KINDS:
            raise UserError(f"{where}kind={kind}: must be one of {', '.join(KINDS)}")
        if kind == "requires":
            keys = self.with_metric(where, keys)
            keys |= {"group": [keys["group"]]} if isinstance(keys.get("group"), str) else {}
        gate: Gate = validated(KINDS[kind], keys, prefix=where)
        return gate

    def claim(self, where: str, entry: Any, gates: Mapping[str, tuple[Gate, ...]], known: Mapping[str, Claim]) -> Claim:
        """Return an entry of claims or controls."""
        entry = _mapping(where, entry)
        where = f"claim {entry['name']}: " if "name" in entry else where
        claim = validated(Claim, {**entry, "comparisons": []}, prefix=where)
        if claim.name in known:
            raise UserError(f"{where}there twice")
        if "paper" not in entry and claim.origin is not Origin.OWN:
            raise UserError(f"{where}no paper:")
        comparisons, gates_of_claim = list[Comparison](), _named(where, claim.gates, gates)
        for name in claim.all_of:
            if name not in known:
                raise UserError(f"{where}all_of: no claim {name} before this one")
            comparisons += known[name].comparisons
        listed = entry.get("comparisons", [])
        for compared in listed if isinstance(listed, list) else [listed]:
            keys = {"results": claim.results, **_mapping(f"{where}comparisons: ", compared)}
            comparisons += self.comparisons(where, keys, gates_of_claim)
        if not comparisons:
            raise UserError(f"{where}nothing is compared; give comparisons: or all_of:")
        return replace(claim, comparisons=tuple(comparisons))

    def comparisons(self, where: str, keys: Mapping[str, Any], gates: tuple[Gate, ...]) -> Iterator[Comparison]:
        """Yield one comparison for each group, level, model and base that ``keys`` list."""
        keys = self.with_metric(where, keys)
        axes = {key: keys[key] if isinstance(keys[key], list) else [keys[key]] for key in AXES if key in keys}
        for values in product(*axes.values()):
            comparison = validated(Comparison, {**keys, **dict(zip(axes, values, strict=True))}, prefix=where)
            required = [gate.comparisons(comparison) for gate in gates if isinstance(gate, Requires)]
            for checked in (comparison, *chain(*required)):
                _check(where, checked)
            yield replace(comparison, gates=gates)

    def with_metric(self, where: str, keys: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of a comparison with the metric of its results, words for levels as numbers."""
        for key in {"metric", "gates"}.intersection(keys):
            raise UserError(f"{where}{key}: no key of a comparison")
        made = dict(keys)
        if "results" in keys:
            if (name := str(keys["results"])) not in self.results:
                raise UserError(f"{where}results={name}: must be one of {', '.join(self.results)}")
            made["metric"] = self.results[name].metric
        if isinstance(level := keys.get("level"), str):
            made["level"] = LEVELS.get(level, level)
        return made


def _mapping(where: str, entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise UserError(f"{where}{entry}: not a mapping of keys to values")
    return entry


def _named(where: str, entries: Sequence[Any], gates: Mapping[str, tuple[Gate, ...]]) -> tuple[Gate, ...]:
    """Return the gates of these names, each once."""
    names = [str(name) for name in entries]
    for name in names:
        if name not in gates:
            raise UserError(f"{where}no gate {name}; there are: {', '.join(gates) or 'none'}")
    return tuple(dict.fromkeys(gate for name in names for gate in gates[name]))


def _check(where: str, comparison: Comparison) -> None:
    """Raise UserError for a measure that the metric lacks, and an ``over`` or ``reference`` that means nothing."""
    over, measure, base_measure = comparison.over, comparison.measure, comparison.base_measure
    if over and (len(over) != 2 or not comparison.base or comparison.times != 1 or base_measure):
        raise UserError(f"{where}over: give a model and its base, beside model and base, without times or base_measure")
    if comparison.rule is Rule.AHEAD or comparison.reference:
        others = over or comparison.times != 1 or base_measure or comparison.threshold
        if comparison.rule is not Rule.AHEAD or len(comparison.reference) != 2 or not comparison.base or others:
            raise UserError(
                f"{where}rule=ahead: give it base and reference: [MODEL, BASE], and no other key of a margin"
            )
    if is_paired(measure):
        plain = comparison.rule in (Rule.ABOVE, Rule.AT_MOST) and comparison.times == 1
        if not plain or not comparison.base or over or base_measure:
            raise UserError(f"{where}measure={measure}: is of model and base; give both, with the rule > or ≤ alone")
    metric = comparison.metric
    for name in (measure, base_measure) if base_measure else (measure,):
        if not is_claimed(metric, name):
            raise UserError(f"{where}measure={name}: of {metric}, must be one of {', '.join(CLAIMED[metric])}")
