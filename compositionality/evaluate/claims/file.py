"""Claims as data: ``config/claims/NAME.yaml``, checked by pydantic, as claims with their comparisons and gates."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from compositionality.errors import UserError
from compositionality.evaluate.claims.model import (
    Claim,
    Comparison,
    Gate,
    Headroom,
    Kept,
    Origin,
    Rule,
    Sensitive,
    Shown,
    Strict,
    Trained,
)
from compositionality.evaluate.measures import is_pass_at_k
from compositionality.types import (
    ALL_LEVELS,
    ALL_SAMPLES,
    COMPOSED,
    CORRECT,
    DEEPEST,
    GROWTH,
    MIXED,
    QUERY_VALUES,
    Metric,
)
from compositionality.yaml_files import named_yaml, read_yaml_mapping

FOLDER = Path(__file__).parents[2] / "config" / "claims"
LEVELS = {"deepest": DEEPEST, "all": ALL_LEVELS}
"""Words for levels."""


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _levels(value: Any) -> Any:
    return [LEVELS.get(one, one) if isinstance(one, str) else one for one in _listed(value)]


def _rule(value: Any) -> Any:
    return Rule._missing_(value) or value


Names = Annotated[list[str], BeforeValidator(_listed)]


@dataclass
class ComparisonEntry(Strict):
    """One comparison for each group, level, model and base that it lists, the last varying fastest."""

    group: Names
    level: Annotated[list[int], BeforeValidator(_levels)]
    model: Names
    base: Names = field(default_factory=lambda: [""])
    part: str = ""
    base_part: str = ""
    rule: Annotated[Rule, BeforeValidator(_rule)] = Rule.ABOVE
    threshold: float = 0.0
    times: float = 1.0
    over: list[str] = field(default_factory=list)


@dataclass
class ShownEntry(ComparisonEntry):
    """A gate: comparisons of which the first that was run must be supported."""

    kind: Literal["shown"] = "shown"
    text: Annotated[str, Field(min_length=1)] = field(kw_only=True)
    results: str = "accuracy"


@dataclass
class ClaimEntry(Strict):
    """A claim."""

    name: str
    text: str
    origin: Origin = Origin.OWN
    paper: str | None = None
    source: str = ""
    results: str = "accuracy"
    comparisons: list[ComparisonEntry] = field(default_factory=list)
    all_of: list[str] = field(default_factory=list)
    gates: list[str] = field(default_factory=list)
    primary: bool = False


@dataclass(frozen=True)
class ResultSet(Strict):
    """A set of evaluations that claims refer to by name: what it measures, and the script that makes it."""

    metric: Metric
    script: str


@dataclass
class ClaimsEntries(Strict):
    """The keys of a file of claims. An entry of ``gates`` that is a list stands for the gates that it names."""

    results: dict[str, ResultSet]
    gates: dict[str, Any] = field(default_factory=dict)
    claims: list[ClaimEntry] | None = None
    controls: list[ClaimEntry] | None = None


GateEntry = Annotated[Headroom | Trained | Sensitive | Kept | ShownEntry, Field(discriminator="kind")]


@dataclass(frozen=True)
class ClaimsFile:
    """The claims of one paper, the negative controls, and the results that hold their figures."""

    results: Mapping[str, ResultSet]
    claims: tuple[Claim, ...]
    controls: tuple[Claim, ...]

    def with_primary(self, names: Collection[str]) -> "ClaimsFile":
        """The same with the claims of these names as the primary ones. UserError for one without a p-value."""
        claims, controls = (
            tuple(_checked(replace(claim, primary=claim.name in names)) for claim in part)
            for part in (self.claims, self.controls)
        )
        return replace(self, claims=claims, controls=controls)


def read_claims_file(name: str) -> ClaimsFile:
    """Read a name of ``config/claims`` or a path. UserError that names file, claim and key for what cannot be read."""
    path = named_yaml(FOLDER, "claims", name)
    content = read_yaml_mapping(path)
    try:
        entries: ClaimsEntries = _parsed(ClaimsEntries, content, content)
        gates: dict[str, tuple[Gate, ...]] = {}
        for key, entry in entries.gates.items():
            gates[key] = _gates(f"gates.{key}", entry, gates, entries.results)
        known: dict[str, Claim] = {}
        claims, controls = (
            tuple(_claims(part or (), gates, entries.results, known)) for part in (entries.claims, entries.controls)
        )
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return ClaimsFile(entries.results, claims, controls)


def _parsed(schema: Any, content: Any, whole: Mapping[str, Any], where: str = "") -> Any:
    """UserError in one line for the first key that does not fit: a claim by its name, the value, what is needed."""
    try:
        return TypeAdapter(schema).validate_json(json.dumps(content, default=str))
    except ValidationError as error:
        unknown = "unexpected_keyword_argument"
        first = sorted(error.errors(include_url=False), key=lambda one: one["type"] != unknown)[0]
    *place, key = [where, *first["loc"]] if where else first["loc"]
    steps = [str(step) for step in place if not isinstance(step, int) and step != "comparisons"]
    if len(first["loc"]) > 1 and first["loc"][0] in ("claims", "controls") and isinstance(whole[first["loc"][0]], list):
        entry = whole[first["loc"][0]][int(first["loc"][1])]
        named = isinstance(entry, dict) and "name" in entry
        steps[0] = f"claim {entry['name']}" if named else f"{steps[0]}: entry {int(first['loc'][1]) + 1}"
    explained = f"unknown key {key}; config/claims/composition.yaml explains the keys"
    told = {unknown: explained, "missing": f"no {key}:"}.get(first["type"])
    value = first["input"]
    own = [] if isinstance(key, int) or told else [str(key)]
    told = told or f"{f'{value!r}: ' if not isinstance(value, dict | list) else ''}{first['msg']}"
    raise UserError(": ".join([*steps, *own, told]))


def _gates(
    where: str, entry: Any, known: Mapping[str, tuple[Gate, ...]], results: Mapping[str, ResultSet]
) -> tuple[Gate, ...]:
    """The gates that an entry of a file names or is."""
    if isinstance(entry, list):
        for name in entry:
            if name not in known:
                raise UserError(f"{where}: no gate {name}; there are: {', '.join(known) or 'none'}")
        return tuple(dict.fromkeys(gate for name in entry for gate in known[name]))
    gate = _parsed(GateEntry, entry, {}, where)
    if isinstance(gate, ShownEntry):
        return (Shown(gate.text, tuple(_comparisons(where, gate, gate.results, results))),)
    return (gate,)


def _claims(
    entries: Sequence[ClaimEntry],
    gates: Mapping[str, tuple[Gate, ...]],
    results: Mapping[str, ResultSet],
    known: dict[str, Claim],
) -> Iterator[Claim]:
    """``known`` collects the claims by name, for ``all_of``."""
    for entry in entries:
        where = f"claim {entry.name}"
        if entry.name in known:
            raise UserError(f"{where}: there twice")
        if entry.paper is None and entry.origin is not Origin.OWN:
            raise UserError(f"{where}: no paper:")
        comparisons: list[Comparison] = []
        for other in entry.all_of:
            if other not in known:
                raise UserError(f"{where}: all_of: no claim {other} before this one")
            comparisons += known[other].comparisons
        own = _gates(where, entry.gates, gates, results)
        for comparison in entry.comparisons:
            comparisons += _comparisons(where, comparison, entry.results, results, own)
        if not comparisons:
            raise UserError(f"{where}: nothing is compared; give comparisons: or all_of:")
        texts = (entry.name, entry.text, entry.paper or "", entry.source)
        known[entry.name] = _checked(Claim(*texts, tuple(comparisons), entry.origin, entry.primary))
        yield known[entry.name]


def _checked(claim: Claim) -> Claim:
    without = [one.rule for one in claim.comparisons if one.rule in (Rule.APART, Rule.EVERY_SEED)]
    if claim.primary and without:
        raise UserError(f"claim {claim.name}: primary: the rule {without[0]} has no p-value; choose >, ≤ or within")
    return claim


def _comparisons(
    where: str, entry: ComparisonEntry, name: str, results: Mapping[str, ResultSet], gates: tuple[Gate, ...] = ()
) -> Iterator[Comparison]:
    if name not in results:
        raise UserError(f"{where}: results {name} unknown; known: {', '.join(results)}")
    if entry.over and (len(entry.over) != 2 or entry.base == [""] or entry.times != 1 or entry.base_part):
        raise UserError(f"{where}: over: give a model and its base, beside model and base, without times and base_part")
    metric = results[name].metric
    part = entry.part or CORRECT
    known = {
        Metric.ACCURACY: (part in (CORRECT, COMPOSED), f"{CORRECT}, {COMPOSED}"),
        Metric.PASS_AT_K: (
            all(is_pass_at_k(one) for one in (entry.part or ALL_SAMPLES, entry.base_part or ALL_SAMPLES)),
            f"{ALL_SAMPLES}, {GROWTH}, pass@1, pass@2, …",
        ),
        Metric.INFLUENCE: (part in (MIXED, *QUERY_VALUES), ", ".join((MIXED, *QUERY_VALUES))),
    }.get(metric, (True, ""))
    if not known[0]:
        raise UserError(f"{where}: part: {entry.part!r} is not one of {known[1]}, the parts of {metric}")
    for group, level, model, base in product(entry.group, entry.level, entry.model, entry.base):
        yield Comparison(
            group, level, model, base, entry.rule, entry.threshold, entry.times, metric, part, name,
            entry.base_part, tuple(entry.over), gates,
        )  # fmt: skip
