"""bash/setup.sh in a copy of what it reads, with a made-up pip, compiler and driver: nothing is downloaded."""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from fake_gpus import install_nvidia_smi

ROOT = Path(__file__).parents[1]
READ = [
    *("bash/setup.sh", "pyproject.toml", "compositionality/__init__.py", "compositionality/gpus.py"),
    *("compositionality/errors.py", *(path.name for path in ROOT.glob("requirements-*.lock"))),
    "tests/adapters/trl.lock",
]
TORCH = """
from types import SimpleNamespace as S
def init(): raise RuntimeError("no kernel image")
version, __version__ = S(cuda={cuda!r}), "2.11.0"
cuda = S(is_available=lambda: {usable}, device_count=lambda: 1, get_device_name=lambda number: "NVIDIA H100", init=init)
"""
NVCC = "#!/bin/sh\necho 'Cuda compilation tools, release {version}, V{version}.88'\n"


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy with an environment whose pip writes down what it is asked, on a machine with one H100."""
    for name in READ:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "stubs").mkdir()
    pip = 'echo "MAX_JOBS=$MAX_JOBS $FLASH_ATTN_CUDA_ARCHS $*" >>"$(dirname "$0")/../../pip.log"\n'
    script(tmp_path / ".venv/bin/pip", f"#!/bin/sh\n{pip}")
    script(tmp_path / ".venv/bin/python", f'#!/bin/sh\nPYTHONPATH=stubs exec {sys.executable} "$@"\n')
    (tmp_path / "stubs/flash_attn.py").touch()
    (tmp_path / "stubs/torch.py").write_text(TORCH.format(cuda="13.0", usable=True))
    (tmp_path / "bin").mkdir()
    install_nvidia_smi(tmp_path / "bin", monkeypatch, 1)
    for name in ("CUDA_HOME", "MAX_JOBS", "FLASH_ATTN_CUDA_ARCHS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def setup(copy: Path, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "bash/setup.sh", *words], cwd=copy, env={**os.environ, **variables}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def asked(copy: Path) -> str:
    log = copy / "pip.log"
    return log.read_text() if log.is_file() else ""


def test_a_gpu_is_found_and_tried(copy: Path) -> None:
    done = setup(copy, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    assert "set-up: CUDA 13.0 works: 1 × NVIDIA H100, driver 580.82.07\n" in done.stdout
    assert "-r requirements-gpu-small.lock" in asked(copy)


def test_p18_an_old_driver_is_said_before_anything_is_downloaded(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_nvidia_smi(copy / "bin", monkeypatch, 1, "550.54.14")
    done = setup(copy, "--gpu", "--full")
    assert (done.returncode, asked(copy)) == (2, "")
    assert done.stderr.startswith("error: the NVIDIA driver is 550.54.14, and CUDA 13 (torch and vLLM of requirements-")
    assert "needs 580.65 or newer" in done.stderr
    assert "TORCH_INDEX_URL=https://download.pytorch.org/whl/cu126 bash bash/setup.sh --gpu" in done.stderr
    assert done.stderr.count("\n") == 1
    assert setup(copy, "--cpu").returncode == 0


def test_p18_a_gpu_that_torch_cannot_use_is_an_error_at_the_end(copy: Path) -> None:
    (copy / "stubs/torch.py").write_text(TORCH.format(cuda="13.0", usable=False))
    done = setup(copy, "--gpu")
    assert done.returncode == 2
    assert done.stderr == "error: torch 2.11.0 cannot start CUDA with driver 580.82.07: no kernel image\n"


def test_gpu_packages_may_be_installed_where_no_gpu_is(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copy / "stubs/torch.py").write_text(TORCH.format(cuda="13.0", usable=False))
    (copy / "bin/nvidia-smi").unlink()
    done = setup(copy, "--gpu")
    assert done.returncode == 0, done.stderr
    assert "set-up: CUDA was not tested (no GPU is visible: there is no NVIDIA driver" in done.stdout


@pytest.mark.parametrize(
    ("version", "told"), [("", "was not found"), ("12.4", "nvcc is from CUDA 12.4;"), ("13.0", ""), ("13.2", "")]
)
def test_p18_flash_attn_needs_the_compiler_of_cuda_13(copy: Path, version: str, told: str) -> None:
    if version:
        script(copy / "cuda/bin/nvcc", NVCC.format(version=version))
    done = setup(copy, "--gpu", "--flash-attn", CUDA_HOME=str(copy / "cuda"))
    if told:
        assert (done.returncode, asked(copy)) == (2, "")
        assert "error: setup.sh --flash-attn: compiling it needs nvcc of CUDA 13, but" in done.stderr
        assert told in done.stderr
        assert "set CUDA_HOME" in done.stderr
        assert done.stderr.count("\n") == 1
        return
    assert done.returncode == 0, done.stderr
    log = asked(copy).splitlines()
    assert any("-r requirements-gpu.lock" in line for line in log)
    (build,) = [line for line in log if "flash-attn==2.8.3" in line]
    assert "--no-deps --no-build-isolation" in build
    jobs, architectures, *_ = build.split()
    assert int(jobs.removeprefix("MAX_JOBS=")) >= 1
    assert architectures == "90"
    setup(copy, "--gpu", "--flash-attn", CUDA_HOME=str(copy / "cuda"))
    assert asked(copy).splitlines() == log


def test_an_older_driver_takes_a_torch_of_its_cuda(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its CUDA comes with it, not from the lock; a later set-up leaves it alone and does not ask for the driver."""
    install_nvidia_smi(copy / "bin", monkeypatch, 1, "550.54.14")
    (copy / "stubs/torch.py").write_text(TORCH.format(cuda="12.6", usable=True))
    index = {"TORCH_INDEX_URL": "https://host.invalid/whl/cu126"}
    refused = setup(copy, "--gpu", "--full", **index)
    assert (refused.returncode, asked(copy)) == (2, "")
    assert "vLLM is built for CUDA 13, TORCH_INDEX_URL=https://host.invalid/whl/cu126 is for CUDA 12" in refused.stderr
    done = setup(copy, "--gpu", **index)
    assert done.returncode == 0, done.stderr
    assert "set-up: CUDA 12.6 works" in done.stdout
    log = asked(copy)
    assert "torch==2.11.0 --index-url https://host.invalid/whl/cu126\n" in log
    assert "transformers==" in log
    assert "nvidia-" not in log
    again = setup(copy, "--gpu")
    assert (again.returncode, asked(copy)) == (0, log), again.stderr


