"""Words of a command line in Hydra's grammar: which keys there are, and quotes where a value needs them."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from compositionality.errors import UserError

_ELEMENT = re.compile(r"""\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^,]+?)\s*(?:,|$)""")
_BEFORE_A_QUOTE = re.compile(r"\\+(?='|$)")
_QUOTED = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""")


def hydra_word(schema: type[Any], word: str) -> str:
    """``key=value`` in Hydra's grammar, in which letters and signs of a path need quotes; a list's elements likewise,
    of which a single one needs no brackets.

    UserError for a key that ``schema`` does not have.
    """
    key, equals, value = word.partition("=")
    kind = kind_of(schema, key)
    if kind is None:
        raise UserError(f"{key}: {_verls(schema, key) or _no_such_setting(schema, key)}")
    if not equals:
        raise UserError(f"{word}: no value; give it as {key}=VALUE")
    if (kind is dict or is_dataclass(kind)) and "." not in key and not value.startswith("{"):
        raise UserError(f"{word}: holds several keys; give {key}.KEY=VALUE")
    if kind is dict:
        return f"++{word.lstrip('+')}"  # Hydra wants ++ before a key that a mapping does not hold yet
    if kind is Path and not value:
        raise UserError(f"{key}: is empty; give a path")
    if kind in (str, Path):
        return f"{key}={_quoted(value)}"
    if kind is list and value.startswith("[") and value.endswith("]"):
        return f"{key}=[{','.join(map(_quoted, _ELEMENT.findall(value[1:-1])))}]"
    if kind is list and value != "null":
        return f"{key}=[{_quoted(value)}]"
    return word


def _verls(schema: type[Any], key: str) -> str:
    """What to give instead of a ``key`` of verl's; empty for others."""
    if "." not in key:
        return ""
    from compositionality.train.verl.names import answer

    return answer(schema, key)


def _no_such_setting(schema: type[Any], key: str) -> str:
    known = list(keys_of(schema))
    near = difflib.get_close_matches(key, known, n=3) or [name for name in known if name.endswith(f".{key}")]
    return f"no such setting; {'did you mean ' + ' or '.join(near) + '?' if near else '--help lists them'}"


def _quoted(value: str) -> str:
    """A text as Hydra reads it: as it is if it stands in quotes or is null, else in quotes."""
    if value == "null" or _QUOTED.fullmatch(value):
        return value
    doubled = _BEFORE_A_QUOTE.sub(lambda found: found[0] * 2, value)
    return "'" + doubled.replace("'", r"\'") + "'"


def keys_of(schema: Any, prefix: str = "") -> Iterator[str]:
    """The keys of a dataclass and of those in it, with dots."""
    for entry in fields(schema):
        kind = _plain(get_type_hints(schema)[entry.name])
        if is_dataclass(kind):
            yield from keys_of(kind, f"{prefix}{entry.name}.")
        else:
            yield prefix + entry.name


def kind_of(schema: Any, key: str) -> Any:
    """What a key takes: str, Path, list (of these), dict (any key below it), another type; None: no such key."""
    name, _, rest = key.lstrip("+~").partition(".")
    hints = get_type_hints(schema)
    if name not in hints or name not in {entry.name for entry in fields(schema)}:
        return None
    kind = _plain(hints[name])
    if get_origin(kind) is dict:
        return dict
    if rest:
        return kind_of(kind, rest) if is_dataclass(kind) else None
    if get_origin(kind) is list:
        return list if _plain(get_args(kind)[0]) in (str, Path) else Sequence
    return kind


def _plain(kind: Any) -> Any:
    """A type without its None."""
    if get_origin(kind) in (Union, UnionType):
        return next(part for part in get_args(kind) if part is not type(None))
    return kind
