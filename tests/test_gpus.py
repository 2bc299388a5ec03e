"""Which GPUs a process may use, and the one line that says why it can use none."""

import re
from pathlib import Path

import pytest
from fake_gpus import MIG, UUIDS, fake_torch, install_nvidia_smi

from compositionality import gpus
from compositionality.errors import UserError
from compositionality.gpus import check_gpus_are_used, count_gpus, gpu_share, installed_gpus, visible_gpus, why_no_gpu

A, B = UUIDS[:2]


@pytest.mark.parametrize(
    ("given", "visible"),
    [
        (None, ["0", "1", "2", "3"]),
        ("", []),
        ("-1", []),
        ("2,3", ["2", "3"]),
        (" 1 , 0 ", ["1", "0"]),
        ("3,-1,2", ["3"]),
        ("0,9,1", ["0"]),
        ("0,0", []),
        (f"{B},{A}", [B, A]),
        (B[:8], [B[:8]]),
        ("GPU-", []),
        (f"0,{A}", []),
        ("none", []),
    ],
)
def test_what_cuda_visible_devices_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, visible: list[str]
) -> None:
    install_nvidia_smi(tmp_path, monkeypatch, 4)
    assert visible_gpus({} if given is None else {"CUDA_VISIBLE_DEVICES": given}) == visible


def test_mig_devices_are_gpus_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_nvidia_smi(tmp_path, monkeypatch, 2, mig=MIG)
    assert visible_gpus({}) == [*MIG, "1"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": MIG[1]}) == [MIG[1]]
    assert [gpu.name for gpu in installed_gpus()] == ["NVIDIA H100 80GB HBM3"] * 2


def test_a_machine_without_a_driver_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert visible_gpus({}) == visible_gpus({"CUDA_VISIBLE_DEVICES": "0,1"}) == []
    assert "no NVIDIA driver" in why_no_gpu({})
    check_gpus_are_used()


def test_p18_a_driver_that_does_not_answer_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'Driver/library version mismatch'\nexit 18\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert "nvidia-smi says: Driver/library version mismatch" in why_no_gpu({})


def test_p18_an_old_driver_is_named_although_torch_counts_its_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_nvidia_smi(tmp_path, monkeypatch, 8, "550.54.14")
    fake_torch(monkeypatch, usable=0, found=8)
    assert count_gpus() == 0
    told = r"driver is 550\.54\.14, and CUDA 13 .* needs 580\.65 or newer: update the driver, .* cuda-compat-13-0"
    for check in (check_gpus_are_used, gpus.check_cuda, gpus.check_driver):
        with pytest.raises(UserError, match=told):
            check()


def test_a_compatibility_package_makes_up_for_an_old_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_nvidia_smi(tmp_path, monkeypatch, 1, "550.54.14")
    monkeypatch.setattr(gpus, "_cuda_of_driver", lambda: 13)
    gpus.check_driver()
    fake_torch(monkeypatch, usable=1)
    assert gpus.check_cuda() == "CUDA 13.0 works: 1 × NVIDIA H100, driver 550.54.14"


@pytest.mark.parametrize("driver", ["580.65.06", "580.82.07", "595.10", "580", "[N/A]"])
def test_a_driver_that_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str) -> None:
    install_nvidia_smi(tmp_path, monkeypatch, 1, driver)
    gpus.check_driver()


@pytest.mark.parametrize(
    ("visible", "cuda", "told"),
    [
        ("", "13.0", "CUDA_VISIBLE_DEVICES= hides every GPU of this machine; unset it"),
        ("7", "13.0", "CUDA_VISIBLE_DEVICES=7 hides every GPU of this machine; unset it, or name some of 0, 1"),
        ("0,0", "13.0", r"CUDA_VISIBLE_DEVICES=0,0 hides every .*\(each once\)"),
        ("1", None, r"torch .* is a build for CPUs; run: bash bash/setup\.sh --gpu"),
        ("1", "13.0", r"cannot start CUDA with driver 580\.82\.07: CUDA unknown error - set up wrongly\?"),
    ],
)
def test_p18_every_reason_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str, cuda: str | None, told: str
) -> None:
    install_nvidia_smi(tmp_path, monkeypatch, 2)
    fake_torch(monkeypatch, usable=0, cuda=cuda)
    assert re.search(told, why_no_gpu({"CUDA_VISIBLE_DEVICES": visible}))


def test_hidden_gpus_and_a_build_for_cpus_are_a_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_nvidia_smi(tmp_path, monkeypatch, 2)
    fake_torch(monkeypatch, usable=0, cuda=None)
    check_gpus_are_used()
    assert "this computes on the CPU: torch" in capsys.readouterr().err
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    check_gpus_are_used()
    assert capsys.readouterr().err == ""


def test_lanes_share_a_gpu_equally(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu_share() == 1
    monkeypatch.setenv("LANES_PER_GPU", "4")
    assert gpu_share() == 0.25
