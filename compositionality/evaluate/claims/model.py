"""What a claim is: comparisons against thresholds, with gates; read from ``config/claims/NAME.yaml``."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from compositionality.errors import UserError
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
EXPLAINED = "config/claims/composition.yaml explains the keys"
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


class Strict:
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Comparison(Strict):
    """metric(model) − times × metric(base) at one level, against a threshold: the smallest effect that counts.

    Shares, 0.2 = 20 points. ``over``, a model and its base: by how much more than that pair differs. Without a ``base``
    the model's own figure is compared with the threshold. ``part``: a measure (evaluate/measures.py); ``base_part``: of
    the base, where it is another one. ``results`` names the evaluations that hold the figures.
    """

    group: str
    level: Annotated[int, BeforeValidator(lambda value: LEVELS.get(value, value) if isinstance(value, str) else value)]
    model: str
    base: str = ""
    rule: Annotated[Rule, BeforeValidator(lambda value: Rule._missing_(value) or value)] = Rule.ABOVE
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

    @property
    def place(self) -> str:
        """``trained L3``; ``igsm, deepest level``."""
        names = {DEEPEST: f"{self.group}, deepest level", ALL_LEVELS: self.group}
        return names.get(self.level, f"{self.group} L{self.level}")

    def __str__(self) -> str:
        """``trained L3: rl-level2 − rl-level1 > 20``, in points; ``heldout L3, atomic error: …``."""
        plain = (self.metric, self.part) == (Metric.ACCURACY, CORRECT) or self.metric is Metric.SCALING
        part = "" if plain else f", {self.part.replace('_', ' ')}"
        part += f" against {self.base_part}" if self.base_part else ""
        what = f"{self.place}{part}: {self.model}"
        base = self.base if self.times == 1 else f"{self.times:g} × {self.base}"
        if self.rule in (Rule.APART, Rule.EVERY_SEED):
            return f"{what} > {base}, {self.rule}"
        difference = f"{what} − {base}" if base else what
        if self.over:
            difference += f", over {self.over[0]} − {self.over[1]},"
        return f"{difference} {self.rule}{'' if self.rule is Rule.WITHIN else ' '}{100 * self.threshold:g}"


# Gates: what must hold for a comparison to be decided; else it is not testable.


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
class Shown(Strict):
    """What must hold in the same study, ``text`` in a phrase: of ``comparisons`` the first that was run."""

    kind: Literal["shown"]
    text: Annotated[str, Field(min_length=1)]
    comparisons: tuple[Comparison, ...]


Gate = Headroom | Trained | Sensitive | Kept | Shown


@dataclass(frozen=True)
class Claim(Strict):
    """A hypothesis: comparisons that must all hold, what the paper says (``paper``) and where (``source``).

    The last three are keys of the file alone, for the comparisons: their results, their gates by name, and the claims
    whose comparisons come first.
    """

    name: str
    text: str
    paper: str = ""
    source: str = ""
    comparisons: tuple[Comparison, ...] = ()
    origin: Origin = Origin.OWN
    primary: bool = False  # of the few that a study is made for: Holm's family
    results: str = "accuracy"
    gates: tuple[str, ...] = ()
    all_of: tuple[str, ...] = ()

    @property
    def hypothesis(self) -> str:
        """``H3`` for H3 and its variants, ``control`` for a negative control."""
        return self.name.partition("-")[0]


@dataclass(frozen=True)
class ResultSet(Strict):
    """A set of evaluations that claims refer to by name: what it measures, and the script that makes it."""

    metric: Metric
    script: str


@dataclass(frozen=True)
class ClaimsFile:
    """The claims of one paper, the negative controls, and the results that hold their figures."""

    results: Mapping[str, ResultSet]
    claims: tuple[Claim, ...]
    controls: tuple[Claim, ...]

    def with_primary(self, names: Collection[str]) -> "ClaimsFile":
        """Return the same with the claims of these names as the primary ones. UserError for one without a p-value."""
        claims, controls = (
            tuple(_with_p_value(replace(claim, primary=claim.name in names)) for claim in part)
            for part in (self.claims, self.controls)
        )
        return replace(self, claims=claims, controls=controls)


@dataclass
class _Entries(Strict):
    """The keys of a file of claims. An entry of ``gates`` that is a list stands for the gates that it names."""

    results: dict[str, ResultSet]
    gates: dict[str, Any] = field(default_factory=dict)
    claims: list[Any] | None = None
    controls: list[Any] | None = None


def read_claims_file(name: str) -> ClaimsFile:
    """Read a name of ``config/claims`` or a path. UserError that names file, claim and key for what cannot be read."""
    path = named_yaml(FOLDER, "claims", name)
    content = read_yaml_mapping(path)
    try:
        entries: _Entries = _parsed(_Entries, content)
        reader = _Reader(entries.results)
        for key, entry in entries.gates.items():
            reader.gates[key] = reader.read_gates(f"gates.{key}", entry)
        claims, controls = (
            tuple(reader.read_claim(f"{part}: entry {number}", entry) for number, entry in enumerate(listed or (), 1))
            for part, listed in (("claims", entries.claims), ("controls", entries.controls))
        )
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return ClaimsFile(entries.results, claims, controls)


@cache
def _adapter(schema: Any) -> TypeAdapter[Any]:
    return TypeAdapter(schema)


def _parsed(schema: Any, content: Any, where: str = "") -> Any:
    """Return ``content`` as ``schema``. UserError in one line for the first key that does not fit."""
    try:
        return _adapter(schema).validate_json(json.dumps(content, default=str))
    except ValidationError as error:
        faults = error.errors(include_url=False)
    fault = next((one for one in faults if one["type"] == "unexpected_keyword_argument"), faults[0])
    *place, key = ("", *fault["loc"])
    steps = [where, *(str(step) for step in place if not isinstance(step, int) and step != "comparisons")]
    if fault["type"] == "unexpected_keyword_argument":
        steps.append(f"unknown key {key}; {EXPLAINED}")
    elif fault["type"] == "missing":
        steps.append(f"no {key}:")
    else:
        value = "" if isinstance(fault["input"], dict | list) else f"{fault['input']!r}: "
        steps += ["" if isinstance(key, int) else str(key), f"{value}{fault['msg']}"]
    raise UserError(": ".join(filter(None, steps)))


@dataclass
class _Reader:
    """Reads entries of a file one after another; ``gates`` and ``claims`` by name are those that were read."""

    results: Mapping[str, ResultSet]
    gates: dict[str, tuple[Gate, ...]] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)

    def read_gates(self, where: str, entry: Any) -> tuple[Gate, ...]:
        """Return the gates that an entry names or is."""
        if isinstance(entry, list | tuple):
            names = [str(name) for name in entry]
            for name in names:
                if name not in self.gates:
                    raise UserError(f"{where}: no gate {name}; there are: {', '.join(self.gates) or 'none'}")
            return tuple(dict.fromkeys(gate for name in names for gate in self.gates[name]))
        if isinstance(entry, dict) and entry.get("kind") == "shown":
            own = {key: value for key, value in entry.items() if key in ("kind", "text")}
            compared = {key: value for key, value in entry.items() if key not in (*own, "results")}
            entry = {**own, "comparisons": self.expand(where, compared, entry.get("results", "accuracy"))}
        gate = _parsed(Annotated[Gate, Field(discriminator="kind")], entry, where)
        for comparison in gate.comparisons if isinstance(gate, Shown) else ():
            _check(where, comparison)
        return (gate,)

    def read_claim(self, where: str, entry: Any) -> Claim:
        """Return an entry of claims or controls as a claim."""
        if isinstance(entry, dict):
            where = f"claim {entry['name']}" if "name" in entry else where
            name, listed = entry.get("results", "accuracy"), entry.get("comparisons")
            if isinstance(listed, list):
                entry = {**entry, "comparisons": [one for each in listed for one in self.expand(where, each, name)]}
        claim: Claim = _parsed(Claim, entry, where)
        if claim.name in self.claims:
            raise UserError(f"{where}: there twice")
        if "paper" not in entry and claim.origin is not Origin.OWN:
            raise UserError(f"{where}: no paper:")
        comparisons: list[Comparison] = []
        for name in claim.all_of:
            if name not in self.claims:
                raise UserError(f"{where}: all_of: no claim {name} before this one")
            comparisons += self.claims[name].comparisons
        gates = self.read_gates(where, claim.gates)
        for comparison in claim.comparisons:
            _check(where, comparison)
            comparisons.append(replace(comparison, gates=gates))
        if not comparisons:
            raise UserError(f"{where}: nothing is compared; give comparisons: or all_of:")
        self.claims[claim.name] = _with_p_value(replace(claim, comparisons=tuple(comparisons)))
        return self.claims[claim.name]

    def expand(self, where: str, entry: Any, name: Any) -> list[Any]:
        """Return one comparison for each group, level, model and base that an entry lists, the last varying fastest."""
        if not isinstance(entry, dict):
            return [entry]
        if str(name) not in self.results:
            raise UserError(f"{where}: results {name} unknown; known: {', '.join(self.results)}")
        given = {"metric": self.results[name].metric, "results": name}
        if unknown := [key for key in entry if key in (*given, "gates")]:
            raise UserError(f"{where}: unknown key {unknown[0]}; {EXPLAINED}")
        axes = {key: entry[key] for key in ("group", "level", "model", "base") if key in entry}
        lists = [value if isinstance(value, list) else [value] for value in axes.values()]
        return [{**entry, **dict(zip(axes, values, strict=True)), **given} for values in product(*lists)]


def _check(where: str, comparison: Comparison) -> None:
    """Raise UserError for a part that the metric lacks, and an ``over`` that means nothing."""
    over, base, part = comparison.over, comparison.base, comparison.part
    if over and (len(over) != 2 or not base or comparison.times != 1 or comparison.base_part):
        raise UserError(f"{where}: over: give a model and its base, beside model and base, without times and base_part")
    known, fits = {
        Metric.ACCURACY: ((CORRECT, COMPOSED), part in (CORRECT, COMPOSED)),
        Metric.INFLUENCE: ((MIXED, *QUERY_VALUES), part in (MIXED, *QUERY_VALUES)),
        Metric.PASS_AT_K: (
            (CORRECT, ALL_SAMPLES, GROWTH, "pass@1", "pass@2", "…"),
            all(one in ("", CORRECT) or is_pass_at_k(one) for one in (part, comparison.base_part)),
        ),
    }.get(comparison.metric, ((), True))
    if not fits:
        raise UserError(f"{where}: part: {part!r} is not one of {', '.join(known)}, the parts of {comparison.metric}")


def _with_p_value(claim: Claim) -> Claim:
    """Return the claim. UserError if it is primary and a rule of it has no p-value."""
    rules = [one.rule for one in claim.comparisons if one.rule in (Rule.APART, Rule.EVERY_SEED)]
    if claim.primary and rules:
        raise UserError(f"claim {claim.name}: primary: the rule {rules[0]} has no p-value; choose >, ≤ or within")
    return claim
