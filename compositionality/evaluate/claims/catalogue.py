"""Claims as data: ``config/claims/NAME.yaml`` read into ``types.Claim``, and comparisons in words."""

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from compositionality.data.yaml_files import read_yaml_mapping
from compositionality.errors import UserError
from compositionality.types import COMPOSED, CORRECT, Claim, Comparison, Metric, Origin, Rule

FOLDER = Path(__file__).parents[2] / "config" / "claims"
LISTS = ("group", "level", "model", "base")
"""Keys of a comparison that may hold several values: one comparison for each, the last key varies fastest."""
Row = Mapping[str, Any]
Choice = TypeVar("Choice", bound=StrEnum)
_FILE_KEYS = ("results", "claims", "controls")
_RESULT_KEYS = ("metric", "script")
_CLAIM_KEYS = {"name", "origin", "text", "paper", "source", "results", "comparisons", "all_of"}
_COMPARISON_KEYS = {field.name for field in fields(Comparison)} - {"metric", "results"}
_KINDS = {str: "text", int: "a whole number", float: "a finite number", list: "a list"}


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
    content = read_yaml_mapping(path)
    try:
        _check_keys(content, _FILE_KEYS, "results")
        results = dict(_result_sets(content["results"]))
        claims: dict[str, Claim] = {}
        parts = [tuple(_claims(part, content.get(part), results, claims)) for part in ("claims", "controls")]
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return Catalogue(results, *parts)


def _result_sets(rows: Any) -> Iterator[tuple[str, ResultSet]]:
    if not isinstance(rows, dict):
        raise UserError("results: a mapping NAME: {metric: …, script: …} is needed")
    for name, row in rows.items():
        with _named(f"results.{name}"):
            _check_keys(row, _RESULT_KEYS, *_RESULT_KEYS)
            yield str(name), ResultSet(_one_of("metric", Metric, row["metric"]), _typed("script", str, row["script"]))


def _claims(part: str, rows: Any, results: Mapping[str, ResultSet], known: dict[str, Claim]) -> Iterator[Claim]:
    """``known`` collects the claims by name, for ``all_of``."""
    if not isinstance(rows, list | None):
        raise UserError(f"{part}: a list of claims is needed")
    for number, row in enumerate(rows or (), 1):
        with _named(f"{part}: entry {number}"):
            _check_keys(row, None, "name")
        name = str(row["name"])
        with _named(f"claim {name}"):
            if name in known:
                raise UserError("there twice")
            known[name] = _claim(name, row, results, known)
        yield known[name]


def _claim(name: str, row: Row, results: Mapping[str, ResultSet], known: Mapping[str, Claim]) -> Claim:
    origin = _one_of("origin", Origin, row.get("origin", Origin.OWN))
    _check_keys(row, _CLAIM_KEYS, "text", *(() if origin is Origin.OWN else ("paper",)))
    text, paper, source = (_typed(key, str, row.get(key, "")) for key in ("text", "paper", "source"))
    comparisons: list[Comparison] = []
    for other in _typed("all_of", list, row.get("all_of", [])):
        if other not in known:
            raise UserError(f"all_of: no claim {other} before this one; there are: {', '.join(known) or 'none'}")
        comparisons += known[other].comparisons
    for one in _typed("comparisons", list, row.get("comparisons", [])):
        comparisons += _comparisons(one, str(row.get("results", "accuracy")), results)
    if not comparisons:
        raise UserError("nothing is compared; give comparisons: or all_of:")
    return Claim(name, text, paper, source, tuple(comparisons), origin)


def _comparisons(row: Any, where: str, results: Mapping[str, ResultSet]) -> Iterator[Comparison]:
    if where not in results:
        raise UserError(f"results {where} unknown; known: {', '.join(results)}")
    _check_keys(row, _COMPARISON_KEYS, "group", "level", "model")
    types = {"group": str, "level": int, "model": str, "base": str, "part": str, "threshold": float, "times": float}
    values = [one if isinstance(one := row.get(key, ""), list) else [one] for key in LISTS]
    rest = {key: _typed(key, types[key], row[key]) for key in ("part", "threshold", "times") if key in row}
    rule, metric = _one_of("rule", Rule, row.get("rule", Rule.ABOVE)), results[where].metric
    if metric is Metric.ACCURACY and rest.get("part", CORRECT) not in (CORRECT, COMPOSED):
        raise UserError(f"part: {_shown(rest['part'])} is not one of {CORRECT}, {COMPOSED}, the parts of accuracy")
    for chosen in product(*values):
        group, level, model, base = (_typed(key, types[key], one) for key, one in zip(LISTS, chosen, strict=True))
        yield Comparison(group, level, model, base, rule, metric=metric, results=where, **rest)


@contextlib.contextmanager
def _named(where: str) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def _check_keys(row: Any, known: Collection[str] | None, *needed: str) -> None:
    """UserError unless ``row`` is a mapping that has the keys ``needed`` and no unknown one (``known`` None: any)."""
    if not isinstance(row, dict):
        raise UserError(f"{_shown(row)} is not a mapping of keys to values")
    if known and (unknown := set(row) - set(known)):
        raise UserError(f"unknown key {min(map(str, unknown))}; known: {', '.join(sorted(known))}")
    if missing := [key for key in needed if key not in row]:
        raise UserError(f"no {missing[0]}:")


def _typed(key: str, kind: type[Any], value: Any) -> Any:
    """``value``; UserError if it is not of this type (a whole number is a float too)."""
    fits = isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)
    if not fits or (kind is float and not math.isfinite(value)):
        raise UserError(f"{key}: {_shown(value)} is not {_KINDS[kind]}")
    return value


def _one_of(key: str, choices: type[Choice], value: Any) -> Choice:
    try:
        return choices(value)
    except ValueError as error:
        raise UserError(f"{key}: {_shown(value)} is not one of {', '.join(choices)}") from error


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def words(one: Comparison) -> str:
    """``trained L3: rl-level2 − rl-level1 > 20``, in points; ``heldout L3, atomic error: …``."""
    part = "" if (one.metric, one.part) == (Metric.ACCURACY, CORRECT) else f", {one.part.replace('_', ' ')}"
    what = f"{one.group} L{one.level}{part}: {one.model}"
    base = one.base if one.times == 1 else f"{one.times:g} × {one.base}"
    if one.rule in (Rule.APART, Rule.EVERY_SEED):
        return f"{what} > {base}, {one.rule}"
    difference = f"{what} − {base}" if base else what
    return f"{difference} {one.rule}{'' if one.rule is Rule.WITHIN else ' '}{100 * one.threshold:g}"
