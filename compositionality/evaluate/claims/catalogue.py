"""Claims as data: ``config/claims/NAME.yaml`` read into ``types.Claim``, and comparisons in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from compositionality.errors import UserError
from compositionality.types import Claim, Comparison, Metric, Rule

FOLDER = Path(__file__).parents[2] / "config" / "claims"
LISTS = ("group", "level", "model", "base")
"""Keys of a comparison that may hold several values: one comparison for each, the last key varies fastest."""
_CLAIM_KEYS = {"name", "text", "paper", "source", "results", "comparisons", "all_of"}
_COMPARISON_KEYS = {field.name for field in fields(Comparison)} - {"metric", "results"}


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


def read_catalogue(name: str) -> Catalogue:
    """From a name in ``config/claims`` or a path. UserError that names file, claim and key for what cannot be read."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.yaml")))
        raise UserError(f"claims={name}: no such file; known are {known}, or give a path that ends in .yaml")
    try:
        content = yaml.safe_load(path.read_text())
        results = {key: ResultSet(Metric(one["metric"]), one["script"]) for key, one in content["results"].items()}
        claims: dict[str, Claim] = {}
        parts = [tuple(_claims(content.get(part) or (), results, claims)) for part in ("claims", "controls")]
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path}: {type(error).__name__} {' '.join(str(error).split())}") from error
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return Catalogue(results, *parts)


def _claims(
    rows: Sequence[Mapping[str, Any]], results: Mapping[str, ResultSet], known: dict[str, Claim]
) -> Iterator[Claim]:
    """``known`` collects the claims by name, for ``all_of``."""
    for row in rows:
        name = str(row["name"])
        if name in known:
            raise UserError(f"claim {name}: there twice")
        if unknown := set(row) - _CLAIM_KEYS:
            raise UserError(f"claim {name}: unknown key {sorted(unknown)[0]}; known: {', '.join(sorted(_CLAIM_KEYS))}")
        comparisons = [one for other in row.get("all_of", ()) for one in known[other].comparisons]
        for one in row.get("comparisons", ()):
            comparisons += _comparisons(name, one, str(row.get("results", "accuracy")), results)
        known[name] = Claim(name, row["text"], row["paper"], row.get("source", ""), tuple(comparisons))
        yield known[name]


def _comparisons(
    claim: str, row: Mapping[str, Any], where: str, results: Mapping[str, ResultSet]
) -> Iterator[Comparison]:
    if unknown := set(row) - _COMPARISON_KEYS:
        raise UserError(
            f"claim {claim}: unknown key {sorted(unknown)[0]}; known: {', '.join(sorted(_COMPARISON_KEYS))}"
        )
    if where not in results:
        raise UserError(f"claim {claim}: results {where} unknown; known: {', '.join(results)}")
    rest = {key: value for key, value in row.items() if key not in (*LISTS, "rule")}
    values = [one if isinstance(one := row.get(key, ""), list) else [one] for key in LISTS]
    for group, level, model, base in product(*values):
        rule, metric = Rule(row.get("rule", Rule.ABOVE)), results[where].metric
        yield Comparison(group, level, model, base, rule, metric=metric, results=where, **rest)


def words(one: Comparison) -> str:
    """``trained L3: rl-level2 − rl-level1 > 20``, in points; ``heldout L3, atomic error: …``."""
    part = "" if one.metric is Metric.ACCURACY else f", {one.part.replace('_', ' ')}"
    what = f"{one.group} L{one.level}{part}: {one.model}"
    base = one.base if one.times == 1 else f"{one.times:g} × {one.base}"
    if one.rule in (Rule.APART, Rule.EVERY_SEED):
        return f"{what} > {base}, {one.rule}"
    difference = f"{what} − {base}" if base else what
    return f"{difference} {one.rule}{'' if one.rule is Rule.WITHIN else ' '}{100 * one.threshold:g}"
