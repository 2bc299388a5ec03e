"""P17: wrong programs against tests of every form, by rule: a program that answers 0 never passes, a right one does."""

import math
from itertools import product

import pytest

from compositionality.domains.code.inside.checker import Approximately
from compositionality.domains.code.sandbox import Limits, containment, run_script, run_tests

RIGHT, WRONG = "def f(x):\n    return x * x", "def f(x):\n    return 0"
SHADOWED = {
    "range": ("[]", "for x in range(2, 4):\n    assert f(x) == x * x"),
    "all": ("True", "assert all([f(2) == 4])"),
    "abs": ("0", "assert abs(f(2) - 4) < 1e-9"),
    "zip": ("[]", "for x, y in zip([2], [4]):\n    assert f(x) == y"),
    "isclose": ("True", "assert isclose(f(2), 4)"),
    "same": ("True", "assert same(f(2), 4)"),
}
"""By name: what a program of that name returns, and tests that use the name of builtins, an import or their own."""
HEAD = "from math import isclose\ndef same(one, other):\n    return one == other\n"
IMPORTS = (HEAD + "from solution import *\n", "from solution import *\n" + HEAD, HEAD)


@pytest.mark.parametrize(("name", "head"), product(SHADOWED, IMPORTS))
def test_p17_a_program_cannot_replace_a_name_of_its_tests(name: str, head: str) -> None:
    returned, tests = SHADOWED[name]
    shadow = f"\ndef {name}(*_, **__):\n    return {returned}"
    assert run_tests(WRONG + shadow, head + tests).end == "failed"
    assert run_tests(RIGHT + shadow, head + tests).end == "passed"


@pytest.mark.parametrize(
    "tests",
    [
        "assert all(a == b for a, b in zip(map(f, [2, 3]), [4, 9]))",
        "for a, b in zip(map(f, [2, 3]), [4, 9]):\n    assert a == b",
        "assert [a for a in map(f, [2])] == [4] or not list(map(f, [2]))",
    ],
)
def test_p17_an_exception_of_a_program_ends_no_loop_of_its_tests(tests: str) -> None:
    for raised in ("StopIteration", "StopAsyncIteration", "GeneratorExit", "IndexError", "KeyError"):
        assert run_tests(f"def f(x):\n    raise {raised}", tests).end == "failed", raised
    assert run_tests(RIGHT, tests).end == "passed"


IMPORT, UNCALLED = "from solution import f\n", "def check(candidate):\n    assert candidate(2) == 4\n"
CASE = "import unittest\nclass TestF(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(f(2), 4)"
BROKEN = {
    "pytest": [
        IMPORT + "async def test_f():\n    assert f(2) == 4",
        IMPORT + "def test_f():\n    assert f(2) == 4\n    yield",
        IMPORT + "async def test_f():\n    assert f(2) == 4\n    yield",
        IMPORT
        + "class TestF:\n    def setup_method(self):\n        self.x = 2\n    def test_f(self):\n        f(self.x)",
        IMPORT + f"{CASE}\n    def setUp(self):\n        self.x = 2",
        IMPORT + "def setup_function(_):\n    pass\ndef test_f():\n    assert f(2) == 4",
        IMPORT + "def setup_module():\n    pass\ndef test_f():\n    assert f(2) == 4",
        IMPORT + "def test_f(tmp_path):\n    assert f(2) == 4",
        IMPORT + "import pytest\n@pytest.fixture\ndef a():\n    return f(2)",
        IMPORT + "def test_f():\n    pass",
        "from solution import *\ndef test_f():\n    def inner():\n        assert f(2) == 4",
    ],
    "assert": [
        *(f"{head}{UNCALLED}" for head in ("", IMPORT, "from solution import *\n")),
        f"{IMPORT}{UNCALLED}if __name__ == '__main__':\n    check(f)",
        IMPORT + "import sys\nsys.exit()\nassert f(2) == 4",
        f"{IMPORT}{CASE}\nunittest.main()",
        "def broken(",
    ],
}


@pytest.mark.parametrize(("style", "tests"), [(style, one) for style, some in BROKEN.items() for one in some])
def test_p05_tests_that_do_not_run_or_never_call_the_program_are_broken_whatever_it_is(style: str, tests: str) -> None:
    for program in (RIGHT, WRONG, f"{RIGHT}\nN = 5", f"{WRONG}\nN = 5"):
        assert run_tests(program, tests, style=style).end == "broken"


@pytest.mark.parametrize(
    "tests",
    [
        CASE, CASE.replace("(unittest.TestCase)", "").replace("self.assertEqual(f(2), 4)", "assert f(2) == 4"),
        "import pytest\ndef test_f():\n    pytest.raises(TypeError, f, 'a')\n    assert f(2) == 4",
        "import pytest\n@pytest.mark.parametrize(argnames='x', argvalues=[2, 3])\n"
        "def test_f(x):\n    assert f(x) == x * x",
    ],
)  # fmt: skip
def test_other_forms_of_tests_that_run(tests: str) -> None:
    for program, end in ((RIGHT, "passed"), (WRONG, "failed")):
        assert run_tests(program, IMPORT + tests, style="pytest").end == end


