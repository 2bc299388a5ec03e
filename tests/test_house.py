"""The rules of the house, held by tests: what may import what, how long a function may be, what a script must say."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "compositionality"
ROOMS = ("tasks", "data", "stats", "reward", "rollout", "rft", "train", "evaluate", "analysis", "report", "config")
LIGHT_ROOMS = ("tasks", "data", "stats", "reward")
HEAVY = {"torch", "transformers", "vllm", "verl", "ray", "wandb", "matplotlib"}
LONG_BY_DESIGN = {"compositionality/train/grpo.py": 900, "compositionality/train/sft.py": 300}
"""The single-file trainers: one file to read from the loop down to the formulas."""
SOURCES = sorted(PACKAGE.rglob("*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SCRIPTS = sorted((ROOT / "bash").rglob("*.sh"))


def imports(path: Path, *, top_level_only: bool) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def room_of(path: Path) -> str | None:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else None


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_opens_only_onto_the_rooms_before_it(path: Path) -> None:
    room = room_of(path)
    if room is None:
        return
    allowed = set(ROOMS[: ROOMS.index(room) + 1]) | {"errors", "types", "console"}
    for module in imports(path, top_level_only=False):
        if module.startswith("compositionality."):
            assert module.split(".")[1] in allowed, f"{room} imports {module}"
        assert not module.startswith("examples")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_light_rooms_never_import_heavy_packages(path: Path) -> None:
    room = room_of(path)
    everywhere = room in LIGHT_ROOMS or room is None
    named = {module.split(".")[0] for module in imports(path, top_level_only=not everywhere)}
    if everywhere:
        assert not named & HEAVY


@pytest.mark.parametrize(
    "module", ["compositionality.tasks", "compositionality.reward", "compositionality.data.problems"]
)
def test_light_rooms_start_without_heavy_packages(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {sorted(HEAVY)!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", [*SOURCES, *EXAMPLES], ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_and_files_stay_short(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") < LONG_BY_DESIGN.get(path.relative_to(PACKAGE.parent).as_posix(), 401)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 80, f"{node.name} is too long"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_entry_point_says_what_it_reads_and_writes(path: Path) -> None:
    doc = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert re.search(r"\breads?\b", doc, re.IGNORECASE)
    assert re.search(r"\bwrites?\b", doc, re.IGNORECASE)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_script_starts_by_saying_what_it_does(path: Path) -> None:
    comment = "".join(line for line in path.read_text().splitlines()[:12] if line.startswith("#"))
    if path.parent.name.startswith("section"):
        assert "Reads" in comment
        assert "Writes" in comment
    assert len(comment) > 60
    subprocess.run(["bash", "-n", str(path)], check=True)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_script_holds_the_literal_number_of_gpus(path: Path) -> None:
    assert not re.search(r"(n_gpus_per_node|nproc_per_node)=8", path.read_text())


def test_nothing_names_a_place_of_one_machine() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    private = re.compile(r"(?<![\w.{$])/(home|root|work|mnt|opt)/\w")
    for name in tracked:
        if name.endswith((".py", ".sh", ".md", ".yaml", ".toml", ".sbatch")) and name != "tests/test_house.py":
            assert not private.search((ROOT / name).read_text()), f"{name} holds an absolute path"
