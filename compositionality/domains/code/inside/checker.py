"""The process of the tests, which the solution cannot reach: it asks for the solution's functions over a channel."""

import builtins
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .solution import prepare
from .wire import GoneError, Peer, Remote, send


class _Tests(Peer):
    """The tests' end. The solution may call functions that it was given, and use public names of given objects."""

    trusted = True
    asked_for_a_name = False

    def export(self, value: Any) -> Any:
        """As the base class, for what the tests define; a builtin function by its name."""
        kind: type[Any] = type(value)
        mine = kind.__module__ == "tests" or (kind is type and value.__module__ == "tests")
        if mine or kind in (types.FunctionType, types.MethodType):
            return super().export(value)
        name = str(getattr(value, "__name__", ""))
        if name and getattr(builtins, name, None) is value:
            return {"p": name}
        raise TypeError(f"a {kind.__name__} cannot be given to a solution")

    def ask(self, operation: str, target: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        self.asked_for_a_name = self.asked_for_a_name or operation == "get"
        return super().ask(operation, target, args, kwargs)

    def perform(self, request: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        found = self.exported[request["of"]]
        if request["ask"] == "call" and callable(found):
            return found(*args, **kwargs)
        if request["ask"] == "get" and type(found).__module__ == "tests" and not args[0].startswith("_"):
            return getattr(found, args[0])
        raise TypeError(f"{request['ask']} is not answered")


class _Names(dict[str, Any]):
    """The globals of the tests: names that they lack and builtins do not have are the solution's."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(__name__="tests", __builtins__=builtins)
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
    """Run the tests; the result goes to ``results``: passed, failed or broken (tests that cannot run), and why."""
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
    """The classes that the problem defines."""
    if "class " not in prefix:
        return []
    import ast

    try:
        return [node.name for node in ast.parse(prefix).body if isinstance(node, ast.ClassDef)]
    except SyntaxError:
        return []


def _check(channel: int, job: dict[str, Any]) -> list[str]:
    try:
        code = compile(job["tests"], "tests.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return ["broken", f"the tests do not compile: {error}"]
    if missing := _missing_packages(job["tests"]):
        return ["broken", f"the tests import {missing[0]}, which the sandbox does not have"]
    shared = classes_of(job["prefix"])
    names: _Names
    peer = _Tests(channel, lambda: {name: dict.__getitem__(names, name) for name in shared if name in names})
    names = _Names(peer)
    module = types.ModuleType("tests")
    sys.modules["tests"] = module
    if shared or job["prefix"]:
        _run_prefix(job["prefix"], names)
    sys.modules["solution"] = _solution_module(peer)
    unsupported = _install_pytest() if "pytest" in job["tests"] or job["style"] == "pytest" else GoneError
    peer.ask("names", None)  # the solution's own top level has run
    try:
        exec(code, names)  # noqa: S102 - this is the sandbox
        if job["style"] == "pytest":
            ran = sum(_run_function(function) for function in _functions(names))
            if not ran:
                return ["broken", "the tests have no test function"]
    except unsupported as error:
        return ["failed" if unsupported is GoneError else "broken", str(error)]
    peer.ask("names", None)  # it lives still
    if not peer.asked_for_a_name:
        return ["broken", "the tests use nothing of the solution"]
    return ["passed", ""]


def _missing_packages(tests: str) -> list[str]:
    """The packages that the tests import at their top level and that are not here."""
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


def _install_pytest() -> type[BaseException]:
    from . import fake_pytest

    sys.modules["pytest"] = fake_pytest.MODULE
    return fake_pytest.UnsupportedError


def _run_prefix(prefix: str, names: _Names) -> None:
    """What the problem defines; the head of a function, or a package that is missing here, defines nothing."""
    try:
        exec(compile(prefix, "prefix.py", "exec", dont_inherit=True), names)  # noqa: S102 - this is the sandbox
    except GoneError:
        raise
    except Exception:  # noqa: BLE001
        return


def _solution_module(peer: Peer) -> types.ModuleType:
    class Solution(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name == "__all__":
                return peer.ask("names", None)
            if name.startswith("__"):
                raise AttributeError(name)
            return peer.ask("get", None, [name])

    return Solution("solution")


def _functions(names: dict[str, Any]) -> list[Callable[..., Any]]:
    import inspect

    found: list[Callable[..., Any]] = []
    for name, value in list(names.items()):
        if isinstance(value, Remote):
            continue
        if name.startswith("test") and inspect.isfunction(value):
            found.append(value)
        elif name.startswith("Test") and inspect.isclass(value):
            found += [getattr(value(), part) for part in dir(value) if part.startswith("test")]
    return found


def _run_function(function: Callable[..., Any]) -> int:
    """Once for each combination of its parameters."""
    import inspect
    import itertools

    from . import fake_pytest

    axes = getattr(function, "parameters", [])
    names = [name for axis, _ in axes for name in axis]
    if set(inspect.signature(function).parameters) - set(names):
        raise fake_pytest.UnsupportedError("fixtures of pytest are not supported")
    rows = list(itertools.product(*(values for _, values in axes)))
    for row in rows:
        function(**dict(zip(names, itertools.chain(*row), strict=True)))
    return len(rows)
