"""Types of settings that hold their range, and the check of values against a dataclass of them by pydantic."""

import difflib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Interval, MinLen
from pydantic import TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema

from compositionality.errors import UserError

Settings = TypeVar("Settings")
REQUIRED: Any = "???"
"""The default of a setting that has none."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """The values that a key may have."""

    choices: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        """Validate the plain type, then membership."""
        return core_schema.no_info_after_validator_function(self._member, handler(source))

    def _member(self, value: str) -> str:
        if value not in self.choices:
            raise ValueError
        return value


PositiveInt = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
PositiveFloat = Annotated[float, Gt(0)]
NonNegativeFloat = Annotated[float, Ge(0)]
Fraction = Annotated[float, Interval(ge=0, le=1)]
FractionBelowOne = Annotated[float, Interval(ge=0, lt=1)]
PositiveFraction = Annotated[float, Interval(gt=0, le=1)]
NonEmptyStr = Annotated[str, MinLen(1)]
"""A path or a name that may not be empty."""
Seed = Annotated[int, Interval(ge=0, le=2**31 - 1)]
"""What every random generator takes."""
Workers = Annotated[int, Interval(ge=1, le=1024)]
"""Processes on this machine."""
Port = Annotated[int, Interval(ge=1, le=65535)]

NEEDED = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "one text, in quotes if it looks like a number",
}


def check_ranges(settings: object) -> None:
    """Raise UserError for the first value of a settings object (nested ones too) that its type does not allow."""
    validated(type(settings), asdict(settings))  # type: ignore[call-overload]


def validated(schema: type[Settings], values: Mapping[str, Any], source: str = "", prefix: str = "") -> Settings:
    """Return a ``schema`` (a dataclass) with ``values``, nested mappings; those that are REQUIRED count as not given.

    Raises UserError for an unknown key and for the first value that its type does not allow; the message begins with
    ``source``, a file, and ``prefix``, what stands before the keys there.
    """
    fault = next(_not_by_pydantic(schema, values), "")
    if not fault:
        try:
            found: Settings = _adapter(schema).validate_python(_given(values))  # type: ignore[arg-type]
            return found
        except ValidationError as error:
            fault = _fault(schema, error)
    raise UserError(f"{source}: {prefix}{fault}" if source else f"{prefix}{fault}")


@cache
def _adapter(schema: Any) -> TypeAdapter[Any]:
    return TypeAdapter(schema)


def _given(values: Any) -> Any:
    """``values`` without what is REQUIRED."""
    if not isinstance(values, Mapping):
        return values
    return {key: _given(value) for key, value in values.items() if not (isinstance(value, str) and value == REQUIRED)}


def _not_by_pydantic(kind: Any, value: Any, key: str = "") -> Iterator[str]:
    """Faults that pydantic would pass over: unknown keys, numbers that are not finite, truth values as numbers."""
    plain: Any = _plain(kind)
    inner, kinds = get_args(plain), _kinds(plain) if hasattr(plain, "__dataclass_fields__") else None
    if kinds is not None and isinstance(value, Mapping):
        for name, part in value.items():
            at = f"{key}.{name}" if key else str(name)
            if name in kinds:
                yield from _not_by_pydantic(kinds[name], part, at)
            else:
                yield f"{at}: {no_such_setting(plain, str(name))}"
    elif get_origin(plain) is dict and isinstance(value, Mapping):
        for name, part in value.items():
            yield from _not_by_pydantic(inner[1], part, f"{key}.{name}")
    elif get_origin(plain) is list and isinstance(value, list):
        for part in value:
            yield from _not_by_pydantic(inner[0], part, key)
    elif isinstance(value, bool) and plain in (int, float):
        yield f"{key}={_shown(value)}: give {NEEDED[plain]}"
    elif isinstance(value, float) and not math.isfinite(value):
        limits = range_of(kind).removeprefix("be ")
        yield f"{key}={value}: must be finite{' and ' + limits if limits else ''}"


def _fault(schema: Any, error: ValidationError) -> str:
    """Return the first fault of a validation in one line: key, value, what it must be."""
    first = error.errors(include_url=False)[0]
    kind, key, value, element = schema, "", first["input"], isinstance(first["loc"][-1], int)
    for part in first["loc"]:
        inner = get_args(_plain(kind))
        kind = _kinds(_plain(kind))[str(part)] if is_dataclass(_plain(kind)) else inner[-1] if inner else Any
        key += "" if isinstance(part, int) else f".{part}" if key else str(part)
    if first["type"] == "missing":
        return f"no value for {key}"
    plain, limits = _plain(kind), range_of(kind)
    if value is None:
        return f"{key}=null: may not be null; leave it out or give a value"
    if is_dataclass(plain) or get_origin(plain) is dict or plain is dict:
        return f"{key}={_shown(value)}: holds several keys; give {key}.KEY=VALUE"
    if get_origin(plain) is list:
        return f"{key}={_shown(value)}: a list is needed: {key}=[{_shown(value)}]"
    other_type = first["type"].endswith(("_type", "_parsing", "_from_float"))
    why = f"give {NEEDED.get(plain, first['msg'])}" if other_type else ""
    if element:
        return f"{key}: {_shown(value)}: {f'each: {why}' if why else f'each must {limits}'}"
    return f"{key}={_shown(value)}: {why or f'must {limits}'}"


def no_such_setting(schema: Any, key: str) -> str:
    """Return what to say of a key that ``schema`` does not have, with the nearest that it has."""
    if ":" in key:
        return f"no such setting; in {{key: value}} a space stands after the colon: {key.replace(':', ': ')}"
    known = list(keys_of(schema))
    near = difflib.get_close_matches(key, known, n=3) or [name for name in known if name.endswith(f".{key}")]
    return f"no such setting; {'did you mean ' + ' or '.join(near) + '?' if near else '--help lists them'}"


def keys_of(schema: Any, prefix: str = "") -> Iterator[str]:
    """Yield the keys of a dataclass and of those in it, with dots."""
    for name, kind in _kinds(schema).items():
        if is_dataclass(kind):
            yield from keys_of(kind, f"{prefix}{name}.")
        else:
            yield prefix + name


def kind_of(schema: Any, key: str) -> Any:
    """Return what a dotted key takes (int, str, Path, list[str] …; dict: any key below it), without None and range.

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
    """Types by field, with their ranges."""
    hints = get_type_hints(schema, include_extras=True)
    return {entry.name: hints[entry.name] for entry in fields(schema)}


