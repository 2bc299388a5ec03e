"""Fields of a YAML file of claims, checked: UserError names what is wrong."""

import contextlib
import math
from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import Any, TypeVar

from compositionality.errors import UserError

Choice = TypeVar("Choice", bound=StrEnum)
_KINDS = {str: "text", int: "a whole number", float: "a finite number", list: "a list", bool: "true or false"}


@contextlib.contextmanager
def named(where: str) -> Iterator[None]:
    """A UserError raised within says ``where``."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def check_keys(row: Any, known: Collection[str] | None, *needed: str) -> None:
    """UserError unless ``row`` is a mapping that has the keys ``needed`` and no unknown one (``known`` None: any)."""
    if not isinstance(row, dict):
        raise UserError(f"{shown(row)} is not a mapping of keys to values")
    if known and (unknown := set(row) - set(known)):
        raise UserError(f"unknown key {min(map(str, unknown))}; known: {', '.join(sorted(known))}")
    if missing := [key for key in needed if key not in row]:
        raise UserError(f"no {missing[0]}:")


def share(key: str, value: Any) -> float:
    """A number from 0 to 1. UserError if it is none."""
    number: float = typed(key, float, value)
    if not 0 <= number <= 1:
        raise UserError(f"{key}: {number:g} is not a share from 0 to 1")
    return number


def typed(key: str, kind: type[Any], value: Any) -> Any:
    """``value``; UserError if it is not of this type (a whole number is a float too)."""
    fits = isinstance(value, (int, float) if kind is float else kind) and isinstance(value, bool) == (kind is bool)
    if not fits or (kind is float and not math.isfinite(value)):
        raise UserError(f"{key}: {shown(value)} is not {_KINDS[kind]}")
    return value


def one_of(key: str, choices: type[Choice], value: Any) -> Choice:
    """The member of ``choices`` with this value. UserError if there is none."""
    try:
        return choices(value)
    except ValueError as error:
        raise UserError(f"{key}: {shown(value)} is not one of {', '.join(choices)}") from error


def shown(value: Any) -> str:
    """A value as an error message quotes it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
