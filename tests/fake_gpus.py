"""A machine with GPUs, made up: an nvidia-smi on PATH, and what torch says of CUDA."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

UUIDS = [f"GPU-{letter * 8}-1111-2222-3333-444444444444" for letter in "abcdefgh"]
MIG = [f"MIG-{letter * 8}-1111-2222-3333-444444444444" for letter in "ab"]


def install_nvidia_smi(
    folder: Path, monkeypatch: pytest.MonkeyPatch, gpus: int, driver: str = "580.82.07", mig: Sequence[str] = ()
) -> None:
    """An nvidia-smi that lists so many GPUs; ``mig``: the instances of the first. No libcuda beside it."""
    lines = [f"GPU {number}: NVIDIA H100 80GB HBM3 (UUID: {uuid})" for number, uuid in enumerate(UUIDS[:gpus])]
    lines[1:1] = [f"  MIG 1g.10gb     Device  {number}: (UUID: {uuid})" for number, uuid in enumerate(mig)]
    text = "\n".join(lines)
    answers = {"-L": text, "--query-gpu=driver_version": driver, "--query-gpu=compute_cap": "9.0"}
    cases = "\n".join(f"{question}) echo '{answer}' ;;" for question, answer in answers.items())
    script = f'#!/bin/sh\ncase "$1" in\n{cases}\nesac\n'
    (folder / "nvidia-smi").write_text(script)
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def fake_torch(
    monkeypatch: pytest.MonkeyPatch, usable: int, found: int | None = None, cuda: str | None = "13.0"
) -> None:
    """torch's build and what it can use; ``found``: devices that it counts without asking whether CUDA starts."""

    def init() -> None:
        raise RuntimeError("CUDA unknown error\n- set up wrongly?")

    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: usable > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: usable if found is None else found)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: "NVIDIA H100")