def _parts(kind: Any) -> tuple[Any, ...]:
    """The members of a union, without None, else the type itself."""
    if get_origin(kind) in (Union, UnionType):
        return tuple(part for part in get_args(kind) if part is not type(None))
    return (kind,)


def _plain(kind: Any) -> Any:
    """A type without its None and its range."""
    part = _parts(kind)[0]
    return _plain(get_args(part)[0]) if get_origin(part) is Annotated else part


def range_of(kind: Any) -> str:
    """Return the range of a type in words, such as ``be at least 1``; empty if it has none."""
    bounds = [bound for part in _parts(kind) if get_origin(part) is Annotated for bound in part.__metadata__]
    return " and ".join(map(_words, bounds))


def _words(bound: Any) -> str:
    match bound:
        case Ge(ge=low):
            return f"be at least {low}"
        case Gt(gt=low):
            return f"be more than {low}"
        case Interval():
            low = f"be from {bound.ge}" if bound.ge is not None else f"be more than {bound.gt} and"
            high = f"to {bound.le}" if bound.gt is None else f"at most {bound.le}"
            if bound.lt is not None:
                high = f"to less than {bound.lt}"
            return f"{low} {high}"
        case MinLen():
            return "not be empty"
        case OneOf(choices=choices):
            return f"be one of {', '.join(choices)}"
    raise TypeError(f"no such range: {bound!r}")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_shown, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
