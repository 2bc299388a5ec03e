"""What of the machine training depends on: driver, torch and its CUDA, bfloat16, packages, GPUs and their memory."""

import importlib.util
import os
import subprocess
import sys
from typing import Any

from compositionality.errors import UserError
from compositionality.gpus import VISIBLE, driver, installed_gpus, visible_gpus, why_no_gpu
from compositionality.train.common.ranks import free_port

ALL_REDUCE = """
import os, sys, torch, torch.distributed as dist
rank, on_gpu = int(os.environ["RANK"]), sys.argv[1] == "gpu"
if on_gpu: torch.cuda.set_device(rank)
dist.init_process_group("nccl" if on_gpu else "gloo")
one = torch.ones(1 << 20, device="cuda" if on_gpu else "cpu")
dist.all_reduce(one)
assert float(one.mean()) == dist.get_world_size(), float(one.mean())
dist.destroy_process_group()
"""
SECONDS = 120


def facts(device: str) -> dict[str, Any]:
    """Figures of the set-up. UserError for a GPU that torch cannot use, or that has no bfloat16."""
    import torch

    found: dict[str, Any] = {
        "device": device,
        "torch_cuda": torch.version.cuda,
        "flash_attn": installed("flash_attn"),
        "vllm": installed("vllm"),
        "verl": installed("verl"),
    }
    if device == "cpu":
        return found
    found |= {"driver": driver(), "visible": os.environ.get(VISIBLE, "all"), "gpus_there": len(installed_gpus())}
    if not torch.cuda.is_available():
        raise UserError(why_no_gpu(os.environ))
    count = torch.cuda.device_count()
    names = [torch.cuda.get_device_name(number) for number in range(count)]
    found |= {"gpus": names, "memory_gib": [_free_and_total(number) for number in range(count)]}
    found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        raise UserError(f"{names[0]} has no bfloat16; the GPU profiles want it: take a GPU from Ampere on")
    return found


def all_reduce(device: str, count: int) -> None:
    """Sum a tensor over ``count`` processes, one a GPU. UserError if that fails or hangs."""
    own = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", ALL_REDUCE, device], env={**os.environ, **own, "RANK": str(rank)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(count)
    ]  # fmt: skip
    try:
        for number, rank in enumerate(ranks):
            _, said = rank.communicate(timeout=SECONDS)
            if rank.returncode:
                raise UserError(f"all-reduce over {count} GPUs: process {number}: {(said.splitlines() or ['?'])[-1]}")
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"all-reduce over {count} GPUs: not done after {SECONDS} s; look at nvidia-smi topo -m, "
            "try NCCL_DEBUG=INFO and NCCL_P2P_DISABLE=1"
        ) from error
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def names_of_gpus(device: str) -> list[str]:
    """Names of the GPUs that the steps run on."""
    return [gpu.name for gpu in installed_gpus()][: len(visible_gpus(os.environ))] if device == "gpu" else []


def installed(package: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(package) is not None


def _free_and_total(number: int) -> list[float]:
    import torch

    return [round(size / 2**30, 1) for size in torch.cuda.mem_get_info(number)]
