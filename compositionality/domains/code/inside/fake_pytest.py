"""The part of pytest that tests of single functions use: raises, approx, mark.parametrize. The rest is refused."""

import contextlib
import math
import re
import types
from collections.abc import Callable, Iterator
from typing import Any


class UnsupportedError(BaseException):
    """The tests use what is not here: they cannot be run."""


@contextlib.contextmanager
def raises(kind: Any, *, match: str | None = None) -> Iterator[types.SimpleNamespace]:
    """The block must raise ``kind``."""
    caught = types.SimpleNamespace(value=None, type=None)
    try:
        yield caught
    except kind as error:
        caught.value, caught.type = error, type(error)
        if match is not None and not re.search(match, str(error)):
            raise AssertionError(str(error)) from error
        return
    raise AssertionError("nothing was raised")


class Approximately:
    """Equal to numbers, and to sequences and dicts of them, within a tolerance."""

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None) -> None:
        self.expected, self.rel, self.abs = expected, 1e-6 if rel is None else rel, 1e-12 if abs is None else abs

    def __eq__(self, other: object) -> bool:
        return self._close(self.expected, other)

    __hash__ = None  # type: ignore[assignment]

    def _close(self, expected: Any, value: Any) -> bool:
        if isinstance(expected, list | tuple):
            same = isinstance(value, list | tuple) and len(value) == len(expected)
            return same and all(map(self._close, expected, value))
        if isinstance(expected, dict):
            same = isinstance(value, dict) and value.keys() == expected.keys()
            return same and all(self._close(expected[key], value[key]) for key in expected)
        if not isinstance(value, int | float) or not isinstance(expected, int | float):
            return bool(expected == value)
        return math.isclose(expected, value, rel_tol=self.rel, abs_tol=self.abs)


class _Mark:
    def parametrize(self, names: Any, rows: Any, **_: Any) -> Callable[[Any], Any]:
        axis = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        values = [tuple(row) if len(axis) > 1 else (row,) for row in rows]

        def mark(function: Any) -> Any:
            function.parameters = [*getattr(function, "parameters", []), (axis, values)]
            return function

        return mark

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedError(f"pytest.mark.{name} is not supported")


class _Module(types.ModuleType):
    raises, approx, mark = staticmethod(raises), Approximately, _Mark()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedError(f"pytest.{name} is not supported")


MODULE = _Module("pytest")
