"""What the READMEs name exists: paths, links, commands, tests, and the code of "Use it with other tools"."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from compositionality.study.model import Replicate, Request
from compositionality.study.plan import plan
from compositionality.study.variables import variables_of

ROOT = Path(__file__).parents[1]
READMES = sorted(
    path
    for path in ROOT.glob("**/README.md")
    if not {".clients", ".venv", "data"} & set(path.relative_to(ROOT).parts[:-2])
)
RECORDS = ROOT / "results" / "records"
TREES = ("bash", "compositionality", "examples", "tests")
OF_A_STUDY = re.compile(r"(?:data|checkpoints|results)/composition/[\w./-]*\w")
OF_OTHER_PROGRAMS = ("WANDB_", "CUDA_", "OMP_", "ATEN_", "MKL_", "HF_", "NCCL_", "VLLM_")


def ids(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def names(path: str) -> set[str]:
    """Functions that a test file defines."""
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("readme", READMES, ids=ids)
def test_links_lead_somewhere(readme: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", readme.read_text())
    missing = [target for target in targets if "://" not in target and not (readme.parent / target).exists()]
    assert not missing


def named_paths(readme: Path) -> Iterator[str]:
    """Paths of the repository that a README names, in text or in commands."""
    for path in re.findall(r"(?<![\w./{-])([\w.-]+(?:/[\w.{},*-]+)+)", readme.read_text()):
        if path.split("/")[0] in TREES and not re.search(r"NAME|[{}*]", path):
            yield path.rstrip(".,")


@pytest.mark.parametrize("readme", [path for path in READMES if RECORDS not in path.parents], ids=ids)
def test_paths_exist(readme: Path) -> None:
    """From the repository's root, or beside the README. Records name the scripts of their commit."""
    missing = [
        path for path in named_paths(readme) if not any((base / path).exists() for base in (ROOT, readme.parent))
    ]
    assert not missing


@pytest.mark.parametrize("readme", [path for path in READMES if ROOT / "compositionality" in path.parents], ids=ids)
def test_modules_of_the_file_table_exist(readme: Path) -> None:
    """The first column of the table of files, beside the README."""
    rows = re.findall(r"^\| (`[\w./]+\.py`[^|]*)\|", readme.read_text(), re.MULTILINE)
    modules = [name for row in rows for name in re.findall(r"`([\w./]+\.py)`", row)]
    assert not [name for name in modules if not (readme.parent / name).exists()]


@pytest.mark.parametrize("readme", [path for path in READMES if RECORDS not in path.parents], ids=ids)
def test_commands_give_scripts_variables_that_these_read(readme: Path) -> None:
    """``NAME=value … bash bash/SCRIPT.sh``: the script, bash/env.sh or what a machine or a study takes."""
    for given, step in re.findall(r"((?:\b[A-Z_]+=(?:\"[^\"]*\"|\S+) )+)bash bash/([\w/.]+)\.sh", readme.read_text()):
        names = set(re.findall(r"\b([A-Z_]+)=", re.sub(r'"[^"]*"', "", given)))
        unknown = (
            names - {name for name in names if name in (ROOT / f"bash/{step}.sh").read_text()} - variables_of(step)
        )
        assert not {name for name in unknown if not name.startswith(OF_OTHER_PROGRAMS)}, (step, unknown)


def test_files_of_a_study_are_what_the_quickstart_makes() -> None:
    request = Request("section41_42", "tiny", tuple(Replicate("composition", seed) for seed in (0, 1)), report=True)
    made = [path for step in plan(request) for path in step.outputs]
    texts = [path.read_text() for path in (*READMES, *(ROOT / "examples" / "adapters").rglob("*.py"))]
    named = {path for text in texts for path in OF_A_STUDY.findall(text)}
    assert len(named) > 5
    for path in named:  # below or above what a step makes
        assert any(f"{path}/".startswith(f"{one}/") or f"{one}/".startswith(f"{path}/") for one in made), path


def test_every_promise_names_tests_that_exist() -> None:
    text = (ROOT / "compositionality/README.md").read_text()
    held, open_ = text.split("## Promises")[1].split("Not promised yet")
    promised = re.findall(r"^\| (P\d+) \|.*\| (.+) \|$", held, re.MULTILINE)
    assert {name for name, _ in promised} | set(re.findall(r"^\| (P\d+) \|", open_, re.MULTILINE)) == {
        f"P{number}" for number in range(1, 23)
    }
    for promise, tests in promised:
        found = re.findall(r"`([^`]+)::(\w+)`", tests)
        assert found, promise
        for path, name in found:
            assert name in names(path), f"{promise}: {path}::{name}"
            assert f"_p{int(promise[1:]):02d}_" in name, f"{promise}: {name}"


@pytest.mark.parametrize("folder", sorted((ROOT / "bash").glob("*/README.md")), ids=lambda path: path.parent.name)
def test_every_script_of_a_section_is_named_in_its_readme(folder: Path) -> None:
    text = folder.read_text()
    assert not [path.name for path in folder.parent.glob("*.sh") if not re.search(rf"\b{path.stem}\b", text)]


def test_the_first_page_is_short() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") <= 160
    assert len(text.split()) < 2000
