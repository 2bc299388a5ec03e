"""The rules of the architecture: layers, light start, no reference to one machine, length of files and functions."""

import ast
import re
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
HEAVY = ["torch", "transformers", "vllm", "verl", "ray", "wandb", "altair"]
TEXT = {".py", ".sh", ".md", ".yaml", ".toml", ".sbatch", ".css", ".js"}

LONGEST_FILE, LONGEST_FUNCTION = 400, 80
LONG_FILES = {
    "compositionality/train/grpo.py": "the trainer to read: loop, advantage, loss and update in one file",
}
"""Files of the package that may be longer than LONGEST_FILE lines, each with its reason."""

PUBLIC_HOSTS = {"github.com", "arxiv.org", "huggingface.co", "download.pytorch.org", "127.0.0.1", "localhost"}
RESERVED_HOST = re.compile(r"[a-z]+|127\.?|.*\.(example|invalid|test)")
"""Host names that cannot be anybody's: without a dot, an abbreviated loopback address, or of RFC 2606."""

SECRETS = re.compile(
    r"hf_[A-Za-z0-9]{30,}|sk-[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[A-Z0-9]{16}|BEGIN [A-Z ]*PRIVATE KEY"
)


@cache
def tracked_texts() -> dict[str, str]:
    """The text of every tracked text file except this test, by its path."""
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    paths = {name: ROOT / name for name in listing.splitlines() if name != Path(__file__).relative_to(ROOT).as_posix()}
    return {name: path.read_text() for name, path in paths.items() if path.suffix in TEXT and path.is_file()}


def test_no_room_has_more_lines_than_its_row_and_no_row_is_loose() -> None:
    rows = yaml.safe_load((ROOT / "tests" / "rooms.yaml").read_text())
    for room, most in rows.items():
        pattern = room if room.endswith(".py") else f"{room}/**/*.{'sh' if room == 'bash' else 'py'}"
        lines = sum(len(path.read_text().splitlines()) for path in ROOT.glob(pattern))
        assert lines <= most, (
            f"{room}: {lines} lines, of at most {most}: raise its row in tests/rooms.yaml, say what for"
        )
        assert lines >= 0.95 * most, f"{room}: only {lines} lines, lower its row in tests/rooms.yaml"
    rooms = {f"compositionality/{path.parent.name}" for path in ROOT.glob("compositionality/*/__init__.py")}
    assert rooms == {room for room in rows if room.startswith("compositionality/") and not room.endswith(".py")}


def test_layers_and_forbidden_imports() -> None:
    """The contracts of import-linter are in pyproject.toml."""
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_light_rooms_start_without_heavy_packages() -> None:
    """Also through what other packages import, which import-linter does not follow."""
    rooms = "compositionality.reward.judge, compositionality.data.problems"
    code = f"import sys, {rooms}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_tasks_start_with_the_standard_library_alone() -> None:
    """A reward worker imports the tasks; every package more is paid for in each of its processes."""
    code = "import sys; before = set(sys.modules); import compositionality.tasks; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded <= set(sys.stdlib_module_names) | {"compositionality"}


def test_files_and_functions_stay_readable() -> None:
    assert all((ROOT / name).read_text().count("\n") > LONGEST_FILE for name in LONG_FILES), "needed no more"
    long = []
    for path in [*ROOT.glob("compositionality/**/*.py"), *ROOT.glob("examples/*.py")]:
        text, name = path.read_text(), path.relative_to(ROOT).as_posix()
        if text.count("\n") > LONGEST_FILE and name not in LONG_FILES:
            long.append(f"{name}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    long.append(f"{name}: {node.name} has {lines} lines")
    assert not long


def test_the_trainer_to_read_stays_short() -> None:
    """The loop with its formulas, and the model, sharding and optimizer below it."""
    files = [ROOT / "compositionality/train" / name for name in ("grpo.py", "policy.py")]
    lines = sum(path.read_text().count("\n") for path in files)
    assert lines < 900, f"{lines} lines: what is not of GRPO itself goes into a module beside them"


LOADED = """
import sys, compositionality.train.grpo as grpo
names = [name for name in sys.modules if name.partition(".")[0] == "compositionality"]
imported = {value.__module__ for value in vars(grpo).values() if hasattr(value, "__module__")}
print(len(names), sum(len(open(sys.modules[name].__file__).readlines()) for name in names))
print(*sorted(imported.intersection(names) - {grpo.__name__}))
"""


def test_grpo_in_one_file_is_one_file() -> None:
    """What a reader follows: modules of ours at the head of grpo.py, and all that come with them, packages too."""
    tree = ast.parse((ROOT / "compositionality/train/grpo.py").read_text())
    modules = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
    ours = sorted(module for module in modules if module.startswith("compositionality"))
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True)
    counts, defined_in = done.stdout.splitlines()
    assert defined_in.split() == ours, "a name is imported from where it is defined"
    assert len(ours) <= 9
    n_loaded, lines = map(int, counts.split())
    assert n_loaded <= 29
    assert lines <= 4310, f"{lines} lines: what only some runs need is imported where they need it"


def test_scripts_are_valid_bash_and_do_not_fix_the_number_of_gpus() -> None:
    scripts = [*ROOT.glob("bash/**/*.sh"), *ROOT.glob("bash/**/*.sbatch")]
    assert scripts
    assert not [path.name for path in scripts if subprocess.run(["bash", "-n", path], check=False).returncode]
    fixed = re.compile(r"(n_gpus_per_node|nproc_per_node)=\d{1,2}\b")
    assert not [path.name for path in scripts if fixed.search(path.read_text())]


def test_every_test_that_has_a_marker_in_conftest_exists() -> None:
    tables = runpy.run_path(str(ROOT / "tests" / "conftest.py"))
    for path, names in (tables["LONG"] | tables["FULL"]).items():
        text = (ROOT / "tests" / path).read_text()
        assert not [name for name in names if f"def {name}(" not in text], path


def test_nothing_refers_to_one_machine() -> None:
    """No absolute path into somebody's folders, no host name but public ones."""
    private = re.compile(r"(?<![\w.{$])/(home|root|work|mnt|opt)/\w")
    found = [name for name, text in tracked_texts().items() if private.search(text)]
    for name, text in tracked_texts().items():
        hosts = {host.lower() for host in re.findall(r"https?://([A-Za-z0-9.-]+)", text)} - PUBLIC_HOSTS
        found += [f"{name}: {host}" for host in hosts if not RESERVED_HOST.fullmatch(host)]
    assert not found


def test_nothing_holds_a_secret() -> None:
    assert not [name for name, text in tracked_texts().items() if SECRETS.search(text)]


def test_p16_the_linter_refuses_what_runs_text_as_code() -> None:
    lines = ["print(eval(input()))", "exec(input())", "subprocess.run(input(), shell=True)", "os.system(input())"]
    text = "\n".join(["import os", "import subprocess", *lines, ""])
    ruff = [sys.executable, "-m", "ruff", "check", "--output-format=concise"]
    file = ["--stdin-filename", "compositionality/planted.py", "-"]
    done = subprocess.run([*ruff, *file], cwd=ROOT, input=text, capture_output=True, text=True, check=False)
    assert re.findall(r"py:(\d):\d+: S(?:102|307|602|605) ", done.stdout) == ["3", "4", "5", "6"], done.stdout
