"""Validate settings against their dataclass with pydantic: one-line errors; keys, ranges and texts for ``--help``."""

import ast
import difflib
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Interval, MinLen
from pydantic import ConfigDict, TypeAdapter, ValidationError

from compositionality.errors import UserError
from compositionality.ranges import ALL, REQUIRED, SINGLE, VERL, Mark, OneOf, OneUp, marks_of

Settings = TypeVar("Settings")
EXPECTED = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "one text, in quotes if it looks like a number",
}
UNKNOWN = "unexpected_keyword_argument"


def check_ranges(settings: object) -> None:
    """Raise UserError for the first value of a settings object (nested ones too) that its type does not allow."""
    validated(type(settings), asdict(settings))  # type: ignore[call-overload]


def check_once(key: str, paths: Sequence[str]) -> None:
    """Raise UserError for the first file or folder that is repeated in the ``paths`` of ``key``."""
    places = [Path(path).absolute() for path in paths]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise UserError(f"{key}: {paths[number]} is given twice; give each file or folder once")


def validated(schema: type[Settings], values: Mapping[str, Any], source: str = "", prefix: str = "") -> Settings:
    """Return a ``schema`` (a dataclass) with ``values``, nested mappings; the value REQUIRED counts as missing.

    Raises UserError for an unknown key and for the first value that its type does not allow; the message begins with
    ``source``, a file, and ``prefix``, the path to these keys in it.
    """
    fault = next(_truth_values(schema, values), "")
    if not fault:
        try:
            (settings,) = _adapter(schema).validate_python([_drop_required(values)])  # type: ignore[arg-type]
            return cast("Settings", settings)
        except ValidationError as error:
            fault = _fault(schema, error)
    raise UserError(f"{source}: {prefix}{fault}" if source else f"{prefix}{fault}")


@cache
def _adapter(schema: Any) -> TypeAdapter[Any]:
    """Return the adapter of a one-tuple: a dataclass itself takes no pydantic configuration, an element inherits it."""
    return TypeAdapter(tuple[schema], config=ConfigDict(extra="forbid", allow_inf_nan=False))


def _drop_required(values: Any) -> Any:
    """Return ``values`` without the entries that are REQUIRED."""
    if not isinstance(values, Mapping):
        return values
    return {
        key: _drop_required(value)
        for key, value in values.items()
        if not (isinstance(value, str) and value == REQUIRED)
    }


