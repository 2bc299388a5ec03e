"""The process of the tests, which the solution cannot reach: it asks for the solution's functions over a channel."""

import _ast
import builtins
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .solution import prepare
from .wire import GoneError, Peer, Remote, send


class _Tests(Peer):
    """The tests' end. The solution may call functions that it was given, and use public names of given objects.

    ``used``: the tests have called something of the solution or asked for plain data; to import a function is no use.
    """

    trusted = True
    used = False

    def export(self, value: Any) -> Any:
        """Export what the tests define; a builtin function by its name."""
        kind: type[Any] = type(value)
        is_of_tests = kind.__module__ == "tests" or (kind is type and value.__module__ == "tests")
        if is_of_tests or kind in (types.FunctionType, types.MethodType):
            return super().export(value)
        name = str(getattr(value, "__name__", ""))
        if name and getattr(builtins, name, None) is value:
            return {"p": name}
        raise TypeError(f"a {kind.__name__} cannot be given to a solution")

    def ask(self, operation: str, target: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        self.used = self.used or operation == "call"
        value = super().ask(operation, target, args, kwargs)
        self.used = self.used or (operation == "get" and not isinstance(value, Remote))
        return value

    def perform(self, request: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        target = self.exported[request["of"]]
        if request["ask"] == "call" and callable(target):
            return target(*args, **kwargs)
        if request["ask"] == "get" and type(target).__module__ == "tests" and not args[0].startswith("_"):
            return getattr(target, args[0])
        raise TypeError(f"{request['ask']} is not answered")


class _Names(dict[str, Any]):
    """The globals of the tests: names that they lack and builtins do not have are the solution's."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(__name__="tests", __builtins__=builtins, **{MARKED: marked})
        self._peer = peer

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        try:
            self[name] = self._peer.ask("get", None, [name])
        except AttributeError:
            raise KeyError(name) from None
        return self[name]


def check(channel: int, results: int, job: dict[str, Any]) -> NoReturn:
    """Run the tests; write to ``results`` passed, failed or broken (tests that cannot run), and why."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        prepare([null, null, null, channel, results], {**job["limits"], "RLIMIT_FSIZE": 0})
        sys.set_int_max_str_digits(0)
        sys.setrecursionlimit(20_000)
        result = _check(3, job)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the solution has not passed
        result = ["failed", f"{type(error).__name__}: {error}"[:300]]
    send(4, result)
    os._exit(0)


def classes_of(prefix: str) -> list[str]:
    if "class " not in prefix:
        return []
    import ast

    try:
        return [node.name for node in ast.parse(prefix).body if isinstance(node, ast.ClassDef)]
    except SyntaxError:
        return []


def _check(channel: int, job: dict[str, Any]) -> list[str]:
    try:
        tree: Any = compile(job["tests"], "tests.py", "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
        _mark_compared(tree)
        code = compile(tree, "tests.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return ["broken", f"the tests do not compile: {error}"]
    if missing := _missing_packages(job["tests"]):
        return ["broken", f"the tests import {missing[0]}, which the sandbox does not have"]
    shared = classes_of(job["prefix"])
    names: _Names
    peer = _Tests(channel, lambda: {name: dict.__getitem__(names, name) for name in shared if name in names})
    names = _Names(peer)
    sys.modules["tests"] = types.ModuleType("tests")
    if job["prefix"]:  # the head of a function, or a package that is missing here, defines nothing
        try:
            exec(compile(job["prefix"], "prefix.py", "exec", dont_inherit=True), names)  # noqa: S102 - the sandbox
        except GoneError:
            raise
        except Exception:  # noqa: BLE001 - what it has defined until then stays
            pass
    sys.modules["solution"] = _solution_module(peer, names)
    if "pytest" in job["tests"] or job["style"] == "pytest":
        sys.modules["pytest"] = _Pytest("pytest")
    peer.ask("names", None)  # the solution's own top level has run
    try:
        exec(code, names)  # noqa: S102 - this is the sandbox
        if job["style"] == "pytest" and not sum(map(_run_test, _test_functions(names))):
            return ["broken", "the tests have no test function"]
    except UnsupportedError as error:
        return ["broken", str(error)]
    except SystemExit as error:
        return ["failed", "the tests exit"] if error.code else ["broken", "the tests exit before their end"]
    peer.ask("names", None)  # it lives still
    if not peer.used:
        return ["broken", "the tests use nothing of the solution"]
    return ["passed", ""]


MARKED = " marked"  # no name of Python's, so that no test can mean or change it
_EQUALITIES = (_ast.Eq, _ast.NotEq, _ast.In, _ast.NotIn)
_ASSERTIONS = {f"assert{kind}Equal" for kind in ("", "Not", "List", "Tuple", "Set", "Dict", "Count", "Sequence")} | {
    "assertIn",
    "assertNotIn",
}


def marked(value: Any) -> Any:
    """Return plain data with its booleans told from 0 and 1, which are equal to them for Python."""
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, dict):
        return {marked(key): marked(one) for key, one in value.items()}
    for kind, plain in ((list, list), (tuple, tuple), (set, frozenset), (frozenset, frozenset)):
        if isinstance(value, kind):
            return plain(map(marked, value))
    return value


def _mark_compared(node: Any) -> None:
    """Let every comparison by equality or membership in these tests, unittest's too, see ``marked`` values."""
    for name in node._fields:
        within = getattr(node, name, None)
        for one in within if isinstance(within, list) else [within]:
            if isinstance(one, _ast.AST) and not isinstance(one, _ast.Constant):
                _mark_compared(one)
    if isinstance(node, _ast.Compare) and all(isinstance(sign, _EQUALITIES) for sign in node.ops):
        node.left, *node.comparators = map(_call_marked, (node.left, *node.comparators))
    elif isinstance(node, _ast.Call) and getattr(node.func, "attr", "") in _ASSERTIONS:
        node.args[:2] = map(_call_marked, node.args[:2])


def _call_marked(operand: Any) -> Any:
    place = {name: getattr(operand, name) for name in operand._attributes}
    return _ast.Call(_ast.Name(MARKED, _ast.Load(), **place), [operand], [], **place)


def _missing_packages(tests: str) -> list[str]:
    """Return the packages that the tests import at their top level and that are not here."""
    if "import " not in tests:
        return []
    import ast
    from importlib.util import find_spec

    roots: list[str] = []
    for node in ast.parse(tests).body:
        if isinstance(node, ast.Import):
            roots += [name.name.partition(".")[0] for name in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            roots.append((node.module or "").partition(".")[0])
    return [root for root in roots if root not in ("solution", "pytest") and find_spec(root) is None]


def _solution_module(peer: _Tests, names: _Names) -> types.ModuleType:
    """Return the module that tests import; ``*`` gives no name that builtins or the tests have, and is no use."""

    class Solution(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name == "__all__":
                used = peer.used
                taken = {*dir(builtins), *names}
                public = [name for name in peer.ask("names", None) if name not in taken and not name.startswith("__")]
                vars(self).update({name: peer.ask("get", None, [name]) for name in public})
                peer.used = used
                return public
            if name.startswith("__"):
                raise AttributeError(name)
            return peer.ask("get", None, [name])

    return Solution("solution")


# ---- the part of pytest that tests of single functions use: raises, approx, mark.parametrize; the rest is refused


class UnsupportedError(BaseException):
    """The tests use what is not here: they cannot be run."""


class Raises:
    """The block of a with statement, or the function that is given, must raise ``kind``."""

    def __init__(self, kind: Any, *call: Any, match: str | None = None, **kwargs: Any) -> None:
        self.kind, self.match = kind, match
        self.value: BaseException | None = None
        self.type: type[BaseException] | None = None
        if call:
            with self:
                call[0](*call[1:], **kwargs)

    def __enter__(self) -> "Raises":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if error is None:
            raise AssertionError("nothing was raised")
        if not isinstance(error, self.kind):
            return False
        self.value, self.type = error, kind
        if self.match is not None:
            import re

            if not re.search(self.match, str(error)):
                raise AssertionError(str(error)) from error
        return True


class Approximately:
    """Equal to numbers, and to sequences and dicts of them, within a tolerance: ``abs`` alone, or the larger one."""

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None) -> None:
        self.expected, self.abs = expected, 1e-12 if abs is None else abs
        self.rel = rel if rel is not None else 1e-6 if abs is None else 0.0

    def __eq__(self, other: object) -> bool:
        return self._close(self.expected, other)

    __hash__ = None  # type: ignore[assignment]

    def _close(self, expected: Any, value: Any) -> bool:
        import math

        if isinstance(expected, list | tuple):
            is_alike = isinstance(value, list | tuple) and len(value) == len(expected)
            return is_alike and all(map(self._close, expected, value))
        if isinstance(expected, dict):
            is_alike = isinstance(value, dict) and value.keys() == expected.keys()
            return is_alike and all(self._close(expected[key], value[key]) for key in expected)
        if not isinstance(value, int | float) or not isinstance(expected, int | float):
            return bool(expected == value)
        tolerance = max(self.abs, self.rel * abs(expected))
        return expected == value or (tolerance != math.inf and abs(expected - value) <= tolerance)


class _Mark:
    def parametrize(self, argnames: Any, argvalues: Any, **_: Any) -> Callable[[Any], Any]:
        axis = [name.strip() for name in argnames.split(",")] if isinstance(argnames, str) else list(argnames)
        values = [tuple(row) if len(axis) > 1 else (row,) for row in argvalues]

        def mark(function: Any) -> Any:
            function.parameters = [*getattr(function, "parameters", []), (axis, values)]
            return function

        return mark

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedError(f"pytest.mark.{name} is not supported")


_SET_UP = frozenset(
    f"{begin}{end}" for begin in ("setup", "teardown") for end in ("_module", "_function", "_class", "_method")
) | {"setUp", "tearDown", "setUpClass", "tearDownClass", "setUpModule", "tearDownModule"}


class _Pytest(types.ModuleType):
    raises, approx, mark = Raises, Approximately, _Mark()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedError(f"pytest.{name} is not supported")


def _test_functions(names: dict[str, Any]) -> list[Callable[..., Any]]:
    import inspect

    functions: list[Callable[..., Any]] = []
    for name, value in list(names.items()):
        if isinstance(value, Remote):
            continue
        if name in _SET_UP and inspect.isroutine(value):  # a plain value may be the solution's
            raise UnsupportedError(f"{name} of pytest is not supported")
        if name.startswith("test") and inspect.isroutine(value):
            functions.append(value)
        elif name.startswith("Test") and inspect.isclass(value):
            defined = {part for kind in value.__mro__ if kind.__module__ == "tests" for part in vars(kind)}
            parts = {part: getattr(value(), part) for part in dir(value) if part in defined}
            functions += _test_functions(parts)
    return functions


def _run_test(function: Callable[..., Any]) -> int:
    """Run a test once for each combination of its parameters; return how often."""
    import inspect
    import itertools

    axes = getattr(function, "parameters", [])
    names = [name for axis, _ in axes for name in axis]
    if set(inspect.signature(function).parameters) - set(names):
        raise UnsupportedError("fixtures of pytest are not supported")
    rows = list(itertools.product(*(values for _, values in axes)))
    for row in rows:
        result = function(**dict(zip(names, itertools.chain(*row), strict=True)))
        if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise UnsupportedError(f"{function.__name__} is a coroutine or a generator: calling it runs nothing")
    return len(rows)
