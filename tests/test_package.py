"""What pip installs: data files, the command ``compositionality``, its verbs beside examples/; light to start."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
from test_house import HEAVY

from compositionality.__main__ import main
from compositionality.config.verbs import VERBS, helps

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "compositionality"
HEAVY_VERBS = {"export_checkpoint", "influence", "report", "wandb"}
"""They import torch, or altair, to read their settings."""
WITHOUT_EXAMPLE = {"wandb"}
"""examples/wandb.py would hide the package of this name from every example."""


def test_every_data_file_is_in_the_wheel() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    packed = {path for pattern in patterns["compositionality"] for path in PACKAGE.glob(pattern)}
    tracked = subprocess.run(["git", "ls-files", PACKAGE], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = {ROOT / name for name in tracked.split()}
    assert not {path for path in files - packed if path.suffix != ".py" and path.name != "README.md"}
    assert all((path.parent / "__init__.py").is_file() for path in files if path.suffix == ".py")


@pytest.mark.slow
def test_a_wheel_alone_does_what_the_readme_says(tmp_path: Path) -> None:
    """In an environment with the other packages and no clone: the commands, then the lines of Python on their model.

    The model is pretrained for a few steps: what it has learnt, nothing here asks.
    """
    source, wheels, home = (tmp_path / name for name in ("source", "wheels", "home"))
    shutil.copytree(PACKAGE, source / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", wheels, source], check=True)
    venv.create(tmp_path / "venv")
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))  # whose own .pth, that of the clone, is not read
    python = tmp_path / "venv/bin/python"
    subprocess.run([*pip, "--python", python, "install", "--no-deps", "--no-index", *wheels.iterdir()], check=True)
    home.mkdir()
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    parts = (("bash/README.md", "In any folder", "bash"), ("README.md", "From Python", "python"))
    texts = [((ROOT / file).read_text().split(f"## {title}")[1], language) for file, title, language in parts]
    commands, code = (re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[0] for text, language in texts)
    script = (
        f"set -e\n{commands}\npython - <<'EOF'\n{code}\nimport compositionality as c; print(c.__file__, model)\nEOF\n"
    )
    script, shortened = re.subn("(pretrain_tiny profile=smoke) ", r"\1 steps=20 ", script)
    assert shortened == 1
    words = {"cwd": home, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(["bash", "-c", script], check=False, **words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-2:] == [str(site / "compositionality/__init__.py"), "rl/final"]
    for verb in ("preflight", "preflight profile=paper gpus=8 gpu_memory_gb=80", "run_study study=section41_42"):
        done = subprocess.run(["compositionality", *verb.split()], check=False, **words)
        assert done.returncode == 2
        assert re.fullmatch(r"error: a study needs the scripts .*; git clone .*, then run this again\n", done.stderr)


def test_every_example_is_a_verb_and_every_verb_has_help() -> None:
    phrases = {path.stem: ast.get_docstring(ast.parse(path.read_text())) for path in (ROOT / "examples").glob("*.py")}
    assert phrases == {name: text.splitlines()[0] for name, text in helps().items() if name not in WITHOUT_EXAMPLE}
    assert [*helps()] == [*VERBS]
    assert not re.search(r"\S {3,}\S", "\n".join(helps().values())), "a line that lost its break"


def outcome(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit code of the command."""
    monkeypatch.setattr(sys, "argv", ["compositionality", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_help_has_a_line_for_each_verb(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(monkeypatch, *words) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert {name: phrase for name, phrase in lines if name in VERBS} == {
        name: text.splitlines()[0] for name, text in helps().items()
    }


def test_p18_an_unknown_verb_is_answered_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(monkeypatch, "evalute", "models=[m]") == 2
    told = "error: 'evalute': unknown verb; did you mean evaluate? --help lists all verbs\n"
    assert capsys.readouterr() == ("", told)


def test_p18_ctrl_c_while_packages_are_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt  # no signal: where tests run in the background, it is ignored

    monkeypatch.setattr("compositionality.__main__.entry_point", interrupted)
    assert outcome(monkeypatch, "train_sft") == 130
    assert capsys.readouterr() == ("", "interrupted; run the same command again to continue\n")


def test_a_verb_may_have_dashes_and_prints_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(monkeypatch, "audit-data", "--help") == 0
    assert capsys.readouterr().out.startswith(helps()["audit_data"])
    assert outcome(monkeypatch, "completion", "bash") == 0
    assert "audit_data" in capsys.readouterr().out


def printed(code: str) -> str:
    """What a process of its own prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_command_and_its_verbs_start_without_heavy_packages() -> None:
    """And without Hydra, which another package's antlr4 would break: verl's configuration alone needs it."""
    names, heavy = sorted(VERBS.keys() - HEAVY_VERBS), set(HEAVY)
    code = (
        "import sys, compositionality.__main__, compositionality.api\n"
        "from compositionality.config.verbs import entry_point\n"
        f"for name in {names}:\n"
        "    entry_point(name)\n"
        f"    assert not {heavy} & sys.modules.keys(), name\n"
        f"for name in {sorted(HEAVY_VERBS)}:\n"
        "    entry_point(name)\n"
        "    assert not sys.modules.keys() & {'hydra', 'omegaconf', 'antlr4'}, name\n"
    )
    assert printed(code) == ""


def test_the_package_itself_imports_nothing() -> None:
    assert printed("import sys; old = {*sys.modules}; import compositionality; print(*({*sys.modules} - old))") == (
        "compositionality"
    )