def test_p18_flash_attn_without_a_gpu_is_refused(copy: Path) -> None:
    done = setup(copy, "--cpu", "--flash-attn")
    assert (done.returncode, asked(copy)) == (2, "")
    assert done.stderr == "error: setup.sh --flash-attn: flash-attn is for GPUs; add --gpu, or leave it out\n"


def test_p18_a_file_system_without_flock_is_one_line(copy: Path) -> None:
    script(copy / "bin/flock", "#!/bin/sh\necho 'flock: 9: No locks available' >&2\nexit 71\n")
    done = setup(copy, "--gpu")
    assert done.returncode == 0
    assert done.stderr == (
        "set-up: no flock on the file system of .venv; start no other set-up until this one has ended\n"
    )


def test_a_client_has_an_environment_of_its_own(copy: Path) -> None:
    shutil.copytree(copy / ".venv", copy / ".clients/trl")
    done = setup(copy, "--client=trl")
    assert (done.returncode, done.stderr) == (0, "")
    assert "set-up: .clients/trl is ready (cpu, trl, " in done.stdout
    assert "-r tests/adapters/trl.lock" in (copy / ".clients/pip.log").read_text()
    assert asked(copy) == ""


@pytest.mark.parametrize("words", [("--client=unknown",), ("--client=trl", "--gpu")])
def test_p18_a_client_without_a_lock_or_with_other_options_is_refused(copy: Path, words: tuple[str, ...]) -> None:
    done = setup(copy, *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"error: setup.sh {words[0]}: ")


@pytest.mark.full
def test_tensorboard_comes_into_the_small_set_up_once_with_what_it_needs(copy: Path) -> None:
    """As pinned for --full, which has it; what the small set has already is not named again."""
    for _ in range(2):
        done = setup(copy, "--cpu", "--tensorboard")
        assert done.returncode == 0, done.stderr
    (line,) = [line for line in asked(copy).splitlines() if "tensorboard==" in line]
    named = dict(pin.split("==") for pin in re.findall(r"\S+==\S+", line))
    small, full = ((ROOT / f"requirements-{name}.lock").read_text().split() for name in ("cpu-small", "cpu"))
    assert {f"{name}=={version}" for name, version in named.items()} <= {*full} - {*small}
    needed = {re.split(r"[^\w.-]", asks)[0].lower() for asks in requires("tensorboard") or () if "extra" not in asks}
    assert needed <= named.keys() | {pin.split("==")[0] for pin in small}
    (copy / "pip.log").unlink()
    assert setup(copy, "--cpu", "--full", "--tensorboard").returncode == 0
    assert "tensorboard==" not in asked(copy)