def test_p04_approx_is_that_of_pytest() -> None:
    numbers = (0, 1, -1, 2, 1.0000005, 1e9, 1e9 + 500, 1e-13, math.inf, -math.inf, math.nan, 0.5, 1.5)
    for expected, value in product(numbers, repeat=2):
        for kinds in ({}, {"rel": 0.5}, {"abs": 0.1}, {"abs": 1e-3}, {"rel": 0.1, "abs": 0.3}, {"rel": 0}, {"abs": 0}):
            theirs = value == pytest.approx(expected, **kinds)
            assert (value == Approximately(expected, **kinds)) == theirs, (expected, value, kinds)


VALUES = ("True", "False", "1", "0", "1.0", "2", "'True'", "None")
NESTS = ("{}", "[{}, 5]", "({},)", "{{'a': [{}]}}", "{{{}}}", "{{{}: 3}}")
COMPARED = (
    "assert (f({}) == {}) is {same}", "assert (f({}) != {}) is not {same}", "assert (f({}) in [7, {}]) is {same}",
    "def check(candidate):\n    for a, b in [({}, {})]:\n        assert (candidate(a) == b) is {same}\ncheck(f)",
    "assert all([f({}) == {}]) is {same}",
    "import unittest\nunittest.TestCase().assert{equal}(f({}), {})",
    "import unittest\nunittest.TestCase().assert{within}(f({}), [7, {}])",
)  # fmt: skip


@pytest.mark.parametrize("form", COMPARED)
def test_p04_a_boolean_equals_no_number_in_any_comparison_of_tests_and_whole_floats_do(form: str) -> None:
    """By all pairs of values in all nests, and 1.0 is 1, as in Python."""
    pairs = [(a, b, a == b or {a, b} == {"1", "1.0"}) for a, b in product(VALUES, repeat=2)]
    cases = [(nest.format(a), nest.format(b), same) for nest in NESTS for a, b, same in pairs]
    program = f"VALUES = [{', '.join(value for value, _, _ in cases)}]\ndef f(place):\n    return VALUES[place]"
    tests = "\n".join(
        form.format(place, b, same=same, equal="Equal" if same else "NotEqual", within="In" if same else "NotIn")
        for place, (_, b, same) in enumerate(cases)
    )
    found = run_tests(program, tests)
    assert found.end == "passed", found.text


@pytest.mark.parametrize(
    ("right", "wrong", "kind"),
    [
        ("{'a': True}", "{'a': 1}", "OrderedDict(a=True)"),
        ("{'a': [True]}", "{'a': [1]}", "defaultdict(list, a=[True])"),
        ("{'a': 1}", "{'a': True}", "Counter('a')"), ("(1, True)", "(1, 1)", "namedtuple('Pair', 'a b')(1, True)"),
        ("{1, False}", "{1, 0}", "frozenset([1, False])"),
    ],
)  # fmt: skip
def test_p04_a_boolean_equals_itself_in_whatever_container_tests_have_it(right: str, wrong: str, kind: str) -> None:
    tests = f"from collections import *\nassert f(0) == {kind}\nassert {kind} == f(0)"
    for result, end in ((right, "passed"), (wrong, "failed")):
        assert run_tests(f"def f(x):\n    return {result}", tests).end == end, result


@pytest.mark.parametrize(
    "program",
    [
        *(f"import socket\nsocket.socket({family}, socket.SOCK_STREAM)" for family in (1, 2, 10, 38, 40)),
        "import os\nos.memfd_create('x')",
        "import ctypes\nassert ctypes.CDLL(None).shmget(0, 1 << 20, 0o1600) >= 0",
    ],
)
def test_p17_no_socket_of_any_family_and_no_memory_that_counts_for_no_process(program: str) -> None:
    assert next(run_script(program, [""])).exit_code == 1


@pytest.mark.skipif(not containment().full, reason=f"full containment: {containment().missing}")
@pytest.mark.parametrize("memory", ["mmap.mmap(-1, 90 << 20)", "bytearray(90 << 20)"])
def test_p17_shared_memory_counts(memory: str) -> None:
    program = f"""import mmap, os, time
for _ in range(2): os.fork()
memory = {memory}
for place in range(0, 90 << 20, 1 << 20): memory[place:place + (1 << 20)] = bytes(1 << 20)
time.sleep(900)"""
    assert next(run_script(program, [""], limits=Limits(wall_s=120.0, memory_mb=128))).end == "memory"
