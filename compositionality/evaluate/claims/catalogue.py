"""Claims as data: ``config/claims/NAME.yaml`` read into ``types.Claim``, and comparisons in words."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from compositionality.errors import UserError
from compositionality.evaluate.claims.fields import check_keys, named, one_of, share, shown, typed
from compositionality.evaluate.measures import is_pass_at_k
from compositionality.gate_types import Gate, Headroom, Kept, Sensitive, Shown, Trained
from compositionality.types import (
    ALL_LEVELS,
    ALL_SAMPLES,
    COMPOSED,
    CORRECT,
    DEEPEST,
    GROWTH,
    MIXED,
    QUERY_VALUES,
    Claim,
    Comparison,
    Metric,
    Origin,
    Rule,
)
from compositionality.yaml_files import named_yaml, read_yaml_mapping

FOLDER = Path(__file__).parents[2] / "config" / "claims"
LISTS = ("group", "level", "model", "base")
"""Keys of a comparison that may hold several values: one comparison for each, the last key varies fastest."""
Row = Mapping[str, Any]
_FILE_KEYS = ("results", "gates", "claims", "controls")
_RESULT_KEYS = ("metric", "script")
_CLAIM_KEYS = {
    "name", "origin", "text", "paper", "source", "results", "comparisons", "all_of", "gates", "primary",
}  # fmt: skip
_COMPARISON_KEYS = {field.name for field in fields(Comparison)} - {"metric", "results", "gates"}
_GATES: dict[str, tuple[str, ...]] = {
    "headroom": ("ceiling", "floor"),
    "trained": ("groups", "updates", "least_updates", "starts"),
    "kept": ("level", "loss"),
    "sensitive": ("model",),
    "shown": ("text",),
}
"""Kinds of gates with the keys that they need."""
_LEVELS = {"deepest": DEEPEST, "all": ALL_LEVELS}
"""Words for levels."""
Gates = Mapping[str, tuple[Gate, ...]]
"""Gates by the name that claims use."""


@dataclass(frozen=True)
class ResultSet:
    """A set of evaluations that claims refer to by name: what it measures, and the script that makes it."""

    metric: Metric
    script: str


@dataclass(frozen=True)
class Catalogue:
    """The claims of one paper, the negative controls, and the results that hold their figures."""

    results: Mapping[str, ResultSet]
    claims: tuple[Claim, ...]
    controls: tuple[Claim, ...]

    def with_primary(self, names: Collection[str]) -> "Catalogue":
        """The same with the claims of these names as the primary ones. UserError for one without a p-value."""
        claims, controls = (
            tuple(_checked(replace(one, primary=one.name in names)) for one in part)
            for part in (self.claims, self.controls)
        )
        return replace(self, claims=claims, controls=controls)


def read_catalogue(name: str) -> Catalogue:
    """From a name in ``config/claims`` or a path. UserError that names file, claim and key for what cannot be read."""
    path = named_yaml(FOLDER, "claims", name)
    content = read_yaml_mapping(path)
    try:
        check_keys(content, _FILE_KEYS, "results")
        results = dict(_result_sets(content["results"]))
        gates = _gates(content.get("gates"), results)
        claims: dict[str, Claim] = {}
        parts = [tuple(_claims(part, content.get(part), results, gates, claims)) for part in ("claims", "controls")]
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return Catalogue(results, *parts)


def _result_sets(rows: Any) -> Iterator[tuple[str, ResultSet]]:
    if not isinstance(rows, dict):
        raise UserError("results: a mapping NAME: {metric: …, script: …} is needed")
    for name, row in rows.items():
        with named(f"results.{name}"):
            check_keys(row, _RESULT_KEYS, *_RESULT_KEYS)
            yield str(name), ResultSet(one_of("metric", Metric, row["metric"]), typed("script", str, row["script"]))


def _gates(rows: Any, results: Mapping[str, ResultSet]) -> Gates:
    """By name; an entry that is a list stands for the gates that it names."""
    if not isinstance(rows, dict | None):
        raise UserError("gates: a mapping NAME: {kind: …} is needed")
    found: dict[str, tuple[Gate, ...]] = {}
    for name, row in (rows or {}).items():
        with named(f"gates.{name}"):
            found[str(name)] = _named_gates(row, found) if isinstance(row, list) else (_gate(row, results),)
    return found


def _named_gates(names: Any, known: Gates) -> tuple[Gate, ...]:
    unknown = [name for name in typed("gates", list, names) if name not in known]
    if unknown:
        raise UserError(f"no gate {unknown[0]}; there are: {', '.join(known) or 'none'}")
    return tuple(dict.fromkeys(gate for name in names for gate in known[name]))


def _gate(row: Any, results: Mapping[str, ResultSet]) -> Gate:
    check_keys(row, None, "kind")
    kind = row["kind"]
    if kind not in _GATES:
        raise UserError(f"kind: {shown(kind)} is not one of {', '.join(_GATES)}")
    of = {key: value for key, value in row.items() if key != "kind"}
    if kind == "shown":
        check_keys(of, {*_COMPARISON_KEYS, "text", "results"}, *_GATES[kind])
        text, where = typed("text", str, of.pop("text")), str(of.pop("results", "accuracy"))
        return Shown(text, tuple(_comparisons(of, where, results)))
    if kind == "sensitive":
        check_keys(of, ("model", "base", "part"), *_GATES[kind])
        return Sensitive(**{key: typed(key, str, value) for key, value in of.items()})
    check_keys(of, _GATES[kind], *_GATES[kind])
    if kind == "headroom":
        return Headroom(share("ceiling", of["ceiling"]), share("floor", of["floor"]))
    if kind == "kept":
        return Kept(typed("level", int, of["level"]), share("loss", of["loss"]))
    starts = tuple(typed("starts", str, arm) for arm in typed("starts", list, of["starts"]))
    least = typed("least_updates", int, of["least_updates"])
    return Trained(share("groups", of["groups"]), share("updates", of["updates"]), least, starts)


def _claims(
    part: str, rows: Any, results: Mapping[str, ResultSet], gates: Gates, known: dict[str, Claim]
) -> Iterator[Claim]:
    """``known`` collects the claims by name, for ``all_of``."""
    if not isinstance(rows, list | None):
        raise UserError(f"{part}: a list of claims is needed")
    for number, row in enumerate(rows or (), 1):
        with named(f"{part}: entry {number}"):
            check_keys(row, None, "name")
        name = str(row["name"])
        with named(f"claim {name}"):
            if name in known:
                raise UserError("there twice")
            known[name] = _claim(name, row, results, gates, known)
        yield known[name]


def _claim(name: str, row: Row, results: Mapping[str, ResultSet], gates: Gates, known: Mapping[str, Claim]) -> Claim:
    origin = one_of("origin", Origin, row.get("origin", Origin.OWN))
    check_keys(row, _CLAIM_KEYS, "text", *(() if origin is Origin.OWN else ("paper",)))
    text, paper, source = (typed(key, str, row.get(key, "")) for key in ("text", "paper", "source"))
    comparisons: list[Comparison] = []
    for other in typed("all_of", list, row.get("all_of", [])):
        if other not in known:
            raise UserError(f"all_of: no claim {other} before this one; there are: {', '.join(known) or 'none'}")
        comparisons += known[other].comparisons
    its_gates = _named_gates(row.get("gates", []), gates)
    for one in typed("comparisons", list, row.get("comparisons", [])):
        comparisons += _comparisons(one, str(row.get("results", "accuracy")), results, its_gates)
    if not comparisons:
        raise UserError("nothing is compared; give comparisons: or all_of:")
    primary = typed("primary", bool, row.get("primary", False))
    return _checked(Claim(name, text, paper, source, tuple(comparisons), origin, primary))


def _checked(claim: Claim) -> Claim:
    without = [one.rule for one in claim.comparisons if one.rule in (Rule.APART, Rule.EVERY_SEED)]
    if claim.primary and without:
        raise UserError(f"primary: the rule {without[0]} of {claim.name} has no p-value; choose >, ≤ or within")
    return claim


def _comparisons(
    row: Any, where: str, results: Mapping[str, ResultSet], gates: tuple[Gate, ...] = ()
) -> Iterator[Comparison]:
    if where not in results:
        raise UserError(f"results {where} unknown; known: {', '.join(results)}")
    check_keys(row, _COMPARISON_KEYS, "group", "level", "model")
    types = {"group": str, "level": int, "model": str, "base": str, "part": str, "threshold": float, "times": float}
    types["base_part"] = str
    over = tuple(typed("over", str, arm) for arm in typed("over", list, row.get("over", [])))
    if over and (len(over) != 2 or not row.get("base") or {"times", "base_part"} & row.keys()):
        raise UserError("over: give a model and its base, beside model and base, without times and base_part")
    values = [one if isinstance(one := row.get(key, ""), list) else [one] for key in LISTS]
    values[LISTS.index("level")] = [_LEVELS.get(one, one) for one in values[LISTS.index("level")]]
    rest = {key: typed(key, types[key], row[key]) for key in ("part", "base_part", "threshold", "times") if key in row}
    rule, metric = one_of("rule", Rule, row.get("rule", Rule.ABOVE)), results[where].metric
    if metric is Metric.ACCURACY and rest.get("part", CORRECT) not in (CORRECT, COMPOSED):
        raise UserError(f"part: {shown(rest['part'])} is not one of {CORRECT}, {COMPOSED}, the parts of accuracy")
    parts = [rest.get("part", ALL_SAMPLES), rest.get("base_part", ALL_SAMPLES)]
    if metric is Metric.PASS_AT_K and (wrong := [part for part in parts if not is_pass_at_k(part)]):
        raise UserError(f"part: {shown(wrong[0])} is not one of {ALL_SAMPLES}, {GROWTH}, pass@1, pass@2, …")
    if metric is Metric.INFLUENCE and rest.get("part") not in (MIXED, *QUERY_VALUES):
        raise UserError(f"part: {shown(rest.get('part'))} is not one of {', '.join((MIXED, *QUERY_VALUES))}")
    for chosen in product(*values):
        group, level, model, base = (typed(key, types[key], one) for key, one in zip(LISTS, chosen, strict=True))
        yield Comparison(group, level, model, base, rule, metric=metric, results=where, over=over, gates=gates, **rest)


def where(one: Comparison) -> str:
    """``trained L3``; ``igsm, deepest level``."""
    names = {DEEPEST: f"{one.group}, deepest level", ALL_LEVELS: one.group}
    return names.get(one.level, f"{one.group} L{one.level}")


def words(one: Comparison) -> str:
    """``trained L3: rl-level2 − rl-level1 > 20``, in points; ``heldout L3, atomic error: …``."""
    plain = (one.metric, one.part) == (Metric.ACCURACY, CORRECT) or one.metric is Metric.SCALING
    part = "" if plain else f", {one.part.replace('_', ' ')}"
    part += f" against {one.base_part}" if one.base_part else ""
    what = f"{where(one)}{part}: {one.model}"
    base = one.base if one.times == 1 else f"{one.times:g} × {one.base}"
    if one.rule in (Rule.APART, Rule.EVERY_SEED):
        return f"{what} > {base}, {one.rule}"
    difference = f"{what} − {base}" if base else what
    if one.over:
        difference += f", over {one.over[0]} − {one.over[1]},"
    return f"{difference} {one.rule}{'' if one.rule is Rule.WITHIN else ' '}{100 * one.threshold:g}"
