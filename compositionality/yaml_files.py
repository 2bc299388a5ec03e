"""Read YAML files written by people; an error is one line with the file, line and column."""

import re
from collections.abc import Iterable
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import yaml  # type: ignore[import-untyped]
from yaml import MarkedYAMLError, YAMLError

from compositionality.errors import UserError

PLAIN = re.compile("[A-Za-z0-9_./:-]+")


class Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Dumper that quotes text which this Loader, or YAML 1.1, would read as a number, a truth value or a date."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [*resolvers] for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }


class Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Loader with plain scalars as in YAML 1.2: 1e-4 is a number; no dates, no octal numbers, no ``on``."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for tag, pattern, first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.?inf|\.?nan", "-+.0123456789in"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
):
    for reader in (Loader, Dumper):
        reader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})$"), list(first))


def yaml_path(folder: Path, name: str) -> Path:
    """Return the file of a name in ``folder``; a path that ends in .yaml is returned as it is."""
    return Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"


def named_yaml(folder: Path, key: str, name: str) -> Path:
    """Return the file as ``yaml_path`` does. UserError with the names in ``folder`` if it does not exist."""
    path = yaml_path(folder, name)
    if not path.is_file():
        existing = ", ".join(sorted(file.stem for file in folder.glob("*.yaml"))) or "none"
        raise UserError(f"{key}={name}: no such file; known are {existing}, or give a path that ends in .yaml")
    return path


def read_yaml(path: Path) -> Any:
    """Return the content of ``path``, a mapping or a list. UserError with line and column if it is no YAML."""
    try:
        content = _parsed(path.read_text(encoding="utf-8"))
        return {} if content is None else deepcopy(content)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except (YAMLError, OSError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        if isinstance(error, RecursionError):
            why = "nested too deeply"
        elif isinstance(error, MarkedYAMLError) and (mark := error.problem_mark):
            why = f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
        raise UserError(f"{path}: not readable as YAML: {why}") from error


@lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    """Return the content of a YAML text. Cached, because a plan of a hundred steps reads its profile as often."""
    loader = Loader(text)
    try:
        node = loader.get_single_node()
        _refuse_repeated_keys(node, [])
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def read_yaml_mapping(path: Path) -> dict[str, Any]:
    """Return the keys and values of a YAML file; an empty file has none. UserError if it is not a mapping."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: not a mapping of keys to values")
    return {str(key): value for key, value in content.items()}


def _refuse_repeated_keys(node: Any, ancestors: list[Any]) -> None:
    """Raise MarkedYAMLError for a repeated key of a mapping; YAML would silently keep the last."""
    if node is None or any(node is parent for parent in ancestors) or isinstance(node.value, str):
        return
    keys: set[str] = set()
    for entry in node.value:
        key, value = entry if isinstance(entry, tuple) else (None, entry)
        if key is not None and isinstance(key.value, str):
            if key.value in keys:
                raise MarkedYAMLError(problem=f"{key.value} is given twice; keep one", problem_mark=key.start_mark)
            keys.add(key.value)
        _refuse_repeated_keys(value, [*ancestors, node])


def flow_list(words: Iterable[str]) -> str:
    """Return ``[a,b]`` as a key's value; words that are no plain path, or that YAML reads otherwise, are quoted."""
    quoted = (word if _is_plain(word) else "'" + word.replace("'", "''") + "'" for word in words)
    return f"[{','.join(quoted)}]"


def _is_plain(word: str) -> bool:
    try:
        return PLAIN.fullmatch(word) is not None and bool(_parsed(f"[{word}]") == [word])
    except YAMLError:
        return False


def as_yaml(values: Any) -> str:
    """Return plain values as YAML text, keys in their order."""
    text: str = yaml.dump(values, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return text
