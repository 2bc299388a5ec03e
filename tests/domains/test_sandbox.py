"""P17: untrusted programs within stated limits, with bubblewrap and without."""
# ruff: noqa: E501 - one case a line

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from compositionality.domains.code import sandbox
from compositionality.domains.code.sandbox import Limits, Run, containment, run_script, run_tests

MARK = f"p17-{os.getpid()}"
"""Name of the processes that a test starts: tests may run beside each other."""

ROOT = Path(__file__).parents[2]
SHORT = Limits(wall_s=3.0, cpu_s=2)
PATIENT = replace(SHORT, wall_s=120.0)
"""For what ends by itself, or by another limit, however busy the machine."""
TESTS = "assert f(2) == 4\nassert f(3) == 9"
GOOD = "def f(x):\n    return x * x"

needs_bwrap = pytest.mark.skipif(not containment().full, reason=f"full containment: {containment().missing}")


@pytest.fixture(params=["bubblewrap", "fallback"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Each of the two ways; True for bubblewrap."""
    if request.param == "bubblewrap" and not containment().full:
        pytest.skip(f"full containment: {containment().missing}")
    if request.param == "fallback":
        monkeypatch.setattr(sandbox, "containment", lambda: sandbox.fallback("a test asks for it"))
    return request.param == "bubblewrap"


def run(program: str, given: str = "", limits: Limits = PATIENT) -> Run:
    """The first of the results, after the job has ended."""
    first, *_ = list(run_script(program, [given], limits=limits))
    return first


def leftovers(mark: str) -> list[int]:
    """Running processes of this machine whose command line or name holds ``mark``."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            ended = (path / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
            if not ended and mark in (path / "cmdline").read_text() + (path / "comm").read_text():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def wait_for_leftovers(mark: str, wanted: bool) -> None:
    """Wait until there are such processes, or none any more."""
    deadline = time.monotonic() + 120
    while bool(found := leftovers(mark)) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def test_programs_read_print_and_exit(either: bool) -> None:
    assert run("print(int(input()) * 2)", "21\n") == Run(output="42\n")
    assert run("import sys; print(sys.stdin.read().count('é')); sys.exit(3)", "éé") == Run(3, "2\n")
    assert run("raise ValueError").exit_code == 1
    assert run("import sys\nif __name__ == '__main__':\n    sys.stdout.write('a'); sys.exit()") == Run(output="a")
    assert run("print(open('/dev/stdin').read())", "x").output == "x\n"
    assert run("open('a', 'w').write('b'); print(open('a').read())").output == "b\n"


def test_each_input_is_a_process_of_its_own(either: bool) -> None:
    program = "import os\nprint(input(), os.environ.get('seen'))\nos.environ['seen'] = '1'"
    assert [r.output for r in run_script(program, ["1", "2"])] == ["1 None\n", "2 None\n", ""]


LIMITS = {
    "infinite loop": ("while True: pass", ("time", "")),
    "sleep": ("import time; time.sleep(600)", ("time",)),
    "output without end": ("while True: print('x' * 10000)", ("output",)),
    "10 GB": ("x = bytearray(10 << 30)", ("",)),
    "memory piecemeal": ("x = []\nwhile True: x.append(bytearray(1 << 24))", ("", "memory", "time")),
    "memory of many": (
        "import os\nfor _ in range(12): os.fork() or 0\nx = bytearray(b'x') * (900 << 20)\nimport time; time.sleep(900)",
        ("memory", "processes", ""),
    ),
    "fork bomb": ("import os\nwhile True: os.fork()", ("processes", "")),
    "fork bomb in sessions": (
        "import os\nwhile True:\n    if os.fork() == 0: os.setsid()",
        ("processes", ""),
    ),
    "large file": ("open('big', 'wb').write(b'x' * (64 << 20))", ("",)),
    "many files": ("import os\nx = [open(os.devnull) for _ in range(1000)]", ("",)),
    "kills all it sees": ("import os, signal\nos.kill(-1, signal.SIGKILL)", ("killed", "")),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_p17_limits_end_the_program_and_nothing_is_left(name: str, either: bool) -> None:
    """A limit is a fault of the program: no error of the sandbox."""
    if name == "kills all it sees" and not either:
        pytest.skip("it would end the tests")
    if name.startswith(("fork bomb", "memory of")) and not either:
        pytest.skip("run only where a namespace holds what it starts")
    program, ends = LIMITS[name]
    limits = replace(SHORT, wall_s=1.0) if "time" in ends else PATIENT
    named = f"__import__('ctypes').CDLL(None).prctl(15, {MARK.encode()}, 0, 0, 0)\n{program}"
    begin = time.monotonic()
    found = run(named if either else program, limits=limits)
    assert found.end in ends
    if not found.end:
        assert found.exit_code != 0
    assert time.monotonic() - begin < PATIENT.wall_s
    wait_for_leftovers(MARK, wanted=False)


def test_p17_daemons_and_zombies_do_not_outlive_the_job(either: bool) -> None:
    program = f"""
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            __import__('ctypes').CDLL(None).prctl(15, b'{MARK}', 0, 0, 0)
            time.sleep(6000)
        os._exit(0)
time.sleep(0.1)
print('done')
"""
    assert run(program).output == "done\n"
    wait_for_leftovers(MARK, wanted=False)


def test_a_job_that_is_left_early_ends(either: bool) -> None:
    name = f"__import__('ctypes').CDLL(None).prctl(15, {MARK.encode()}, 0, 0, 0)"
    runs = run_script(f"{name}\nimport time\ntime.sleep(input() == '2' and 6000)", ["1", "2"], limits=PATIENT)
    assert next(runs).exit_code == 0
    wait_for_leftovers(MARK, wanted=True)
    runs.close()
    wait_for_leftovers(MARK, wanted=False)


FORBIDDEN = {
    "reads the passwords": "print(open('/etc/shadow').read())",
    "reads the project": f"print(open({str(ROOT / 'pyproject.toml')!r}).read())",
    "lists the home": f"import os; print(os.listdir({str(Path.home())!r} + '/.ssh'))",
    "writes into the system": "open('/usr/p17', 'w').write('x')",
    "writes into the root": "open('/p17', 'w').write('x')",
    "writes among the devices": "open('/dev/p17', 'w').write('x')",
    "writes into the harness": "open('/run/inside/wire.py', 'a').write('x')",
    "writes kernel settings": "open('/proc/sys/kernel/core_pattern', 'r+')",
    "a connection": "import socket; socket.create_connection(('127.0.0.1', 22), 1)",
    "a name": "import socket; socket.getaddrinfo('example.com', 80)",
    "a raw socket": "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "mounts": "import ctypes, os; assert ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0",
    "changes its user": "import os; os.setuid(0)",
    "reads the first process": "print(open('/proc/1/mem', 'rb').read(1))",
    "writes into its files": "open('/proc/1/fd/1', 'w')",
    "reads its environment": "print(open('/proc/1/environ').read()[0])",
    "traces the first process": "import ctypes; assert ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0",
    "traces its parent": "import ctypes, os; assert ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0",
    "raises its limits": "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))",
    "fills the disk": "for n in range(20): open(str(n), 'wb').write(b'x' * (15 << 20))",
}


@needs_bwrap
@pytest.mark.parametrize("name", FORBIDDEN)
def test_p17_what_a_program_may_not_do_fails(name: str) -> None:
    found = run(FORBIDDEN[name])
    assert not found.end
    assert found.exit_code == 1
    assert found.output == ""


@needs_bwrap
def test_p17_a_namespace_within_gives_no_rights() -> None:
    found = run("import ctypes\nprint(ctypes.CDLL(None).unshare(0x10000000))")
    assert found.output == "-1\n" or "--disable-userns" not in containment().options


def test_p17_the_environment_holds_no_secret(either: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P17_API_KEY", "very-secret-value")
    program = "import os\nprint(dict(os.environ), open('/proc/self/environ').read(), os.listdir('.'))"
    assert "P17" not in run(program).output
    assert "[]" in run(program).output


@needs_bwrap
def test_p17_only_the_sandbox_is_seen() -> None:
    found = run("import os\nprint(*sorted(n for n in os.listdir('/proc') if n.isdigit()))\nprint(*os.listdir('/'))")
    processes, places = found.output.splitlines()
    assert len(processes.split()) == 3  # supervisor, fork server, program
    assert not {"boot", "media", "mnt", "srv", "sys", "var"} & set(places.split())


def test_no_user_namespaces_is_said_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A bubblewrap that the kernel stops."""
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    containment.cache_clear()
    try:
        assert not containment().full
        assert "No permissions to create new namespace" in containment().missing
        assert len(caplog.records) == 1
        assert run("print(1)").output == "1\n"
    finally:
        containment.cache_clear()


@needs_bwrap
def test_p17_a_busy_machine_does_not_go_without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it works is found out once: nothing that is only late may decide it."""
    monkeypatch.setattr(sandbox, "_START_S", 1e-9)
    containment.cache_clear()
    try:
        assert containment().full
    finally:
        containment.cache_clear()


def test_a_sandbox_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_bwrap", lambda *_: ["/bin/false"])
    monkeypatch.setattr(sandbox, "containment", lambda: sandbox.Containment(True, "", "false"))
    with pytest.raises(sandbox.SandboxError, match="status 1"):
        run("print(1)")


def test_the_report_says_how_programs_are_contained() -> None:
    for setting, title in (("", "sandbox: "), ("fallback", "sandbox: fallback")):
        done = subprocess.run(
            [sys.executable, "-m", "compositionality.domains.code.sandbox"], cwd=ROOT, capture_output=True, text=True,
            env={**os.environ, sandbox.FALLBACK_VARIABLE: setting}, check=True,
        )  # fmt: skip
        assert done.stdout.startswith(title)
        assert "wall_s = 7.5" in done.stdout
        assert "not contained: " in done.stdout
    assert "network" in done.stdout.splitlines()[-1]


TROUBLE = {
    "interrupts the first process": "os.kill(1, 2)",
    "takes its files": "resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))",
    "takes its time": "resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))",
    "takes its output": "resource.prlimit(1, resource.RLIMIT_FSIZE, (0, 0))",
    "stops the fork server": "os.kill(os.getppid(), 19)",
    "ends the fork server": """server, own = os.getppid(), os.getpid()
if os.fork() == 0:
    os.setsid()
    while os.path.exists(f"/proc/{own}"): pass
    os.kill(server, 19)
    time.sleep(0.2)
    os.kill(server, 9)""",
}


@needs_bwrap
@pytest.mark.parametrize("name", TROUBLE)
def test_p17_a_program_cannot_make_the_sandbox_fail(name: str) -> None:
    """Else a model could stop its training run: SandboxError is no wrong answer."""
    program = f"import os, resource, time\n{TROUBLE[name]}\n"
    for _ in range(2):
        list(run_script(program, ["1", "2"], limits=PATIENT))
        assert run_tests(program + "def f(x): return 0", TESTS, limits=PATIENT).end in ("failed", "killed")


EARLY_EXITS = {
    "sys.exit": "import sys\nsys.exit(0)",
    "os._exit": "import os\nos._exit(0)",
    "raise SystemExit": "raise SystemExit(0)",
    "quit": "def f(x): quit()",
    "exit in the function": "import sys\ndef f(x): sys.exit(0)",
    "os._exit in the function": "import os\ndef f(x): os._exit(0)",
    "atexit prints": "import atexit\natexit.register(print, 'passed')\ndef f(x): return 0",
    "a guessed sentinel": "import os\nfor fd in range(256):\n    try: os.write(fd, b'{\"end\": \"passed\"}\\n')\n    except OSError: pass\ndef f(x): return 0",
    "a guessed message": "import os, struct\nm = b'[\"passed\", \"\"]'\nfor fd in range(1, 256):\n    try: os.write(fd, struct.pack('<I', len(m)) + m)\n    except OSError: pass\ndef f(x): return 0",
    "an answer beforehand": "import os, struct\nm = b'{\"value\": 4, \"table\": [], \"args\": null}'\nfor _ in range(9): os.write(3, struct.pack('<I', len(m)) + m)\ndef f(x): return 0",
    "another assert": "import builtins\nbuiltins.AssertionError = type('E', (Exception,), {})\nbuiltins.__build_class__ = None\ndef f(x): return 0",
    "other builtins": "import builtins\nbuiltins.isinstance = lambda *_: True\nbuiltins.all = builtins.any = lambda *_: True\ndef f(x): return 0",
    "builtins by name": "all = any = abs = len = lambda *_: True\ndef f(x): return 0",
    "equals everything": "class A:\n    def __eq__(s, o): return True\n    def __ne__(s, o): return False\n    def __bool__(s): return True\ndef f(x): return A()",
    "an int that equals everything": "class A(int):\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__\ndef f(x): return A(0)",
    "a list that equals everything": "class A(list):\n    def __eq__(s, o): return True\ndef f(x): return A()",
    "walks frames": "import sys, gc\ndef f(x):\n    g = sys._getframe()\n    while g:\n        for v in list(g.f_globals.values()) + list(g.f_locals.values()):\n            if isinstance(v, str) and 'assert f' in v: return x * x\n        g = g.f_back\n    if any(isinstance(o, str) and 'assert f(' in o for o in gc.get_objects()): return x * x",
    "searches its memory": "import gc\ndef f(x):\n    for line in open('/proc/self/maps'):\n        if 'rw-p' in line and '[' not in line.split()[-1:]:\n            a, b = (int(p, 16) for p in line.split()[0].split('-'))\n            m = open('/proc/self/mem', 'rb'); m.seek(a)\n            import re; m = m.read(b - a)\n            if re.search(rb'assert f\\x283\\x29 == 9', m): return x * x",
    "kills its parent": "import os\nos.kill(os.getppid(), 9)\ndef f(x): return 0",
    "kills the tests": "import os\ndef f(x):\n    for n in os.listdir('/proc'):\n        if n.isdigit() and int(n) not in (1, os.getpid()): os.kill(int(n), 9)\n    return x * x",
    "closes its channel": "import os\nos.close(3)\ndef f(x): return 0",
    "changes what is tested": "import sys\nsys.modules['tests'] = None\nsys.settrace(lambda *_: None)\ndef f(x): return 0",
    "asks for the tests' globals": "import os, json, struct\ndef send(m):\n    m = json.dumps(m).encode(); os.write(3, struct.pack('<I', len(m)) + m)\ndef f(x):\n    send({'ask': 'get', 'of': 0, 'args': [['__globals__'], {'d': []}], 'table': []})\n    return 0",
    "names a builtin": "import os, json, struct\ndef f(x):\n    m = json.dumps({'value': {'p': 'eval'}, 'table': [], 'args': None}).encode()\n    os.write(3, struct.pack('<I', len(m)) + m)\n    return 0",
    "nothing": "",
    "syntax error": "def f(x:",
    "prints the answer": "print(4)\nprint(9)",
}  # fmt: skip


@pytest.mark.parametrize("name", EARLY_EXITS)
def test_p17_an_early_exit_does_not_pass(name: str, either: bool) -> None:
    if name == "kills the tests" and not either:
        pytest.skip("it would end the tests")
    assert run_tests(EARLY_EXITS[name], TESTS, limits=SHORT).end in ("failed", "killed", "time")


def test_right_programs_pass(either: bool) -> None:
    assert run_tests(GOOD, TESTS).end == "passed"
    assert (
        run_tests(
            "class Solution:\n    def f(self, x):\n        return x * x", TESTS.replace("f(", "Solution().f(")
        ).end
        == "passed"
    )
    assert run_tests("import sys\n" + GOOD + "\nif __name__ == '__main__':\n    sys.exit(1)", TESTS).end == "passed"


NODES = """
class Node:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next


def chain(values):
    head = None
    for value in reversed(values):
        head = Node(value, head)
    return head


def same_chain(a, b):
    while a and b:
        if a.val != b.val:
            return False
        a, b = a.next, b.next
    return a is None and b is None
"""
TESTED = {
    "objects": ("def f(head):\n    back = None\n    while head:\n        head.next, back, head = back, head, head.next\n    return back", "assert same_chain(f(chain([1, 2, 3])), chain([3, 2, 1]))"),
    "a long chain": ("def f(head):\n    return head", "assert same_chain(f(chain(range(5000))), chain(range(5000)))"),
    "in place": ("def f(x):\n    x.sort()", "a = [3, 1, 2]\nassert f(a) is None\nassert a == [1, 2, 3]"),
    "in place, nested": ("def f(x):\n    x[0][0] = 9", "a = [[1], [2]]\nf(a)\nassert a == [[9], [2]]"),
    "an object in place": ("def f(h):\n    h.next.val = 7", "h = chain([1, 2])\nf(h)\nassert h.next.val == 7"),
    "a class": ("class Box:\n    def __init__(self, n):\n        self.n = n\n    def put(self, v):\n        self.n += v\n        return self.n", "b = Box(3)\nassert b.put(4) == 7\nassert b.n == 7\nassert isinstance(b, Box)"),
    "a callback": ("def f(g, x):\n    return [g(v) for v in x]", "assert f(lambda v: v + 1, [1, 2]) == [2, 3]\nassert f(str.upper, ['a']) == ['A'] if False else True"),
    "an interface": ("def f(api):\n    return api.low() + 1", "class Api:\n    def low(self):\n        return 4\nassert f(Api()) == 5"),
    "a generator": ("def f(n):\n    while True:\n        yield n\n        n += 1", "g = f(3)\nassert [next(g), next(g)] == [3, 4]"),
    "an iterator as argument": ("def f(x):\n    return sum(x)", "assert f(iter([1, 2])) == 3\nassert f(v for v in (1, 2)) == 3\nassert f(range(3)) == 3"),
    "kinds": ("def f(x):\n    return x", "for v in (1, -1.5, 'é', None, True, b'x', 2**100, (1, 2), {1, 2}, frozenset({3}), {1: [2], (3,): 4}, 1j, [[]], float('inf')):\n    assert f(v) == v and type(f(v)) is type(v)"),
    "keywords": ("def f(a, *, b=2):\n    return a + b", "assert f(1) == 3\nassert f(a=1, b=5) == 6"),
    "exceptions": ("def f(x):\n    raise ValueError('no')", "try:\n    f(1)\nexcept ValueError as e:\n    assert str(e) == 'no'\nelse:\n    assert False"),
    "subclasses": ("from collections import Counter, OrderedDict\ndef f(x):\n    return Counter(x)", "assert f('aab') == {'a': 2, 'b': 1}"),
    "a large number": ("def f(n):\n    return 3 ** n", "assert f(20000) == 3 ** 20000"),
    "constants": ("N = 5", "assert N == 5"),
    "imports of the prefix": ("def f(x):\n    return math.floor(x)", "assert f(2.5) == 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", TESTED)
def test_what_tests_of_others_do(name: str) -> None:
    program, tests = TESTED[name]
    found = run_tests(program, tests, "import math\n" + NODES)
    assert found.end == "passed", found.text


@pytest.mark.parametrize(
    "program",
    [
        "def f(head):\n    return head",
        "class A:\n    val, next = 3, None\n    def __eq__(s, o): return True\ndef f(head):\n    return A()",
        "class Node:\n    def __eq__(s, o): return True\n    def __bool__(s): return False\ndef f(head):\n    return Node()",
    ],
)
def test_wrong_objects_fail(program: str) -> None:
    assert run_tests(program, "assert same_chain(f(chain([1, 2, 3])), chain([3, 2, 1]))", NODES).end == "failed"


def test_an_object_cannot_replace_the_methods_of_the_tests() -> None:
    prefix = "class P:\n    def __init__(self, v):\n        self.v = v\n    def equals(self, o):\n        return self.v == o.v"
    program = "def f(x):\n    p = P(0)\n    p.equals = lambda o: True\n    return p"
    assert run_tests(program, "assert f(1).equals(P(1))", prefix).end == "failed"


def test_pytest_files() -> None:
    tests = """
import pytest
from solution import f

@pytest.mark.parametrize("x, y", [(2, 4), (3, 9)])
def test_square(x, y):
    assert f(x) == y

def test_close():
    assert f(0.1) == pytest.approx(0.01)

class TestErrors:
    def test_text(self):
        with pytest.raises(TypeError):
            f("a")
"""
    assert run_tests(GOOD, tests, style="pytest").end == "passed"
    assert run_tests(GOOD.replace("x * x", "x + x"), tests, style="pytest").end == "failed"
    assert run_tests("", tests, style="pytest").end == "failed"
    names = "\n".join(
        f"{name} = 1" for name in ("setUp", "tearDown", "setup_module", "teardown_function", "test_x", "TestX")
    )
    everything = tests.replace("import f\n", "import *\n")
    assert run_tests(f"{names}\n{GOOD}", everything, style="pytest").end == "passed"
    assert run_tests(f"{names}\ndef f(x): return x", everything, style="pytest").end == "failed"