def _truth_values(kind: Any, value: Any, key: str = "") -> Iterator[str]:
    """Yield the faults that pydantic accepts: true or false for a number."""
    plain: Any = _plain(kind)
    inner = get_args(plain)[-1] if get_args(plain) else Any
    if isinstance(value, Mapping):
        kinds = _kinds(plain) if is_dataclass(plain) else dict.fromkeys(value, inner)  # type: ignore[arg-type]
        for name, part in value.items():
            yield from _truth_values(kinds.get(name, Any), part, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for part in value:
            yield from _truth_values(inner, part, key)
    elif isinstance(value, bool) and plain in (int, float):
        yield f"{key}={typed_text(value)}: give {EXPECTED[plain]}"


def _fault(schema: Any, error: ValidationError) -> str:
    """Return the first fault of a validation in one line: key, value, what is allowed."""
    first = min(error.errors(include_url=False), key=lambda fault: fault["type"] != UNKNOWN)
    kind, key, value = schema, "", first["input"]
    for part in first["loc"][1:]:
        schema, inner = _plain(kind), get_args(_plain(kind))
        kind = _kinds(schema).get(str(part)) if is_dataclass(schema) else inner[-1] if inner else Any  # type: ignore[arg-type]
        key += "" if isinstance(part, int) else f".{part}" if key else str(part)
    if first["type"] == UNKNOWN:
        return f"{key}: {unknown_setting(schema, str(part))}"
    if first["type"] == "missing":
        return f"no value for {key}"
    plain, must = _plain(kind), f"must {range_of(kind)}"
    if value is None:
        return f"{key}=null: may not be null; leave it out or give a value"
    if is_dataclass(plain) or dict in (plain, get_origin(plain)):
        return f"{key}={typed_text(value)}: holds several keys; give {key}.KEY=VALUE"
    if get_origin(plain) is list:
        return f"{key}={typed_text(value)}: a list is needed: {key}=[{typed_text(value)}]"
    if first["type"] == "finite_number":
        must = f"must be finite{range_of(kind).replace('be', ' and', 1)}"
    elif first["type"].endswith(("_type", "_parsing", "_from_float")):
        must = f"give {EXPECTED.get(plain, first['msg'])}"
    if isinstance(part, int):
        return f"{key}: {typed_text(value)}: each{': ' if must.startswith('give') else ' '}{must}"
    return f"{key}={typed_text(value)}: {must}"


def unknown_setting(schema: Any, key: str) -> str:
    """Return the error message for a key that ``schema`` does not have, with the nearest keys that it has."""
    if ":" in key:
        return f"no such setting; in {{key: value}} a space stands after the colon: {key.replace(':', ': ')}"
    keys = list(keys_of(schema))
    near = difflib.get_close_matches(key, keys, n=3) or [name for name in keys if name.endswith(f".{key}")]
    elsewhere = getattr(schema, "other_keys", "--help lists them")
    return f"no such setting; {'did you mean ' + ' or '.join(near) + '?' if near else elsewhere}"


def keys_of(schema: Any, prefix: str = "") -> Iterator[str]:
    """Yield the keys of a dataclass and of nested ones, with dots."""
    for name, kind in _kinds(schema).items():
        if is_dataclass(_plain(kind)):
            yield from keys_of(_plain(kind), f"{prefix}{name}.")
        else:
            yield prefix + name


def kind_of(schema: Any, key: str) -> Any:
    """Return the type of a dotted key (int, str, Path, list[str] …; dict: any key below it), without None and range.

    None if ``schema`` has no such key.
    """
    name, _, rest = key.partition(".")
    if name not in _kinds(schema):
        return None
    kind = _plain(_kinds(schema)[name])
    if get_origin(kind) is dict:
        return dict
    if rest:
        return kind_of(kind, rest) if is_dataclass(kind) else None
    return list[_plain(get_args(kind)[0])] if get_origin(kind) is list else kind  # type: ignore[misc]


@cache
def _kinds(schema: Any) -> dict[str, Any]:
    """Return the types of the fields, with their ranges."""
    hints = get_type_hints(schema, include_extras=True)
    return {entry.name: hints[entry.name] for entry in fields(schema)}


def _parts(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, without None, else the type itself."""
    if get_origin(kind) is Annotated and get_origin(get_args(kind)[0]) in (Union, UnionType):
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        return tuple(part for part in get_args(kind) if part is not type(None))
    return (kind,)


def _plain(kind: Any) -> Any:
    """Return a type without its None and its range."""
    part = _parts(kind)[0]
    return _plain(get_args(part)[0]) if get_origin(part) is Annotated else part


def range_of(kind: Any) -> str:
    """Return the range of a type in words, such as ``be at least 1``; empty if it has none."""
    parts = [part for part in (kind, *_parts(kind)) if get_origin(part) is Annotated]
    bounds = dict.fromkeys(bound for part in parts for bound in part.__metadata__ if not isinstance(bound, Mark))
    return " and ".join(map(_words, bounds))


def _words(bound: Any) -> str:
    match bound:
        case Ge(ge=low):
            return f"be at least {low}"
        case Gt(gt=low):
            return f"be more than {low}"
        case Interval(gt=None, ge=low, lt=None, le=high):
            return f"be from {low} to {high}"
        case Interval(gt=None, ge=low, lt=high):
            return f"be from {low} to less than {high}"
        case Interval(gt=low, le=high):
            return f"be more than {low} and at most {high}"
        case OneUp():
            return f"be at least 1 or {ALL}"
        case MinLen():
            return "not be empty"
        case OneOf(choices=choices):
            return f"be one of {', '.join(filter(None, choices))}"
    raise TypeError(f"no such range: {bound!r}")


def typed_text(value: Any) -> str:
    """Return a value as a person types it."""
    if isinstance(value, list):
        return f"[{','.join(map(typed_text, value))}]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def phrases(schema: type[Any]) -> dict[str, str]:
    """Return the help text of each field of a dataclass: metadata ``help``, else the comment at the end of its line.

    Of a field that one engine alone has, the text begins with the engine's name.
    """
    texts: dict[str, str] = {}
    for base in reversed(schema.__mro__):
        if not is_dataclass(base):
            continue
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except OSError:  # made by make_dataclass
            continue
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
        for node in ast.iter_child_nodes(ast.parse(source).body[0]):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                texts[node.target.id] = comments.get(node.end_lineno or 0, "")
    for name, marks in marks_of(schema).items():
        for mark in {*marks} & {SINGLE, VERL}:
            texts[name] = f"{mark.name}: {texts[name]}"
    return texts | {entry.name: entry.metadata["help"] for entry in fields(schema) if "help" in entry.metadata}


def choices(name: str, known: Iterable[str]) -> str:
    """Return what there is instead of an unknown ``name``, and what was probably meant."""
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(name, names, 2, 0.75)
    return f"there are: {', '.join(names) or 'none'}" + (f"; did you mean {' or '.join(near)}?" if near else "")
