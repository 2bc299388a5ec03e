"""Types of settings that hold their range, and the check of a whole dataclass against them.

``Annotated[int, Ge(1)]`` is an ``int`` to mypy and to OmegaConf; ``check_ranges`` reads the rest. Every float must be
finite, whatever its range.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Interval, MinLen

from compositionality.errors import UserError


@dataclass(frozen=True, slots=True)
class OneOf:
    """The values that a key may have."""

    choices: tuple[str, ...]


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


def check_ranges(settings: object, source: str = "") -> None:
    """UserError for the first value of a settings object (nested ones too) that is out of its type's range.

    ``source``, a file, is named first.
    """
    assert is_dataclass(settings)
    assert not isinstance(settings, type)
    values = {entry.name: getattr(settings, entry.name) for entry in fields(settings)}
    check_values(type(settings), values, source)


def check_values(schema: type[Any], values: Mapping[str, Any], source: str = "", prefix: str = "") -> None:
    """As ``check_ranges``, of the ``values`` by name that are there."""
    for found in _out_of_range(schema, values, prefix):
        raise UserError(f"{source}: {found}" if source else found)


def range_of(kind: Any) -> str:
    """The range of a type in words, such as ``be at least 1``; empty if it has none."""
    return " and ".join(_words(bound) for bound in _bounds(kind))


def _out_of_range(schema: type[Any], values: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name, kind in _kinds(schema).items():  # type: ignore[arg-type]
        value, key = values.get(name), f"{prefix}{name}"
        if value is None or str(value) == "???":
            continue
        if is_dataclass(value) and not isinstance(value, type):
            inner = {entry.name: getattr(value, entry.name) for entry in fields(value)}
            yield from _out_of_range(type(value), inner, f"{key}.")
        elif is_dataclass(kind) and isinstance(kind, type) and isinstance(value, Mapping):
            yield from _out_of_range(kind, value, f"{key}.")
        elif isinstance(value, list | tuple):
            elements = next((get_args(part)[0] for part in _parts(kind) if get_origin(part) in (list, tuple)), Any)
            yield from (f"{key}: {one}: each must {why}" for one in value for why in _faults(elements, one))
        else:
            yield from (f"{key}={_shown(value)}: must {why}" for why in _faults(kind, value))


def _faults(kind: Any, value: Any) -> Iterator[str]:
    if isinstance(value, list | dict) and _plain(kind) in (int, float, str):
        yield "be one value"
    elif isinstance(value, float) and not math.isfinite(value):
        yield " and ".join(filter(None, ["be finite", range_of(kind).removeprefix("be ")]))
    elif not isinstance(value, Enum):
        yield from (_words(bound) for bound in _bounds(kind) if not _holds(bound, value))


@cache
def _kinds(schema: Any) -> dict[str, Any]:
    return get_type_hints(schema, include_extras=True)


def _parts(kind: Any) -> tuple[Any, ...]:
    """The members of a union, without None, else the type itself."""
    if get_origin(kind) in (Union, UnionType):
        return tuple(part for part in get_args(kind) if part is not type(None))
    return (kind,)


def _plain(kind: Any) -> Any:
    """A type without its range."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _bounds(kind: Any) -> list[Any]:
    found = []
    for part in _parts(kind):
        if get_origin(part) is Annotated:
            found += [*part.__metadata__, *_bounds(get_args(part)[0])]
    return found


def _holds(bound: Any, value: Any) -> bool:
    match bound:
        case Ge(ge=low):
            return bool(value >= low)
        case Gt(gt=low):
            return bool(value > low)
        case Interval():
            above = (bound.ge is None or value >= bound.ge) and (bound.gt is None or value > bound.gt)
            return bool(above and (bound.le is None or value <= bound.le) and (bound.lt is None or value < bound.lt))
        case MinLen(min_length=least):
            return len(str(value)) >= least
        case OneOf(choices=choices):
            return value in choices
    raise TypeError(f"no such range: {bound!r}")


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
    return str(value).lower() if isinstance(value, bool) else str(value)
